//! Waiting for a tree in motion: decide when changed offers are published, together; pure.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use crate::offer::Key;
use crate::stock::Affected;

/// More offers than this change at once only when a whole tree moves, as in a checkout.
const FEW: usize = 12;
/// A tree is at rest after this much quiet, or half as long as it was in motion if that is longer:
/// a slow writer also pauses longer.
const TREE_QUIET: Duration = Duration::from_millis(200);
/// If a tree does not come to rest, its changes are published after this long.
const TREE_AT_MOST: Duration = Duration::from_secs(3);
/// How often to check again while changes are waiting to be scanned.
const AGAIN: Duration = Duration::from_millis(5);

/// Changes that are not published yet.
#[derive(Debug)]
pub(crate) struct Motion {
    quiet: Duration,
    max_wait: Duration,
    waiting: Affected,
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    first: Instant,
    due: Instant,
}

impl Motion {
    /// A few changes wait for `quiet`, but no longer than `max_wait`.
    pub(crate) fn new(quiet: Duration, max_wait: Duration) -> Self {
        Self { quiet, max_wait, waiting: Affected::default(), window: None }
    }

    /// Adds changed offers, and files that can be announced only after these offers are published.
    pub(crate) fn note(&mut self, keys: BTreeSet<Key>, files: BTreeSet<PathBuf>, now: Instant) {
        self.waiting.keys.extend(keys);
        self.waiting.files.extend(files);
        self.window.get_or_insert(Window { first: now, due: now });
        self.moved(now);
    }

    /// Notes that something moved in the folder, which extends the wait.
    pub(crate) fn moved(&mut self, now: Instant) {
        let (quiet, at_most) = self.times(now);
        if let Some(window) = &mut self.window {
            window.due = (now + quiet).min(window.first + at_most);
        }
    }

    /// When [`Self::take`] should be called next, if changes are waiting.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.window.map(|window| window.due)
    }

    /// The changes to publish now. While events are waiting to be scanned, the tree is not at rest,
    /// however long ago the last scan was.
    pub(crate) fn take(&mut self, now: Instant, is_silent: bool) -> Option<Affected> {
        let (_, at_most) = self.times(now);
        let window = self.window.as_mut().filter(|window| window.due <= now)?;
        if !is_silent && now < window.first + at_most {
            window.due = (now + AGAIN).min(window.first + at_most);
            return None;
        }
        Some(self.take_all())
    }

    /// All waiting changes, due or not.
    pub(crate) fn take_all(&mut self) -> Affected {
        self.window = None;
        std::mem::take(&mut self.waiting)
    }

    fn times(&self, now: Instant) -> (Duration, Duration) {
        if self.waiting.keys.len() > FEW {
            let begun = self.window.map_or(now, |window| window.first);
            let quiet = TREE_QUIET.max(now.saturating_duration_since(begun) / 2);
            (quiet.max(self.quiet), TREE_AT_MOST.max(self.max_wait))
        } else {
            (self.quiet, self.max_wait)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::Kind;

    fn motion() -> (Motion, Instant) {
        (Motion::new(Duration::from_millis(25), Duration::from_millis(250)), Instant::now())
    }

    fn keys(count: usize) -> BTreeSet<Key> {
        (0..count).map(|number| (Kind::Tool, number.to_string().into())).collect()
    }

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_single_change_waits_for_a_moment() {
        let (mut motion, start) = motion();
        motion.note(keys(1), BTreeSet::new(), start);
        assert!(motion.take(at(start, 24), true).is_none());
        assert_eq!(motion.take(at(start, 25), true).unwrap().keys, keys(1));
        assert_eq!(motion.due(), None);
    }

    #[test]
    fn a_tree_in_motion_is_waited_for() {
        let (mut motion, start) = motion();
        for step in 0..10 {
            motion.note(keys(FEW + 1), BTreeSet::new(), at(start, step * 40));
            assert!(motion.take(at(start, step * 40 + 39), true).is_none());
        }
        assert!(motion.take(at(start, 9 * 40 + 200), true).is_some());
    }

    /// A busy machine may take a while between `git stash` and `git stash pop` of a large tree.
    #[test]
    fn a_tree_that_was_long_in_motion_is_waited_for_longer() {
        let (mut motion, start) = motion();
        for step in 0..40 {
            motion.note(keys(FEW + 1), BTreeSet::new(), at(start, step * 40));
        }
        assert!(motion.take(at(start, 39 * 40 + 779), true).is_none());
        assert!(motion.take(at(start, 39 * 40 + 780), true).is_some());
    }

    #[test]
    fn a_tree_that_never_rests_is_applied_all_the_same() {
        let (mut motion, start) = motion();
        let mut applied = 0;
        for ms in (0..12_000).step_by(20) {
            motion.note(keys(FEW + 1), BTreeSet::new(), at(start, ms));
            applied += usize::from(motion.take(at(start, ms), false).is_some());
        }
        assert_eq!(applied, 3);
    }

    #[test]
    fn what_was_heard_and_not_looked_at_is_waited_for() {
        let (mut motion, start) = motion();
        motion.note(keys(1), BTreeSet::new(), start);
        assert!(motion.take(at(start, 30), false).is_none());
        assert!(motion.due() > Some(at(start, 30)));
        assert!(motion.take(at(start, 250), false).is_some(), "but not for ever");
    }
}
