//! Ready-made sources for a hub; one folder each.
//!
//! - [`folder`]: a directory of scripts, prompts and files.
//! - [`feeds`]: what is read of news feeds, whatever their format and their faults.

pub mod feeds;
pub mod folder;
mod time;
