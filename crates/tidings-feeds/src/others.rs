//! Changes by other processes to the directory that is served here: found within a second and
//! announced like our own. Their wishes are fulfilled.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::config::{Fetching, Role};
use crate::store::{FeedRow, Hold, Holder, StoreError, Wish};
use crate::{Data, Feeds, Inner, respect_pauses, view};

/// How often to check for writes by others: one number is read, and nothing is written.
const LOOK: Duration = Duration::from_secs(1);
/// How long no process must have fetched before a follower does, so that a restarted server finds
/// its place free.
const GRACE: Duration = Duration::from_secs(30);

/// Finds the writes of other processes.
pub(crate) struct Others {
    inner: Arc<Inner>,
    /// The store's number at the last check.
    seen: Option<i64>,
    /// The wishes in progress.
    under_way: HashSet<i64>,
    tasks: JoinSet<i64>,
}

impl Others {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, seen: None, under_way: HashSet::new(), tasks: JoinSet::new() }
    }

    /// Runs until the token is cancelled. Data in memory has no other processes, so it ends at
    /// once.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        if self.inner.config.data == Data::Memory {
            return;
        }
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = cancel.cancelled() => break,
                _ = ticks.tick() => self.look().await,
                Some(done) = self.tasks.join_next() => {
                    if let Ok(key) = done {
                        self.under_way.remove(&key);
                    }
                }
            }
        }
        // A wish that was not fulfilled stays for the next process.
        self.tasks.shutdown().await;
    }

    async fn look(&mut self) {
        let (inner, seen) = (self.inner.clone(), self.seen);
        let look = move || -> Result<_, StoreError> {
            // Order: writes from here on change the number again.
            let now = inner.store.written_by_others()?;
            if now == seen {
                return Ok((now, Vec::new()));
            }
            inner.catch_up()?;
            if let Some(fetcher) = &inner.fetcher {
                respect_pauses(fetcher, &inner.store, inner.clock.time())?;
            }
            let is_asked = inner.fetcher.is_some() && !inner.is_following();
            Ok((now, if is_asked { inner.store.wishes()? } else { Vec::new() }))
        };
        match tokio::task::spawn_blocking(look).await {
            Ok(Ok((now, wishes))) => {
                self.seen = now;
                for wish in wishes {
                    self.begin(wish);
                }
            }
            Ok(Err(error)) => warn!(%error, "changes by other processes cannot be read"),
            Err(error) => warn!(%error, "checking for changes by other processes failed"),
        }
    }

    fn begin(&mut self, wish: Wish) {
        if self.under_way.insert(wish.key) {
            let inner = self.inner.clone();
            self.tasks.spawn(async move {
                let key = wish.key;
                fulfil(&inner, wish).await;
                key
            });
        }
    }
}

async fn fulfil(inner: &Arc<Inner>, wish: Wish) {
    let Wish { key, feed } = wish;
    let feeds = Feeds(inner.clone());
    if let Err(error) = feeds.refresh(&feed).await {
        debug!(feed, %error, "a requested feed cannot be fetched");
    }
    let granted = feeds.change(move |inner| inner.store.granted(&[key])).await;
    if let Err(error) = granted {
        warn!(%error, "a request of another process could not be removed");
    }
}

impl Inner {
    /// Whether another process fetches these feeds, or none does yet.
    pub(crate) fn is_following(&self) -> bool {
        matches!(self.config.role, Role::Follower(_)) && self.hold().is_none()
    }

    /// Waits until this process may fetch: at once, unless it follows another. Returns whether it
    /// may.
    pub(crate) async fn turn(&self, cancel: &CancellationToken) -> bool {
        let Data::Directory(path) = &self.config.data else { return true };
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut alone_since = None;
        let mut is_told = false;
        while self.is_following() {
            tokio::select! {
                () = cancel.cancelled() => return false,
                _ = ticks.tick() => {}
            }
            if let Ok(Some(Holder { role: Role::Server(_), .. })) = Holder::of(path) {
                alone_since = None;
                continue;
            }
            if alone_since.get_or_insert_with(Instant::now).elapsed() < GRACE {
                continue;
            }
            match Hold::take(path, self.clock.time().to_second(), Role::Server(Fetching::On)) {
                Ok(hold) => {
                    warn!("the process that fetched the feeds ended; this one fetches them now");
                    *self.hold() = Some(hold);
                }
                Err(StoreError::Held { .. }) => {}
                Err(error) if !is_told => {
                    is_told = true;
                    warn!(%error, "the process that fetched the feeds ended; nobody fetches them \
                        now");
                }
                Err(_) => {}
            }
        }
        true
    }

    fn hold(&self) -> MutexGuard<'_, Option<Hold>> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the writes of others readable, and announces the changes. Waits for the disk.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        // Order: one at a time, as in `publish`.
        let mut offer = self.offer();
        let rows = self.store.feeds()?;
        let mut gone: BTreeMap<_, _> =
            self.board().rows().map(|row| (row.id.clone(), row.clone())).collect();
        let mut differing = Vec::new();
        for row in rows {
            let before = gone.remove(&row.id);
            if before.as_deref() != Some(&row) {
                differing.push((row.id.clone(), before, Some(row)));
            }
        }
        differing.extend(gone.into_iter().map(|(id, before)| (id, Some(before), None)));
        if differing.is_empty() {
            return Ok(());
        }
        let mut has_all_moved = false;
        let mut moved = Vec::new();
        {
            let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
            for (id, before, now) in differing {
                self.progress.step(before.as_deref(), now.as_ref());
                // Compared by key too: a feed that was removed and added again may have the same
                // revisions.
                let named = |row: Option<&FeedRow>| row.map(|row| (row.key, row.revisions));
                let has_moved = named(before.as_deref()) != named(now.as_ref());
                has_all_moved |= board.put(&id, now);
                self.touched.add(&id);
                if has_moved {
                    moved.push(id);
                }
            }
        }
        let Some(offer) = &mut *offer else { return Ok(()) };
        if !moved.is_empty()
            && let Err(error) = offer.refresh(&self.board())
        {
            warn!(%error, "the feeds could not be offered");
        }
        if has_all_moved {
            offer.changed(view::ALL);
        }
        for id in moved {
            offer.feed_changed(&id);
        }
        Ok(())
    }
}
