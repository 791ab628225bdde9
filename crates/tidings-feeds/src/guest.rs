//! Changes of a directory from outside, for example from a shell: directly if no process serves it,
//! else through that process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::address::FeedAddress;
use crate::clock::Clock;
use crate::config::{Fetching, Role};
use crate::refresh::{News, Refresh, Refreshed};
use crate::rounds::{Mode, Rounds};
use crate::store::{FeedRow, Hold, Holder, Listing, Seen, Store, StoreError};
use crate::view::Filter;
use crate::{Data, ExportFormat, Feeds, FeedsError, Inner, opml, tools};

/// How long to wait for a lock that another process holds: one that only reads releases it at once.
const FOR_A_LOOK: Duration = Duration::from_millis(500);
/// How long a server waits for a process that fetches once: as long as many slow feeds may take.
pub(super) const FOR_A_GUEST: Duration = Duration::from_mins(10);
/// The time between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// The maximum number of feeds in progress, including those that wait for their host.
const AT_ONCE: usize = 64;
/// How often to check whether a wish was fulfilled.
const LOOK: Duration = Duration::from_millis(100);
/// How many new and changed items are listed; all are counted.
const NAMED: usize = 100;

impl Feeds {
    /// The list of feeds, or their newest items as one document: of these feeds, or of all if none
    /// is named.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn export_as(
        &self,
        format: ExportFormat,
        ids: &[String],
        limit: u32,
    ) -> Result<String, FeedsError> {
        if format == ExportFormat::Opml && ids.is_empty() {
            return Ok(self.export());
        }
        let is_chosen = |row: &&Arc<FeedRow>| ids.is_empty() || ids.contains(&row.id);
        let rows: Vec<_> = self.0.board().rows().filter(is_chosen).cloned().collect();
        if format == ExportFormat::Opml {
            let outlines: Vec<_> = rows.iter().map(|row| row.outline()).collect();
            return Ok(opml::write(&outlines));
        }
        let feeds = rows.iter().map(|row| row.key).collect();
        let filter = Filter { limit: Some(limit), ..Filter::default() };
        let listing = Listing { feeds, filter, ..Listing::default() };
        let items = self.look(move |store| Ok(store.list(&listing)?.items)).await?;
        Ok(tools::exported(format, &rows, &items))
    }

    /// The process that serves the directory, if there is one.
    ///
    /// # Errors
    ///
    /// The lock cannot be read.
    pub fn holder(&self) -> Result<Option<Holder>, StoreError> {
        match &self.0.config.data {
            Data::Memory => Ok(None),
            Data::Directory(path) => Holder::of(path),
        }
    }

    /// Has feeds fetched now, and reports each when it is done: here if no process serves the
    /// directory, else by that process within this time. A process that fetches once is waited for
    /// as long. Feeds that were not reported when this returns were removed, or not fetched in
    /// time.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or nothing can be fetched.
    pub async fn refresh_each(
        &self,
        ids: &[String],
        patience: Duration,
        told: mpsc::Sender<Refreshed>,
    ) -> Result<(), FeedsError> {
        let hold = match &self.0.config.data {
            Data::Memory => None,
            Data::Directory(path) => match self.holder()?.map(|holder| holder.role) {
                Some(Role::Server(Fetching::Off)) => return Err(FeedsError::Offline),
                None | Some(Role::Guest(_)) => {
                    match hold(path, self.0.clock, Role::Guest(Fetching::On), patience).await {
                        // A server was faster.
                        Err(StoreError::Held { holder, .. })
                            if holder.role == Role::Server(Fetching::On) =>
                        {
                            return self.wish_to_refresh(ids, patience, told).await;
                        }
                        taken => Some(taken?),
                    }
                }
                Some(_) => return self.wish_to_refresh(ids, patience, told).await,
            },
        };
        let fetcher = self.0.fetcher.clone().ok_or(FeedsError::Offline)?;
        // The other process may have fetched the same feeds.
        self.change(Inner::catch_up).await?;
        let (rounds, line) = Rounds::new(self.0.clone(), fetcher, Mode::Wanted);
        *self.0.line() = Some(line);
        let result = tokio::select! {
            () = rounds.run(CancellationToken::new()) => Err(FeedsError::Interrupted),
            result = self.refresh_here(ids, told) => result,
        };
        drop(hold);
        result
    }

    async fn refresh_here(
        &self,
        ids: &[String],
        told: mpsc::Sender<Refreshed>,
    ) -> Result<(), FeedsError> {
        let mut waiting = ids.iter().cloned();
        let mut asking = JoinSet::new();
        loop {
            while asking.len() < AT_ONCE
                && let Some(id) = waiting.next()
            {
                let feeds = self.clone();
                asking.spawn(async move { feeds.refresh(&id).await });
            }
            let Some(done) = asking.join_next().await else { return Ok(()) };
            match done.map_err(|_| FeedsError::Interrupted)? {
                Ok(refreshed) => {
                    if told.send(refreshed).await.is_err() {
                        return Ok(());
                    }
                }
                // A removed feed has no report.
                Err(FeedsError::Store(StoreError::NoFeed(_))) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn wish_to_refresh(
        &self,
        ids: &[String],
        patience: Duration,
        told: mpsc::Sender<Refreshed>,
    ) -> Result<(), FeedsError> {
        let mut before = HashMap::new();
        for id in ids {
            before.insert(id.clone(), self.sight(id).await?);
        }
        let (wanted, now) = (ids.to_vec(), self.0.clock.time().to_second());
        let keys = self.change(move |inner| inner.store.wish(&wanted, now)).await?;
        let mut waiting: Vec<_> = ids.iter().cloned().zip(keys).collect();
        let deadline = Instant::now() + patience;
        while !waiting.is_empty() && Instant::now() < deadline {
            sleep_until(deadline.min(Instant::now() + LOOK)).await;
            let left = self.look(Store::wishes).await?;
            let is_left = |(_, key): &(String, i64)| left.iter().any(|wish| wish.key == *key);
            let (still, done): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_left);
            waiting = still;
            for (id, _) in done {
                let Some(refreshed) = self.difference(&id, &before[&id]).await? else { continue };
                if told.send(refreshed).await.is_err() {
                    return Ok(());
                }
            }
        }
        // Nobody waits for the rest any more.
        let keys: Vec<_> = waiting.into_iter().map(|(_, key)| key).collect();
        self.change(move |inner| inner.store.granted(&keys)).await
    }

    async fn sight(&self, id: &str) -> Result<Sight, FeedsError> {
        let id = id.to_owned();
        self.look(move |store| Ok(Sight { row: store.feed(&id)?, items: store.seen(&id)? })).await
    }

    /// The result of a fetch from the store; `None` if the feed is gone.
    async fn difference(&self, id: &str, before: &Sight) -> Result<Option<Refreshed>, FeedsError> {
        let now = self.sight(id).await?;
        let Some(row) = &now.row else { return Ok(None) };
        let outcome = match outcome(before.row.as_ref(), row) {
            Some(outcome) => outcome,
            None => Refresh::Answered(self.news(id, before, &now).await?),
        };
        let title = row.shown_title().to_owned();
        Ok(Some(Refreshed { id: id.to_owned(), title, outcome, next: row.next_fetch }))
    }

    async fn news(&self, id: &str, before: &Sight, now: &Sight) -> Result<News, FeedsError> {
        let mut keys = Vec::new();
        let mut news = News::default();
        for (key, (hash, _)) in &now.items {
            match before.items.get(key).map(|(hash, _)| hash) {
                None => {
                    news.new += 1;
                    keys.push((*key, true));
                }
                Some(before) if before != hash => {
                    news.changed += 1;
                    keys.push((*key, false));
                }
                Some(_) => news.unchanged += 1,
            }
        }
        let gone = before.items.iter().filter(|(key, _)| !now.items.contains_key(key));
        let gone: Vec<_> = gone.map(|(_, (_, identity))| identity.clone()).collect();
        let id = id.to_owned();
        news.withdrawn = self.look(move |store| store.taken_back(&id, &gone)).await?;
        let metadata = |sight: &Sight| sight.row.as_ref().map(|row| row.revisions.metadata);
        news.metadata = metadata(before) != metadata(now);
        keys.sort_by_key(|(_, is_new)| !is_new);
        keys.truncate(NAMED);
        news.headlines = self.look(move |store| store.headlines(&keys)).await?;
        Ok(news)
    }

    /// Reads the store on a thread that may wait.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, FeedsError> {
        let inner = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner.store)).await;
        Ok(done.map_err(|_| FeedsError::Interrupted)??)
    }
}

/// A feed and its items at one time.
struct Sight {
    row: Option<FeedRow>,
    items: Seen,
}

/// Why a requested feed failed; `None` if it did not.
fn outcome(before: Option<&FeedRow>, now: &FeedRow) -> Option<Refresh> {
    let last = |row: &FeedRow| row.plan.as_ref().and_then(|plan| plan.last);
    if before.and_then(last) == last(now) {
        // An unchanged file leaves no record.
        return match (&now.address, now.next_fetch) {
            _ if now.is_paused() => Some(Refresh::Paused),
            (FeedAddress::Web(_), Some(until)) => Some(Refresh::Postponed(until)),
            _ => None,
        };
    }
    now.last_error.clone().map(Refresh::Failed)
}

/// Takes the right to fetch for a directory. Waits briefly for a process that holds it for a
/// moment, and this long for one that fetches once.
pub(super) async fn hold(
    directory: &Path,
    clock: Clock,
    role: Role,
    patience: Duration,
) -> Result<Hold, StoreError> {
    let began = Instant::now();
    loop {
        let taken = Hold::take(directory, clock.time().to_second(), role);
        let Err(StoreError::Held { holder, .. }) = &taken else { return taken };
        let patience = if holder.role.is_guest() { patience } else { FOR_A_LOOK };
        if began.elapsed() >= patience {
            return taken;
        }
        sleep(BETWEEN_TRIES).await;
    }
}
