//! Lanes of the timeline: the rows of a span of time as marks on its axis.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::Log;
use super::row::{Lane, Row, Status, millis};

/// The cells of the axis. A viewer draws them over any width.
const CELLS: usize = 480;
/// The lanes, in order.
const LANES: [Lane; 5] = [Lane::Calls, Lane::Reads, Lane::Notices, Lane::Asked, Lane::Log];

/// How the requests of a mark ended.
const FINE: u8 = 0;
const FAILED: u8 = 1;
const WAITS: u8 = 2;

/// Rows that follow each other without a gap: the first cell, the last one, and how they ended.
type Mark = (usize, usize, u8);

impl Log {
    /// The marks of each lane between two times in milliseconds, and the cells in which the
    /// connection was lost. An open request lasts until now.
    pub(crate) fn lanes(&self, from: f64, to: f64, now: SystemTime) -> Value {
        let axis = Axis { from, to: to.max(from + 1.0), now: millis(now) };
        let mut lanes: BTreeMap<&str, Vec<Mark>> =
            LANES.into_iter().map(|lane| (lane.name(), Vec::new())).collect();
        let mut lost = Vec::new();
        for row in &self.rows {
            let Some((first, last)) = axis.cells(row) else { continue };
            if row.what == "connection lost" {
                lost.push(first);
            } else if let Some(marks) = lanes.get_mut(row.lane.name()) {
                add(marks, (first, last, ending(row)));
            }
        }
        lost.dedup();
        json!({
            "from": axis.from, "to": axis.to, "cells": CELLS, "lanes": lanes, "lost": lost,
            "order": LANES.map(Lane::name), "first": self.rows.front().map(|row| millis(row.at)),
        })
    }
}

/// Adds a mark, or extends the last one of its kind.
fn add(marks: &mut Vec<Mark>, (first, last, kind): Mark) {
    // Rows come in the order of their begin, so the marks of one kind that overlap are the latest.
    let same = marks.iter_mut().rev().take(3).find(|mark| mark.2 == kind);
    match same {
        Some(mark) if (mark.0..=mark.1).contains(&first) => mark.1 = mark.1.max(last),
        _ => marks.push((first, last, kind)),
    }
}

fn ending(row: &Row) -> u8 {
    match row.status {
        Status::Failed(_) => FAILED,
        Status::Waits => WAITS,
        _ => FINE,
    }
}

struct Axis {
    from: f64,
    to: f64,
    now: f64,
}

impl Axis {
    /// The cells that a row covers, if any.
    fn cells(&self, row: &Row) -> Option<(usize, usize)> {
        let begin = millis(row.at);
        let end = match (&row.status, row.took) {
            (Status::Waits, _) => self.now.max(begin),
            (_, Some(took)) => begin + took.as_secs_f64() * 1e3,
            _ => begin,
        };
        if end < self.from || begin > self.to {
            return None;
        }
        Some((self.cell(begin), self.cell(end)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the share is between 0 and 1"
    )]
    fn cell(&self, at: f64) -> usize {
        let share = ((at - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        ((share * CELLS as f64) as usize).min(CELLS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Way;
    use super::*;
    use std::time::Duration;

    fn at(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
    }

    fn log(rows: &[(u64, Lane, Status, u64)]) -> Log {
        let mut log = Log::default();
        for (began, lane, status, took) in rows {
            let mut row = Row::new(at(*began), *lane, Way::Sent, "x");
            row.status = status.clone();
            row.took = (*took > 0).then(|| Duration::from_millis(*took));
            log.change(row, None, 1);
        }
        log
    }

    #[test]
    fn a_row_is_a_mark_as_long_as_it_took() {
        let log = log(&[
            (0, Lane::Calls, Status::Answered, 500),
            (500, Lane::Calls, Status::Failed("-32602".to_owned()), 0),
            (750, Lane::Calls, Status::Waits, 0),
            (750, Lane::Notices, Status::Plain, 0),
            (5_000, Lane::Notices, Status::Plain, 0),
        ]);
        let lanes = log.lanes(0.0, 1000.0, at(875));
        assert_eq!(
            lanes["lanes"]["calls"],
            json!([[0, 240, FINE], [240, 240, FAILED], [360, 420, WAITS]])
        );
        assert_eq!(lanes["lanes"]["notices"], json!([[360, 360, FINE]]));
        assert_eq!((&lanes["first"], &lanes["lanes"]["asked"]), (&0.0.into(), &json!([])));
    }

    #[test]
    fn many_rows_are_no_more_marks_than_there_are_cells() {
        let rows: Vec<_> = (0..10_000).map(|ms| (ms, Lane::Notices, Status::Plain, 0)).collect();
        let lanes = log(&rows).lanes(0.0, 10_000.0, at(10_000));
        assert!(lanes["lanes"]["notices"].as_array().unwrap().len() <= CELLS);
    }

    #[test]
    fn a_loss_goes_across_all_lanes() {
        let mut log = Log::default();
        log.change(Row::new(at(500), Lane::Transport, Way::Here, "connection lost"), None, 1);
        assert_eq!(log.lanes(0.0, 1000.0, at(1000))["lost"], json!([240]));
    }
}
