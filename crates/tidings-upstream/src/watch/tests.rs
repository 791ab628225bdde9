//! The schedule of looks, without network and clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::schedule::{LONGEST, Look, Mode, SECOND_LOOK, SHORTEST, Schedule};
use crate::config::PollRule;

const POLLED: Mode = Mode::Polled(PollRule::Adaptive);
const PUSHED: Mode = Mode::Pushed(PollRule::Adaptive);
const NONE: Duration = Duration::ZERO;

fn uri(text: &str) -> Arc<str> {
    text.into()
}

/// Runs a schedule with looks that find what `content` says, for a time. Returns when each began.
fn run(
    schedule: &mut Schedule,
    from: Instant,
    time: Duration,
    mut look: impl FnMut(&str) -> Look,
) -> Vec<(Duration, String)> {
    let (mut now, mut looks) = (from, Vec::new());
    loop {
        while let Some(uri) = schedule.begin(now) {
            looks.push((now - from, uri.to_string()));
            let found = look(&uri);
            schedule.looked(&uri, found, NONE, 0.5, now);
        }
        match schedule.due().filter(|due| *due <= from + time) {
            Some(due) => now = due.max(now + Duration::from_millis(1)),
            None => return looks,
        }
    }
}

#[test]
fn the_first_watcher_leads_to_a_look_at_once_and_the_last_leaver_ends_it() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    assert_eq!(schedule.due(), None);
    schedule.watch(&uri("a:1"), POLLED, now);
    assert_eq!(schedule.begin(now).as_deref(), Some("a:1"));
    schedule.looked("a:1", Look::Same, NONE, 0.5, now);
    assert_eq!(schedule.due(), Some(now + SHORTEST.mul_f64(1.5)));
    schedule.unwatch("a:1");
    assert_eq!(schedule.due(), None);
}

#[test]
fn nothing_is_polled_while_the_server_promises_that_it_stays() {
    for mode in [POLLED, Mode::Polled(PollRule::Every(SHORTEST))] {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        schedule.watch(&uri("a:1"), mode, now);
        assert_eq!(schedule.begin(now).as_deref(), Some("a:1"));
        schedule.looked("a:1", Look::Changed, Duration::from_hours(1), 0.5, now);
        assert!(schedule.due().unwrap() >= now + Duration::from_hours(1), "{mode:?}");
    }
}

#[test]
fn looks_come_less_often_without_changes_and_more_often_after_one() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    let looks = run(&mut schedule, now, Duration::from_hours(1), |_| Look::Same);
    let gaps: Vec<_> = looks.windows(2).map(|two| two[1].0.saturating_sub(two[0].0)).collect();
    assert!(gaps.is_sorted(), "{gaps:?}");
    assert_eq!((gaps[0], *gaps.last().unwrap()), (SHORTEST.mul_f64(1.5), LONGEST));
    let at = schedule.due().unwrap();
    assert!(schedule.begin(at).is_some());
    schedule.looked("a:1", Look::Changed, NONE, 0.5, at);
    assert_eq!(schedule.due(), Some(at + LONGEST / 2));
}

#[test]
fn a_look_never_overlaps_itself_and_polls_never_each_other() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    schedule.watch(&uri("a:2"), POLLED, now);
    assert!(schedule.begin(now).is_some());
    assert_eq!(schedule.begin(now + LONGEST), None);
    schedule.touched(now + LONGEST);
    assert_eq!(schedule.begin(now + LONGEST), None);
}

#[test]
fn the_budget_is_shared_fairly() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    let all: Vec<_> = (0..200).map(|number| uri(&format!("a:{number}"))).collect();
    for uri in &all {
        schedule.watch(uri, POLLED, now);
    }
    let looks = run(&mut schedule, now, Duration::from_mins(10), |_| Look::Changed);
    assert!(looks.len() <= 1201, "two a second, not {}", looks.len());
    let mut counts = BTreeMap::<_, usize>::new();
    for (_, uri) in &looks {
        *counts.entry(uri).or_default() += 1;
    }
    let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
    assert!(counts.len() == 200 && most - least <= 2, "{least} to {most}");
}

#[test]
fn a_promise_of_the_server_is_waited_for() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    assert!(schedule.begin(now).is_some());
    let promised = Duration::from_mins(20);
    schedule.looked("a:1", Look::Changed, promised, 0.5, now);
    assert_eq!(schedule.due(), Some(now + promised));
}

#[test]
fn a_call_that_may_have_changed_something_leads_to_a_look_soon() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    schedule.watch(&uri("a:2"), PUSHED, now);
    schedule.watch(&uri("a:3"), Mode::Polled(PollRule::Never), now);
    schedule.watch(&uri("a:4"), Mode::Pushed(PollRule::Never), now);
    run(&mut schedule, now, Duration::from_mins(2), |_| Look::Same);
    let later = now + Duration::from_mins(2);
    schedule.touched(later);
    let looks = run(&mut schedule, later, Duration::from_secs(1), |_| Look::Same);
    let looked: Vec<_> = looks.into_iter().map(|(_, uri)| uri).collect();
    assert_eq!(looked, ["a:1", "a:2"]);
}

#[test]
fn what_the_server_announces_is_looked_at_once_after_many_notices() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    assert_eq!(run(&mut schedule, now, LONGEST / 2, |_| Look::Changed).len(), 1);
    let later = now + LONGEST / 2;
    for _ in 0..200 {
        schedule.noticed("a:1", later);
    }
    let looks = run(&mut schedule, later, LONGEST / 2, |_| Look::Changed);
    assert_eq!(looks.len(), 1, "{looks:?}");
}

#[test]
fn a_promise_to_announce_is_looked_after_seldom_and_never_if_polls_are_forbidden() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    schedule.watch(&uri("a:2"), Mode::Pushed(PollRule::Never), now);
    let looks = run(&mut schedule, now, Duration::from_hours(1), |_| Look::Same);
    let count = |uri: &str| looks.iter().filter(|(_, looked)| looked == uri).count();
    assert_eq!((count("a:1"), count("a:2")), (13, 1));
}

#[test]
fn a_notice_without_a_change_leads_to_one_more_look_after_quiet() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    run(&mut schedule, now, LONGEST / 2, |_| Look::Same);
    let later = now + LONGEST / 2;
    schedule.noticed("a:1", later);
    let looks = run(&mut schedule, later, LONGEST / 2, |_| Look::Same);
    let times: Vec<_> = looks.into_iter().map(|(at, _)| at).collect();
    assert_eq!(times, [NONE, SECOND_LOOK]);
}

#[test]
fn a_notice_during_a_look_leads_to_another() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    assert!(schedule.begin(now).is_some());
    schedule.noticed("a:1", now);
    schedule.looked("a:1", Look::Changed, NONE, 0.5, now + Duration::from_secs(1));
    let at = schedule.due().unwrap();
    assert!(schedule.begin(at).is_some());
    schedule.looked("a:1", Look::Changed, NONE, 0.5, at);
    assert_eq!(schedule.begin(at + SECOND_LOOK), None, "nothing more is owed");
}

#[test]
fn content_that_differs_on_every_read_is_flagged_and_damped() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    let looks = run(&mut schedule, now, Duration::from_hours(1), |_| Look::Changed);
    assert_eq!(schedule.volatile().count(), 1);
    assert!(looks.len() < 20, "{}", looks.len());
    let at = schedule.due().unwrap();
    assert!(schedule.begin(at).is_some());
    schedule.looked("a:1", Look::Same, NONE, 0.5, at);
    assert_eq!(schedule.volatile().count(), 0, "it rests");
}

#[test]
fn content_that_steady_calls_change_is_not_damped() {
    for mode in [POLLED, PUSHED] {
        let (mut schedule, mut now) = (Schedule::default(), Instant::now());
        schedule.watch(&uri("a:1"), mode, now);
        run(&mut schedule, now, NONE, |_| Look::Same);
        for _ in 0..200 {
            now += Duration::from_millis(20);
            schedule.touched(now);
            run(&mut schedule, now, Duration::from_millis(19), |_| Look::Changed);
        }
        assert_eq!(schedule.volatile().count(), 0, "{mode:?}");
        let last = run(&mut schedule, now, Duration::from_secs(1), |_| Look::Changed);
        assert!(!last.is_empty(), "{mode:?}: the last state is looked at soon");
    }
}

#[test]
fn content_that_differs_on_every_read_is_damped_beside_calls() {
    let (mut schedule, mut now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    for _ in 0..10 {
        schedule.touched(now);
        run(&mut schedule, now, Duration::from_secs(1), |_| Look::Changed);
        now += Duration::from_secs(1);
    }
    assert_eq!(schedule.volatile().count(), 1);
}

#[test]
fn content_that_is_announced_often_is_not_damped_and_its_last_state_is_found_soon() {
    let (mut schedule, mut now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    run(&mut schedule, now, NONE, |_| Look::Same);
    for _ in 0..100 {
        now += Duration::from_millis(100);
        schedule.noticed("a:1", now);
        assert_eq!(run(&mut schedule, now, NONE, |_| Look::Changed).len(), 1);
    }
    assert_eq!(schedule.volatile().count(), 0);
}

#[test]
fn a_notice_of_content_that_differs_on_every_read_is_looked_after_once_it_is_quiet() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    let time = Duration::from_mins(10);
    run(&mut schedule, now, time, |_| Look::Changed);
    assert_eq!(schedule.volatile().count(), 1);
    let mut later = schedule.due().unwrap();
    run(&mut schedule, later, NONE, |_| Look::Changed);
    for _ in 0..20 {
        later += Duration::from_secs(1);
        schedule.noticed("a:1", later);
        assert_eq!(run(&mut schedule, later, NONE, |_| Look::Changed).len(), 0);
    }
    let looks = run(&mut schedule, later, Duration::from_mins(1), |_| Look::Changed);
    assert_eq!(looks, [(Duration::from_secs(2), "a:1".to_owned())]);
    for second in 3..1000 {
        schedule.noticed("a:1", later + Duration::from_secs(second));
    }
    assert!(schedule.due().unwrap() <= later + Duration::from_secs(1000), "not without end");
}

#[test]
fn looks_after_notices_keep_no_poll_waiting() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), PUSHED, now);
    run(&mut schedule, now, NONE, |_| Look::Same);
    let later = now + SECOND_LOOK;
    schedule.noticed("a:1", later);
    assert_eq!(schedule.begin(later).as_deref(), Some("a:1"));
    schedule.watch(&uri("a:2"), POLLED, later);
    assert_eq!(schedule.begin(later).as_deref(), Some("a:2"));
}

#[test]
fn who_comes_back_during_a_look_gets_one_of_their_own_after_it() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    assert!(schedule.begin(now).is_some());
    schedule.unwatch("a:1");
    schedule.watch(&uri("a:1"), POLLED, now);
    assert_eq!(schedule.begin(now + LONGEST), None, "the first still runs");
    schedule.looked("a:1", Look::Same, NONE, 0.5, now + LONGEST);
    assert!(schedule.begin(now + LONGEST).is_some());
}

#[test]
fn content_that_really_changes_often_is_not_damped() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    // It changes every two seconds, so two looks at once find the same.
    let (mut last, mut count) = (None::<usize>, 0_usize);
    let looks = run(&mut schedule, now, Duration::from_mins(1), |_| {
        count += 1;
        let content = count.div_ceil(2);
        if last.replace(content) == Some(content) { Look::Same } else { Look::Changed }
    });
    assert_eq!(schedule.volatile().count(), 0);
    assert!(looks.len() > 10, "{}", looks.len());
}

#[test]
fn a_look_that_fails_is_tried_again_ever_later() {
    let (mut schedule, now) = (Schedule::default(), Instant::now());
    schedule.watch(&uri("a:1"), POLLED, now);
    let looks = run(&mut schedule, now, Duration::from_hours(1), |_| Look::Failed);
    let gaps: Vec<_> = looks.windows(2).map(|two| two[1].0.saturating_sub(two[0].0)).collect();
    assert!(gaps.is_sorted() && gaps.contains(&LONGEST), "{gaps:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Watch(u8, bool),
    Unwatch(u8),
    Notice(u8),
    Touched,
    Resync,
    Pause(bool),
    Wait(u16),
    End(u8, bool, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8, any::<bool>()).prop_map(|(which, pushed)| Step::Watch(which, pushed)),
        (0..4_u8).prop_map(Step::Unwatch),
        (0..4_u8).prop_map(Step::Notice),
        Just(Step::Touched),
        Just(Step::Resync),
        any::<bool>().prop_map(Step::Pause),
        (0..5000_u16).prop_map(Step::Wait),
        (0..4_u8, any::<bool>(), any::<bool>()).prop_map(|(a, b, c)| Step::End(a, b, c)),
    ]
}

proptest! {
    /// Whatever happens: a look that is owed to a notice begins, none overlaps itself, polls keep the
    /// budget, and what nobody watches is not looked at.
    #[test]
    fn what_is_announced_is_looked_at_and_nothing_overlaps(steps in prop::collection::vec(step(), 1..120)) {
        let (mut schedule, mut now) = (Schedule::default(), Instant::now());
        let mut running = std::collections::BTreeSet::new();
        let mut owed = std::collections::BTreeSet::new();
        let mut watched = std::collections::BTreeSet::new();
        let name = |which: u8| uri(&format!("a:{which}"));
        for step in steps {
            match step {
                Step::Watch(which, pushed) => {
                    let mode = if pushed { PUSHED } else { POLLED };
                    schedule.watch(&name(which), mode, now);
                    watched.insert(name(which));
                }
                Step::Unwatch(which) => {
                    schedule.unwatch(&name(which));
                    for set in [&mut watched, &mut owed] {
                        set.remove(&name(which));
                    }
                }
                Step::Notice(which) => {
                    schedule.noticed(&name(which), now);
                    owed.extend(watched.get(&name(which)).cloned());
                }
                Step::Touched => schedule.touched(now),
                Step::Resync => {
                    schedule.resync(now);
                    owed.extend(watched.iter().cloned());
                }
                Step::Pause(paused) => schedule.pause(paused),
                Step::Wait(milliseconds) => now += Duration::from_millis(milliseconds.into()),
                Step::End(which, changed, failed) => {
                    if running.remove(&name(which)) {
                        let look = match (failed, changed) {
                            (true, _) => Look::Failed,
                            (_, true) => Look::Changed,
                            _ => Look::Same,
                        };
                        schedule.looked(&name(which), look, NONE, 0.5, now);
                    }
                }
            }
            while let Some(uri) = schedule.begin(now) {
                prop_assert!(watched.contains(&uri), "nobody watches {}", uri);
                prop_assert!(running.insert(uri.clone()), "{} overlaps itself", uri);
                owed.remove(&uri);
            }
        }
        // At rest: everything ends, and time passes.
        schedule.pause(false);
        for _ in 0..400 {
            for uri in std::mem::take(&mut running) {
                schedule.looked(&uri, Look::Same, NONE, 0.5, now);
            }
            while let Some(uri) = schedule.begin(now) {
                owed.remove(&uri);
                running.insert(uri);
            }
            if owed.is_empty() {
                break;
            }
            now = schedule.due().unwrap_or(now).max(now + Duration::from_millis(10));
        }
        prop_assert!(owed.is_empty(), "announced, but not looked at: {:?}", owed);
    }
}
