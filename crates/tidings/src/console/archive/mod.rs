//! Saved sessions: a server with everything recorded of it, as lines of JSON in a file.
//!
//! The first line names the format, its version and the server. Each further line is one thing: an
//! item of a list, a resource, a version of it, a row of the timeline, a call. The last line counts
//! them, so that a file that was cut is known.

mod masking;
mod reading;
mod writing;

pub(crate) use self::masking::SessionSecrets;
pub(crate) use self::reading::{Archive, read, span, time};
pub(crate) use self::writing::Snapshot;

/// The first field of the first line.
const FORMAT: &str = "tidings-session";
/// The version of the format that is written. Files of a newer version are refused.
const VERSION: u64 = 1;

/// The ending of a file with a saved session.
pub(crate) const ENDING: &str = ".tidings";

/// Where a server comes from that is a saved session.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveNote {
    pub(crate) file: String,
    /// When it was saved, in milliseconds.
    pub(crate) saved: f64,
    /// Where the file was cut, in words.
    pub(crate) cut: Option<String>,
    pub(crate) stderr: Vec<String>,
}

impl ArchiveNote {
    /// Its state, in place of a connection's.
    pub(crate) fn state(&self) -> serde_json::Value {
        let reason = match &self.cut {
            Some(cut) => format!("saved session; {cut}"),
            None => "saved session".to_owned(),
        };
        serde_json::json!({ "state": "saved", "reason": reason, "file": self.file,
            "at": self.saved })
    }
}
