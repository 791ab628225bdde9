//! Tests of the queue: turns, shares and room.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

type Entering<'a> = Pin<Box<dyn Future<Output = Result<Permit, Full>> + 'a>>;

fn poll(entering: &mut Entering<'_>) -> Poll<Result<Permit, Full>> {
    entering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn begin<'a>(queue: &'a RunQueue, caller: &'a str) -> Entering<'a> {
    let mut entering: Entering<'a> = Box::pin(queue.enter(caller));
    assert!(poll(&mut entering).is_pending());
    entering
}

#[tokio::test]
async fn callers_take_turns_and_each_ones_calls_keep_their_order() {
    let queue = RunQueue::new(1, 10);
    let mut permit = Some(queue.enter("x").await.unwrap());
    let names = ["a", "a", "a", "b", "c", "b"];
    let mut waiting: Vec<_> = names.iter().map(|name| Some(begin(&queue, name))).collect();
    let mut order = Vec::new();
    while order.len() < names.len() {
        drop(permit.take());
        for (index, slot) in waiting.iter_mut().enumerate() {
            if let Some(entering) = slot
                && let Poll::Ready(entered) = poll(entering)
            {
                assert!(permit.replace(entered.unwrap()).is_none(), "one at once");
                order.push(index);
                *slot = None;
            }
        }
    }
    assert_eq!(order, [0, 3, 4, 1, 5, 2]);
}

#[tokio::test]
async fn one_too_many_is_told_how_many_wait() {
    let queue = RunQueue::new(1, 2);
    let _permit = queue.enter("a").await.unwrap();
    let (_first, _second) = (begin(&queue, "a"), begin(&queue, "b"));
    assert_eq!(queue.enter("c").await.unwrap_err(), Full { waiting: 2 });
}

#[tokio::test]
async fn who_stops_waiting_frees_the_place() {
    let queue = RunQueue::new(1, 1);
    let permit = queue.enter("a").await.unwrap();
    drop(begin(&queue, "b"));
    assert_eq!(queue.waiting(), 0);
    let mut entering = begin(&queue, "c");
    drop(permit);
    assert!(poll(&mut entering).is_ready());
}

#[tokio::test]
async fn a_turn_nobody_took_passes_on() {
    let queue = RunQueue::new(1, 2);
    let permit = queue.enter("a").await.unwrap();
    let (gone, mut patient) = (begin(&queue, "b"), begin(&queue, "c"));
    drop(permit);
    assert!(poll(&mut patient).is_pending(), "it is b's turn");
    drop(gone);
    assert!(poll(&mut patient).is_ready());
}

#[tokio::test]
async fn a_newcomer_gets_in_where_a_greedy_caller_has_filled_the_room() {
    let queue = RunQueue::new(2, 256);
    let (greedy, busy) = (queue.enter("a").await.unwrap(), queue.enter("b").await.unwrap());
    let mut waiting = Vec::new();
    for _ in 0..300 {
        let mut entering: Entering<'_> = Box::pin(queue.enter("a"));
        match poll(&mut entering) {
            Poll::Pending => waiting.push(entering),
            Poll::Ready(refused) => assert_eq!(refused.unwrap_err(), Full { waiting: 256 }),
        }
    }
    assert_eq!(waiting.len(), 256);
    let mut newcomer = begin(&queue, "c");
    assert_eq!(queue.waiting(), 256);
    let Poll::Ready(displaced) = poll(&mut waiting[255]) else { panic!("it still waits") };
    assert_eq!(displaced.unwrap_err(), Full { waiting: 256 });
    assert!(poll(&mut waiting[254]).is_pending());
    drop(busy);
    assert!(poll(&mut newcomer).is_ready(), "it is next");
    drop(greedy);
}

#[tokio::test]
async fn a_full_room_is_shared_evenly() {
    let queue = RunQueue::new(1, 6);
    let _permit = queue.enter("x").await.unwrap();
    let _greedy: Vec<_> = (0..6).map(|_| begin(&queue, "a")).collect();
    let _modest: Vec<_> = (0..3).map(|_| begin(&queue, "b")).collect();
    assert_eq!(queue.enter("b").await.unwrap_err(), Full { waiting: 6 });
    assert_eq!(queue.enter("a").await.unwrap_err(), Full { waiting: 6 });
}

#[tokio::test]
async fn slow_runs_of_one_caller_leave_a_place_for_another() {
    let queue = RunQueue::new(3, 10);
    let slow = (queue.enter("a").await.unwrap(), queue.enter("a").await.unwrap());
    let mut third = begin(&queue, "a");
    let other = queue.enter("b").await.unwrap();
    drop(other);
    assert!(poll(&mut third).is_pending(), "the place stays free for others");
    let mut other: Entering<'_> = Box::pin(queue.enter("b"));
    assert!(poll(&mut other).is_ready());
    drop(slow);
    assert!(poll(&mut third).is_ready());
}

#[derive(Clone, Debug)]
enum QueueStep {
    Enter(u8),
    Leave(usize),
    GiveUp(usize),
    Look,
}

fn step() -> impl Strategy<Value = QueueStep> {
    prop_oneof![
        (0_u8..4).prop_map(QueueStep::Enter),
        (0_usize..8).prop_map(QueueStep::Leave),
        (0_usize..8).prop_map(QueueStep::GiveUp),
        Just(QueueStep::Look),
    ]
}

proptest! {
    #[test]
    fn no_permit_is_lost_or_made(
        runs in 1_usize..4,
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let queue = RunQueue::new(runs, 6);
        let (mut running, mut waiting) = (Vec::new(), BTreeMap::new());
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                QueueStep::Enter(name) => {
                    let caller = NAMES[usize::from(name)];
                    let mut entering: Entering<'_> = Box::pin(queue.enter(caller));
                    match poll(&mut entering) {
                        Poll::Ready(Ok(permit)) => running.push(permit),
                        Poll::Ready(Err(full)) => {
                            prop_assert_eq!(full.waiting, 6);
                            let state = queue.0.lock();
                            let own = state.callers.iter().find(|it| &*it.name == caller);
                            let own = own.map_or(0, |it| it.calls.len());
                            let present = state.callers.len() + usize::from(own == 0);
                            prop_assert!(own >= 6 / present, "{own} of {present}");
                        }
                        Poll::Pending => drop(waiting.insert(index, entering)),
                    }
                }
                QueueStep::Leave(at) if at < running.len() => drop(running.remove(at)),
                QueueStep::GiveUp(at) => {
                    let key = waiting.keys().nth(at).copied();
                    drop(key.and_then(|key| waiting.remove(&key)));
                }
                QueueStep::Leave(_) | QueueStep::Look => waiting.retain(|_, entering| {
                    match poll(entering) {
                        // A call that is refused now was displaced.
                        Poll::Ready(entered) => {
                            running.extend(entered);
                            false
                        }
                        Poll::Pending => true,
                    }
                }),
            }
            let state = queue.0.lock();
            let share = if runs > 1 { runs - 1 } else { 1 };
            prop_assert!(running.len() <= runs);
            prop_assert_eq!(state.free + state.running.values().sum::<usize>(), runs);
            prop_assert!(state.running.values().all(|runs| (1..=share).contains(runs)));
            let lengths: Vec<_> = state.callers.iter().map(|it| it.calls.len()).collect();
            prop_assert!(lengths.iter().all(|length| *length > 0));
            prop_assert_eq!(lengths.iter().sum::<usize>(), state.waiting);
            prop_assert!(state.waiting <= 6);
            let idle = state.free > 0;
            prop_assert!(!idle || state.callers.iter().all(|it| state.runs(&it.name) == share));
        }
        drop((running, waiting));
        let state = queue.0.lock();
        prop_assert_eq!((state.free, state.waiting, state.callers.len()), (runs, 0, 0));
        prop_assert!(state.running.is_empty());
    }
}
