//! The protocol to speak, as text.

use tidings_mirror::Protocol;
use tidings_mirror::model::ProtocolVersion;

/// Parses `auto`, `legacy`, `modern` or a revision.
pub(crate) fn parse(text: &str) -> Result<Protocol, String> {
    match text {
        "auto" => return Ok(Protocol::Auto),
        "legacy" => return Ok(Protocol::Legacy),
        "modern" => return Ok(Protocol::Modern),
        _ => {}
    }
    let known = ProtocolVersion::KNOWN_VERSIONS;
    known
        .iter()
        .find(|version| version.as_str() == text)
        .map(|version| Protocol::Version(version.clone()))
        .ok_or_else(|| {
            let known: Vec<_> = known.iter().map(ProtocolVersion::as_str).collect();
            format!("use one of auto, legacy, modern, {}", known.join(", "))
        })
}

/// The text that parses to this protocol.
pub(crate) fn text(protocol: &Protocol) -> String {
    match protocol {
        Protocol::Legacy => "legacy".to_owned(),
        Protocol::Modern => "modern".to_owned(),
        Protocol::Version(version) => version.as_str().to_owned(),
        _ => "auto".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_and_its_text_are_the_same() {
        for text in ["auto", "legacy", "modern", "2025-06-18"] {
            assert_eq!(super::text(&parse(text).unwrap()), text);
        }
        assert!(parse("2025").unwrap_err().contains("2025-11-25"));
    }
}
