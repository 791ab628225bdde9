//! What an operator can set of a hub, with the defaults and their reasons.

use rmcp::model::Icon;

use crate::era::VersionRules;
use crate::windows::Merging;

/// How a hub introduces itself and how it behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The server's name, as clients see it.
    pub name: String,
    /// The server's version, as clients see it.
    pub version: String,
    /// A title for people.
    pub title: Option<String>,
    /// What the server is for, in a sentence.
    pub description: Option<String>,
    /// Pictures of it.
    pub icons: Option<Vec<Icon>>,
    /// Where a person can read more.
    pub website_url: Option<String>,
    /// What a model should know of this server.
    pub instructions: Option<String>,
    /// How changes that follow each other are merged.
    pub merging: Merging,
    /// Which list kinds each protocol revision is told of.
    pub versions: VersionRules,
    /// What a fresh legacy session hears.
    pub greeting: Greeting,
    /// How many items a page of a list has: 500, about 100 KiB of tools.
    pub page_size: usize,
    /// What the hub refuses to exceed.
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

/// What a fresh legacy session hears after `notifications/initialized`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Greeting {
    /// One notice for each list kind it is told of; then only real changes.
    #[default]
    Announce,
    /// Nothing; only real changes.
    Silent,
}

/// What a hub refuses to exceed, so that no client can use it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// URIs that one session or one listen request may watch: 1,000. Each counts once for every 256
    /// bytes it has. A listen request with more is refused as a whole.
    pub subscriptions_per_listener: usize,
    /// URIs watched by all of them together: a million, about 400 MB.
    pub subscriptions: usize,
    /// Listen requests open at once on one stdio connection: 64.
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
