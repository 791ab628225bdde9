//! Ready-made sources for a hub; one folder each.
//!
//! - [`folder`]: a directory of scripts, prompts and files.
//! - [`feeds`]: RSS, Atom and JSON feeds, read when they are due and kept.
//! - [`workspace`]: artifacts and a graph that many agents share.

mod database;
pub mod feeds;
pub mod folder;
mod settle;
mod temporary;
#[cfg(test)]
mod testing;
mod time;
pub mod workspace;
