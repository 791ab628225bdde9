//! What an operator can set of the feeds, with the defaults and their reasons.

use std::path::PathBuf;
use std::time::Duration;

use crate::address::FeedAddress;
use crate::store::{Registration, Retention, Settings};

/// Which feeds, and how they are kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where they are kept.
    pub data: Data,
    /// What this process does with them: it serves and fetches them.
    pub role: Role,
    /// The feeds of the configuration. Those that were added while it ran are there besides.
    pub feeds: Vec<FeedConfig>,
    /// What becomes of feeds of an earlier configuration that this one does not name.
    pub earlier: Earlier,
    /// How much is kept of each feed.
    pub retention: Retention,
    /// Whether feeds may be on private addresses; no, since whoever can add a feed could look
    /// around in the network of this machine otherwise.
    pub allow_private: bool,
    /// Which tools clients get; all of them.
    pub tools: Tools,
}

impl Config {
    /// The defaults, kept there.
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
        }
    }
}

/// What a process does with the feeds of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// It serves them; there is one at a time. The feeds are those of its configuration and those
    /// that were added.
    Server(Fetching),
    /// It serves what another process keeps, as long as that one does, and fetches in its place
    /// when it is gone. The feeds are those that are there.
    Follower(Fetching),
    /// It comes beside a server or without one, as a command does: the feeds of the configuration
    /// stay as they are, and nothing is fetched unless it is asked for.
    Guest(Fetching),
    /// It serves what is there, and writes and fetches nothing. What others write is told as if it
    /// were ours.
    Reader,
}

/// Whether a process may ask feeds. Where it may not, they can still be added and removed.
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
    /// Whether it may ask feeds.
    #[must_use]
    pub fn fetches(self) -> bool {
        match self {
            Self::Server(fetching) | Self::Follower(fetching) | Self::Guest(fetching) => {
                fetching == Fetching::On
            }
            Self::Reader => false,
        }
    }

    /// Whether it may change what is kept.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Reader
    }

    /// Whether it does what it was asked for, and leaves by itself.
    #[must_use]
    pub fn is_guest(self) -> bool {
        matches!(self, Self::Guest(_))
    }
}

/// What becomes of feeds of an earlier configuration that is no longer the one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// They are not served. What is known of them stays, for when they come back.
    #[default]
    Dropped,
    /// They are served on.
    Served,
}

/// Where feeds are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In memory; every item is new after a restart.
    Memory,
    /// In this directory, which is made if it is not there.
    Directory(PathBuf),
}

/// Which tools clients get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tools {
    /// All that can do their work here.
    #[default]
    All,
    /// Those that change nothing that is kept: no feed, no mark and no agent's inbox.
    Reading,
    /// None. Resources and prompts are there still.
    None,
}

/// One feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedConfig {
    /// Where it is.
    pub address: FeedAddress,
    /// A title to be used in place of its own.
    pub title: Option<String>,
    /// The folder it is in, when feeds are exported.
    pub category: Option<String>,
    /// How often it is fetched. By default that depends on how often it changes.
    pub interval: Option<Duration>,
    /// Sent with each request, as for a feed that wants a token. They are kept with the feed.
    pub headers: Vec<(String, String)>,
    /// What is shown in place of the URL, if that has something secret in it.
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
