//! One feed is asked once: fetch, parse, keep, tell, plan.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, warn};

use crate::feeds::clock::moment;
use crate::feeds::fetch::{
    self, Fetched, Fetcher, Request, Validators, local_path, local_stamp, read_local,
};
use crate::feeds::parse::{self, Document, parse};
use crate::feeds::rounds::{bounds, random};
use crate::feeds::schedule::{Failure, FeedHints, Outcome, Plan, Skip, Time};
use crate::feeds::store::{Changes, FeedRow, State, StoreError};
use crate::feeds::{FeedsError, Inner};

/// The largest feed on this machine.
const LOCAL_LIMIT: u64 = 16 * 1024 * 1024;

/// What came of asking, when it is kept.
enum Answer {
    Unmodified { hints: fetch::Hints, moved: Option<String> },
    Document(Box<News>),
    Failed { reason: String, failure: Failure },
}

/// A document and what came with it.
struct News {
    document: Document,
    validators: Validators,
    hints: fetch::Hints,
    moved: Option<String>,
}

/// Asks a feed and gives the plan for the next time.
pub(crate) async fn ask(
    inner: Arc<Inner>,
    fetcher: Fetcher,
    row: Arc<FeedRow>,
    plan: Plan,
) -> Plan {
    let answer = fetched(&fetcher, &row).await;
    let now = inner.clock.time();
    let kept = match answer {
        Answer::Failed { reason, failure } => failed(&inner, &row, &plan, reason, failure).await,
        Answer::Unmodified { hints, moved } => {
            let at = moment(now);
            // A file that is as it was is nothing to write down.
            if local_path(&row.asked_url).is_some() && row.state == State::Good {
                let outcome = Outcome::Unchanged {
                    hints: plan.remembered(FeedHints::default()),
                    moved: None,
                };
                return plan.after(&outcome, &bounds(&row), now, random());
            }
            let kept = inner.record(&row.id, move |store, id| store.unmodified(id, at)).await;
            let hints = plan.remembered(feed_hints(None, &hints));
            let outcome = Outcome::Unchanged { hints, moved: moved.as_deref() };
            kept.map(|_| plan.after(&outcome, &bounds(&row), now, random()))
        }
        Answer::Document(news) => keep(&inner, &row, &plan, *news).await,
    };
    let planned = match kept {
        Ok(planned) => settle(&inner, &row, planned).await,
        Err(error) => Err(error),
    };
    match planned {
        Ok(planned) => planned,
        Err(FeedsError::Store(StoreError::NoFeed(feed))) => {
            debug!(feed, "a feed was removed while it was asked");
            plan
        }
        Err(error) => {
            warn!(feed = row.id, %error, "what a feed said could not be kept");
            let outcome = Outcome::Failed(Failure::Transient);
            plan.after(&outcome, &bounds(&row), now, random())
        }
    }
}

async fn fetched(fetcher: &Fetcher, row: &FeedRow) -> Answer {
    let kept = row.validators.as_deref().and_then(|it| serde_json::from_str(it).ok());
    let kept: Validators = kept.unwrap_or_default();
    // Only the operator's own word names a file; a redirect does not.
    let local = local_path(&row.asked_url);
    let is_local = local.is_some();
    let fetched = if let Some(path) = local {
        // Taken before the content: what changes in between is read again the next time.
        let stamp = local_stamp(&path).await;
        if stamp.is_some() && stamp == kept.etag {
            return Answer::Unmodified { hints: fetch::Hints::default(), moved: None };
        }
        match read_local(&path, LOCAL_LIMIT).await {
            Ok(bytes) => Fetched::Document {
                bytes,
                content_type: None,
                validators: Validators { etag: stamp, last_modified: None },
                url: row.url.clone(),
                moved: None,
                hints: fetch::Hints::default(),
            },
            Err(error) => return Answer::failed(&error, Failure::Transient),
        }
    } else {
        let request = Request {
            url: row.url.clone(),
            validators: kept,
            // Headers are for whom they were given for, not for whom that one points to.
            headers: if fetch::same_origin(&row.url, &row.asked_url) {
                row.settings.headers.clone()
            } else {
                Vec::new()
            },
            ..Request::default()
        };
        match fetcher.fetch(request).await {
            Ok(fetched) => fetched,
            Err(error) => return Answer::failed(&error, error.kind()),
        }
    };
    match fetched {
        Fetched::NotModified { moved, hints } => Answer::Unmodified { hints, moved },
        Fetched::Document { bytes, content_type, validators, url, moved, hints } => {
            // A path is no address that others could follow.
            let known = parse::Hints { content_type, base: (!is_local).then_some(url) };
            let parsed = tokio::task::spawn_blocking(move || parse(&bytes, &known)).await;
            match parsed {
                Ok(Ok(document)) => {
                    Answer::Document(Box::new(News { document, validators, hints, moved }))
                }
                Ok(Err(error)) => Answer::failed(&error, Failure::Unparsable),
                Err(error) => Answer::failed(&error, Failure::Unparsable),
            }
        }
    }
}

impl Answer {
    fn failed(error: &(dyn Error + 'static), failure: Failure) -> Self {
        let causes = std::iter::successors(Some(error), |&cause| cause.source());
        let causes: Vec<_> = causes.map(ToString::to_string).collect();
        Self::Failed { reason: causes.join(": "), failure }
    }
}

async fn keep(
    inner: &Arc<Inner>,
    row: &FeedRow,
    plan: &Plan,
    news: News,
) -> Result<Plan, FeedsError> {
    let News { document, validators, hints, moved } = news;
    let now = inner.clock.time();
    let posted: Vec<_> = document
        .items
        .iter()
        .filter_map(|item| item.published.or(item.updated))
        .filter_map(|posted| u64::try_from(posted.unix()).ok())
        .map(|seconds| Time(seconds.saturating_mul(1000)))
        .collect();
    let hints = feed_hints(Some(&document), &hints);
    // A document that was cut off is asked for again, whole; a file changes when it is.
    let cut = document.truncated && local_path(&row.asked_url).is_none();
    let validators = if cut { Validators::default() } else { validators };
    let validators = serde_json::to_string(&validators).unwrap_or_default();
    let at = moment(now);
    // Order: the validators after the document, or a program that is killed in between would
    // never ask for it again.
    let changes = inner.record(&row.id, move |store, id| {
        let changes = store.apply(id, &document, at)?;
        store.keep_validators(id, &validators)?;
        Ok(changes)
    });
    let changes = changes.await?;
    let moved = moved.as_deref();
    let outcome = if changes.has_items() {
        Outcome::Changed { posted: &posted, hints, moved }
    } else {
        Outcome::Unchanged { hints, moved }
    };
    Ok(plan.after(&outcome, &bounds(row), now, random()))
}

async fn failed(
    inner: &Arc<Inner>,
    row: &FeedRow,
    plan: &Plan,
    reason: String,
    failure: Failure,
) -> Result<Plan, FeedsError> {
    let now = inner.clock.time();
    let was_asked = !matches!(failure, Failure::Postponed { .. });
    let planned = plan.after(&Outcome::Failed(failure), &bounds(row), now, random());
    if was_asked {
        debug!(feed = row.id, reason, "a feed could not be fetched");
        let (kept, next) = written(&planned);
        let at = moment(now);
        // Order: when it is tried again is known before anybody hears that it failed.
        inner
            .record(&row.id, move |store, id| {
                store.keep_plan(id, &kept, next.map(moment))?;
                store.failed(id, &reason, at)
            })
            .await?;
    }
    Ok(planned)
}

/// Keeps a plan, and the new address of a feed that moved for good.
async fn settle(inner: &Arc<Inner>, row: &FeedRow, mut planned: Plan) -> Result<Plan, FeedsError> {
    let address = planned.take_address();
    let (kept, next) = written(&planned);
    inner
        .record(&row.id, move |store, id| {
            store.keep_plan(id, &kept, next.map(moment))?;
            let metadata = match &address {
                Some(address) => store.moved(id, address)?,
                None => false,
            };
            Ok(Changes { metadata, ..Changes::default() })
        })
        .await?;
    Ok(planned)
}

fn written(plan: &Plan) -> (String, Option<Time>) {
    (serde_json::to_string(plan).expect("a plan is plain JSON"), plan.due())
}

/// What the headers and the document say about the next time.
fn feed_hints(document: Option<&Document>, hints: &fetch::Hints) -> FeedHints {
    let mut found = FeedHints {
        max_age: hints.max_age,
        expires: hints.expires,
        retry_after: hints.retry_after,
        ..FeedHints::default()
    };
    if let Some(Document { feed, .. }) = document {
        found.ttl = feed.ttl.map(|minutes| Duration::from_secs(u64::from(minutes) * 60));
        found.update = feed
            .update_period
            .as_deref()
            .and_then(|period| FeedHints::update_every(period, feed.update_frequency.unwrap_or(1)));
        let days = feed.skip_days.iter().map(String::as_str);
        found.skip = Skip::new(feed.skip_hours.iter().copied(), days);
    }
    found
}
