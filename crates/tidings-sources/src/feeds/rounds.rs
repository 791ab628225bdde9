//! The one task of the feeds: asks each when it is due, keeps what it says, and plans the next time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::feeds::Inner;
use crate::feeds::ask::ask;
use crate::feeds::clock::Clock;
use crate::feeds::fetch::{Fetcher, local_path};
use crate::feeds::schedule::{Bounds, Health, Plan};
use crate::feeds::store::FeedRow;

/// How many feeds are asked at once, those that wait for their host included. How many requests
/// are on their way is the fetcher's business; this bounds what waits for it.
const AT_ONCE: usize = 256;
/// The clock is looked at this often: a machine that slept wakes up at another time than the one
/// it was waiting for.
const LOOK: Duration = Duration::from_mins(1);

/// The rounds of all feeds.
pub(crate) struct Rounds {
    inner: Arc<Inner>,
    fetcher: Fetcher,
    clock: Clock,
    /// The plans of the feeds that are not being asked.
    plans: BTreeMap<String, Plan>,
    asking: JoinSet<Plan>,
    /// The feeds that are being asked.
    names: HashMap<Id, String>,
}

impl Rounds {
    pub(crate) fn new(inner: Arc<Inner>, fetcher: Fetcher) -> Self {
        let (plans, asking, names) = (BTreeMap::new(), JoinSet::new(), HashMap::new());
        Self { clock: inner.clock, inner, fetcher, plans, asking, names }
    }

    /// Until the token is cancelled.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let inner = self.inner.clone();
        self.take_up();
        loop {
            self.begin();
            let next = self.next_time();
            tokio::select! {
                () = cancel.cancelled() => break,
                () = inner.listed.notified() => self.take_up(),
                Some(done) = self.asking.join_next_with_id() => self.finish(done),
                () = sleep_until(next) => {}
            }
        }
        // What was fetched and is not kept is fetched again after a restart.
        self.asking.shutdown().await;
    }

    /// Makes plans for the feeds that are there, and forgets the others.
    fn take_up(&mut self) {
        let now = self.clock.time();
        let board = self.inner.board();
        self.plans.retain(|id, _| board.get(id).is_some());
        for row in board.rows() {
            if self.plans.contains_key(&row.id) || self.names.values().any(|id| *id == row.id) {
                continue;
            }
            // A plan of another release may have another shape: then there is none.
            let plan = row.plan.as_deref().and_then(|plan| serde_json::from_str(plan).ok());
            let plan = plan.map_or_else(
                || Plan::new(now),
                // A clock may have been set back since, and who is gone is asked once at a start.
                |plan: Plan| match plan.health {
                    Health::Gone => plan.resumed(now),
                    _ => plan.caught_up(&bounds(row), now, random()),
                },
            );
            self.plans.insert(row.id.clone(), plan);
        }
    }

    /// Begins to ask the feeds that are due.
    fn begin(&mut self) {
        let now = self.clock.time();
        let due = |(id, plan): (&String, &Plan)| Some((plan.due()?, id.clone()));
        let mut due: Vec<_> = self.plans.iter().filter_map(due).collect();
        due.retain(|(due, _)| *due <= now);
        // Who waits longest is first, or those at the end of the alphabet would wait for ever.
        due.sort();
        for (_, id) in due {
            if self.asking.len() >= AT_ONCE {
                // Who waits keeps its place.
                break;
            }
            let row = self.inner.board().get(&id).cloned();
            let (Some(plan), Some(row)) = (self.plans.remove(&id), row) else { continue };
            // One that is long overdue may be one of many: they are spread.
            let plan = plan.caught_up(&bounds(&row), now, random());
            if plan.due().is_none_or(|due| due > now) {
                self.plans.insert(id, plan);
                continue;
            }
            let asked = ask(self.inner.clone(), self.fetcher.clone(), row, plan);
            let task = self.asking.spawn(asked);
            self.names.insert(task.id(), id);
        }
    }

    fn finish(&mut self, done: Result<(Id, Plan), JoinError>) {
        let (id, plan) = match done {
            Ok((id, plan)) => (id, Some(plan)),
            Err(failed) => {
                error!(error = %failed, "asking a feed failed");
                (failed.id(), None)
            }
        };
        let Some(name) = self.names.remove(&id) else { return };
        if self.inner.board().get(&name).is_none() {
            debug!(feed = name, "a feed is gone");
            return;
        }
        // After a fault of ours nothing is known; asking at once would repeat it for ever.
        let later = || Plan::new(self.clock.time().after(Duration::from_hours(1)));
        let plan = plan.unwrap_or_else(later);
        self.plans.insert(name, plan);
    }

    fn next_time(&self) -> Instant {
        let look = Instant::now() + LOOK;
        if self.asking.len() >= AT_ONCE {
            // Somebody will be done.
            return look;
        }
        let next = self.plans.values().filter_map(Plan::due).min();
        next.map_or(look, |next| self.clock.instant(next).min(look))
    }
}

/// How often a feed that is a file is looked at, unless the operator says otherwise.
const LOCAL_EVERY: Duration = Duration::from_secs(2);

/// How long one that is missing is waited for at most.
const LOCAL_AT_MOST: Duration = Duration::from_secs(30);

/// Between which limits a feed is asked.
pub(crate) fn bounds(row: &FeedRow) -> Bounds {
    // A file costs nobody anything to look at.
    let fixed = row.settings.interval.map(Duration::from_secs);
    if local_path(&row.asked_url).is_some() {
        let fixed = fixed.or(Some(LOCAL_EVERY));
        return Bounds { fixed, ceiling: LOCAL_AT_MOST, ..Bounds::default() };
    }
    Bounds { fixed, ..Bounds::default() }
}

/// Good enough to keep requests from coming at one moment; nobody must be unable to guess it.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8)
}
