//! Protocol revisions: the only file that compares them.

use rmcp::model::ProtocolVersion;

/// The two ways in which notices work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Era {
    /// Up to 2025-11-25: sessions, `resources/subscribe`, one stream of notices.
    Legacy,
    /// From 2026-07-28: every request is independent, and notices come on `subscriptions/listen`.
    Modern,
}

/// The newest revision of the legacy era.
pub(crate) const NEWEST_LEGACY: ProtocolVersion = ProtocolVersion::LATEST_WITH_INITIALIZE;
/// The newest revision of the modern era.
pub(crate) const NEWEST_MODERN: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// The era of a revision.
pub(crate) fn era(version: &ProtocolVersion) -> Era {
    if version.has_initialize() { Era::Legacy } else { Era::Modern }
}

impl std::fmt::Display for Era {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_revision_has_its_era() {
        for version in ProtocolVersion::KNOWN_VERSIONS {
            let expected = if *version == NEWEST_MODERN { Era::Modern } else { Era::Legacy };
            assert_eq!(era(version), expected, "{version}");
        }
    }
}
