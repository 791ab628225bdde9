//! The useful time between fetches, from the dates of posts.

use std::time::Duration;

use tidings_store::date::Moment;

/// How many of the last posts are considered.
const POSTS: usize = 11;

/// Half of the usual time between two of the last posts, so that a post waits half its successor's
/// time at most; `None` if there are too few. The median, because a long silence or a dozen posts
/// within a minute are unusual.
pub(super) fn of_posts(posted: &[Moment], now: Moment) -> Option<Duration> {
    // Dates in the future are announcements, or wrong.
    let mut posted: Vec<_> = posted.iter().copied().filter(|moment| *moment <= now).collect();
    posted.sort_unstable();
    posted.dedup();
    let recent = &posted[posted.len().saturating_sub(POSTS)..];
    let mut gaps: Vec<_> = recent.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).map(|median| *median / 2)
}

/// A little longer than before, because nothing new came.
pub(super) fn lengthened(interval: Duration) -> Duration {
    interval.saturating_add(interval / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(minutes: &[i64], expected: Option<u64>) {
        let posted: Vec<_> =
            minutes.iter().map(|minute| Moment::from_millis(minute * 60_000)).collect();
        let found = of_posts(&posted, Moment::from_millis(100_000 * 60_000));
        assert_eq!(found, expected.map(|minutes| Duration::from_secs(minutes * 60)));
    }

    #[test]
    fn the_interval_is_half_the_usual_gap() {
        check(&[0, 60, 120, 180], Some(30));
        check(&[180, 0, 120, 60], Some(30));
        check(&[0, 10_000, 10_060, 10_120, 10_121, 10_181], Some(30));
    }

    #[test]
    fn too_few_posts_say_nothing() {
        check(&[], None);
        check(&[5], None);
        check(&[5, 5, 5], None);
        check(&[5, 200_000], None);
    }

    #[test]
    fn only_the_last_posts_count() {
        let old = (0..50).map(|number| number * 1000);
        let new = (0..11).map(|number| 60_000 + number * 10);
        check(&old.chain(new).collect::<Vec<_>>(), Some(5));
    }
}
