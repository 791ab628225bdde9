//! When a change is looked at: after it has been quiet for a moment, or has waited long enough.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tidings_core::{ListKind, ResourceUri};
use tokio::time::Instant;

/// How many looks are remembered before old ones are swept out.
const SWEEP: usize = 1024;

/// A thing that can be dirty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// A list of this kind.
    List(ListKind),
    /// What a read of this URI returns.
    Uri(ResourceUri),
}

/// How changes that follow each other are merged into one notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merging {
    /// A thing is looked at when it has not changed for this long. Zero: at once.
    pub quiet: Duration,
    /// And at the latest this long after its first change that was not looked at.
    pub max_wait: Duration,
}

impl Merging {
    /// Both times; a maximum shorter than the quiet time is the maximum all the same.
    #[must_use]
    pub fn new(quiet: Duration, max_wait: Duration) -> Self {
        Self { quiet, max_wait }
    }

    /// Every change is looked at at once.
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

/// The dirty things and when each is due. A mark costs the same however many things are dirty: it
/// moves a time stamp, and the schedule is corrected only when the thing comes up.
#[derive(Debug)]
pub(crate) struct Windows {
    merging: Merging,
    dirty: HashMap<Topic, Window>,
    /// Invariant: one entry for each dirty thing, and one more for each that is hurried.
    schedule: BTreeMap<(Instant, u64), Topic>,
    next: u64,
    /// When things whose changes come complete were last looked at; old ones are swept out.
    looked: HashMap<Topic, Instant>,
}

#[derive(Debug)]
struct Window {
    first: Instant,
    last: Instant,
    /// The last change was complete, and the thing had rested before it.
    settled: bool,
    /// There is an entry for looking at it at once.
    hurried: bool,
}

impl Window {
    fn due(&self, merging: Merging) -> Instant {
        if self.settled {
            return self.last;
        }
        (self.last + merging.quiet).min(self.first + merging.max_wait)
    }
}

impl Windows {
    pub(crate) fn new(merging: Merging) -> Self {
        Self {
            merging,
            dirty: HashMap::new(),
            schedule: BTreeMap::new(),
            next: 0,
            looked: HashMap::new(),
        }
    }

    /// Makes a thing dirty. True if it was clean, so that the schedule has a new entry.
    pub(crate) fn mark(&mut self, topic: Topic, now: Instant) -> bool {
        if let Some(window) = self.dirty.get_mut(&topic) {
            window.last = now;
            window.settled = false;
            return false;
        }
        let window = Window { first: now, last: now, settled: false, hurried: false };
        let due = window.due(self.merging);
        self.dirty.insert(topic.clone(), window);
        self.put(due, topic);
        true
    }

    /// Makes a thing dirty by a change that is complete: it is due at once, unless it was looked at
    /// within the quiet time. True if the schedule has a new entry.
    pub(crate) fn mark_settled(&mut self, topic: Topic, now: Instant) -> bool {
        let rested = |at: &Instant| *at + self.merging.quiet <= now;
        let rested = self.looked.get(&topic).is_none_or(rested);
        let fresh = self.mark(topic.clone(), now);
        let Some(window) = self.dirty.get_mut(&topic) else { return fresh };
        window.settled = rested;
        if !rested || std::mem::replace(&mut window.hurried, true) {
            return fresh;
        }
        self.put(now, topic);
        true
    }

    /// When to look next.
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
            // What came up sooner has been looked at by its other entry.
            let Some(window) = self.dirty.get(&topic) else { continue };
            let due = window.due(self.merging);
            if due > now {
                self.put(due, topic);
                continue;
            }
            let window = self.dirty.remove(&topic)?;
            if window.hurried {
                self.remember(topic.clone(), now);
            }
            return Some((topic, window.first));
        }
    }

    fn remember(&mut self, topic: Topic, now: Instant) {
        if self.looked.len() >= SWEEP {
            let quiet = self.merging.quiet;
            self.looked.retain(|_, at| *at + quiet > now);
        }
        self.looked.insert(topic, now);
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
        let mut looks = 0;
        for ms in 0..2000 {
            if ms % 20 == 0 {
                windows.mark(TOOLS, at(start, ms));
            }
            looks += usize::from(windows.take_due(at(start, ms)).is_some());
        }
        assert_eq!(looks, 7, "one each 260 ms: the maximum, then the next change");
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
        assert_eq!(windows.take_due(at(start, 330)), None, "it was looked at just now");
        assert_eq!(windows.take_due(at(start, 345)), Some((TOOLS, at(start, 320))));
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
