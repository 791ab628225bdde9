//! The configuration of feeds, with the defaults and their reasons.

use std::path::PathBuf;
use std::time::Duration;

use tidings_server::Labels;

use crate::address::FeedAddress;
use crate::store::{Registration, Retention, Settings};

/// The feeds, and how they are stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where they are stored.
    pub data: Data,
    /// The role of this process. Default: it serves and fetches the feeds.
    pub role: Role,
    /// The feeds of the configuration. Feeds added at run time are served too.
    pub feeds: Vec<FeedConfig>,
    /// Whether feeds of an earlier configuration are still served.
    pub earlier: Earlier,
    /// How many items are stored for each feed.
    pub retention: Retention,
    /// Whether feeds may be on private addresses. Default: no, because anyone who adds feeds could
    /// explore the network of this machine.
    pub allow_private: bool,
    /// The tools for clients. Default: all.
    pub tools: Tools,
    /// Clients with one of these labels get the tools that change anything; others read. Without
    /// labels, everyone gets them.
    pub writers: Labels,
}

impl Config {
    /// The defaults, with this storage.
    #[must_use]
    pub fn new(data: Data) -> Self {
        Self {
            data,
            role: Role::default(),
            feeds: Vec::new(),
            earlier: Earlier::default(),
            retention: Retention::default(),
            allow_private: false,
            tools: Tools::default(),
            writers: Labels::NONE,
        }
    }
}

/// The role of a process for the feeds of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It serves them, one process at a time. The feeds are those of its configuration and those
    /// that were added.
    Server(Fetching),
    /// It serves the feeds that another process fetches, and fetches in its place after that one
    /// ended. The feeds are the stored ones.
    Follower(Fetching),
    /// It runs beside a server or without one, as a command does. The configured feeds stay as they
    /// are, and nothing is fetched unless requested.
    Guest(Fetching),
    /// It serves the stored feeds, and writes and fetches nothing. Changes by other processes are
    /// announced like its own.
    Reader,
}

/// Whether a process may fetch. If not, feeds can still be added and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fetching {
    /// It may.
    #[default]
    On,
    /// It may not.
    Off,
}

impl Default for Role {
    fn default() -> Self {
        Self::Server(Fetching::On)
    }
}

impl Role {
    /// Whether it may fetch.
    #[must_use]
    pub fn fetches(self) -> bool {
        match self {
            Self::Server(fetching) | Self::Follower(fetching) | Self::Guest(fetching) => {
                fetching == Fetching::On
            }
            Self::Reader => false,
        }
    }

    /// Whether it may write to the store.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Reader
    }

    /// Whether it does one task and ends by itself.
    #[must_use]
    pub fn is_guest(self) -> bool {
        matches!(self, Self::Guest(_))
    }
}

/// What happens to feeds of an earlier configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// They are not served. Their items stay, in case they return.
    #[default]
    Dropped,
    /// They are still served.
    Served,
}

/// Where feeds are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In memory; every item is new after a restart.
    Memory,
    /// In this directory, which is created if missing.
    Directory(PathBuf),
}

/// The tools for clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tools {
    /// All that can work in this role.
    #[default]
    All,
    /// Those that write nothing: no feed, no mark and no agent's inbox.
    Reading,
    /// None. Resources and prompts are still offered.
    None,
}

/// One feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedConfig {
    /// Its address.
    pub address: FeedAddress,
    /// A title instead of its own.
    pub title: Option<String>,
    /// Its folder in exports.
    pub category: Option<String>,
    /// The time between fetches. By default it depends on how often the feed changes.
    pub interval: Option<Duration>,
    /// Sent with each request, for example a token. They are stored with the feed.
    pub headers: Vec<(String, String)>,
    /// Shown in place of the URL, if that contains a secret.
    pub shown_url: Option<String>,
}

impl FeedConfig {
    /// The feed at this address.
    #[must_use]
    pub fn new(address: FeedAddress) -> Self {
        let (title, category, interval, headers) = (None, None, None, Vec::new());
        Self { address, title, category, interval, headers, shown_url: None }
    }

    pub(crate) fn registration(&self) -> Registration {
        let filled = |text: &Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Registration {
            address: self.address.clone(),
            title: filled(&self.title),
            category: filled(&self.category),
            settings: Settings {
                interval: self.interval.map(|interval| interval.as_secs()),
                headers: self.headers.clone(),
                shown_url: self.shown_url.clone(),
            },
        }
    }
}
