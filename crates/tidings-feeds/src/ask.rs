//! One feed is asked once: fetch, parse, keep, tell, plan.

use std::error::Error;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tracing::{debug, warn};

use crate::address::{FeedAddress, FileAddress, WebAddress};
use crate::clock::moment;
use crate::delivery::{Delivery, feed_hints};
use crate::fetch::{self, Fetched, Fetcher, Request, Validators, local_stamp, read_beginning};
use crate::parse::{self, parse};
use crate::rounds::random;
use crate::schedule::{self, Failure, FeedHints, Plan, Time};
use crate::store::{Changes, FeedRow, Store, StoreError};
use crate::{FeedsError, Inner};

/// The largest feed on this machine.
pub(crate) const LOCAL_LIMIT: u64 = 16 * 1024 * 1024;

/// What came of asking, when it is kept.
enum Answer {
    Unmodified {
        hints: fetch::Hints,
        moved: Option<String>,
    },
    /// With its turn to be stored.
    Document(Box<Delivery>, Option<OwnedSemaphorePermit>),
    Failed {
        reason: String,
        failure: Failure,
    },
    /// It was not asked, since it is on a private address.
    Forbidden {
        reason: String,
    },
}

/// What came of asking a feed, and the plan for the next time.
pub(crate) struct Asked {
    pub(crate) plan: Plan,
    pub(crate) outcome: Outcome,
}

/// What came of asking, for who waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// What was news in it.
    Answered(Changes),
    Failed(String),
    /// It was not asked, since a guest may not: it is on a private address.
    Forbidden(String),
    /// It was not asked, since nothing can be asked from this machine now.
    Unable(String),
    /// It was not asked: the server wants to be left alone until then.
    Postponed(Time),
    /// It was not asked: nobody may.
    Paused,
    Removed,
}

/// Asks a feed.
pub(crate) async fn ask(
    inner: Arc<Inner>,
    fetcher: Fetcher,
    row: Arc<FeedRow>,
    plan: Plan,
) -> Asked {
    let answer = fetched(&inner, &fetcher, &row).await;
    let now = inner.clock.time();
    let bounds = inner.bounds(&row);
    let kept = match answer {
        // What a guest may not do says nothing of the feed.
        Answer::Forbidden { reason } if inner.config.role.is_guest() => {
            return Asked { plan, outcome: Outcome::Forbidden(reason) };
        }
        Answer::Forbidden { reason } => {
            failed(&inner, &row, &plan, reason, Failure::Rejected).await
        }
        Answer::Failed { reason, failure } => failed(&inner, &row, &plan, reason, failure).await,
        Answer::Unmodified { hints, moved } => {
            let at = moment(now);
            // A file that is as it was is nothing to write down.
            if row.address.file().is_some() && row.is_known() && !row.is_failing() {
                let hints = plan.remembered(FeedHints::default());
                let outcome = schedule::Outcome::Unchanged { hints, moved: None };
                let plan = plan.after(&outcome, &bounds, now, random());
                return Asked { plan, outcome: Outcome::Answered(Changes::default()) };
            }
            let kept = inner.record(&row.id, move |store, id| store.unmodified(id, at)).await;
            let hints = plan.remembered(feed_hints(None, &hints));
            let outcome = schedule::Outcome::Unchanged { hints, moved: moved.as_deref() };
            let planned = plan.after(&outcome, &bounds, now, random());
            kept.map(|changes| (planned, Outcome::Answered(changes)))
        }
        Answer::Document(delivery, _turn) => keep(&inner, &row, &plan, *delivery).await,
    };
    let settled = match kept {
        Ok((planned, outcome)) => {
            settle(&inner, &row, planned).await.map(|plan| Asked { plan, outcome })
        }
        Err(error) => Err(error),
    };
    match settled {
        Ok(asked) => {
            inner.note_trouble(None);
            asked
        }
        Err(FeedsError::Store(StoreError::NoFeed(feed))) => {
            debug!(feed, "a feed was removed while it was asked");
            Asked { plan, outcome: Outcome::Removed }
        }
        Err(error) => {
            let reason = causes(&error);
            warn!(feed = row.id, error = reason, "what a feed said could not be kept");
            let said = match &error {
                FeedsError::Store(error) => error.outside(),
                error => error.to_string(),
            };
            inner.note_trouble(Some(said.clone()));
            // It is no fault of the feed.
            let outcome = schedule::Outcome::Failed(Failure::Here);
            let plan = plan.after(&outcome, &bounds, now, random());
            Asked { plan, outcome: Outcome::Failed(said) }
        }
    }
}

async fn fetched(inner: &Inner, fetcher: &Fetcher, row: &FeedRow) -> Answer {
    let fetched = match &row.address {
        FeedAddress::File(file) => read_file(file, &row.validators).await,
        FeedAddress::Web(address) => fetch_from(fetcher, address, row).await,
    };
    match fetched {
        Err(answer) => answer,
        Ok(Fetched::NotModified { moved, hints }) => Answer::Unmodified { hints, moved },
        Ok(Fetched::Document {
            bytes, content_type, validators, url, moved, hints, end, ..
        }) => {
            // A path is no address that others could follow.
            let base = row.address.web().map(|_| url);
            let known = parse::Hints { content_type, base };
            let turn = inner.taking.clone().acquire_owned().await.ok();
            let parsed = tokio::task::spawn_blocking(move || parse(&bytes, &known)).await;
            match parsed {
                Ok(Ok(document)) => {
                    let delivery = Delivery { document, validators, hints, moved, end };
                    Answer::Document(Box::new(delivery), turn)
                }
                Ok(Err(error)) => Answer::failed(&error, Failure::Unparsable),
                Err(error) => Answer::failed(&error, Failure::Unparsable),
            }
        }
    }
}

/// The file of a feed, unless it is as it was.
async fn read_file(file: &FileAddress, known: &Validators) -> Result<Fetched, Answer> {
    // Taken before the content: what changes in between is read again the next time.
    let stamp = local_stamp(file.path()).await;
    if stamp.is_some() && stamp == known.etag {
        return Ok(Fetched::NotModified { hints: fetch::Hints::default(), moved: None });
    }
    let read = read_beginning(file.path(), LOCAL_LIMIT).await;
    let bytes = read.map_err(|error| Answer::failed(&error, Failure::Transient))?;
    Ok(Fetched::Document {
        bytes,
        content_type: None,
        validators: Validators { etag: stamp, last_modified: None },
        url: file.as_str().to_owned(),
        moved: None,
        hints: fetch::Hints::default(),
        link: None,
        end: fetch::End::Whole,
    })
}

/// What the server of a feed says.
async fn fetch_from(
    fetcher: &Fetcher,
    address: &WebAddress,
    row: &FeedRow,
) -> Result<Fetched, Answer> {
    // Headers are for whom they were given for, not for whom that one points to.
    let is_same = row.address.has_same_origin(&row.asked);
    let request = Request {
        url: address.as_str().to_owned(),
        validators: row.validators.clone(),
        headers: if is_same { row.settings.headers.clone() } else { Vec::new() },
        ..Request::default()
    };
    fetcher.fetch(request).await.map_err(|error| {
        if error.is_private() {
            Answer::Forbidden { reason: causes(&error) }
        } else {
            Answer::failed(&error, error.kind())
        }
    })
}

impl Answer {
    fn failed(error: &(dyn Error + 'static), failure: Failure) -> Self {
        Self::Failed { reason: causes(error), failure }
    }
}

/// What the system says, without the number of it: `No such file or directory (os error 2)`.
fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((words, rest)) => {
            let rest = rest.split_once(')').map_or("", |(_, rest)| rest);
            format!("{words}{rest}")
        }
        None => text.to_owned(),
    }
}

/// An error with all that led to it.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&cause| cause.source());
    let causes: Vec<_> = causes.map(|cause| without_number(&cause.to_string())).collect();
    causes.join(": ")
}

async fn keep(
    inner: &Arc<Inner>,
    row: &Arc<FeedRow>,
    plan: &Plan,
    delivery: Delivery,
) -> Result<(Plan, Outcome), FeedsError> {
    let (now, bounds) = (inner.clock.time(), inner.bounds(row));
    let (kept, plan) = (row.clone(), plan.clone());
    let work = move |store: &Store, _: &str| {
        let (changes, plan) = delivery.keep(store, &kept, &plan, &bounds, now)?;
        Ok((changes.clone(), (plan, changes)))
    };
    let (plan, changes) = inner.record_with(&row.id, work).await?;
    Ok((plan, Outcome::Answered(changes)))
}

async fn failed(
    inner: &Arc<Inner>,
    row: &FeedRow,
    plan: &Plan,
    reason: String,
    failure: Failure,
) -> Result<(Plan, Outcome), FeedsError> {
    let now = inner.clock.time();
    let outcome = match failure {
        Failure::Postponed { by } => Outcome::Postponed(now.after(by)),
        Failure::Here => Outcome::Unable(reason.clone()),
        _ => Outcome::Failed(reason.clone()),
    };
    let failed = schedule::Outcome::Failed(failure);
    let planned = plan.after(&failed, &inner.bounds(row), now, random());
    if let Outcome::Failed(_) = outcome {
        debug!(feed = row.id, reason, "a feed could not be fetched");
        let (kept, at) = (planned.clone(), moment(now));
        // Order: when it is tried again is known before anybody hears that it failed.
        inner
            .record(&row.id, move |store, id| {
                store.keep_plan(id, kept)?;
                store.failed(id, &reason, at)
            })
            .await?;
    }
    Ok((planned, outcome))
}

/// Keeps a plan, and the new address of a feed that moved for good; gives the plan that is kept.
async fn settle(inner: &Arc<Inner>, row: &FeedRow, mut planned: Plan) -> Result<Plan, FeedsError> {
    let address = planned.take_address();
    let now = moment(inner.clock.time());
    let work = move |store: &Store, id: &str| {
        let kept = store.keep_plan(id, planned)?;
        let metadata = match &address {
            Some(address) => store.moved(id, address, now)?,
            None => false,
        };
        Ok((Changes { metadata, ..Changes::default() }, kept))
    };
    inner.record_with(&row.id, work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_words_and_no_numbers_of_the_system() {
        let error = std::io::Error::from_raw_os_error(2);
        assert_eq!(causes(&error), "No such file or directory");
        assert_eq!(without_number("a (os error 13), b"), "a, b");
        assert_eq!(without_number("plain"), "plain");
    }
}
