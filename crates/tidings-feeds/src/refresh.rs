//! Fetches on request, and their real results.

use std::sync::Arc;

use tidings_store::date::Moment;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ask::AskOutcome;
use crate::rounds::{Mode, Rounds, Wanted};
use crate::store::{Changes, StoreError};
use crate::{Feeds, FeedsError, Inner};

/// How many new and changed items are listed; all are counted.
const NAMED: usize = 100;

/// The result of a requested fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refreshed {
    /// Its id.
    pub id: String,
    /// The title under which it is listed.
    pub title: String,
    /// The result.
    pub outcome: Refresh,
    /// When it is fetched next by itself, if ever.
    pub next: Option<Moment>,
}

/// The outcome of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refresh {
    /// It succeeded.
    Answered(News),
    /// It failed, or the answer was not a feed, with the reason.
    Failed(String),
    /// It was not fetched, because it is on a private address and this process runs only once, with
    /// the reason.
    Forbidden(String),
    /// It was not fetched: its server sent `Retry-After` until then.
    Postponed(Moment),
    /// It was not fetched: it is paused.
    Paused,
}

/// The news in an answer. Differences of form only, such as a date that is always now, do not
/// count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct News {
    /// How many items are new.
    pub new: usize,
    /// How many items changed.
    pub changed: usize,
    /// How many items the feed withdrew.
    pub withdrawn: usize,
    /// How many stored items are unchanged.
    pub unchanged: usize,
    /// Whether the feed's own description changed.
    pub metadata: bool,
    /// The new items and then the changed ones, at most 100 of both together.
    pub headlines: Vec<Headline>,
}

/// A new or changed item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headline {
    /// Whether it is new.
    pub is_new: bool,
    /// Its title.
    pub title: Option<String>,
    /// Its link.
    pub link: Option<String>,
    /// When it was published.
    pub published: Option<Moment>,
}

impl Feeds {
    /// Fetches a feed now and waits for the result. If a fetch is in progress, its result counts.
    /// If its server sent `Retry-After`, it is not fetched.
    ///
    /// # Errors
    ///
    /// There is no such feed, or nothing is fetched here.
    pub async fn refresh(&self, id: &str) -> Result<Refreshed, FeedsError> {
        if self.0.board().get(id).is_none() {
            return Err(StoreError::NoFeed(id.to_owned()).into());
        }
        let refreshed = self.refresh_these(vec![id.to_owned()]).await?;
        // It may have been removed meanwhile.
        refreshed.into_iter().next().ok_or_else(|| StoreError::NoFeed(id.to_owned()).into())
    }

    /// Fetches all feeds now, except those whose servers sent `Retry-After`, and waits for all of
    /// them.
    ///
    /// # Errors
    ///
    /// Nothing is fetched here.
    pub async fn refresh_all(&self) -> Result<Vec<Refreshed>, FeedsError> {
        let ids: Vec<_> = self.0.board().rows().map(|row| row.id.clone()).collect();
        self.refresh_these(ids).await
    }

    async fn refresh_these(&self, ids: Vec<String>) -> Result<Vec<Refreshed>, FeedsError> {
        if !self.0.config.role.writes() || self.0.is_following() {
            return Err(FeedsError::ReadOnly);
        }
        let fetcher = self.0.fetcher.clone().ok_or(FeedsError::Offline)?;
        let line = self.0.line().clone();
        if let Some(line) = line.filter(|line| !line.is_closed()) {
            return asked(&self.0, &line, ids).await;
        }
        // No rounds are running, so they run for as long as this waits.
        let (rounds, line) = Rounds::new(self.0.clone(), fetcher, Mode::Wanted);
        tokio::select! {
            () = rounds.run(CancellationToken::new()) => Err(FeedsError::Interrupted),
            done = asked(&self.0, &line, ids) => done,
        }
    }
}

/// Has feeds fetched; removed ones are skipped.
async fn asked(
    inner: &Arc<Inner>,
    line: &mpsc::Sender<Wanted>,
    ids: Vec<String>,
) -> Result<Vec<Refreshed>, FeedsError> {
    let mut tasks = JoinSet::new();
    for (number, id) in ids.into_iter().enumerate() {
        let (reply, outcome) = oneshot::channel();
        let wanted = Wanted { id: id.clone(), reply };
        line.send(wanted).await.map_err(|_| FeedsError::Interrupted)?;
        let inner = inner.clone();
        tasks.spawn(async move {
            let outcome = outcome.await.map_err(|_| FeedsError::Interrupted)?;
            Ok::<_, FeedsError>((number, refreshed(&inner, id, outcome).await?))
        });
    }
    let mut found = Vec::new();
    while let Some(done) = tasks.join_next().await {
        found.push(done.map_err(|_| FeedsError::Interrupted)??);
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found.into_iter().filter_map(|(_, refreshed)| refreshed).collect())
}

async fn refreshed(
    inner: &Arc<Inner>,
    id: String,
    outcome: AskOutcome,
) -> Result<Option<Refreshed>, FeedsError> {
    let outcome = match outcome {
        AskOutcome::Answered(changes) => Refresh::Answered(news(inner, &id, changes).await?),
        AskOutcome::Failed(reason) | AskOutcome::Unable(reason) => Refresh::Failed(reason),
        AskOutcome::Forbidden(reason) => Refresh::Forbidden(reason),
        AskOutcome::Postponed(until) => Refresh::Postponed(until.to_second()),
        AskOutcome::Paused => Refresh::Paused,
        AskOutcome::Removed => return Ok(None),
    };
    let Some(row) = inner.board().get(&id).cloned() else { return Ok(None) };
    let title = row.shown_title().to_owned();
    Ok(Some(Refreshed { id, title, outcome, next: row.next_fetch }))
}

async fn news(inner: &Arc<Inner>, id: &str, changes: Changes) -> Result<News, FeedsError> {
    let kept = inner.board().get(id).map_or(0, |row| row.item_count);
    let news = News {
        new: changes.new.len(),
        changed: changes.changed.len(),
        withdrawn: changes.withdrawn.len(),
        unchanged: usize::try_from(kept).unwrap_or(usize::MAX),
        metadata: changes.metadata,
        headlines: Vec::new(),
    };
    let unchanged = news.unchanged.saturating_sub(news.new + news.changed);
    let named = |keys: Vec<i64>, is_new| keys.into_iter().map(move |key| (key, is_new));
    let keys: Vec<_> =
        named(changes.new, true).chain(named(changes.changed, false)).take(NAMED).collect();
    let inner = inner.clone();
    let headlines = tokio::task::spawn_blocking(move || inner.store.headlines(&keys)).await;
    let headlines = headlines.map_err(|_| FeedsError::Interrupted)??;
    Ok(News { unchanged, headlines, ..news })
}
