//! One fetch of one feed: fetch, parse, store, announce, plan.

use std::error::Error;
use std::sync::Arc;

use tidings_store::date::Moment;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{debug, warn};

use crate::address::{FeedAddress, FileAddress, WebAddress};
use crate::delivery::{Delivery, feed_hints};
use crate::fetch::{self, Fetched, Fetcher, Request, Validators, local_stamp, read_beginning};
use crate::parse::{self, parse};
use crate::rounds::random;
use crate::schedule::{self, Bounds, Failure, FeedHints, Plan};
use crate::store::{Changes, FeedRow, Store, StoreError};
use crate::{FeedsError, Inner};

/// The largest feed in a file.
pub(crate) const LOCAL_LIMIT: u64 = 16 * 1024 * 1024;

/// The result of a fetch, to be stored.
enum FeedAnswer {
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
    /// It was not fetched, because it is on a private address.
    Forbidden {
        reason: String,
    },
}

/// The result of a fetch, and the plan for the next one.
pub(crate) struct Asked {
    pub(crate) plan: Plan,
    pub(crate) outcome: AskOutcome,
}

/// The result of a fetch, for those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskOutcome {
    /// Its news.
    Answered(Changes),
    Failed(String),
    /// It was not fetched, because a guest may not fetch private addresses.
    Forbidden(String),
    /// It was not fetched, because this machine cannot reach anything now.
    Unable(String),
    /// It was not fetched: its server sent `Retry-After` until then.
    Postponed(Moment),
    /// It was not fetched: this process may not fetch.
    Paused,
    Removed,
}

/// Fetches a feed.
pub(crate) async fn ask(
    inner: Arc<Inner>,
    fetcher: Fetcher,
    row: Arc<FeedRow>,
    plan: Plan,
) -> Asked {
    let answer = fetched(&inner, &fetcher, &row).await;
    let (bounds, now) = (inner.bounds(&row), inner.clock.time());
    let turn = Turn { row, plan, bounds, now };
    let answer = match answer {
        // A guest's restrictions say nothing about the feed.
        FeedAnswer::Forbidden { reason } if inner.config.role.is_guest() => {
            return Asked { plan: turn.plan, outcome: AskOutcome::Forbidden(reason) };
        }
        // An unchanged file is not recorded.
        FeedAnswer::Unmodified { .. } if turn.is_good_file() => {
            let plan = turn.unchanged(FeedHints::default(), None);
            return Asked { plan, outcome: AskOutcome::Answered(Changes::default()) };
        }
        answer => answer,
    };
    let (id, before) = (turn.row.id.clone(), turn.clone());
    match inner.record(&id, move |store| turn.keep(store, answer)).await {
        Ok(asked) => {
            inner.note_trouble(None);
            asked
        }
        Err(FeedsError::Store(StoreError::NoFeed(feed))) => {
            debug!(feed, "a feed was removed while it was fetched");
            Asked { plan: before.plan, outcome: AskOutcome::Removed }
        }
        Err(error) => {
            let reason = causes(&error);
            warn!(feed = id, error = reason, "the answer of a feed could not be stored");
            let said = match &error {
                FeedsError::Store(error) => error.outside(),
                error => error.to_string(),
            };
            inner.note_trouble(Some(said.clone()));
            // This is not a failure of the feed.
            let plan = before.after(&schedule::Outcome::Failed(Failure::Here));
            Asked { plan, outcome: AskOutcome::Failed(said) }
        }
    }
}

/// A fetched feed, before the result is stored.
#[derive(Clone)]
struct Turn {
    row: Arc<FeedRow>,
    /// Its state when it was fetched.
    plan: Plan,
    bounds: Bounds,
    /// When the answer arrived.
    now: Moment,
}

impl Turn {
    /// Stores the result and the next plan, and returns the changes to announce. Waits for the
    /// disk.
    ///
    /// Order: the next plan is stored before the answer is announced.
    fn keep(self, store: &Store, answer: FeedAnswer) -> Result<(Changes, Asked), StoreError> {
        let (id, at) = (&self.row.id, self.now.to_second());
        let (mut changes, mut planned, outcome) = match answer {
            FeedAnswer::Document(delivery, _turn) => {
                let Self { row, plan, bounds, now } = &self;
                let (changes, planned) = delivery.keep(store, row, plan, bounds, *now)?;
                (changes.clone(), planned, AskOutcome::Answered(changes))
            }
            FeedAnswer::Unmodified { hints, moved } => {
                let changes = store.unmodified(id, at)?;
                let planned = self.unchanged(feed_hints(None, &hints), moved.as_deref());
                (changes.clone(), planned, AskOutcome::Answered(changes))
            }
            FeedAnswer::Forbidden { reason } => self.failed(store, reason, Failure::Rejected)?,
            FeedAnswer::Failed { reason, failure } => self.failed(store, reason, failure)?,
        };
        let address = planned.take_address();
        let plan = store.keep_plan(id, planned)?;
        if let Some(address) = address {
            changes.metadata |= store.moved(id, &address, at)?;
        }
        Ok((changes, Asked { plan, outcome }))
    }

    fn failed(
        &self,
        store: &Store,
        reason: String,
        failure: Failure,
    ) -> Result<(Changes, Plan, AskOutcome), StoreError> {
        let outcome = match failure {
            Failure::Postponed { by } => Some(AskOutcome::Postponed(self.now.after(by))),
            Failure::Here => Some(AskOutcome::Unable(reason.clone())),
            _ => None,
        };
        let planned = self.after(&schedule::Outcome::Failed(failure));
        if let Some(outcome) = outcome {
            return Ok((Changes::default(), planned, outcome));
        }
        debug!(feed = self.row.id, reason, "a feed could not be fetched");
        let changes = store.failed(&self.row.id, &reason, self.now.to_second())?;
        Ok((changes, planned, AskOutcome::Failed(reason)))
    }

    /// The plan after an answer without a document.
    fn unchanged(&self, hints: FeedHints, moved: Option<&str>) -> Plan {
        let hints = self.plan.remembered(hints);
        self.after(&schedule::Outcome::Unchanged { hints, moved })
    }

    fn after(&self, outcome: &schedule::Outcome<'_>) -> Plan {
        self.plan.after(outcome, &self.bounds, self.now, random())
    }

    fn is_good_file(&self) -> bool {
        self.row.address.file().is_some() && self.row.is_known() && !self.row.is_failing()
    }
}

async fn fetched(inner: &Inner, fetcher: &Fetcher, row: &FeedRow) -> FeedAnswer {
    let fetched = match &row.address {
        FeedAddress::File(file) => read_file(file, &row.validators).await,
        FeedAddress::Web(address) => fetch_from(fetcher, address, row).await,
    };
    match fetched {
        Err(answer) => answer,
        Ok(Fetched::NotModified { moved, hints }) => FeedAnswer::Unmodified { hints, moved },
        Ok(Fetched::Document {
            bytes, content_type, validators, url, moved, hints, end, ..
        }) => {
            // A path is not an address that others could use.
            let base = row.address.web().map(|_| url);
            let known = parse::Hints { content_type, base };
            let turn = inner.taking.clone().acquire_owned().await.ok();
            let parsed = tokio::task::spawn_blocking(move || parse(&bytes, &known)).await;
            match parsed {
                Ok(Ok(document)) => {
                    let delivery = Delivery { document, validators, hints, moved, end };
                    FeedAnswer::Document(Box::new(delivery), turn)
                }
                Ok(Err(error)) => FeedAnswer::failed(&error, Failure::Unparsable),
                Err(error) => FeedAnswer::failed(&error, Failure::Unparsable),
            }
        }
    }
}

/// The file of a feed, unless it is unchanged.
async fn read_file(file: &FileAddress, known: &Validators) -> Result<Fetched, FeedAnswer> {
    // Read before the content: a change in between is found the next time.
    let stamp = local_stamp(file.path()).await;
    if stamp.is_some() && stamp == known.etag {
        return Ok(Fetched::NotModified { hints: fetch::Hints::default(), moved: None });
    }
    let read = read_beginning(file.path(), LOCAL_LIMIT).await;
    let bytes = read.map_err(|error| FeedAnswer::failed(&error, Failure::Transient))?;
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

/// The answer of a feed's server.
async fn fetch_from(
    fetcher: &Fetcher,
    address: &WebAddress,
    row: &FeedRow,
) -> Result<Fetched, FeedAnswer> {
    // Headers are sent only to the server they were given for, not to a redirect's target.
    let is_same = row.address.has_same_origin(&row.asked);
    let request = Request {
        url: address.as_str().to_owned(),
        validators: row.validators.clone(),
        headers: if is_same { row.settings.headers.clone() } else { Vec::new() },
        ..Request::default()
    };
    fetcher.fetch(request).await.map_err(|error| {
        if error.is_private() {
            FeedAnswer::Forbidden { reason: causes(&error) }
        } else {
            FeedAnswer::failed(&error, error.kind())
        }
    })
}

impl FeedAnswer {
    fn failed(error: &(dyn Error + 'static), failure: Failure) -> Self {
        Self::Failed { reason: causes(error), failure }
    }
}

/// A system error without its number: `No such file or directory (os error 2)`.
fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((words, rest)) => {
            let rest = rest.split_once(')').map_or("", |(_, rest)| rest);
            format!("{words}{rest}")
        }
        None => text.to_owned(),
    }
}

/// An error and its causes.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&cause| cause.source())
}

/// An error and its causes as one text.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let causes: Vec<_> = chain(error).map(|cause| without_number(&cause.to_string())).collect();
    causes.join(": ")
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
