//! Building blocks shared by the sources that keep state on disk.
//!
//! ```
//! use std::path::Path;
//!
//! use tidings_store::date::Moment;
//! use tidings_store::mime;
//!
//! let moment = Moment::parse("Thu, 01 Jan 2004 19:48:21 EST").expect("a date");
//! assert_eq!(moment.to_string(), "2004-01-02T00:48:21Z");
//! assert_eq!(mime::of(Path::new("notes.md"), b"# Notes"), "text/markdown");
//! ```
//!
//! - [`database`]: open, migrate and read `SQLite` databases.
//! - [`temporary`]: temporary files, locked while they are in use.
//! - [`lock`]: lock files that name their holder.
//! - [`watch`]: follow files through the events of the system.
//! - [`settle`]: wait until a save in several steps is complete.
//! - [`mod@date`]: moments, parsed from any text and written as the protocol needs.
//! - [`mime`]: the MIME type of a file.
//! - [`testing`]: a hub behind a pipe, for tests of sources.

pub mod database;
pub mod date;
pub mod lock;
pub mod mime;
pub mod settle;
pub mod temporary;
pub mod testing;
pub mod watch;
