//! A bounded log of every message both ways, for people who debug.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::Value;
use tokio::sync::watch;

use crate::connect;

/// One message that passed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// Its number: 1 for the first message of the mirror, and one more for each after it.
    pub number: u64,
    /// When it passed.
    pub at: SystemTime,
    /// Which way.
    pub direction: Direction,
    /// The message. Headers and environment, where secrets are, are no part of it.
    pub json: Value,
    /// For an answer: how long it took.
    pub took: Option<Duration>,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// How much of it all is kept, and how much of one message: larger ones leave their length.
const MAX_BYTES: usize = 16 << 20;
const MAX_MESSAGE: usize = 1 << 20;
/// How many open requests are remembered for their duration.
const OPEN: usize = 1024;

/// The log. With room for none it costs nothing.
#[derive(Debug)]
pub(crate) struct History {
    capacity: usize,
    log: Mutex<Log>,
    /// The number of the last message. Moves after the message is in the log.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    messages: VecDeque<(Arc<Message>, usize)>,
    // Invariant: the sum of the messages' lengths.
    bytes: usize,
    /// The number of the last message.
    numbered: u64,
    open: HashMap<(Direction, RequestId), Instant>,
}

impl History {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, log: Mutex::default(), last: watch::Sender::new(0) }
    }

    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        if self.capacity == 0 {
            return;
        }
        let (asks, answers) = match message {
            ClientJsonRpcMessage::Request(request) => (Some(&request.id), None),
            ClientJsonRpcMessage::Response(response) => (None, Some(&response.id)),
            ClientJsonRpcMessage::Error(error) => (None, error.id.as_ref()),
            ClientJsonRpcMessage::Notification(_) => (None, None),
        };
        self.add(Direction::Sent, serde_json::to_vec(message).ok(), asks, answers);
    }

    /// Gives the number of the message.
    pub(crate) fn received(&self, message: &ServerJsonRpcMessage) -> Option<u64> {
        if self.capacity == 0 {
            return None;
        }
        let (asks, answers) = match message {
            ServerJsonRpcMessage::Request(request) => (Some(&request.id), None),
            ServerJsonRpcMessage::Response(response) => (None, Some(&response.id)),
            ServerJsonRpcMessage::Error(error) => (None, error.id.as_ref()),
            ServerJsonRpcMessage::Notification(_) => (None, None),
        };
        self.add(Direction::Received, serde_json::to_vec(message).ok(), asks, answers)
    }

    pub(crate) fn messages(&self) -> Vec<Arc<Message>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.messages.iter().map(|(message, _)| message.clone()).collect()
    }

    /// The messages after that number which are still in the log.
    pub(crate) fn since(&self, number: u64) -> Vec<Arc<Message>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = log.messages.partition_point(|(message, _)| message.number <= number);
        log.messages.iter().skip(begin).map(|(message, _)| message.clone()).collect()
    }

    /// Waits for a message after that number. Gives the number of the last one.
    pub(crate) async fn changed(&self, number: u64) -> u64 {
        let mut last = self.last.subscribe();
        // Invariant: the sender is ours, so it is there.
        last.wait_for(|last| *last > number).await.map_or(number, |last| *last)
    }

    fn add(
        &self,
        direction: Direction,
        text: Option<Vec<u8>>,
        asks: Option<&RequestId>,
        answers: Option<&RequestId>,
    ) -> Option<u64> {
        let text = text?;
        let length = text.len().min(MAX_MESSAGE);
        let json = if text.len() > MAX_MESSAGE {
            let id = answers.or(asks);
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "bytes left out": text.len() })
        } else {
            let mut json = serde_json::from_slice(&text).unwrap_or_default();
            connect::restore(&mut json);
            json
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match direction {
            Direction::Sent => Direction::Received,
            Direction::Received => Direction::Sent,
        };
        let began = answers.and_then(|id| log.open.remove(&(asked, id.clone())));
        if let Some(id) = asks.filter(|_| log.open.len() < OPEN) {
            log.open.insert((direction, id.clone()), Instant::now());
        }
        let took = began.map(|began| began.elapsed());
        log.numbered += 1;
        let number = log.numbered;
        let message = Message { number, at: SystemTime::now(), direction, json, took };
        log.messages.push_back((Arc::new(message), length));
        log.bytes += length;
        while log.messages.len() > self.capacity || log.bytes > MAX_BYTES {
            let Some((_, length)) = log.messages.pop_front() else { break };
            log.bytes -= length;
        }
        self.last.send_replace(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(id: i64) -> ClientJsonRpcMessage {
        serde_json::from_value(serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
            .unwrap()
    }

    fn answered(id: i64) -> ServerJsonRpcMessage {
        serde_json::from_value(serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": {} }))
            .unwrap()
    }

    #[test]
    fn the_log_is_bounded_and_knows_how_long_answers_took() {
        let history = History::new(3);
        history.sent(&sent(1));
        history.sent(&sent(2));
        history.received(&answered(2));
        history.received(&answered(7));
        let messages = history.messages();
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[0].json["id"], 2);
        assert!(messages[1].took.is_some(), "two was asked");
        assert!(messages[2].took.is_none(), "seven never was");
    }

    #[test]
    fn the_log_is_bounded_in_bytes_too() {
        let history = History::new(1000);
        let long = |length: usize| {
            let result =
                serde_json::json!({ "content": [{ "type": "text", "text": "x".repeat(length) }] });
            let message = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": result });
            serde_json::from_value::<ServerJsonRpcMessage>(message).unwrap()
        };
        history.received(&long(MAX_MESSAGE + 1));
        assert!(history.messages()[0].json["bytes left out"].as_u64().is_some());
        for _ in 0..40 {
            history.received(&long(MAX_MESSAGE / 2));
        }
        assert!(history.messages().len() < 34);
    }

    #[tokio::test]
    async fn messages_are_numbered_and_can_be_waited_for() {
        let history = History::new(2);
        for id in 1..=3 {
            history.sent(&sent(id));
        }
        let numbers = |since| -> Vec<_> {
            history.since(since).iter().map(|message| message.number).collect()
        };
        assert_eq!(numbers(0), [2, 3], "the first had to go");
        assert_eq!(numbers(2), [3]);
        assert!(numbers(3).is_empty());
        assert_eq!(history.changed(2).await, 3);
        let (last, ()) = tokio::join!(history.changed(3), async { history.sent(&sent(4)) });
        assert_eq!(last, 4);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let history = History::new(0);
        history.sent(&sent(1));
        assert!(history.messages().is_empty());
    }
}
