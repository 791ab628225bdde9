//! The unsent notices of one listener: a set of things, never a queue of messages.
//!
//! A thing is a list kind or a watched URI. For each, the outbox remembers the fingerprint last
//! announced to the listener, and the newest one. While the two differ, one notice waits. If the
//! content returns to the announced state, the notice is dropped. Memory is therefore bounded by the
//! number of subscriptions, whatever the rate of change and however slowly the listener reads.
//!
//! A notice is held back while its thing is dirty again: the content may have returned to the
//! announced state. It is not held longer than a change may wait to be checked.

mod few;
mod slot;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tidings_core::{ListKind, ListKinds, ResourceUri};
use tokio::time::Instant;

use crate::about::{About, ListenerInfo};
use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::notice::{Notice, Wire};
use crate::windows::Topic;
use few::Few;
use slot::{Held, Slot};
use slots::Slots;

pub(crate) use slot::{Check, Pulse};

/// The maximum size of one write, so that a busy listener does not hold a large buffer.
const PIECE: usize = 16 * 1024;

/// The number of subscriptions that a watched URI counts as: one per 256 bytes or part of them,
/// because a long URI is stored several times.
pub(crate) fn price(uri: &ResourceUri) -> usize {
    uri.as_str().len().div_ceil(256)
}

/// One listener's set of dirty things.
#[derive(Debug)]
pub(crate) struct Outbox {
    id: u64,
    wire: Wire,
    about: About,
    since: Instant,
    metrics: Arc<Metrics>,
    /// How long a notice may be held back because its thing is dirty again.
    patience: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The labels of the client. Written while the subscriptions are locked, or before the listener
    /// follows anything.
    labels: Labels,
    // On the heap, because most modern listeners follow none.
    lists: [Option<Box<Slot>>; ListKind::ALL.len()],
    uris: Slots,
    /// Their total, see [`price`].
    held: usize,
    /// Things that wait, oldest first. Invariant: a thing is here at most once (`Slot::queued`).
    queue: Few<Topic>,
    /// How many of them really wait; the others returned to the announced state.
    waiting: usize,
    /// The streams that are open, newest first. Notices go to the newest: two streams of one
    /// listener must not share its notices between them.
    readers: Few<Reader>,
    /// How many readers there have been.
    attached: u64,
    /// How many notices were sent; the number of an event on a numbered wire.
    sent: u64,
    release: Option<Instant>,
    closed: bool,
    /// Whether nothing is delivered any more, not even what waits.
    is_cut: bool,
    /// How many notices were sent although their thing was dirty, because they were held too long.
    #[cfg(test)]
    hurried: usize,
}

/// One stream that reads an outbox.
#[derive(Debug)]
struct Reader {
    id: u64,
    waker: Option<Waker>,
}

/// The result of a check of a URI, and its notices: for clients outside the audience the resource is
/// absent.
pub(crate) struct Seen<'a> {
    pub(crate) check: Check,
    pub(crate) audience: &'a Labels,
    pub(crate) notice: &'a Arc<Notice>,
    /// The notice without a title.
    pub(crate) gone: &'a Arc<Notice>,
}

/// The next output for a reader.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Whole frames.
    Frames(Bytes),
    /// The hub ended this listener, and all waiting notices were delivered or dropped.
    Closed,
}

/// What remains after a reader took the waiting notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// There may be more: the write reached its maximum size.
    pub(crate) cut: bool,
    /// The hub ended this listener, and all waiting notices were taken or dropped.
    pub(crate) closed: bool,
    /// When a notice that is held back must be sent. The reader must take again then.
    pub(crate) release: Option<Instant>,
}

/// Frames for a reader; a single one is not copied.
#[derive(Default)]
struct Frames {
    first: Option<Bytes>,
    all: BytesMut,
}

impl Frames {
    /// Appends a frame; returns how many bytes were copied.
    fn push(&mut self, frame: Bytes) -> usize {
        match self.first.take() {
            None if self.all.is_empty() => self.first = Some(frame),
            None => self.all.extend_from_slice(&frame),
            Some(earlier) => {
                self.all.extend_from_slice(&earlier);
                self.all.extend_from_slice(&frame);
            }
        }
        self.all.len()
    }

    fn into_bytes(self) -> Bytes {
        self.first.unwrap_or_else(|| self.all.freeze())
    }
}

impl Outbox {
    pub(crate) fn new(
        id: u64,
        wire: Wire,
        about: About,
        patience: Duration,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        metrics.listeners.inc();
        let (since, state) = (Instant::now(), Mutex::default());
        Arc::new(Self { id, wire, about, since, metrics, patience, state })
    }

    /// The identity of the listener.
    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    /// The client's name and version, if stated.
    pub(crate) fn client(&self) -> Option<String> {
        self.about.client.as_deref().map(str::to_owned)
    }

    /// The listener as people see it.
    pub(crate) fn inspect(&self) -> ListenerInfo {
        let state = self.lock();
        let follows = |kind: &ListKind| state.lists[kind.index()].is_some();
        let uris = state.uris.uris().cloned().collect();
        ListenerInfo {
            id: self.id,
            client: self.client(),
            is_modern: matches!(self.wire, Wire::Modern { .. }),
            transport: self.about.transport,
            since: self.since,
            lists: ListKind::ALL.into_iter().filter(follows).collect(),
            labels: state.labels.clone(),
            uris,
            waiting: state.waiting,
            told: state.sent,
        }
    }

    /// Identifies the listener among the subscriptions.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Sets the labels, before the listener follows anything.
    pub(crate) fn begin(&self, labels: &Labels) {
        self.lock().labels.clone_from(labels);
    }

    /// The labels of the listener.
    pub(crate) fn labels(&self) -> Labels {
        self.lock().labels.clone()
    }

    /// Replaces the labels. All URIs, and the lists with a new pulse, are dirty until they are
    /// checked: the listener may see them differently.
    pub(crate) fn relabel(&self, labels: &Labels, pulses: &[Option<Pulse>; ListKind::ALL.len()]) {
        let mut state = self.lock();
        state.labels.clone_from(labels);
        for (slot, pulse) in state.lists.iter_mut().zip(pulses) {
            if let (Some(slot), Some(pulse)) = (slot, pulse) {
                slot.regroup(pulse);
            }
        }
        state.uris.iter_mut().for_each(|(_, slot)| slot.moved = true);
    }

    /// Puts the listener among others who see the same of a list; this pulse counts its changes.
    /// The list is dirty until it is checked.
    pub(crate) fn regroup(&self, kind: ListKind, pulse: &Pulse) {
        if let Some(slot) = &mut self.lock().lists[kind.index()] {
            slot.regroup(pulse);
        }
    }

    /// Starts to follow a list. If the listener `knows` it, its baseline comes with
    /// [`Self::baseline_list`]; until then a change is stored and not announced.
    pub(crate) fn follow_list(&self, kind: ListKind, pulse: &Pulse, knows: bool) {
        self.lock().lists[kind.index()].get_or_insert_with(|| Box::new(Slot::new(pulse, !knows)));
    }

    /// The lists that the listener follows.
    pub(crate) fn lists(&self) -> ListKinds {
        let state = self.lock();
        ListKind::ALL.into_iter().filter(|kind| state.lists[kind.index()].is_some()).collect()
    }

    /// The lists that the listener may see differently since it changed groups.
    pub(crate) fn moved_lists(&self) -> ListKinds {
        let state = self.lock();
        let has_moved =
            |kind: &ListKind| state.lists[kind.index()].as_ref().is_some_and(|slot| slot.moved);
        ListKind::ALL.into_iter().filter(has_moved).collect()
    }

    /// Sets the baseline of a list: its fingerprint for these labels when the listener began to
    /// follow it.
    pub(crate) fn baseline_list(&self, kind: ListKind, (check, pulse): (Check, &Pulse)) {
        let mut state = self.lock();
        let State { lists, waiting, .. } = &mut *state;
        if let Some(slot) = &mut lists[kind.index()] {
            let is_current = slot.pulse.is(pulse);
            slot.baseline(check, is_current, waiting);
        }
        Self::wake(state);
    }

    /// Starts to follow a URI. Its baseline comes with [`Self::baseline`]; until then a change is
    /// stored and not announced.
    pub(crate) fn follow(&self, uri: &ResourceUri, pulse: &Pulse) -> bool {
        let mut state = self.lock();
        if state.uris.contains(uri) {
            return false;
        }
        state.uris.insert(uri.clone(), Slot::new(pulse, false));
        state.held += price(uri);
        true
    }

    /// Whether it follows this URI.
    pub(crate) fn follows(&self, uri: &ResourceUri) -> bool {
        self.lock().uris.contains(uri)
    }

    /// Sets the baseline of a URI with this audience: its fingerprint when the listener began to
    /// follow it.
    pub(crate) fn baseline(&self, uri: &ResourceUri, check: Check, audience: &Labels) {
        let mut state = self.lock();
        let State { labels, uris, waiting, .. } = &mut *state;
        if let Some(slot) = uris.get_mut(uri) {
            slot.baseline(check.seen_by(labels, audience), true, waiting);
        }
        Self::wake(state);
    }

    /// What the listener knows of a URI is in doubt: the next check is announced whatever it finds.
    pub(crate) fn doubt(&self, uri: &ResourceUri) {
        if let Some(slot) = self.lock().uris.get_mut(uri).filter(|slot| slot.settled) {
            slot.told = None;
        }
    }

    /// Stops following a URI; its waiting notice is dropped.
    pub(crate) fn unfollow(&self, uri: &ResourceUri) -> bool {
        let mut state = self.lock();
        let Some(slot) = state.uris.remove(uri) else { return false };
        state.held -= price(uri);
        if slot.waits.is_some() {
            state.waiting -= 1;
        }
        if slot.queued {
            state.queue.retain(|thing| !matches!(thing, Topic::Uri(queued) if queued == uri));
        }
        true
    }

    /// The URIs this listener follows.
    pub(crate) fn followed(&self) -> Vec<ResourceUri> {
        self.lock().uris.uris().cloned().collect()
    }

    /// The number of subscriptions that this listener's URIs count as.
    pub(crate) fn followed_count(&self) -> usize {
        self.lock().held
    }

    /// Takes the result of a check of a list at a count of this pulse. True if a notice waits.
    pub(crate) fn mark_list(
        &self,
        kind: ListKind,
        (now, pulse): (Check, &Pulse),
        notice: &Arc<Notice>,
        since: Instant,
    ) -> bool {
        let mut state = self.lock();
        let State { lists, queue, waiting, .. } = &mut *state;
        let Some(slot) = &mut lists[kind.index()] else { return false };
        if !slot.pulse.is(pulse) {
            // The check is of another view, or of the same one before this listener came. What it
            // sees is its baseline, or checked because its labels changed.
            return false;
        }
        let push = slot.mark(now, notice, since, waiting, &self.metrics);
        if push {
            queue.push_back(Topic::List(kind));
        }
        let waits = slot.waits.is_some() && slot.settled;
        Self::wake(state);
        waits
    }

    /// Takes the result of a check of a URI. True if a notice waits.
    pub(crate) fn mark(&self, uri: &ResourceUri, now: &Seen<'_>, since: Instant) -> bool {
        let mut state = self.lock();
        let State { labels, uris, queue, waiting, .. } = &mut *state;
        let Some(slot) = uris.get_mut(uri) else { return false };
        let check = now.check.seen_by(labels, now.audience);
        let notice = if now.audience.admits(labels) { now.notice } else { now.gone };
        let push = slot.mark(check, notice, since, waiting, &self.metrics);
        if push {
            queue.push_back(Topic::Uri(uri.clone()));
        }
        let waits = slot.waits.is_some() && slot.settled;
        Self::wake(state);
        waits
    }

    /// A new reader of this outbox, which gets the notices from now on. Earlier readers stay open
    /// and get nothing, unless the newer ones leave.
    pub(crate) fn attach(&self) -> u64 {
        let mut state = self.lock();
        state.attached += 1;
        let id = state.attached;
        state.readers.push_front(Reader { id, waker: None });
        id
    }

    /// A reader leaves; the newest of the others gets the notices.
    pub(crate) fn detach(&self, reader: u64) {
        let mut state = self.lock();
        state.readers.retain(|attached| attached.id != reader);
        Self::wake(state);
    }

    /// Takes the number of the last event that the client saw. Later notices wait again.
    pub(crate) fn resume_after(&self, seen: u64) {
        let mut state = self.lock();
        let State { lists, uris, queue, waiting, .. } = &mut *state;
        let lists = lists
            .iter_mut()
            .zip(ListKind::ALL)
            .filter_map(|(slot, kind)| Some((slot.as_deref_mut()?, Topic::List(kind))));
        let uris = uris.iter_mut().map(|(uri, slot)| (slot, Topic::Uri(uri.clone())));
        for (slot, thing) in lists.chain(uris) {
            let Some((notice, number)) = slot.last.clone() else { continue };
            if number <= seen || slot.waits.is_some() {
                continue;
            }
            slot.last = None;
            slot.told = None;
            slot.waits = Some((notice, Instant::now()));
            *waiting += 1;
            if !std::mem::replace(&mut slot.queued, true) {
                queue.push_back(thing);
            }
        }
    }

    /// How many notices were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.lock().sent
    }

    /// When a held notice must be sent. The reader must poll again then.
    pub(crate) fn release(&self) -> Option<Instant> {
        self.lock().release
    }

    /// All waiting notices as whole frames; pending if there are none.
    pub(crate) fn poll_next(&self, reader: u64, context: &mut Context<'_>) -> Poll<Next> {
        let mut state = self.lock();
        let newest = state.readers.front().is_some_and(|newest| newest.id == reader);
        if newest {
            state.release = None;
        }
        if newest && state.waiting > 0 {
            let mut frames = Frames::default();
            self.take(&mut state, |notice, number| frames.push(notice.frame(&self.wire, number)));
            let frames = frames.into_bytes();
            if !frames.is_empty() {
                return Poll::Ready(Next::Frames(frames));
            }
        }
        if state.closed {
            return Poll::Ready(Next::Closed);
        }
        if let Some(reader) = state.readers.iter_mut().find(|attached| attached.id == reader) {
            match &mut reader.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
        }
        Poll::Pending
    }

    /// Appends all waiting notices to the buffer. Unless there is more, the reader is woken by
    /// `waker` from now on; a reader that has a waker keeps it.
    pub(crate) fn take_into(
        &self,
        reader: u64,
        buffer: &mut Vec<u8>,
        waker: impl FnOnce() -> Waker,
    ) -> Taken {
        let mut state = self.lock();
        let newest = state.readers.front().is_some_and(|newest| newest.id == reader);
        let mut cut = false;
        if newest {
            state.release = None;
            let begin = buffer.len();
            cut = self.take(&mut state, |notice, number| {
                notice.put_frame(&self.wire, number, buffer);
                buffer.len() - begin
            });
        }
        let closed = !cut && state.closed;
        if !cut
            && !closed
            && let Some(reader) = state.readers.iter_mut().find(|attached| attached.id == reader)
        {
            reader.waker.get_or_insert_with(waker);
        }
        Taken { cut, closed, release: state.release.filter(|_| newest) }
    }

    /// As [`Self::poll_next`], to await.
    pub(crate) async fn next(&self, reader: u64) -> Next {
        loop {
            let next = std::future::poll_fn(|context| {
                // If a notice is held back, the poll has set the time.
                match self.poll_next(reader, context) {
                    Poll::Ready(next) => Poll::Ready(Ok(next)),
                    Poll::Pending => {
                        self.release().map_or(Poll::Pending, |at| Poll::Ready(Err(at)))
                    }
                }
            });
            match next.await {
                Ok(next) => return next,
                Err(at) => {
                    let changed = std::future::poll_fn(|context| self.poll_next(reader, context));
                    if let Ok(next) = tokio::time::timeout_at(at, changed).await {
                        return next;
                    }
                }
            }
        }
    }

    /// Ends the listener after its waiting notices were delivered.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let wakers: Vec<_> =
            state.readers.iter_mut().filter_map(|reader| reader.waker.take()).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends the listener at once: its waiting notices are not delivered.
    pub(crate) fn cut(&self) {
        self.lock().is_cut = true;
        self.close();
    }

    /// Whether the hub ended the listener.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// How many things wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// How many notices were sent although their thing was dirty.
    #[cfg(test)]
    pub(crate) fn hurried(&self) -> usize {
        self.lock().hurried
    }

    /// How many things are in the queue, waiting or not.
    #[cfg(test)]
    pub(crate) fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// Takes waiting notices, oldest first, until `put` returns that it has enough bytes; true if it
    /// did.
    fn take(&self, state: &mut State, mut put: impl FnMut(&Notice, u64) -> usize) -> bool {
        if state.is_cut {
            return false;
        }
        let now = Instant::now();
        for _ in 0..state.queue.len() {
            let Some(thing) = state.queue.pop_front() else { break };
            let slot = match &thing {
                Topic::List(kind) => state.lists[kind.index()].as_deref_mut(),
                Topic::Uri(uri) => state.uris.get_mut(uri),
                Topic::View(_) => None,
            };
            let Some(slot) = slot else { continue };
            if slot.waits.is_some()
                && !state.closed
                && let Some(held) = slot.holds(now, self.patience)
            {
                if let Held::Until(at) = held {
                    state.release = Some(state.release.map_or(at, |release| release.min(at)));
                }
                state.queue.push_back(thing);
                continue;
            }
            slot.queued = false;
            let Some((notice, since)) = slot.waits.take() else { continue };
            // Order: the announced fingerprint advances only with the notice's bytes. If the thing
            // is dirty again, the listener may read unchecked content. Nobody knows its state then,
            // so the next check is announced whatever it finds.
            let dirty = slot.is_dirty();
            slot.told = slot.now.filter(|_| !dirty).map(|check| check.fingerprint);
            slot.held = None;
            #[cfg(test)]
            {
                state.hurried += usize::from(dirty);
            }
            state.sent += 1;
            slot.last = self.wire.numbers().then(|| (notice.clone(), state.sent));
            state.waiting -= 1;
            self.metrics.sent.inc();
            self.metrics.latency.observe(now.duration_since(since).as_secs_f64());
            if put(&notice, state.sent) >= PIECE {
                return true;
            }
        }
        false
    }

    fn wake(mut state: MutexGuard<'_, State>) {
        if state.waiting > 0
            && let Some(waker) = state.readers.front_mut().and_then(|newest| newest.waker.take())
        {
            drop(state);
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds an outbox")
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.metrics.listeners.dec();
    }
}
