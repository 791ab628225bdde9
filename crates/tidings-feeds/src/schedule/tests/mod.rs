//! Laws and examples of the schedule.

mod simulated_day;

use proptest::prelude::*;

use super::*;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// A Monday, at midnight.
const NOW: Moment = Moment::from_millis(1_794_787_200_000);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn hints() -> FeedHints {
    FeedHints::default()
}

fn unchanged(hints: FeedHints) -> Outcome<'static> {
    Outcome::Unchanged { hints, moved: None }
}

/// The wait after one outcome, without its random part.
fn wait(plan: &Plan, outcome: &Outcome) -> u64 {
    plan.after(outcome, &Bounds::default(), NOW, 0).next.since(NOW).as_secs()
}

/// The plan of a feed that is due.
fn due(plan: &Plan) -> Plan {
    Plan { next: NOW, ..plan.clone() }
}

/// The waits after several failures of one kind, in minutes, and how the feed does then.
fn failing(failure: &Failure, times: usize) -> (Vec<u64>, Plan) {
    let mut plan = Plan::new(NOW);
    let outcome = Outcome::Failed(failure.clone());
    let waits = (0..times).map(|_| {
        plan = due(&plan).after(&outcome, &Bounds::default(), NOW, 0);
        plan.next.since(NOW).as_secs() / MINUTE
    });
    (waits.collect(), plan)
}

#[test]
fn a_feed_is_asked_as_often_as_it_posts() {
    let check = |gap: u64, expected: u64| {
        let gap_millis = i64::try_from(gap * 1000).unwrap();
        let ago = |number: i64| Moment::from_millis(NOW.millis() - number * gap_millis);
        let posted: Vec<_> = (1..20).map(ago).collect();
        let outcome = Outcome::Changed { posted: &posted, hints: hints(), moved: None };
        assert_eq!(wait(&Plan::new(NOW), &outcome), expected, "a post every {gap} s");
    };
    check(2 * HOUR, HOUR);
    check(MINUTE, 15 * MINUTE);
    check(7 * DAY, DAY);
    let nothing = Outcome::Changed { posted: &[], hints: hints(), moved: None };
    assert_eq!(wait(&Plan::new(NOW), &nothing), HOUR);
}

#[test]
fn a_quiet_feed_is_asked_less_and_less_often() {
    let mut plan = Plan::new(NOW);
    let mut last = seconds(0);
    for _ in 0..40 {
        let due = plan.due().unwrap();
        plan = plan.after(&unchanged(hints()), &Bounds::default(), due, 0);
        assert!(plan.interval >= last && plan.interval <= seconds(DAY));
        last = plan.interval;
    }
    assert_eq!(last, seconds(DAY));
}

#[test]
fn who_asks_before_it_is_due_does_not_make_the_interval_longer() {
    let plan = Plan::new(NOW).after(&unchanged(hints()), &Bounds::default(), NOW, 0);
    let early = plan.after(&unchanged(hints()), &Bounds::default(), NOW, 0);
    assert_eq!(early.interval, plan.interval);
    assert!(early.due().unwrap() > NOW);
}

#[test]
fn publishers_are_heard_up_to_the_ceiling() {
    let check = |hints: FeedHints, expected: u64| {
        // An eighth of the interval is added where nothing was new.
        let plan = Plan { interval: seconds(1600), ..Plan::new(NOW) };
        assert_eq!(wait(&plan, &unchanged(hints)), expected);
    };
    check(hints(), 1800);
    check(FeedHints { ttl: Some(seconds(60)), ..hints() }, 1800);
    check(FeedHints { ttl: Some(seconds(3 * HOUR)), ..hints() }, 3 * HOUR);
    check(FeedHints { update: FeedHints::update_every("daily", 4), ..hints() }, 6 * HOUR);
    check(FeedHints { update: FeedHints::update_every("yearly", 1), ..hints() }, DAY);
    check(FeedHints { expires: Some(seconds(2 * HOUR)), ..hints() }, 2 * HOUR);
    let (max_age, expires) = (Some(seconds(HOUR)), Some(seconds(9 * HOUR)));
    check(FeedHints { max_age, expires, ..hints() }, HOUR);
    check(FeedHints { retry_after: Some(seconds(3 * DAY)), ..hints() }, 3 * DAY);
    assert_eq!(FeedHints::update_every("Hourly ", 0), Some(seconds(HOUR)));
    assert_eq!(FeedHints::update_every("now and then", 1), None);
}

#[test]
fn failures_back_off_until_the_circuit_opens_and_one_success_closes_it() {
    let (waits, plan) = failing(&Failure::Transient, 9);
    assert_eq!(waits, [15, 30, 60, 120, 240, 480, 960, 1440, 1440]);
    assert_eq!((plan.condition, plan.failures), (Condition::Resting, 9));
    let plan = plan.after(&unchanged(hints()), &Bounds::default(), NOW, 0);
    assert_eq!((plan.condition, plan.failures), (Condition::Good, 0));
    let (waits, plan) = failing(&Failure::Missing, 5);
    assert_eq!(waits, [15, 60, 240, 960, 1440]);
    assert_eq!(plan.condition, Condition::Failing);
}

#[test]
fn who_asks_by_hand_while_a_server_is_down_does_not_make_it_rest() {
    let fine = Plan::new(NOW).after(&unchanged(hints()), &Bounds::default(), NOW, 0);
    for planned in [fine, failing(&Failure::Transient, 3).1] {
        let mut plan = planned.clone();
        for second in 1..20 {
            let failed = Outcome::Failed(Failure::Transient);
            plan = plan.after(&failed, &Bounds::default(), NOW.after(seconds(second)), second);
        }
        assert_eq!(Plan { last: planned.last, ..plan.clone() }, planned);
        let refused = Failure::Refused { retry_after: Some(seconds(DAY)) };
        let plan = plan.after(&Outcome::Failed(refused), &Bounds::default(), NOW, 0);
        assert_eq!((plan.next, plan.failures), (NOW.after(seconds(DAY)), planned.failures));
        let plan = plan.after(&Outcome::Failed(Failure::Gone), &Bounds::default(), NOW, 0);
        assert_eq!(plan.condition, Condition::Gone);
    }
}

#[test]
fn a_server_says_when_to_come_back() {
    let refused = |length| Failure::Refused { retry_after: Some(seconds(length)) };
    assert_eq!(failing(&refused(3 * HOUR), 3).0, [180, 180, 180]);
    assert_eq!(failing(&refused(5), 1).0, [15]);
    let plan = failing(&Failure::Refused { retry_after: None }, 2).1;
    let postponed = Outcome::Failed(Failure::Postponed { by: seconds(90) });
    let later = due(&plan).after(&postponed, &Bounds::default(), NOW, 0);
    assert_eq!(later.next, NOW.after(seconds(90)));
    assert_eq!((later.failures, later.condition), (2, Condition::Failing), "it was not asked");
    assert_eq!(plan.after(&postponed, &Bounds::default(), NOW, 0), plan, "it is not due");
}

#[test]
fn a_feed_that_is_gone_or_paused_is_not_due() {
    let gone = failing(&Failure::Gone, 1).1;
    assert_eq!((gone.condition, gone.due()), (Condition::Gone, None));
    assert_eq!(gone.resumed(NOW).due(), Some(NOW));
    let paused = Plan::new(NOW).paused();
    assert_eq!(paused.due(), None);
    let late = paused.after(&unchanged(hints()), &Bounds::default(), NOW, 0);
    assert_eq!(late.due(), None, "an answer that was under way does not resume it");
}

#[test]
fn a_new_address_is_taken_after_three_good_answers_in_a_row() {
    let check = |steps: &str, expected: Option<&str>| {
        let mut plan = Plan::new(NOW);
        for step in steps.split(' ') {
            let moved = (step != "-").then_some(step);
            let outcome = match step {
                "fail" => Outcome::Failed(Failure::Unparsable),
                _ => Outcome::Unchanged { hints: hints(), moved },
            };
            plan = plan.after(&outcome, &Bounds::default(), NOW, 0);
        }
        assert_eq!(plan.take_address().as_deref(), expected, "{steps}");
        assert_eq!(plan.take_address(), None);
    };
    check("new new", None);
    check("new new new", Some("new"));
    check("new new - new", None);
    check("new new fail new", None);
    check("new new other new", None);
    check("other new new new", Some("new"));
}

#[test]
fn a_fixed_interval_overrules_all_but_the_server() {
    let bounds = Bounds { fixed: Some(seconds(MINUTE)), ..Bounds::default() };
    let next = |hints| Plan::new(NOW).after(&unchanged(hints), &bounds, NOW, 0).next;
    assert_eq!(next(FeedHints { ttl: Some(seconds(DAY)), ..hints() }), NOW.after(seconds(MINUTE)));
    let alone = FeedHints { retry_after: Some(seconds(HOUR)), ..hints() };
    assert_eq!(next(alone), NOW.after(seconds(HOUR)));
    let skip = Skip::new([0, 1], []);
    assert_eq!(next(FeedHints { skip, ..hints() }), NOW.after(seconds(2 * HOUR)));
    let none = Bounds { fixed: Some(Duration::ZERO), ..Bounds::default() };
    let plan = Plan::new(NOW).after(&unchanged(hints()), &none, NOW, 0);
    assert_eq!(plan.next, NOW.after(SHORTEST));
}

#[test]
fn a_feed_that_is_overdue_is_asked_at_once() {
    let overdue = Plan { last: Some(NOW), ..Plan::new(NOW) };
    let morning = NOW.after(seconds(9 * HOUR));
    for random in [0, u64::MAX] {
        assert_eq!(overdue.caught_up(morning, random).next, morning);
    }
    let later = Plan { next: morning.after(seconds(5)), ..overdue };
    assert_eq!(later.caught_up(morning, u64::MAX), later);
}

#[test]
fn trouble_of_this_machine_is_no_failure_of_a_feed() {
    let plan = Plan { last: Some(NOW), ..Plan::new(NOW) };
    let now = NOW.after(seconds(HOUR));
    let after = plan.after(&Outcome::Failed(Failure::Here), &Bounds::default(), now, 0);
    assert_eq!(after.next, now.after(HERE));
    assert_eq!((after.failures, after.condition, after.last), (0, Condition::Good, plan.last));
}

#[test]
fn a_clock_that_was_set_back_does_not_stop_a_feed() {
    let far = NOW.after(seconds(1000 * DAY));
    let plan = Plan::new(far).after(&unchanged(hints()), &Bounds::default(), far, 0);
    assert_eq!(plan.caught_up(NOW, u64::MAX).next, NOW);
}

#[test]
fn a_plan_survives_a_restart() {
    let skip = Skip::new([3], ["Friday"]);
    let hints = FeedHints { skip, retry_after: Some(seconds(DAY)), ..hints() };
    let outcome = Outcome::Unchanged { hints, moved: Some("https://example.com/new") };
    let plan = Plan::new(NOW).after(&outcome, &Bounds::default(), NOW, 7);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{text}");
}

#[test]
fn a_plan_is_explained_in_words() {
    let check = |plan: &Plan, expected: &str| assert_eq!(plan.explain(NOW), expected);
    let fine = Plan::new(NOW);
    check(&fine, "next now");
    check(&fine.after(&unchanged(hints()), &Bounds::default(), NOW, 0), "next in 67 min");
    let moved = Outcome::Unchanged { hints: hints(), moved: Some("https://example.com/") };
    let trial = fine.after(&moved, &Bounds::default(), NOW, 0);
    check(&trial, "next in 67 min; moving to https://example.com/");
    let alone = FeedHints { retry_after: Some(seconds(3 * DAY)), ..hints() };
    let alone = fine.after(&unchanged(alone), &Bounds::default(), NOW, 0);
    check(&alone, "the server sent `Retry-After`; next in 3 days");
    check(&failing(&Failure::Transient, 1).1, "the last attempt failed; next try in 15 min");
    check(&failing(&Failure::Transient, 4).1, "the last 4 attempts failed; next try in 2 h");
    let open = "the last 8 attempts failed; tried once a day, next in 24 h";
    check(&failing(&Failure::Transient, 8).1, open);
    check(
        &failing(&Failure::Gone, 1).1,
        "gone for ever, according to the server; not fetched again",
    );
    check(&fine.paused(), "paused");
}

fn any_wait() -> impl Strategy<Value = Option<Duration>> {
    let some = prop_oneof![0..10 * DAY, any::<u64>()];
    proptest::option::of(some.prop_map(Duration::from_secs))
}

fn any_skip() -> impl Strategy<Value = Skip> {
    let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let days = proptest::sample::subsequence(days.to_vec(), 0..6);
    (proptest::collection::vec(0..24u8, 0..12), days)
        .prop_map(|(hours, days)| Skip::new(hours, days))
}

prop_compose! {
    fn any_hints()(
        ttl in any_wait(), update in any_wait(), skip in any_skip(),
        max_age in any_wait(), expires in any_wait(), retry_after in any_wait(),
    ) -> FeedHints {
        FeedHints { ttl, update, skip, max_age, expires, retry_after }
    }
}

fn any_outcome() -> impl Strategy<Value = Outcome<'static>> {
    prop_oneof![
        any_hints().prop_map(|hints| Outcome::Changed { posted: &[], hints, moved: None }),
        any_hints().prop_map(unchanged),
        Just(Outcome::Failed(Failure::Transient)),
        Just(Outcome::Failed(Failure::Missing)),
        Just(Outcome::Failed(Failure::Unparsable)),
        any_wait().prop_map(|retry_after| Outcome::Failed(Failure::Refused { retry_after })),
    ]
}

proptest! {
    /// Whatever came before: not sooner than the floor, not in an hour to be skipped, not before
    /// the server said, and not never.
    #[test]
    fn every_plan_keeps_the_rules(
        outcomes in proptest::collection::vec((any_outcome(), any::<u64>()), 1..20),
        fixed in proptest::option::of(0..2 * DAY),
    ) {
        let bounds = Bounds { fixed: fixed.map(seconds), ..Bounds::default() };
        let least = bounds.fixed.unwrap_or(bounds.floor).max(SHORTEST);
        let mut plan = Plan::new(NOW);
        let mut now = NOW;
        for (outcome, random) in outcomes {
            plan = plan.after(&outcome, &bounds, now, random);
            let (skip, retry_after) = match &outcome {
                Outcome::Changed { hints, .. } | Outcome::Unchanged { hints, .. } => {
                    (hints.skip, hints.retry_after)
                }
                Outcome::Failed(Failure::Refused { retry_after }) => (plan.skip, *retry_after),
                Outcome::Failed(_) => (plan.skip, None),
            };
            prop_assert!(plan.next <= Moment::LAST.after(seconds(8 * DAY)));
            prop_assert!(plan.next >= now.after(least));
            prop_assert!(plan.next >= now.after(retry_after.unwrap_or_default()));
            if plan.next < Moment::LAST {
                prop_assert!(!skip.covers(plan.next));
            }
            if plan.not_before <= now {
                // The ceiling, its random quarter, and a week of days to be skipped.
                let most = bounds.most().max(PROBE) * 5 / 4 + seconds(7 * DAY + HOUR);
                prop_assert!(plan.next <= now.after(most));
            }
            now = plan.next;
        }
    }

    #[test]
    fn waits_grow_from_failure_to_failure(
        kind in prop_oneof![
            Just(Failure::Transient), Just(Failure::Missing), Just(Failure::Unparsable)
        ],
        random: u64,
        floor in 1..2 * DAY,
    ) {
        let bounds = Bounds { floor: seconds(floor), ..Bounds::default() };
        let mut plan = Plan::new(NOW);
        let mut last = NOW;
        for _ in 0..100 {
            plan = due(&plan).after(&Outcome::Failed(kind.clone()), &bounds, NOW, random);
            prop_assert!(plan.next >= last);
            last = plan.next;
        }
        prop_assert_eq!(plan.condition, Condition::Resting);
    }
}

#[test]
fn an_answer_that_broke_off_is_asked_for_again_soon() {
    let plan = Plan { next: NOW.after(seconds(DAY)), last: Some(NOW), ..Plan::new(NOW) };
    assert_eq!(plan.again_soon(NOW, 0).next, NOW.after(AGAIN));
    let sooner = Plan { next: NOW.after(seconds(60)), ..plan };
    assert_eq!(sooner.again_soon(NOW, 0).next, sooner.next);
}
