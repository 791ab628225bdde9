//! What sources with state on disk share, and nothing that one of them has alone.
//!
//! - [`database`]: how a `SQLite` database begins, is migrated and read.
//! - [`temporary`]: temporary files, locked while they are in use.
//! - [`settle`]: saves of several steps, taken as one.
//! - [`mod@date`] and [`time`]: moments, read from any text and written as the protocol has them.
//! - [`mime`]: what kind of content a file holds.
//! - [`testing`]: a hub behind a pipe, for tests of sources.

pub mod database;
pub mod date;
pub mod mime;
pub mod settle;
pub mod temporary;
pub mod testing;
pub mod time;
