//! The main task of the feeds: fetches each when it is due or requested, stores the result, and
//! plans the next fetch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidings_store::watch::FileWatch;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::Inner;
use crate::address::FeedAddress;
use crate::agenda::{Agenda, Lane};
use crate::ask::{AskOutcome, Asked, ask};
use crate::clock::Clock;
use crate::condition::Condition;
use crate::fetch::Fetcher;
use crate::gate::Gate;
use crate::schedule::{Bounds, Plan};
use crate::store::{FeedRow, Settings};

/// How often to read the clock: after a sleep, a machine wakes up at another time than planned.
const LOOK: Duration = Duration::from_mins(1);
/// The maximum number of requests to fetch in the queue; later ones wait to enter it.
const WANTED: usize = 64;

/// A request to fetch a feed now.
pub(crate) struct Wanted {
    pub(crate) id: String,
    pub(crate) reply: oneshot::Sender<AskOutcome>,
}

/// The feeds that are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Those that are due and those that are requested.
    All,
    /// Only those that are requested.
    Wanted,
}

/// The rounds of all feeds.
pub(crate) struct Rounds {
    inner: Arc<Inner>,
    fetcher: Fetcher,
    clock: Clock,
    mode: Mode,
    /// The plans of the feeds that are not in progress.
    agenda: Agenda,
    asking: JoinSet<Asked>,
    /// The feeds in progress.
    asked: HashMap<String, Asking>,
    names: HashMap<Id, String>,
    /// The settings of each feed when it was planned.
    planned: HashMap<String, Settings>,
    /// Requests for feeds that are not in progress yet.
    waiting: HashMap<String, Vec<oneshot::Sender<AskOutcome>>>,
    wanted: mpsc::Receiver<Wanted>,
    watch: FileWatch,
    gate: Gate,
}

/// A feed in progress.
struct Asking {
    lane: Lane,
    /// The requests that wait for its result.
    waiting: Vec<oneshot::Sender<AskOutcome>>,
    /// Its file changed meanwhile.
    again: bool,
}

impl Rounds {
    /// The rounds, and the queue of requests to fetch.
    pub(crate) fn new(
        inner: Arc<Inner>,
        fetcher: Fetcher,
        mode: Mode,
    ) -> (Self, mpsc::Sender<Wanted>) {
        let (line, wanted) = mpsc::channel(WANTED);
        let rounds = Self {
            clock: inner.clock,
            inner,
            fetcher,
            mode,
            agenda: Agenda::default(),
            asking: JoinSet::new(),
            asked: HashMap::new(),
            names: HashMap::new(),
            planned: HashMap::new(),
            waiting: HashMap::new(),
            wanted,
            watch: FileWatch::new(),
            gate: Gate::default(),
        };
        (rounds, line)
    }

    /// Runs until the token is cancelled.
    pub(crate) async fn run(mut self, cancel: CancellationToken) {
        let inner = self.inner.clone();
        let ids: Vec<_> = inner.board().rows().map(|row| row.id.clone()).collect();
        for id in ids {
            self.take_up(&id);
        }
        loop {
            self.begin();
            let next = self.next_time();
            tokio::select! {
                () = cancel.cancelled() => break,
                ids = inner.touched.taken() => ids.iter().for_each(|id| self.take_up(id)),
                Some(wanted) = self.wanted.recv() => self.want(wanted),
                Some(done) = self.asking.join_next_with_id() => self.finish(done),
                ids = self.watch.changed() => ids.iter().for_each(|id| self.look(id)),
                () = sleep_until(next) => {}
            }
        }
        // A fetched document that is not stored is fetched again after a restart.
        self.asking.shutdown().await;
    }

    /// Plans a feed, or removes it if it is gone.
    fn take_up(&mut self, id: &str) {
        let Some(row) = self.inner.board().get(id).cloned() else {
            self.agenda.remove(id);
            self.planned.remove(id);
            self.watch.forget(id);
            self.tell(id, &AskOutcome::Removed);
            return;
        };
        if self.mode == Mode::All
            && let FeedAddress::File(file) = &row.address
            && !self.watch.follows(id)
            && !self.watch.follow(id, file.path())
        {
            self.inner.note_unwatched();
        }
        if self.asked.contains_key(id) {
            return;
        }
        let before = self.planned.insert(id.to_owned(), row.settings.clone());
        if let Some(plan) = self.agenda.get(id)
            && plan.is_paused() == row.is_paused()
        {
            if let Some(before) = before.filter(|before| *before != row.settings)
                && !plan.is_paused()
            {
                let plan = self.set_anew(plan, &row, &before);
                self.agenda.put(id, lane(&row), plan);
                if self.waiting.contains_key(id) {
                    self.agenda.hurry(id);
                }
            }
            return;
        }
        let plan = self.begun(&row);
        if plan.is_paused() {
            self.tell(id, &AskOutcome::Paused);
        }
        self.agenda.put(id, lane(&row), plan);
    }

    /// The plan of a feed that has none here yet: the stored one, adjusted to now.
    fn begun(&self, row: &FeedRow) -> Plan {
        let now = self.clock.time();
        let Some(plan) = &row.plan else { return Plan::new(now) };
        // The clock may have been set back since. A feed that is gone is tried once at a start.
        match plan.condition {
            Condition::Gone => plan.resumed(now),
            // New headers may mend the failure.
            Condition::Failing | Condition::Resting if !row.settings.headers.is_empty() => {
                plan.resumed(now)
            }
            Condition::Good if row.settings.interval.is_some() => {
                let bounds = self.inner.bounds(row);
                plan.hastened(&bounds, now, random()).caught_up(now, random())
            }
            _ => plan.caught_up(now, random()),
        }
    }

    /// The plan of a feed with changed settings.
    fn set_anew(&self, plan: &Plan, row: &FeedRow, before: &Settings) -> Plan {
        let now = self.clock.time();
        if before.headers != row.settings.headers {
            return plan.resumed(now);
        }
        plan.hastened(&self.inner.bounds(row), now, random())
    }

    /// Fetches a feed as soon as possible, for a request.
    fn want(&mut self, wanted: Wanted) {
        let Wanted { id, reply } = wanted;
        let now = self.clock.time();
        // It may have been added or resumed a moment ago.
        self.take_up(&id);
        if let Some(asking) = self.asked.get_mut(&id) {
            asking.waiting.push(reply);
            return;
        }
        let refused = match self.agenda.get(&id) {
            None => Some(AskOutcome::Removed),
            Some(plan) if plan.is_paused() => Some(AskOutcome::Paused),
            Some(plan) => plan.left_alone_until(now).map(AskOutcome::Postponed),
        };
        if let Some(outcome) = refused {
            // A request that was abandoned gets no result.
            let _ = reply.send(outcome);
            return;
        }
        self.agenda.hurry(&id);
        // It was requested, so it is tried even if the web was not reachable.
        self.gate.knock(now);
        self.waiting.entry(id).or_default().push(reply);
    }

    /// The file of a feed changed, or a directory on its path.
    fn look(&mut self, id: &str) {
        let row = self.inner.board().get(id).cloned();
        let Some(file) = row.as_ref().and_then(|row| row.address.file()) else { return };
        self.watch.follow(id, file.path());
        if let Some(asking) = self.asked.get_mut(id) {
            asking.again = true;
        } else if self.agenda.get(id).is_some_and(|plan| plan.due().is_some()) {
            self.agenda.hurry(id);
        }
    }

    /// Begins to fetch the feeds that are due.
    fn begin(&mut self) {
        let now = self.clock.time();
        if self.mode == Mode::All {
            self.agenda.wake(now, |_, plan| plan.caught_up(now, random()));
        }
        while let Some((id, lane, plan)) = self.agenda.begin(self.gate.reach(now)) {
            if !lane.is_near() {
                self.gate.asked(now);
            }
            let Some(row) = self.inner.board().get(&id).cloned() else {
                self.agenda.done(&lane);
                self.tell(&id, &AskOutcome::Removed);
                continue;
            };
            let task = self.asking.spawn(ask(self.inner.clone(), self.fetcher.clone(), row, plan));
            self.names.insert(task.id(), id.clone());
            let waiting = self.waiting.remove(&id).unwrap_or_default();
            self.asked.insert(id, Asking { lane, waiting, again: false });
        }
    }

    fn finish(&mut self, done: Result<(Id, Asked), JoinError>) {
        let (task, asked) = match done {
            Ok((task, asked)) => (task, asked),
            Err(failed) => {
                error!(error = %failed, "fetching a feed failed");
                // After a fault of ours the state is unknown; an immediate retry would repeat it
                // for ever.
                let plan = Plan::new(self.clock.time().after(Duration::from_hours(1)));
                let outcome =
                    AskOutcome::Failed("fetching it failed; the log has details".to_owned());
                (failed.id(), Asked { plan, outcome })
            }
        };
        let Some(id) = self.names.remove(&task) else { return };
        let Some(Asking { lane: place, waiting, again }) = self.asked.remove(&id) else { return };
        self.agenda.done(&place);
        for reply in waiting {
            let _ = reply.send(asked.outcome.clone());
        }
        match &asked.outcome {
            // A host nearby says nothing about the web.
            _ if place.is_near() => {}
            AskOutcome::Unable(reason) => self.close(reason),
            AskOutcome::Answered(_) | AskOutcome::Failed(_) => self.gate.open(),
            _ => {}
        }
        let row = self.inner.board().get(&id).cloned();
        let Some(row) = row else {
            debug!(feed = id, "a feed is gone");
            return;
        };
        self.agenda.put(&id, lane(&row), asked.plan);
        // It may have been paused or resumed meanwhile.
        self.take_up(&id);
        if again {
            self.look(&id);
        }
    }

    /// The web cannot be reached now: all waiting requests are answered so.
    fn close(&mut self, reason: &str) {
        if self.gate.close(self.clock.time()) {
            warn!(reason, "feeds cannot be fetched, will retry");
        }
        let ids: Vec<_> = self.waiting.keys().cloned().collect();
        let ids = ids.into_iter().filter(|id| !self.agenda.is_near(id)).collect::<Vec<_>>();
        for id in ids {
            self.tell(&id, &AskOutcome::Unable(reason.to_owned()));
        }
    }

    fn tell(&mut self, id: &str, outcome: &AskOutcome) {
        for reply in self.waiting.remove(id).unwrap_or_default() {
            let _ = reply.send(outcome.clone());
        }
    }

    fn next_time(&self) -> Instant {
        let look = Instant::now() + LOOK;
        let next = self.agenda.next_time().filter(|_| self.mode == Mode::All);
        let opens = self.gate.opens_at().filter(|at| *at > self.clock.time());
        let next = next.into_iter().chain(opens).min();
        next.map_or(look, |next| self.clock.instant(next).min(look))
    }
}

/// The queue of a feed.
fn lane(row: &FeedRow) -> Lane {
    match &row.address {
        FeedAddress::File(_) => Lane::Files,
        FeedAddress::Web(address) => Lane::Host(address.host().unwrap_or_default().to_owned()),
    }
}

/// How often a feed in a file is read in addition, unless configured: the system may not report
/// changes by other machines.
const LOCAL_EVERY: Duration = Duration::from_mins(1);

/// How often if the system reports no changes.
const LOCAL_UNWATCHED: Duration = Duration::from_secs(2);

/// The maximum time between reads of a missing file.
const LOCAL_AT_MOST: Duration = Duration::from_mins(1);

impl Inner {
    /// The limits of the time between fetches.
    pub(crate) fn bounds(&self, row: &FeedRow) -> Bounds {
        let fixed = row.settings.interval.map(Duration::from_secs);
        if let FeedAddress::File(_) = row.address {
            // Reading a file costs nobody else anything.
            let every = if self.are_files_watched() { LOCAL_EVERY } else { LOCAL_UNWATCHED };
            let fixed = fixed.or(Some(every));
            return Bounds { fixed, ceiling: LOCAL_AT_MOST, ..Bounds::default() };
        }
        Bounds { fixed, ..Bounds::default() }
    }
}

/// Good enough to spread requests; it need not be unpredictable.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch;
    use crate::schedule::{Failure, Outcome};
    use crate::tests::feed_at;
    use crate::{Config, Data, FeedConfig, Feeds, Fetching, Role};

    const URL: &str = "https://example.com/feed.xml";

    /// The minutes until the next fetch of a feed that was refused just now, was planned in a day,
    /// and gets these settings.
    async fn minutes(set: impl Fn(&mut FeedConfig)) -> u64 {
        let mut config = Config::new(Data::Memory);
        config.role = Role::Server(Fetching::Off);
        let feeds = Feeds::open(config).await.unwrap();
        let mut feed = feed_at(URL);
        feed.interval = Some(Duration::from_hours(24));
        let id = feeds.add(feed.clone()).await.unwrap();
        let fetcher = Fetcher::new(fetch::Config::default()).unwrap();
        let (mut rounds, _line) = Rounds::new(feeds.0.clone(), fetcher, Mode::All);
        rounds.take_up(&id);
        let row = feeds.0.board().get(&id).unwrap().clone();
        let now = feeds.0.clock.time();
        let refused = Outcome::Failed(Failure::Rejected);
        let plan = Plan::new(now).after(&refused, &feeds.0.bounds(&row), now, 0);
        rounds.agenda.put(&id, lane(&row), plan);
        set(&mut feed);
        feeds.add(feed).await.unwrap();
        rounds.take_up(&id);
        rounds.agenda.next_time().unwrap().since(now).as_secs() / 60
    }

    /// It used to wait for up to 15 minutes, longer than many sessions last.
    #[tokio::test(start_paused = true)]
    async fn a_feed_that_is_overdue_at_a_start_is_asked_at_once() {
        let mut config = Config::new(Data::Memory);
        config.role = Role::Server(Fetching::Off);
        config.feeds = vec![feed_at(URL)];
        let feeds = Feeds::open(config).await.unwrap();
        let id = feeds.statuses()[0].id.clone();
        let now = feeds.0.clock.time();
        let yesterday = tidings_store::date::Moment::from_millis(now.millis() - 86_400_000);
        let mut plan = Plan::new(yesterday);
        plan.last = Some(yesterday);
        let plan = feeds.0.store.keep_plan(&id, plan).unwrap();
        feeds.0.publish(&id, &crate::Changes::default()).unwrap();
        assert!(plan.next < now);
        let fetcher = Fetcher::new(fetch::Config::default()).unwrap();
        let (mut rounds, _line) = Rounds::new(feeds.0.clone(), fetcher, Mode::All);
        rounds.take_up(&id);
        rounds.begin();
        assert!(rounds.asked.contains_key(&id));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_interval_counts_at_once() {
        assert_eq!(minutes(|_| {}).await, 24 * 60);
        let half_an_hour = minutes(|feed| feed.interval = Some(Duration::from_mins(30))).await;
        assert!((30..=33).contains(&half_an_hour), "{half_an_hour}");
        assert_eq!(minutes(|feed| feed.interval = Some(Duration::from_hours(48))).await, 24 * 60);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_network_feeds_do_not_fail_one_by_one() {
        let mut config = Config::new(Data::Memory);
        config.role = Role::Server(Fetching::Off);
        let url = |number: u32| format!("https://{number}.example/feed");
        config.feeds = (0..40).map(|number| feed_at(url(number))).collect();
        let feeds = Feeds::open(config).await.unwrap();
        let silent = fetch::Directory::Silent;
        let fetcher = Fetcher::with_directory(fetch::Config::default(), silent).unwrap();
        let (rounds, line) = Rounds::new(feeds.0.clone(), fetcher, Mode::All);
        let ids: Vec<_> = feeds.0.board().rows().map(|row| row.id.clone()).collect();
        let cancel = CancellationToken::new();
        let ask = async {
            let mut outcomes = Vec::new();
            for id in ids {
                let (reply, outcome) = oneshot::channel();
                assert!(line.send(Wanted { id, reply }).await.is_ok());
                outcomes.push(outcome.await.unwrap());
            }
            cancel.cancel();
            outcomes
        };
        let (outcomes, ()) = tokio::join!(ask, rounds.run(cancel.clone()));
        let failing = feeds.statuses().into_iter().filter(|it| it.failures > 0).count();
        assert!(failing <= 2, "{failing} feeds back off");
        let none = super::AskOutcome::Unable("this machine has no network".to_owned());
        assert_eq!(outcomes.last(), Some(&none));
    }

    #[tokio::test(start_paused = true)]
    async fn a_feed_that_gets_other_headers_is_asked_now() {
        let header = ("Authorization".to_owned(), "Bearer token".to_owned());
        assert_eq!(minutes(|feed| feed.headers = vec![header.clone()]).await, 0);
    }
}
