//! The log: every change, numbered and in order.

use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::{Map, Value};
use tidings_store::date::Moment;

use crate::change::{Change, Event};
use crate::store::Store;
use crate::{Refusal, WorkspaceError};

/// A page of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Events {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The `cursor` of the next page.
    pub cursor: u64,
    /// Whether more events follow now.
    pub has_more: bool,
}

impl Store {
    /// The events after a number, of these kinds or of all.
    pub(crate) fn events(
        &self,
        cursor: u64,
        kinds: &[String],
        limit: usize,
    ) -> Result<Events, WorkspaceError> {
        self.read(|connection| {
            let (oldest, last) = (oldest(connection)?, last(connection)?);
            if cursor > last {
                return Err(Refusal::Ahead { cursor, last }.into());
            }
            if cursor < oldest {
                return Err(Refusal::Expired { cursor, oldest }.into());
            }
            let mut events = Vec::new();
            let mut statement = connection.prepare_cached(
                "SELECT number, time, actor, change, kind FROM events WHERE number > ?1
                 AND (?2 = '[]' OR kind IN (SELECT value FROM json_each(?2)))
                 ORDER BY number LIMIT ?3",
            )?;
            let kinds = serde_json::to_string(kinds).unwrap_or_default();
            let room = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let mut rows = statement.query(params![signed(cursor), kinds, room])?;
            while let Some(row) = rows.next()? {
                events.push(of_row(row)?);
            }
            let has_more = events.len() > limit;
            events.truncate(limit);
            let reached = if has_more { events.last().map(|event| event.number) } else { None };
            Ok(Events { cursor: reached.unwrap_or(last), events, has_more })
        })
    }

    /// Cursors with this prefix, newest first.
    pub(crate) fn cursors_like(
        &self,
        typed: &str,
        limit: usize,
    ) -> Result<Vec<String>, WorkspaceError> {
        let (oldest, last) =
            self.read(|connection| Ok((oldest(connection)?, last(connection)?)))?;
        Ok(beginning(typed, oldest, last, limit))
    }

    /// The newest events, newest first.
    pub(crate) fn newest_events(&self, limit: usize) -> Result<Vec<Event>, WorkspaceError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT number, time, actor, change, kind FROM events
                 ORDER BY number DESC LIMIT ?1",
            )?;
            let mut rows = statement.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                events.push(of_row(row)?);
            }
            Ok(events)
        })
    }
}

/// Appends an event; returns its number.
pub(super) fn append(
    connection: &Connection,
    time: Moment,
    actor: &str,
    change: &Change,
) -> Result<u64, WorkspaceError> {
    let text = serde_json::to_string(change)
        .map_err(|error| WorkspaceError::Unreadable(error.to_string()))?;
    connection
        .prepare_cached("INSERT INTO events (time, kind, actor, change) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![time.millis(), change.kind(), actor, text])?;
    Ok(unsigned(connection.last_insert_rowid()))
}

/// Removes old events. It removes a few more than were added, so that a lowered limit is reached
/// gradually.
pub(super) fn drop_old(
    connection: &Connection,
    last: u64,
    kept: u64,
    came: usize,
) -> Result<(), WorkspaceError> {
    let Some(gone) = last.checked_sub(kept).filter(|gone| *gone > 0) else { return Ok(()) };
    connection
        .prepare_cached(
            "DELETE FROM events WHERE number IN
             (SELECT number FROM events WHERE number <= ?1 ORDER BY number LIMIT ?2)",
        )?
        .execute(params![signed(gone), i64::try_from(came * 2 + 16).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// The number of the last event; 0 if there was none.
pub(super) fn last(connection: &Connection) -> Result<u64, WorkspaceError> {
    let mut statement = connection.prepare_cached("SELECT max(number) FROM events")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(unsigned(last.unwrap_or_default()))
}

/// The oldest usable cursor.
fn oldest(connection: &Connection) -> Result<u64, WorkspaceError> {
    let mut statement = connection.prepare_cached("SELECT min(number) FROM events")?;
    let first: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(unsigned(first.unwrap_or(1)).saturating_sub(1))
}

/// Reads an event. An unreadable one is shown as it is, so that it does not hide the others.
fn of_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Event> {
    let text = |column| row.get::<_, String>(column).unwrap_or_default();
    let change = text(3);
    let change = serde_json::from_str(&change).unwrap_or_else(|_| {
        let mut fields: Map<String, Value> = serde_json::from_str(&change).unwrap_or_default();
        // These are fields of the event itself.
        for name in ["number", "time", "actor"] {
            fields.remove(name);
        }
        fields.insert("type".to_owned(), text(4).into());
        Change::Unknown(fields)
    });
    let time = Moment::from_millis(row.get(1).unwrap_or_default());
    Ok(Event { number: unsigned(row.get(0)?), time, actor: text(2), change })
}

/// The largest numbers in a range with these first digits, largest first.
fn beginning(typed: &str, from: u64, to: u64, limit: usize) -> Vec<String> {
    if typed.is_empty() {
        return (from..=to).rev().take(limit).map(|it| it.to_string()).collect();
    }
    let Ok(number) = typed.parse::<u64>() else { return Vec::new() };
    if number.to_string() != typed {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (mut first, mut end) = (Some(number), number.checked_add(1));
    // Once for each number of further digits.
    while let (Some(low), Some(high)) = (first.filter(|it| *it <= to), end) {
        let range = low.max(from)..high.min(to.saturating_add(1));
        let room = range.rev().take(limit).collect::<Vec<_>>();
        found.splice(0..0, room);
        if number == 0 {
            break;
        }
        (first, end) = (low.checked_mul(10), high.checked_mul(10));
    }
    found.truncate(limit);
    found.into_iter().map(|it| it.to_string()).collect()
}

/// Numbers as stored in the database.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Numbers from the database.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_numbers_that_begin_so_come_first() {
        #[track_caller]
        fn check(typed: &str, from: u64, to: u64, expected: &[&str]) {
            assert_eq!(beginning(typed, from, to, 3), expected, "{typed}");
        }
        check("", 0, 5, &["5", "4", "3"]);
        check("", 4, 5, &["5", "4"]);
        check("1", 0, 125, &["125", "124", "123"]);
        check("1", 0, 11, &["11", "10", "1"]);
        check("12", 0, 120, &["120", "12"]);
        check("12", 13, 119, &[]);
        check("0", 0, 120, &["0"]);
        check(
            "7",
            0,
            u64::MAX,
            &["7999999999999999999", "7999999999999999998", "7999999999999999997"],
        );
        check("007", 0, 120, &[]);
        check("x", 0, 120, &[]);
        check("99999999999999999999", 0, 120, &[]);
    }
}
