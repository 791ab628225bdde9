//! Shared parts of the tests: a hub with a source they can drive, and clients that record every message.

pub(crate) mod client;
pub(crate) mod demo;
pub(crate) mod garden;
pub(crate) mod lines;
pub(crate) mod piped;
pub(crate) mod rogue;
pub(crate) mod troublemaker;

/// A workspace beside whoever else has it open.
pub(crate) fn workspace(directory: &std::path::Path) -> tidings_workspace::Workspace {
    use tidings_workspace::{Config, Workspace};
    Workspace::open(Config::beside(directory)).unwrap()
}
