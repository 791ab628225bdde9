//! A bounded log of all messages and of the events below them, for debugging.

mod fact;
mod message;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions as _, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::watch;

pub(crate) use self::fact::shortened;
pub use self::fact::{ClosedBy, Fact, Happened};
pub use self::message::{Direction, Message};
use crate::options::RequestOptions;

/// The most bytes of messages that are kept.
const MAX_BYTES: usize = 16 << 20;
/// The open requests that are remembered for their duration.
const OPEN: usize = 1024;

/// An entry of the log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Record {
    /// A message.
    Message(Arc<Message>),
    /// An event below the messages.
    Fact(Arc<Fact>),
}

impl Record {
    /// Its number; both kinds are numbered together, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Message(message) => message.number,
            Self::Fact(fact) => fact.number,
        }
    }

    /// Its time.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        match self {
            Self::Message(message) => message.at,
            Self::Fact(fact) => fact.at,
        }
    }
}

/// The log. Without room for records it costs nothing.
#[derive(Debug)]
pub(crate) struct History {
    /// The number of messages that are kept, and of facts.
    capacity: usize,
    log: Mutex<Log>,
    /// The number of the last record. Advances after the record is in the log.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    messages: VecDeque<Arc<Message>>,
    // Invariant: the sum of the lengths of the messages' texts.
    bytes: usize,
    facts: VecDeque<Arc<Fact>>,
    /// The number of the last record.
    numbered: u64,
    open: HashMap<(Direction, RequestId), Instant>,
}

/// The request that a message is, and the one that it answers.
type Ids<'a> = (Option<&'a RequestId>, Option<&'a RequestId>);

/// Who sends a request. It travels with the request, never on the wire.
#[derive(Clone)]
pub(crate) struct Author(Arc<str>);

impl Author {
    pub(crate) fn mark(request: &mut ClientRequest, options: &RequestOptions) {
        if let Some(who) = &options.by {
            request.extensions_mut().insert(Self(who.clone()));
        }
    }
}

impl History {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, log: Mutex::default(), last: watch::Sender::new(0) }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message was sent as this text.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage, text: &[u8]) {
        let mut by = None;
        let ids = match message {
            ClientJsonRpcMessage::Request(request) => {
                by = request.request.extensions().get::<Author>().map(|author| author.0.clone());
                (Some(&request.id), None)
            }
            ClientJsonRpcMessage::Response(response) => (None, Some(&response.id)),
            ClientJsonRpcMessage::Error(error) => (None, error.id.as_ref()),
            ClientJsonRpcMessage::Notification(_) => (None, None),
        };
        self.add((Direction::Sent, by), text, text.len(), ids);
    }

    /// A message of this length arrived, with this text as far as it was held. Returns its number.
    pub(crate) fn received(
        &self,
        message: &ServerJsonRpcMessage,
        text: &[u8],
        length: usize,
    ) -> Option<u64> {
        let ids = match message {
            ServerJsonRpcMessage::Request(request) => (Some(&request.id), None),
            ServerJsonRpcMessage::Response(response) => (None, Some(&response.id)),
            ServerJsonRpcMessage::Error(error) => (None, error.id.as_ref()),
            ServerJsonRpcMessage::Notification(_) => (None, None),
        };
        self.add((Direction::Received, None), text, length, ids)
    }

    /// An event below the messages.
    pub(crate) fn happened(&self, what: Happened) {
        if self.capacity == 0 {
            return;
        }
        let mut log = self.log();
        log.numbered += 1;
        let number = log.numbered;
        if log.facts.len() == self.capacity {
            log.facts.pop_front();
        }
        log.facts.push_back(Arc::new(Fact { number, at: SystemTime::now(), what }));
        self.last.send_replace(number);
    }

    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        self.log().messages.iter().cloned().collect()
    }

    /// The messages after that number that are still in the log.
    pub(crate) fn since(&self, number: u64) -> Vec<Arc<Message>> {
        let log = self.log();
        let begin = log.messages.partition_point(|message| message.number <= number);
        log.messages.iter().skip(begin).cloned().collect()
    }

    /// The records after that number that are still in the log, in order.
    pub(crate) fn records(&self, number: u64) -> Vec<Record> {
        let log = self.log();
        let begin = log.messages.partition_point(|message| message.number <= number);
        let messages = log.messages.iter().skip(begin).cloned().map(Record::Message);
        let begin = log.facts.partition_point(|fact| fact.number <= number);
        let facts = log.facts.iter().skip(begin).cloned().map(Record::Fact);
        let mut records: Vec<_> = messages.chain(facts).collect();
        drop(log);
        records.sort_by_key(Record::number);
        records
    }

    /// Waits for a record after that number. Returns the number of the last one.
    pub(crate) async fn changed(&self, number: u64) -> u64 {
        let mut last = self.last.subscribe();
        // Invariant: the sender is ours, so it exists.
        last.wait_for(|last| *last > number).await.map_or(number, |last| *last)
    }

    fn add(
        &self,
        (direction, by): (Direction, Option<Arc<str>>),
        text: &[u8],
        length: usize,
        (asks, answers): Ids<'_>,
    ) -> Option<u64> {
        if self.capacity == 0 {
            return None;
        }
        // Copied before the lock is taken.
        let mut message = Message::new(0, direction, text, length);
        let mut log = self.log();
        let asked = direction.opposite();
        let began = answers.and_then(|id| log.open.remove(&(asked, id.clone())));
        if let Some(id) = asks.filter(|_| log.open.len() < OPEN) {
            log.open.insert((direction, id.clone()), Instant::now());
        }
        message.took = began.map(|began| began.elapsed());
        log.numbered += 1;
        let number = log.numbered;
        (message.number, message.by) = (number, by);
        log.bytes += message.text().len();
        log.messages.push_back(Arc::new(message));
        while log.messages.len() > self.capacity || log.bytes > MAX_BYTES {
            let Some(oldest) = log.messages.pop_front() else { break };
            log.bytes -= oldest.text().len();
        }
        self.last.send_replace(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::message::MAX_MESSAGE;
    use super::*;

    fn send(history: &History, id: i64) {
        let text = serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
        history.sent(&serde_json::from_str(&text).unwrap(), text.as_bytes());
    }

    fn receive(history: &History, id: i64, text: &str) -> Option<u64> {
        let message = serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {} });
        let message = serde_json::from_value(message).unwrap();
        history.received(&message, text.as_bytes(), text.len())
    }

    #[test]
    fn the_log_is_bounded_and_knows_how_long_answers_took() {
        let history = History::new(3);
        send(&history, 1);
        send(&history, 2);
        receive(&history, 2, "{}");
        receive(&history, 7, "{}");
        let messages = history.messages();
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[0].json().unwrap()["id"], 2);
        assert!(messages[1].took.is_some(), "two was asked");
        assert!(messages[2].took.is_none(), "seven never was");
    }

    #[test]
    fn the_log_is_bounded_in_bytes_too() {
        let history = History::new(1000);
        for _ in 0..40 {
            receive(&history, 1, &"x".repeat(2 * MAX_MESSAGE));
        }
        assert_eq!(history.messages().len(), MAX_BYTES / MAX_MESSAGE);
        receive(&history, 1, &"x".repeat(MAX_MESSAGE / 2));
        assert_eq!(history.log().bytes, MAX_BYTES - MAX_MESSAGE / 2);
    }

    #[tokio::test]
    async fn messages_and_facts_are_numbered_together_and_can_be_waited_for() {
        let history = History::new(2);
        let begun = || Happened::ProcessStarted { pid: 7 };
        for id in 1..=3 {
            send(&history, id);
            history.happened(begun());
        }
        let numbers = |since| -> Vec<_> {
            history.since(since).iter().map(|message| message.number).collect()
        };
        assert_eq!((numbers(0), numbers(3)), (vec![3, 5], vec![5]), "the first had to go");
        let records: Vec<_> = history.records(3).iter().map(Record::number).collect();
        assert_eq!(records, [4, 5, 6]);
        assert_eq!(history.changed(5).await, 6);
        let (last, ()) = tokio::join!(history.changed(6), async { history.happened(begun()) });
        assert_eq!(last, 7);
        assert_eq!(history.messages().len(), 2, "facts take no room of messages");
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let history = History::new(0);
        send(&history, 1);
        history.happened(Happened::ProcessStarted { pid: 7 });
        assert_eq!(receive(&history, 1, "{}"), None);
        assert!(history.records(0).is_empty());
    }
}
