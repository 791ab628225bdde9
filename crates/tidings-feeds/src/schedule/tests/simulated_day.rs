//! A day of two hundred feeds on forty hosts, played with the plans and the order of the queue and
//! without a clock: whatever the servers do, nobody is asked impolitely.

use std::collections::HashMap;

use super::*;
use crate::fetch::{Moment, Order, Rules, Standing, Ticket};

const FEEDS: usize = 200;
const HOSTS: usize = 40;
const DAY: Duration = Duration::from_hours(24);
const BEGIN: Time = Time(1_794_787_200_000);
const RULES: Rules = Rules { at_once: 16, host_at_once: 1, apart: Duration::from_secs(1) };
/// As the queue: who would wait longer for a host that wants to be left alone does not wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// This host has said for days what it says to everything: come back in a minute.
const HOPELESS_HOST: usize = 7;
const HOPELESS: Failure = Failure::Refused { retry_after: Some(Duration::from_mins(1)) };
/// What an answer without a document weighs.
const HEAD_BYTES: u64 = 300;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

struct Feed {
    host: usize,
    plan: Plan,
    ticket: Option<Ticket>,
    asked: usize,
    /// When the last answer came.
    answered: Option<Moment>,
    /// What its document weighs.
    bytes: u64,
}

/// What the day cost the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    requests: u64,
    bytes: u64,
}

#[derive(Default)]
struct Host {
    busy: bool,
    last: Option<Moment>,
    alone_until: Moment,
}

struct Day {
    now: Moment,
    order: Order,
    dice: Dice,
    bounds: Bounds,
    feeds: Vec<Feed>,
    hosts: Vec<Host>,
    /// Who is under way, and until when.
    running: HashMap<Ticket, (usize, Moment)>,
    waiting: HashMap<Ticket, usize>,
    cost: Cost,
}

impl Day {
    fn new(seed: u64) -> Self {
        let feed = |number| Feed {
            host: number % HOSTS,
            plan: if number % HOSTS == HOPELESS_HOST {
                nearly_given_up()
            } else {
                Plan::new(BEGIN)
            },
            ticket: None,
            asked: 0,
            answered: None,
            bytes: 4096 * (1 + number as u64 % 16),
        };
        Self {
            now: Duration::ZERO,
            order: Order::new(RULES),
            dice: Dice(seed),
            bounds: Bounds::default(),
            feeds: (0..FEEDS).map(feed).collect(),
            hosts: (0..HOSTS).map(|_| Host::default()).collect(),
            running: HashMap::new(),
            waiting: HashMap::new(),
            cost: Cost::default(),
        }
    }

    fn time(&self) -> Time {
        BEGIN.after(self.now)
    }

    fn play(&mut self) {
        while self.now < DAY {
            self.finish();
            self.enter();
            self.give_up();
            self.begin();
            let due = self.feeds.iter().filter(|feed| feed.ticket.is_none());
            let due = due.filter_map(|feed| feed.plan.due()).map(|due| due.since(BEGIN));
            let ends = self.running.values().map(|(_, end)| *end);
            let wakes = self.order.wakes_at(self.now);
            let next = due.chain(ends).chain(wakes).min().expect("a day has no end before it ends");
            assert!(next > self.now, "time goes on");
            self.now = next;
        }
    }

    fn enter(&mut self) {
        let time = self.time();
        for (number, feed) in self.feeds.iter_mut().enumerate() {
            if feed.ticket.is_none() && feed.plan.due().is_some_and(|due| due <= time) {
                let ticket = self.order.enter(&feed.host.to_string(), self.now);
                self.waiting.insert(ticket, number);
                feed.ticket = Some(ticket);
                assert!(!feed.plan.skip.covers(time), "not in an hour to be skipped");
            }
        }
    }

    fn give_up(&mut self) {
        let mut tickets: Vec<_> = self.waiting.keys().copied().collect();
        tickets.sort_unstable();
        for ticket in tickets {
            let standing = self.order.standing(ticket, self.now);
            if let Standing::Paused(until) = standing
                && until > self.now + PATIENCE
            {
                let number = self.waiting.remove(&ticket).unwrap();
                self.order.leave(ticket, self.now);
                let by = until.saturating_sub(self.now);
                self.conclude(number, &Outcome::Failed(Failure::Postponed { by }));
            }
        }
    }

    /// Every rule is checked here, where a request would be made.
    fn begin(&mut self) {
        for ticket in self.order.admit(self.now, self.dice.next()) {
            let number = self.waiting.remove(&ticket).unwrap();
            let feed = &mut self.feeds[number];
            let host = &mut self.hosts[feed.host];
            assert!(!host.busy, "one at a time");
            assert!(host.last.is_none_or(|last| self.now >= last + RULES.apart), "apart");
            assert!(self.now >= host.alone_until, "left alone");
            let since = feed.answered.map(|answered| self.now.saturating_sub(answered));
            assert!(since.is_none_or(|since| since >= self.bounds.floor), "not below the floor");
            assert!(feed.plan.condition != Condition::Gone, "who is gone is left in peace");
            let is_open = feed.plan.condition == Condition::Resting;
            assert!(!is_open || since.is_some_and(|since| since >= PROBE), "only probed");
            host.busy = true;
            host.last = Some(self.now);
            feed.asked += 1;
            let length = Duration::from_millis(20 + self.dice.below(3000));
            self.running.insert(ticket, (number, self.now + length));
            assert!(self.running.len() <= RULES.at_once, "not too many altogether");
        }
    }

    fn finish(&mut self) {
        let ended = self.running.iter().filter(|(_, (_, end))| *end <= self.now);
        let mut ended: Vec<_> = ended.map(|(ticket, (number, _))| (*ticket, *number)).collect();
        ended.sort_unstable();
        for (ticket, number) in ended {
            self.running.remove(&ticket);
            let (posted, outcome) = self.answer(number);
            self.cost.requests += 1;
            self.cost.bytes += match outcome {
                Outcome::Changed { .. } | Outcome::Failed(Failure::Unparsable) => {
                    self.feeds[number].bytes
                }
                _ => HEAD_BYTES,
            };
            let outcome = match outcome {
                Outcome::Changed { hints, .. } => {
                    Outcome::Changed { posted: &posted, hints, moved: None }
                }
                other => other,
            };
            let host = &mut self.hosts[self.feeds[number].host];
            host.busy = false;
            host.last = Some(self.now);
            if let Outcome::Failed(Failure::Refused { retry_after: Some(length) }) = outcome {
                host.alone_until = host.alone_until.max(self.now + length);
                self.order.pause(ticket, self.now + length);
            }
            self.order.leave(ticket, self.now);
            self.feeds[number].answered = Some(self.now);
            self.conclude(number, &outcome);
        }
    }

    /// Most answers are good; each kind of trouble comes up many times a day.
    fn answer(&mut self, number: usize) -> (Vec<Time>, Outcome<'static>) {
        let gap = 60_000 * (1 + number as u64 * 7);
        let posted = (1..15).map(|post| Time(self.time().0 - post * gap)).collect();
        let skip = match number % 10 {
            0 => Skip::new(0..6, []),
            1 => Skip::new([12, 13], ["Sunday"]),
            _ => Skip::default(),
        };
        let max_age = number.is_multiple_of(7).then(|| Duration::from_secs(self.dice.below(7200)));
        let hints = FeedHints { skip, max_age, ..FeedHints::default() };
        let retry_after = Some(Duration::from_secs(self.dice.below(5000)));
        let outcome = match self.dice.below(100) {
            _ if self.feeds[number].host == HOPELESS_HOST => Outcome::Failed(HOPELESS),
            0..30 => Outcome::Changed { posted: &[], hints, moved: None },
            30..85 => Outcome::Unchanged { hints, moved: None },
            85..90 => Outcome::Failed(Failure::Transient),
            90..94 => Outcome::Failed(Failure::Refused { retry_after }),
            94..97 => Outcome::Failed(Failure::Missing),
            97..99 => Outcome::Failed(Failure::Unparsable),
            _ => Outcome::Failed(Failure::Gone),
        };
        (posted, outcome)
    }

    fn conclude(&mut self, number: usize, outcome: &Outcome) {
        let (time, random) = (self.time(), self.dice.next());
        let feed = &mut self.feeds[number];
        feed.ticket = None;
        feed.plan = feed.plan.after(outcome, &self.bounds, time, random);
    }
}

/// A feed that failed all but once as often as it takes to be given up, and is due.
fn nearly_given_up() -> Plan {
    let bounds = Bounds::default();
    let mut plan = Plan::new(Time(BEGIN.0 - 5 * 86_400_000));
    while plan.failures < FAILURES_TO_OPEN - 1 {
        let now = plan.next;
        plan = plan.after(&Outcome::Failed(HOPELESS), &bounds, now, 0);
    }
    Plan { next: BEGIN, ..plan }
}

/// Whoever asks for every document every quarter of an hour.
fn plain_cost(day: &Day) -> Cost {
    let bytes: u64 = day.feeds.iter().map(|feed| feed.bytes).sum();
    Cost { requests: 96 * FEEDS as u64, bytes: 96 * bytes }
}

#[test]
fn nobody_is_asked_impolitely_for_a_whole_day() {
    for seed in 0..3 {
        let mut day = Day::new(seed);
        day.play();
        assert!(day.feeds.iter().all(|feed| (1..=96).contains(&feed.asked)), "all had their turn");
        let asked: usize = day.feeds.iter().map(|feed| feed.asked).sum();
        assert!(asked > 5 * FEEDS, "something went on: {asked}");
    }
}

#[test]
fn a_day_costs_the_servers_a_fraction_of_what_plain_asking_would() {
    for seed in 0..3 {
        let mut day = Day::new(seed);
        day.play();
        let (cost, plain) = (day.cost, plain_cost(&day));
        assert!(cost.requests * 3 <= plain.requests, "{cost:?} of {plain:?}");
        assert!(cost.bytes * 8 <= plain.bytes, "{cost:?} of {plain:?}");
    }
}

#[test]
fn what_failed_too_often_is_asked_once_and_then_left_for_a_day() {
    let mut day = Day::new(0);
    day.play();
    let hopeless: Vec<_> = day.feeds.iter().filter(|feed| feed.host == HOPELESS_HOST).collect();
    assert_eq!(hopeless.len(), FEEDS / HOSTS);
    for feed in hopeless {
        assert_eq!((feed.asked, feed.plan.condition), (1, Condition::Resting));
        assert!(feed.plan.due().is_some_and(|due| due >= BEGIN.after(DAY)));
    }
}
