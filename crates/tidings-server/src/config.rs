//! The configuration of a hub, with defaults and their reasons.

use rmcp::model::Icon;

use crate::era::VersionRules;
use crate::windows::Merging;

/// The identity and behaviour of a hub.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// A title for people.
    pub title: Option<String>,
    /// A description in one sentence.
    pub description: Option<String>,
    /// Its icons.
    pub icons: Option<Vec<Icon>>,
    /// The address of its website.
    pub website_url: Option<String>,
    /// Instructions for models.
    pub instructions: Option<String>,
    /// How changes that follow each other are merged.
    pub merging: Merging,
    /// The list kinds that each protocol revision is notified of.
    pub versions: VersionRules,
    /// The notices of a new legacy session.
    pub greeting: Greeting,
    /// The number of items on a page of a list: 500, about 100 KiB of tools.
    pub page_size: usize,
    /// Limits.
    pub limits: Limits,
}

impl Config {
    /// The defaults, for a server of this name and version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            icons: None,
            website_url: None,
            instructions: None,
            merging: Merging::default(),
            versions: VersionRules::default(),
            greeting: Greeting::default(),
            page_size: 500,
            limits: Limits::default(),
        }
    }
}

/// The notices of a new legacy session after `notifications/initialized`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Greeting {
    /// One notice for each list kind; then only real changes.
    #[default]
    Announce,
    /// None; only real changes.
    Silent,
}

/// Limits that protect the hub from its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// URIs that one session or listen request may watch: 1,000. Each counts once per 256 bytes. A
    /// listen request with more is refused.
    pub subscriptions_per_listener: usize,
    /// URIs watched by all together: a million, about 400 MB.
    pub subscriptions: usize,
    /// Open listen requests of one stdio connection: 64.
    pub listens_per_connection: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            subscriptions_per_listener: 1_000,
            subscriptions: 1_000_000,
            listens_per_connection: 64,
        }
    }
}
