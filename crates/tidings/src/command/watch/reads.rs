//! Reads side by side, a few at a time: one that hangs does not hold up the others.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tidings_mirror::{Mirror, RequestError};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How many reads are under way at once.
const SIDE_BY_SIDE: usize = 16;

/// Resources to read, and those that are being read.
pub(super) struct Reads {
    mirror: Mirror,
    waiting: VecDeque<String>,
    /// All that wait or run: each once, however often it is wanted meanwhile.
    pending: HashSet<String>,
    running: JoinSet<(String, Result<(), RequestError>)>,
    /// Told when nothing is left to read.
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

    /// Told when nothing is left to read.
    pub(super) fn done(&self) -> Arc<Notify> {
        self.done.clone()
    }

    /// Reads one more, unless it is about to be read.
    pub(super) fn add(&mut self, uri: &str) {
        if self.pending.insert(uri.to_owned()) {
            self.waiting.push_back(uri.to_owned());
            self.begin();
        }
    }

    /// The next that was read, or could not be. Waits for ever if there is none.
    ///
    /// Cancel-safe: what was not given stays.
    pub(super) async fn next(&mut self) -> (String, Result<(), RequestError>) {
        loop {
            let Some(read) = self.running.join_next().await else {
                return std::future::pending().await;
            };
            // A read that was cut off has nothing to say.
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
