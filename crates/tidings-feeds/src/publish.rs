//! Publishing: stored changes become readable and are announced, one feed at a time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, RwLockReadGuard};

use tokio::sync::mpsc;

use crate::board::Board;
use crate::offer::Offer;
use crate::rounds::Wanted;
use crate::store::{Changes, FeedRow, Store, StoreError};
use crate::{FeedsError, Inner, view};

impl Inner {
    pub(crate) fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn offer(&self) -> MutexGuard<'_, Option<Offer>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sender of requests to fetch, while the rounds run.
    pub(crate) fn line(&self) -> MutexGuard<'_, Option<mpsc::Sender<Wanted>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn are_files_watched(&self) -> bool {
        !self.unwatched.load(Ordering::Relaxed)
    }

    /// Notes a file that the system does not watch.
    pub(crate) fn note_unwatched(&self) {
        self.unwatched.store(true, Ordering::Relaxed);
    }

    /// Why nothing can be stored, if that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether the last write to the store failed, and why.
    pub(crate) fn note_trouble(&self, reason: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Writes the news of a feed, then makes it readable and announces it, once. Returns the other
    /// results of the work.
    pub(crate) async fn record<T: Send + 'static>(
        self: &Arc<Self>,
        id: &str,
        work: impl FnOnce(&Store) -> Result<(Changes, T), StoreError> + Send + 'static,
    ) -> Result<T, FeedsError> {
        let (inner, id) = (self.clone(), id.to_owned());
        let record = move || {
            let (changes, more) = work(&inner.store)?;
            inner.publish(&id, &changes)?;
            Ok(more)
        };
        let _turn = self.writing.acquire().await;
        tokio::task::spawn_blocking(record).await.map_err(|_| FeedsError::Interrupted)?
    }

    /// Makes stored changes readable at once, and announces them. Waits for the disk.
    pub(crate) fn publish(&self, id: &str, changes: &Changes) -> Result<(), StoreError> {
        // Order: one at a time from here on. Otherwise the row of an older change could be put
        // last.
        let mut offer = self.offer();
        let row = self.store.feed(id)?;
        let (before, now, has_moved) = {
            let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
            let before = board.get(id).cloned();
            let has_moved = board.put(id, row);
            (before, board.get(id).cloned(), has_moved)
        };
        self.progress.step(before.as_deref(), now.as_deref());
        let Some(offer) = &mut *offer else { return Ok(()) };
        let revisions = |row: &Option<Arc<FeedRow>>| row.as_ref().map(|row| row.revisions);
        if changes.is_empty() && !has_moved && revisions(&before) == revisions(&now) {
            return Ok(());
        }
        let edited = match &now {
            Some(row) => offer.put(row, &self.board()),
            None => offer.remove(id, &self.board()),
        };
        if let Err(error) = edited {
            // Another source has one of these addresses.
            tracing::warn!(feed = id, %error, "a feed could not be offered");
        }
        if has_moved {
            offer.changed(view::ALL);
        }
        offer.feed_changed(id);
        let folder = |row: &Option<Arc<FeedRow>>| row.as_ref().and_then(|row| row.category.clone());
        if folder(&before).is_some() || folder(&now).is_some() {
            offer.changed_below(view::FOLDERS);
        }
        Ok(())
    }
}
