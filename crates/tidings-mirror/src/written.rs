//! Serialises times, differences and outcomes as JSON.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmcp::model::CallToolResult;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use tidings_core::Diff;

/// A time, as milliseconds since 1970.
pub(crate) fn time<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    duration(&at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(), to)
}

/// A duration, in milliseconds.
pub(crate) fn duration<S: Serializer>(length: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

/// An optional duration.
#[expect(clippy::ref_option, reason = "fields are given like this")]
pub(crate) fn maybe_duration<S: Serializer>(
    length: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match length {
        Some(length) => duration(length, to),
        None => to.serialize_none(),
    }
}

/// The difference of two lists.
pub(crate) fn diff<T: Serialize, S: Serializer>(
    diff: &Diff<Arc<T>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let mut object = to.serialize_struct("Diff", 4)?;
    object.serialize_field("added", &diff.added)?;
    object.serialize_field("removed", &diff.removed)?;
    object.serialize_field("changed", &diff.changed)?;
    object.serialize_field("reordered", &diff.reordered)?;
    object.end()
}

/// The outcome of a call: its `result`, or the `error`.
pub(crate) fn outcome<S: Serializer>(
    outcome: &Result<CallToolResult, Arc<str>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum CallOutcome<'a> {
        Result(&'a CallToolResult),
        Error(&'a str),
    }
    match outcome {
        Ok(result) => CallOutcome::Result(result).serialize(to),
        Err(error) => CallOutcome::Error(error).serialize(to),
    }
}
