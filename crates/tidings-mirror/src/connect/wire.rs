//! What the parts of one connection share: who hears of it, the log, and the open requests.

use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};

use super::open::Open;
use super::{Signal, Sink, skim};
use crate::history::{Happened, History};

/// What the parts of one connection share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Wire {
    sink: Sink,
    history: Arc<History>,
    pub(super) open: Arc<Open>,
}

impl Wire {
    pub(super) fn new(sink: Sink, history: Arc<History>) -> Self {
        Self { sink, history, open: Arc::default() }
    }

    /// Says something of the connection.
    pub(super) fn tell(&self, signal: Signal) {
        (self.sink)(signal);
    }

    /// A message is being sent as this text.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage, text: &[u8]) {
        self.history.sent(message, text);
    }

    /// A message came as this text: it is logged, and a notice is handed on.
    // Order: called where bytes become messages, so notices are told in the order of the wire.
    pub(super) fn received(&self, message: &ServerJsonRpcMessage, text: &[u8]) {
        // What stands for a message that was too large was never sent.
        let (text, length) = match skim::passed(message) {
            Some(length) => (&[][..], length),
            None => (text, text.len()),
        };
        let number = self.history.received(message, text, length);
        if let ServerJsonRpcMessage::Notification(notice) = message {
            self.tell(Signal::Notice(Box::new(notice.notification.clone()), number));
        }
    }

    /// Something happened below the messages.
    pub(super) fn happened(&self, what: Happened) {
        self.history.happened(what);
    }
}
