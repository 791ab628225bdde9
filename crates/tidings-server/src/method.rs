//! The methods of the protocol that a client can ask for.

/// The methods whose requests have parameters of their own.
pub(crate) const KNOWN_METHODS: [&str; 14] = [
    "initialize",
    "completion/complete",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];
