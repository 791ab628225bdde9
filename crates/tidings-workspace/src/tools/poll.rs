//! `poll_events`: events for clients that cannot receive notices.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;
use tokio::time::Instant;

use crate::tools::schema::{Effect, flag, number, object, text, tool as described};
use crate::tools::{ToolAnswer, ToolFailure, arguments};
use crate::{Change, Workspace, WorkspaceError};

const USUAL: usize = 100;
const MOST: usize = 1_000;
/// The longest wait: after more, a client may give up.
const LONGEST: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    cursor: Option<u64>,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    wait_ms: u64,
    limit: Option<usize>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "cursor": number(0, (1 << 53) - 1, "the `cursor` of the last answer; 0 for the \
                beginning; default: only events from now on"),
            "types": {
                "type": "array", "items": { "enum": Change::KINDS },
                "description": "only these kinds of events; default: all",
            },
            "wait_ms": number(0, LONGEST, "how long to wait for the first event; default: 0"),
            "limit": number(1, 1_000, "the most events; default: 100"),
        }),
        &[],
    );
    let event = json!({
        "type": "object",
        "properties": {
            "number": { "type": "integer" },
            "time": text("when, in UTC"),
            "actor": text("the client or program that made the change"),
            "type": text("the kind of change: one of `types`, or one of a \
                later release"),
        },
        "required": ["number", "time", "actor", "type"],
    });
    let output = object(
        &json!({
            "events": { "type": "array", "items": event },
            "cursor": { "type": "integer", "description": "the cursor of the next call" },
            "has_more": flag("whether more events follow now"),
        }),
        &["events", "cursor", "has_more"],
    );
    described(
        "poll_events",
        "Poll events",
        "Returns the events after a cursor, and can wait for the next one. If your client receives \
         notices, watch a resource instead.",
        Effect::Reads,
        (input, output),
    )
}

pub(super) async fn run(workspace: &Workspace, given: Map<String, Value>) -> ToolAnswer {
    let given: Arguments = arguments(given)?;
    let limit = given.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(ToolFailure("`limit` must be from 1 to 1000".to_owned()));
    }
    if given.wait_ms > LONGEST {
        return Err(ToolFailure(format!(
            "`wait_ms` must be at most {LONGEST}; poll again after that"
        )));
    }
    if let Some(unknown) = given.types.iter().find(|kind| !Change::KINDS.contains(&kind.as_str())) {
        let known = Change::KINDS.join("`, `");
        return Err(ToolFailure(format!("there is no type `{unknown}`; use one of `{known}`")));
    }
    let deadline = Instant::now() + Duration::from_millis(given.wait_ms);
    let mut news = workspace.0.store.follow();
    let mut cursor = given.cursor.unwrap_or_else(|| *news.borrow());
    loop {
        // Order: marked as seen before reading, so that no event is missed in between.
        news.mark_unchanged();
        let kinds = given.types.clone();
        let inner = workspace.0.clone();
        let found = inner.blocking(move |inner| inner.store.events(cursor, &kinds, limit)).await?;
        // A filtered poll skips the other events.
        cursor = found.cursor;
        if !found.events.is_empty() || !waits(&mut news, deadline).await? {
            let events = json!(found.events);
            return Ok(json!({ "events": events, "cursor": cursor, "has_more": found.has_more }));
        }
    }
}

/// Waits for the next event; false if none arrives in time.
async fn waits(
    news: &mut tokio::sync::watch::Receiver<u64>,
    deadline: Instant,
) -> Result<bool, ToolFailure> {
    match tokio::time::timeout_at(deadline, news.changed()).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(_)) => Err(WorkspaceError::Interrupted.into()),
        Err(_) => Ok(false),
    }
}
