//! Merging windows: decide when a change is checked, after a quiet moment or a maximum wait.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tidings_core::{ListKind, Pace, ResourceUri};
use tokio::time::Instant;

/// The time between many checks of one thing, if the maximum wait is not shorter.
const APART: Duration = Duration::from_millis(250);
/// How many checks are remembered before old ones are removed.
const SWEEP: usize = 1024;
/// How many checks of one thing may follow each other before they are the maximum wait apart.
const BURST: u32 = 4;

/// A thing that can be dirty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// A list of this kind.
    List(ListKind),
    /// The content of this URI.
    Uri(ResourceUri),
    /// Everything that the listener of this number follows: its labels changed.
    View(u64),
}

/// How changes that follow each other are merged into one notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merging {
    /// A thing is checked when it has not changed for this long. Zero: at once.
    pub quiet: Duration,
    /// And at the latest this long after its first unchecked change.
    pub max_wait: Duration,
}

impl Merging {
    /// Both times. A maximum shorter than the quiet time still applies.
    #[must_use]
    pub fn new(quiet: Duration, max_wait: Duration) -> Self {
        Self { quiet, max_wait }
    }

    /// Every change is checked at once.
    #[must_use]
    pub fn off() -> Self {
        Self::new(Duration::ZERO, Duration::ZERO)
    }
}

impl Default for Merging {
    /// 25 ms of quiet, 250 ms at most.
    fn default() -> Self {
        Self::new(Duration::from_millis(25), Duration::from_millis(250))
    }
}

/// The dirty things and their due times. The cost of a mark does not depend on the number of dirty
/// things: it changes a time, and the schedule is corrected only when the thing comes up.
#[derive(Debug)]
pub(crate) struct Windows {
    merging: Merging,
    dirty: HashMap<Topic, Window>,
    /// Invariant: one entry for each dirty thing, and one more for each that is hurried.
    schedule: BTreeMap<(Instant, u64), Topic>,
    next: u64,
    /// The last checks of things that are checked without waiting; old ones are removed.
    checked: HashMap<Topic, Checked>,
}

/// The checks of one thing so far.
#[derive(Clone, Copy, Debug)]
struct Checked {
    at: Instant,
    /// The earliest time of the next check. Each check advances it by the maximum wait, or
    /// [`APART`]. It starts a few such times in the past, so a few checks may follow each other and
    /// many are that far apart.
    free: Instant,
}

#[derive(Debug)]
struct Window {
    first: Instant,
    last: Instant,
    /// The last change was complete, and the thing had rested before it.
    settled: bool,
    /// The schedule has an entry to check it at once.
    hurried: bool,
    /// The earliest time of its check, if its checks are counted.
    not_before: Option<Instant>,
    /// Its checks are counted.
    paced: bool,
}

impl Window {
    fn due(&self, merging: Merging) -> Instant {
        let due = if self.settled {
            self.last
        } else {
            (self.last + merging.quiet).min(self.first + merging.max_wait)
        };
        self.not_before.map_or(due, |free| due.max(free))
    }
}

impl Windows {
    pub(crate) fn new(merging: Merging) -> Self {
        Self {
            merging,
            dirty: HashMap::new(),
            schedule: BTreeMap::new(),
            next: 0,
            checked: HashMap::new(),
        }
    }

    /// Makes a thing dirty by a change of this pace. True if the schedule has a new entry.
    pub(crate) fn mark_at(&mut self, topic: Topic, pace: Pace, now: Instant) -> bool {
        match pace {
            Pace::Unknown => self.mark(topic, now),
            Pace::Settled => self.mark_settled(topic, now),
            Pace::Unsettled => self.mark_unsettled(&topic, now),
        }
    }

    /// Makes a thing dirty. True if it was clean, so that the schedule has a new entry.
    pub(crate) fn mark(&mut self, topic: Topic, now: Instant) -> bool {
        if let Some(window) = self.dirty.get_mut(&topic) {
            window.last = now;
            window.settled = false;
            return false;
        }
        let not_before = self.checked.get(&topic).map(|checked| checked.free);
        let paced = not_before.is_some();
        let window =
            Window { first: now, last: now, settled: false, hurried: false, not_before, paced };
        let due = window.due(self.merging);
        self.dirty.insert(topic.clone(), window);
        self.put(due, topic);
        true
    }

    /// As [`Self::mark`], for a thing whose changes are collected before they are marked, so that
    /// they are further apart than the quiet time: its checks are counted.
    pub(crate) fn mark_unsettled(&mut self, topic: &Topic, now: Instant) -> bool {
        let fresh = self.mark(topic.clone(), now);
        if let Some(window) = self.dirty.get_mut(topic) {
            window.paced = true;
        }
        fresh
    }

    /// Makes a thing dirty by a change that is complete: it is due at once, unless it was checked
    /// within the quiet time, or too often. True if the schedule has a new entry.
    pub(crate) fn mark_settled(&mut self, topic: Topic, now: Instant) -> bool {
        let rested =
            |checked: &Checked| checked.at + self.merging.quiet <= now && checked.free <= now;
        let rested = self.checked.get(&topic).is_none_or(rested);
        let fresh = self.mark(topic.clone(), now);
        let Some(window) = self.dirty.get_mut(&topic) else { return fresh };
        window.settled = rested;
        window.paced = true;
        if !rested || std::mem::replace(&mut window.hurried, true) {
            return fresh;
        }
        self.put(now, topic);
        true
    }

    /// When to check next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.schedule.first_key_value().map(|((due, _), _)| *due)
    }

    /// A thing that is due, with the time of its first change; it is clean afterwards.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(Topic, Instant)> {
        loop {
            let entry = self.schedule.first_entry()?;
            if entry.key().0 > now {
                return None;
            }
            let topic = entry.remove();
            // Its other entry came up sooner, so it was checked already.
            let Some(window) = self.dirty.get(&topic) else { continue };
            let due = window.due(self.merging);
            if due > now {
                self.put(due, topic);
                continue;
            }
            let window = self.dirty.remove(&topic)?;
            if window.paced {
                self.remember(topic.clone(), now);
            }
            return Some((topic, window.first));
        }
    }

    fn remember(&mut self, topic: Topic, now: Instant) {
        let Merging { quiet, max_wait } = self.merging;
        // Without a quiet time, every change is checked at once.
        let apart = if quiet.is_zero() { Duration::ZERO } else { max_wait.min(APART) };
        if self.checked.len() >= SWEEP {
            self.checked.retain(|_, checked| checked.at + quiet > now || checked.free > now);
        }
        let earliest = now.checked_sub(apart * (BURST - 1)).unwrap_or(now);
        let free = self.checked.get(&topic).map_or(earliest, |checked| checked.free.max(earliest));
        self.checked.insert(topic, Checked { at: now, free: free + apart });
    }

    fn put(&mut self, due: Instant, topic: Topic) {
        self.next += 1;
        self.schedule.insert((due, self.next), topic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: Topic = Topic::List(ListKind::Tools);

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_change_is_due_after_the_quiet_time() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        assert!(windows.mark(TOOLS, start));
        assert_eq!(windows.take_due(at(start, 24)), None);
        assert_eq!(windows.take_due(at(start, 25)), Some((TOOLS, start)));
        assert_eq!(windows.next_due(), None);
    }

    #[test]
    fn a_further_change_prolongs_the_quiet_time() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        windows.mark(TOOLS, start);
        assert!(!windows.mark(TOOLS, at(start, 20)));
        assert_eq!(windows.take_due(at(start, 25)), None);
        assert_eq!(windows.next_due(), Some(at(start, 45)));
        assert_eq!(windows.take_due(at(start, 45)), Some((TOOLS, start)));
    }

    #[test]
    fn endless_changes_wait_no_longer_than_the_maximum() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        let mut checks = 0;
        for ms in 0..2000 {
            if ms % 20 == 0 {
                windows.mark(TOOLS, at(start, ms));
            }
            checks += usize::from(windows.take_due(at(start, ms)).is_some());
        }
        assert_eq!(checks, 7, "one each 260 ms: the maximum, then the next change");
    }

    /// A file that is rewritten continuously: its changes are collected for 40 ms each.
    #[test]
    fn complete_changes_without_end_are_the_maximum_wait_apart() {
        let start = Instant::now();
        for settled in [true, false] {
            let mut windows = Windows::new(Merging::default());
            let mut checks = 0;
            for ms in 0..5000 {
                let now = at(start, ms);
                if ms % 40 == 0 {
                    if settled {
                        windows.mark_settled(TOOLS, now);
                    } else {
                        windows.mark_unsettled(&TOOLS, now);
                    }
                }
                checks += usize::from(windows.take_due(now).is_some());
            }
            assert!((18..=24).contains(&checks), "{checks} checks in 5 s");
        }
    }

    #[test]
    fn a_few_changes_in_a_row_do_not_wait_for_each_other() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        for ms in [0, 50, 100, 150] {
            windows.mark_settled(TOOLS, at(start, ms));
            assert!(windows.take_due(at(start, ms)).is_some(), "{ms}");
        }
        windows.mark_settled(TOOLS, at(start, 200));
        assert_eq!(windows.take_due(at(start, 249)), None);
        assert_eq!(windows.take_due(at(start, 250)), Some((TOOLS, at(start, 200))));
    }

    #[test]
    fn with_merging_off_a_change_is_due_at_once() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::off());
        windows.mark(TOOLS, start);
        assert!(windows.take_due(start).is_some());
    }

    #[test]
    fn a_complete_change_is_due_at_once_and_the_next_after_the_quiet_time() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        assert!(windows.mark_settled(TOOLS, start));
        assert_eq!(windows.take_due(start), Some((TOOLS, start)));
        assert_eq!(windows.take_due(at(start, 300)), None, "the other entry is of no use any more");
        windows.mark_settled(TOOLS, at(start, 310));
        assert!(windows.take_due(at(start, 310)).is_some());
        windows.mark_settled(TOOLS, at(start, 320));
        assert_eq!(windows.take_due(at(start, 330)), None, "it was checked just now");
        assert_eq!(windows.take_due(at(start, 345)), Some((TOOLS, at(start, 320))));
    }

    #[test]
    fn many_checks_are_a_quarter_second_apart_and_never_without_a_quiet_time() {
        let told = |quiet: u64, max_wait: u64, apart: u64| {
            let times = Merging::new(Duration::from_millis(quiet), Duration::from_millis(max_wait));
            let (start, mut windows) = (Instant::now(), Windows::new(times));
            let checks = (0..20).map(|number| at(start, number * apart)).filter(|now| {
                windows.mark_unsettled(&TOOLS, *now);
                windows.take_due(*now + times.quiet).is_some()
            });
            checks.count()
        };
        assert_eq!(told(0, 250, 100), 20, "no quiet time");
        assert_eq!(told(25, 5000, 1000), 20, "one a second");
        assert!(told(25, 250, 50) < 10, "twenty a second");
    }

    #[test]
    fn a_change_that_goes_on_after_a_complete_one_waits() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        windows.mark(TOOLS, start);
        windows.mark_settled(TOOLS, at(start, 1));
        windows.mark(TOOLS, at(start, 2));
        assert_eq!(windows.take_due(at(start, 3)), None);
        assert_eq!(windows.take_due(at(start, 27)), Some((TOOLS, start)));
        assert_eq!(windows.take_due(at(start, 300)), None);
        assert_eq!(windows.next_due(), None);
    }

    #[test]
    fn however_many_complete_changes_come_the_schedule_has_two_entries() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        for _ in 0..1000 {
            windows.mark(TOOLS, start);
            windows.mark_settled(TOOLS, start);
        }
        assert_eq!(windows.schedule.len(), 2);
    }

    #[test]
    fn each_thing_has_its_own_window() {
        let start = Instant::now();
        let mut windows = Windows::new(Merging::default());
        let prompts = Topic::List(ListKind::Prompts);
        windows.mark(TOOLS, start);
        windows.mark(prompts.clone(), at(start, 10));
        assert_eq!(windows.take_due(at(start, 30)), Some((TOOLS, start)));
        assert_eq!(windows.take_due(at(start, 30)), None);
        assert_eq!(windows.take_due(at(start, 35)), Some((prompts, at(start, 10))));
    }
}
