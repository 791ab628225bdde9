//! `tidings workspace log`: prints past and new events.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_workspace::{Event, Refusal, WorkspaceError};

use super::{Desk, change};
use crate::args::WorkspaceLog;
use crate::present::Output;
use crate::present::text::{cut, one_line};

/// The default number of events.
const NEWEST: usize = 20;
/// Events read in one step.
const STEP: usize = 1000;
/// How often other processes' events are looked for: soon enough for people, cheap for a disk.
const LOOK: Duration = Duration::from_millis(200);

pub(super) async fn run(desk: &Desk<'_>, args: &WorkspaceLog) -> Result<()> {
    let limit = args.limit.map(|limit| limit as usize);
    let mut cursor = match args.since {
        Some(since) => since,
        None => before_newest(desk, args, limit.unwrap_or(NEWEST))?,
    };
    let mut room = limit.unwrap_or(usize::MAX);
    loop {
        let found = desk
            .workspace
            .events(cursor, &args.types, room.min(STEP))
            .map_err(|error| desk.explained(error))?;
        room -= found.events.len();
        cursor = found.cursor;
        print(&desk.output, &found.events)?;
        if room == 0 || (!found.has_more && !args.follow) {
            return Ok(());
        }
        if !found.has_more {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                interrupted = tokio::signal::ctrl_c() => {
                    return interrupted.context("waiting for signals");
                }
            }
        }
    }
}

/// The number after which `limit` events of these kinds follow.
fn before_newest(desk: &Desk<'_>, args: &WorkspaceLog, limit: usize) -> Result<u64> {
    let explained = |error| desk.explained(error);
    if args.types.is_empty() {
        let newest = desk.workspace.newest_events(limit).map_err(explained)?;
        return Ok(newest.last().map_or(0, |event| event.number - 1));
    }
    // Kinds may be rare, so the log is read from its beginning and the newest are kept.
    let mut numbers = VecDeque::new();
    let mut cursor = first(desk)?;
    loop {
        let found = desk.workspace.events(cursor, &args.types, STEP).map_err(explained)?;
        for event in &found.events {
            if numbers.len() == limit {
                numbers.pop_front();
            }
            numbers.push_back(event.number);
        }
        cursor = found.cursor;
        if !found.has_more {
            return Ok(numbers.front().map_or(cursor, |number| number - 1));
        }
    }
}

/// The oldest number after which no event is missing.
fn first(desk: &Desk<'_>) -> Result<u64> {
    match desk.workspace.events(0, &[], 1) {
        Err(WorkspaceError::Refused(Refusal::Expired { oldest, .. })) => Ok(oldest),
        Err(error) => Err(desk.explained(error)),
        Ok(_) => Ok(0),
    }
}

fn print(output: &Output, events: &[Event]) -> Result<()> {
    for event in events {
        if output.json {
            output.object(event)?;
            continue;
        }
        let (number, time, kind) = (event.number, event.time, event.change.kind());
        let (actor, what) = (one_line(&event.actor), one_line(&change::words(&event.change)));
        let line = format!("{number}  {time:.3}  {actor}  {kind}  {what}");
        output.raw(&output.width.map_or_else(|| line.clone(), |width| cut(&line, width).into()))?;
    }
    Ok(())
}
