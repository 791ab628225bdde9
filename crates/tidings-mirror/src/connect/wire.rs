//! Shared by the parts of one connection: the receiver of signals, the log, and the open requests.

use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};

use super::open::Open;
use super::{Signal, Sink, skim};
use crate::history::{Happened, History};

/// Shared by the parts of one connection. Cheap to clone.
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

    /// Sends a signal.
    pub(super) fn tell(&self, signal: Signal) {
        (self.sink)(signal);
    }

    /// A message is being sent as this text.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage, text: &[u8]) {
        self.history.sent(message, text);
    }

    /// A message arrived as this text: logs it, and passes a notice on.
    // Order: called where bytes become messages, so notices are in the order of the wire.
    pub(super) fn received(&self, message: &ServerJsonRpcMessage, text: &[u8]) {
        // The failure in place of an oversized message was never sent.
        let (text, length) = match skim::passed(message) {
            Some(length) => (&[][..], length),
            None => (text, text.len()),
        };
        let number = self.history.received(message, text, length);
        if let ServerJsonRpcMessage::Notification(notice) = message {
            self.tell(Signal::Notice(Box::new(notice.notification.clone()), number));
        }
    }

    /// An event below the messages.
    pub(super) fn happened(&self, what: Happened) {
        self.history.happened(what);
    }
}
