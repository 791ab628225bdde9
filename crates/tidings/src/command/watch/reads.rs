//! Reads a few resources at a time. A read that hangs does not delay the others.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tidings_mirror::{Mirror, RequestError};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Reads in progress at once.
const SIDE_BY_SIDE: usize = 16;

/// Resources to read, and those being read.
pub(super) struct Reads {
    mirror: Mirror,
    waiting: VecDeque<String>,
    /// All that wait or run; each once, however often it is requested.
    pending: HashSet<String>,
    running: JoinSet<(String, Result<(), RequestError>)>,
    /// Notified when nothing is left to read.
    done: Arc<Notify>,
}

impl Reads {
    pub(super) fn new(mirror: Mirror, uris: &[String]) -> Self {
        let mut reads = Self {
            mirror,
            waiting: VecDeque::new(),
            pending: HashSet::new(),
            running: JoinSet::new(),
            done: Arc::default(),
        };
        for uri in uris {
            reads.add(uri);
        }
        reads
    }

    /// Notified when nothing is left to read.
    pub(super) fn done(&self) -> Arc<Notify> {
        self.done.clone()
    }

    /// Reads one more, unless it is waiting already.
    pub(super) fn add(&mut self, uri: &str) {
        if self.pending.insert(uri.to_owned()) {
            self.waiting.push_back(uri.to_owned());
            self.begin();
        }
    }

    /// The next result. Waits for ever if there is none.
    ///
    /// Cancel-safe: a result that was not returned stays.
    pub(super) async fn next(&mut self) -> (String, Result<(), RequestError>) {
        loop {
            let Some(read) = self.running.join_next().await else {
                return std::future::pending().await;
            };
            // An aborted read has no result.
            if let Ok(read) = read {
                self.pending.remove(&read.0);
                self.begin();
                return read;
            }
        }
    }

    fn begin(&mut self) {
        while self.running.len() < SIDE_BY_SIDE
            && let Some(uri) = self.waiting.pop_front()
        {
            let mirror = self.mirror.clone();
            self.running.spawn(async move {
                let read = mirror.read_resource(&uri).await.map(drop);
                (uri, read)
            });
        }
        if self.running.is_empty() {
            self.done.notify_one();
        }
    }
}
