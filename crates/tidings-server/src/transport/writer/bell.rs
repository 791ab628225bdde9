//! How streams are woken: each has a bell, which its listener and its socket ring.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Wake, Waker};

use tokio::sync::Notify;

use super::detached::Newcomer;

/// The work of a writer, and what wakes it.
#[derive(Debug, Default)]
pub(super) struct WorkList {
    work: Mutex<Work>,
    pub(super) wake: Notify,
}

/// What a writer has to do.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) newcomers: Vec<Newcomer>,
    /// The places of streams whose bell was rung. Invariant: a bell adds its place only if it was
    /// silent, so there are at most as many as streams, and those that closed meanwhile.
    pub(super) ready: Vec<u32>,
}

/// Why a stream is served, as bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reasons(u8);

impl Reasons {
    /// Its listener may have something, or a time has come.
    pub(super) const LISTENER: Self = Self(1);
    /// Its socket may have something or accept more.
    pub(super) const SOCKET: Self = Self(2);
    /// It is time for a comment.
    pub(super) const COMMENT: Self = Self(4);

    pub(super) fn has(self, reason: Self) -> bool {
        self.0 & reason.0 != 0
    }
}

/// The bell of one stream. A listener that wakes it has something to say.
#[derive(Debug)]
pub(super) struct Bell {
    /// The place of the stream among those of its writer. After it has closed, another may have the
    /// place, and is then served once for nothing.
    place: u32,
    rung: AtomicU8,
    list: Arc<WorkList>,
}

impl WorkList {
    pub(super) fn add(&self, newcomer: Newcomer) {
        self.with(|work| work.newcomers.push(newcomer));
    }

    fn push(&self, place: u32) {
        self.with(|work| work.ready.push(place));
    }

    fn with(&self, add: impl FnOnce(&mut Work)) {
        let mut work = self.lock();
        let first = work.newcomers.is_empty() && work.ready.is_empty();
        add(&mut work);
        drop(work);
        if first {
            self.wake.notify_one();
        }
    }

    /// Takes the work in exchange for finished work.
    pub(super) fn swap(&self, done: &mut Work) {
        std::mem::swap(&mut *self.lock(), done);
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().expect("no code panics while it holds the work of a writer")
    }
}

impl Bell {
    pub(super) fn new(place: u32, list: Arc<WorkList>) -> Arc<Self> {
        Arc::new(Self { place, rung: AtomicU8::new(0), list })
    }

    pub(super) fn ring(&self, reason: Reasons) {
        if self.rung.fetch_or(reason.0, Ordering::AcqRel) == 0 {
            self.list.push(self.place);
        }
    }

    /// Silences it, and returns why it was rung.
    ///
    /// Order: silenced first, then the listener and the socket are asked. Whatever they have later
    /// rings again.
    pub(super) fn silence(&self) -> Reasons {
        Reasons(self.rung.swap(0, Ordering::AcqRel))
    }

    /// Has its stream served again for the reasons for which it was rung, if any.
    pub(super) fn again(&self) {
        if self.rung.load(Ordering::Acquire) != 0 {
            self.list.push(self.place);
        }
    }

    /// Rings it for the socket.
    pub(super) fn for_socket(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(SocketBell(self.clone())))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring(Reasons::LISTENER);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring(Reasons::LISTENER);
    }
}

/// The bell as the socket rings it.
struct SocketBell(Arc<Bell>);

impl Wake for SocketBell {
    fn wake(self: Arc<Self>) {
        self.0.ring(Reasons::SOCKET);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.ring(Reasons::SOCKET);
    }
}
