//! Ready-made sources for a hub; one folder each.
//!
//! - [`folder`]: a directory of scripts, prompts and files.

pub mod folder;
