//! What the parts of one connection share: who hears of it, the log, and the open requests.

use std::sync::Arc;

use super::open::Open;
use super::{Signal, Sink};
use crate::history::History;

/// What the parts of one connection share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Wire {
    sink: Sink,
    pub(super) history: Arc<History>,
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
}
