//! Protocol revisions: the one file that compares them.

use std::collections::BTreeMap;

use rmcp::model::{
    PromptsCapability, ProtocolVersion, ResourcesCapability, ServerCapabilities, ToolsCapability,
};
use tidings_core::{ListKind, ListKinds};

/// The `_meta` key of a modern request's revision.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The list kinds that each protocol revision is notified of.
///
/// By default every revision is notified of all three, except 2025-03-26, which is notified of
/// none; its capabilities say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRules {
    exceptions: BTreeMap<String, ListKinds>,
}

impl VersionRules {
    /// Every revision is notified of everything.
    #[must_use]
    pub fn everything() -> Self {
        Self { exceptions: BTreeMap::new() }
    }

    /// Sets the kinds of one revision.
    #[must_use]
    pub fn with(mut self, version: impl Into<String>, kinds: ListKinds) -> Self {
        self.exceptions.insert(version.into(), kinds);
        self
    }

    /// The kinds of this revision.
    #[must_use]
    pub fn lists_for(&self, version: &str) -> ListKinds {
        self.exceptions.get(version).copied().unwrap_or(ListKinds::ALL)
    }
}

impl Default for VersionRules {
    fn default() -> Self {
        Self::everything().with(ProtocolVersion::V_2025_03_26.as_str(), ListKinds::EMPTY)
    }
}

/// The capabilities for a revision. A hub offers tools, prompts and resources even while a list is
/// empty, because it may fill later.
pub(crate) fn capabilities(lists: ListKinds) -> ServerCapabilities {
    let told = |kind| Some(lists.contains(kind));
    let mut tools = ToolsCapability::default();
    tools.list_changed = told(ListKind::Tools);
    let mut prompts = PromptsCapability::default();
    prompts.list_changed = told(ListKind::Prompts);
    let mut resources = ResourcesCapability::default();
    resources.list_changed = told(ListKind::Resources);
    resources.subscribe = Some(true);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(tools);
    capabilities.prompts = Some(prompts);
    capabilities.resources = Some(resources);
    capabilities.completions = Some(serde_json::Map::new());
    capabilities.logging = Some(serde_json::Map::new());
    capabilities
}

/// Whether a revision has no sessions: each request identifies its client.
pub(crate) fn is_modern(version: &str) -> bool {
    version >= ProtocolVersion::NO_INITIALIZE.as_str()
}

/// Whether this server speaks the revision of this name.
pub(crate) fn is_known(version: &str) -> bool {
    ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version)
}

/// Whether updates of this revision contain the resource's title.
pub(crate) fn titles_updates(version: &ProtocolVersion) -> bool {
    *version == ProtocolVersion::V_2025_06_18
}

/// Whether streams of this revision begin with an event that has an id and no message, so that a
/// client can reconnect to them.
pub(crate) fn primes_streams(version: &ProtocolVersion) -> bool {
    version.as_str() >= ProtocolVersion::V_2025_11_25.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_2025_03_26_is_told_of_no_lists() {
        let rules = VersionRules::default();
        for version in ProtocolVersion::KNOWN_VERSIONS {
            let expected = if *version == ProtocolVersion::V_2025_03_26 {
                ListKinds::EMPTY
            } else {
                ListKinds::ALL
            };
            assert_eq!(rules.lists_for(version.as_str()), expected, "{version}");
        }
    }

    #[test]
    fn capabilities_say_what_is_told() {
        let tools_only: ListKinds = [ListKind::Tools].into_iter().collect();
        let capabilities = capabilities(tools_only);
        assert_eq!(capabilities.tools.unwrap().list_changed, Some(true));
        assert_eq!(capabilities.prompts.unwrap().list_changed, Some(false));
        let resources = capabilities.resources.unwrap();
        assert_eq!((resources.list_changed, resources.subscribe), (Some(false), Some(true)));
    }
}
