//! The timeline of one server: every message with its answer, what caused it, and what changed.

pub(crate) mod filter;
mod head;
mod lanes;
mod row;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tidings_mirror::{Direction, Message, Record};

pub(crate) use self::filter::Filter;
use self::head::{MessageHead, head, lane};
pub(crate) use self::row::{Lane, Row, Status, Way, fact, millis};

/// The most rows.
const ROWS: usize = 20_000;
/// The most bytes of rows.
const BYTES: usize = 64 << 20;
/// The most rows of one answer.
pub(crate) const PAGE: usize = 200;
/// The open requests that wait for an answer.
const OPEN: usize = 4_096;

/// The rows of one server, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Log {
    rows: VecDeque<Row>,
    // Invariant: the sum of the weights of the rows.
    bytes: usize,
    /// The number of the last row.
    last: u64,
    /// Records that were dropped before they were seen.
    missed: u64,
    /// Rows of each lane, dropped ones included.
    counts: HashMap<Lane, u64>,
    open: HashMap<(Way, String), u64>,
    /// The rows of requests by their progress token.
    tokens: HashMap<String, u64>,
    /// The last notice of each list and resource, until something was read because of it.
    notices: HashMap<String, u64>,
    /// The rows of notices, by the number of their message.
    numbers: HashMap<u64, u64>,
    /// Questions whose call is known before their row is there: the id, and the tool.
    questions: HashMap<String, String>,
}

/// What a record meant, as far as the rest of the console wants to know.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Resources that were announced, with the number of the message.
    pub(crate) announced: Vec<String>,
    /// Resources that were read because of a notice, and answered.
    pub(crate) reread: Vec<String>,
    pub(crate) notices: u64,
}

impl Way {
    fn opposite(self) -> Self {
        match self {
            Self::Sent => Self::Received,
            _ => Self::Sent,
        }
    }
}

impl std::hash::Hash for Way {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl Log {
    /// Adds records of the mirror; `missed` were dropped before.
    pub(crate) fn record(&mut self, records: &[Record], missed: u64, revision: u64) -> Noted {
        self.missed += missed;
        let mut noted = Noted::default();
        for record in records {
            match record {
                Record::Message(message) => self.message(message, revision, &mut noted),
                Record::Fact(it) => {
                    let (what, subject, status) = fact(&it.what);
                    let mut row = Row::new(it.at, Lane::Transport, Way::Here, what);
                    (row.subject, row.status) = (subject, status);
                    self.add(row, revision);
                }
                _ => {}
            }
        }
        noted
    }

    fn message(&mut self, message: &Arc<Message>, revision: u64, noted: &mut Noted) {
        let way = match message.direction {
            Direction::Sent => Way::Sent,
            Direction::Received => Way::Received,
        };
        match head(message.text()) {
            MessageHead::Request { id, method, subject, token } => {
                let mut row = Row::of(message, lane(&method), way, &method);
                row.status = Status::Waits;
                row.cause = self.cause_of_request(&method, &subject, way);
                row.subject = subject;
                let number = self.add(row, revision);
                let tool = if way == Way::Received { self.questions.remove(&id) } else { None };
                if self.open.len() < OPEN {
                    self.open.insert((way, id.clone()), number);
                }
                if let Some(tool) = tool {
                    self.belongs(&id, &tool, revision);
                }
                if let Some(token) = token {
                    self.tokens.insert(token, number);
                }
            }
            MessageHead::Notice { method, subject, about } => {
                let mut row = Row::of(message, lane(&method), way, &method);
                if method == "notifications/message" {
                    "log".clone_into(&mut row.what);
                }
                row.subject = subject;
                let is_progress = method == "notifications/progress";
                if is_progress {
                    row.cause = about.as_ref().and_then(|token| self.tokens.get(token).copied());
                }
                let number = self.add(row, revision);
                if let ("notifications/cancelled", Some(id)) = (&*method, &about) {
                    self.cancelled(way, id, revision);
                }
                if way == Way::Received && !is_progress && method != "notifications/message" {
                    noted.notices += 1;
                    self.numbers.insert(message.number, number);
                    if let Some(about) = about {
                        if method.ends_with("/updated") {
                            noted.announced.push(about.clone());
                        }
                        self.notices.insert(about, number);
                    }
                }
            }
            MessageHead::Answer { id, error } => {
                self.answered(message, way, &id, error, revision, noted);
            }
            MessageHead::Unclear => {
                let mut row = Row::of(message, Lane::Other, way, "message");
                row.subject = format!("{} bytes, not shown whole", message.length);
                self.add(row, revision);
            }
        }
    }

    fn cancelled(&mut self, way: Way, id: &str, revision: u64) {
        let asked = self.open.remove(&(way, id.to_owned()));
        if let Some(row) = asked.and_then(|number| self.row_mut(number)) {
            (row.status, row.revision) = (Status::Failed("cancelled".to_owned()), revision);
        }
    }

    /// A notice is followed by a read of its resource, or by a listing.
    fn cause_of_request(&mut self, method: &str, subject: &str, way: Way) -> Option<u64> {
        if way != Way::Sent {
            return None;
        }
        match method {
            "resources/read" => self.notices.remove(subject),
            "tools/list" => self.notices.get("tools").copied(),
            "prompts/list" => self.notices.get("prompts").copied(),
            "resources/list" | "resources/templates/list" => self.notices.get("resources").copied(),
            _ => None,
        }
    }

    fn answered(
        &mut self,
        message: &Arc<Message>,
        way: Way,
        id: &str,
        error: Option<String>,
        revision: u64,
        noted: &mut Noted,
    ) {
        let asked = self.open.remove(&(way.opposite(), id.to_owned()));
        let Some(row) = asked.and_then(|number| self.row_mut(number)) else {
            let row = Row::of(message, Lane::Other, way, "answer");
            self.add(row, revision);
            return;
        };
        row.revision = revision;
        row.status = error.map_or(Status::Answered, Status::Failed);
        row.took = message.took;
        row.bytes = message.length;
        row.answer = Some(message.clone());
        if row.what == "resources/read" && row.cause.is_some() {
            noted.reread.push(row.subject.clone());
        }
        let weight = message.text().len();
        self.bytes += weight;
        self.shrink();
    }

    /// A change in the console that followed a notice.
    pub(crate) fn change(&mut self, mut row: Row, notice: Option<u64>, revision: u64) -> u64 {
        row.cause = row.cause.or_else(|| self.numbers.get(&notice?).copied());
        self.add(row, revision)
    }

    /// The row of the notice with this message number.
    pub(crate) fn noticed(&self, number: u64) -> Option<&Row> {
        self.row(*self.numbers.get(&number)?)
    }

    /// Says which call an open question of the server belongs to.
    pub(crate) fn belongs(&mut self, question: &str, tool: &str, revision: u64) {
        let open = |row: &&Row| {
            row.what == "tools/call"
                && row.status == Status::Waits
                && row.subject.split(' ').next() == Some(tool)
        };
        let call = self.rows.iter().rev().find(open).map(|row| row.number);
        let asked = self.open.get(&(Way::Received, question.to_owned())).copied();
        if asked.is_none() && self.questions.len() < OPEN {
            self.questions.insert(question.to_owned(), tool.to_owned());
        }
        if let (Some(call), Some(row)) = (call, asked.and_then(|number| self.row_mut(number))) {
            (row.cause, row.revision) = (Some(call), revision);
        }
    }

    fn add(&mut self, mut row: Row, revision: u64) -> u64 {
        self.last += 1;
        (row.number, row.revision) = (self.last, revision);
        *self.counts.entry(row.lane).or_default() += 1;
        self.bytes += row.weight();
        self.rows.push_back(row);
        self.shrink();
        self.last
    }

    fn shrink(&mut self) {
        let mut dropped = false;
        while self.rows.len() > ROWS || self.bytes > BYTES {
            let Some(row) = self.rows.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(row.weight());
            dropped = true;
        }
        let first = self.first();
        if dropped && (first.is_multiple_of(512) || self.numbers.len() > ROWS) {
            self.numbers.retain(|_, number| *number >= first);
            self.tokens.retain(|_, number| *number >= first);
            self.open.retain(|_, number| *number >= first);
            self.notices.retain(|_, number| *number >= first);
        }
    }

    /// The number of the oldest row.
    fn first(&self) -> u64 {
        self.rows.front().map_or(self.last + 1, |row| row.number)
    }

    pub(crate) fn row(&self, number: u64) -> Option<&Row> {
        let place = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.rows.get(place)
    }

    fn row_mut(&mut self, number: u64) -> Option<&mut Row> {
        let place = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.rows.get_mut(place)
    }

    /// The number of all rows, dropped ones included.
    pub(crate) fn total(&self) -> u64 {
        self.last
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.iter()
    }

    /// The times of the last answers in milliseconds, the newest last.
    pub(crate) fn latencies(&self, count: usize) -> Vec<f64> {
        let took = |row: &Row| Some(row.took.filter(|_| row.way == Way::Sent)?.as_secs_f64() * 1e3);
        let mut times: Vec<_> = self.rows.iter().rev().filter_map(took).take(count).collect();
        times.reverse();
        times
    }

    /// The newest rows that fit, as far as they changed after a revision. Counts are exact.
    pub(crate) fn newest(&self, filter: &Filter, since: u64) -> Value {
        let mut rows = Vec::new();
        let mut shown = 0;
        let mut matched = 0;
        for row in self.rows.iter().rev() {
            if filter.is_all() && shown == PAGE {
                break;
            }
            if !filter.fits(row) {
                continue;
            }
            matched += 1;
            if shown < PAGE {
                shown += 1;
                if row.revision > since {
                    rows.push(row.json());
                }
            }
        }
        if filter.is_all() {
            matched = self.rows.len();
        }
        rows.reverse();
        let counts = Lane::ALL.map(|lane| (lane.name(), self.counts.get(&lane).unwrap_or(&0)));
        json!({
            "rows": rows, "total": self.last, "kept": self.rows.len(), "matched": matched,
            "missed": self.missed, "lanes": counts.into_iter().collect::<HashMap<_, _>>(),
        })
    }

    /// The number of records that were dropped before they were seen.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }

    /// Takes that number from a file.
    pub(crate) fn restore_missed(&mut self, missed: u64) {
        self.missed = missed;
    }

    /// Adds a row of a file, with its own number.
    pub(crate) fn restore(&mut self, row: Row) -> Result<(), String> {
        let number = row.number;
        if number == 0 || (!self.rows.is_empty() && number != self.last + 1) {
            return Err(format!("row {number} follows row {}", self.last));
        }
        self.last = number - 1;
        // Revision 1: newer than any cursor that has not seen it.
        self.add(row, 1);
        Ok(())
    }

    /// The rows before a number that fit, the oldest first.
    pub(crate) fn before(&self, filter: &Filter, before: u64, limit: usize) -> Vec<Value> {
        let older = self.rows.iter().rev().filter(|row| row.number < before && filter.fits(row));
        let mut rows: Vec<_> = older.take(limit).map(Row::json).collect();
        rows.reverse();
        rows
    }
}

#[cfg(test)]
mod tests;
