//! The streams of one writer: their places, their alarms, and the comments on idle ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::bell::{Bell, Reasons, WorkList};
use super::detached::{Detached, Gone, Newcomer};
use crate::transport::chunk::Chunks;

/// In how many groups streams get their comments, one group after the other.
const GROUPS: u32 = 64;
/// The shortest time between two groups.
const SHORTEST: Duration = Duration::from_millis(1);
/// How much is read at once of what clients send after their requests, and discarded.
const SCRATCH: usize = 16 << 10;

/// All streams of one writer.
pub(super) struct Streams {
    list: Arc<WorkList>,
    /// By place.
    all: Vec<Option<Box<Detached>>>,
    free: Vec<u32>,
    /// When to serve which place, earliest first. An alarm that is too early, or of a stream that
    /// closed, serves a stream for nothing.
    alarms: BinaryHeap<Reverse<(Instant, u32)>>,
    rounds: Rounds,
    scratch: Vec<u8>,
    /// Bytes that were taken in this turn.
    taken: Vec<(u32, Range<usize>)>,
}

/// The times of comments. Each stream gets one in each round, and the places are spread over the
/// round. So comments are never due for many streams at once, whenever these had their last notice.
struct Rounds {
    groups: u32,
    /// The time between two groups.
    pause: Duration,
    /// The group that is next.
    group: u32,
    /// When this round began; `None` without streams.
    began: Option<Instant>,
}

impl Rounds {
    fn new(idle: Duration) -> Self {
        let most = idle.as_nanos() / SHORTEST.as_nanos();
        let groups = u32::try_from(most).unwrap_or(u32::MAX).clamp(1, GROUPS);
        Self { groups, pause: (idle / groups).max(SHORTEST), group: 0, began: None }
    }

    /// When the next group is due that may have streams, if there are so many places.
    fn due(&self, places: usize) -> Option<Instant> {
        let is_over = self.group >= self.groups || self.group as usize >= places;
        // The first group of the next round.
        let group = if is_over { self.groups } else { self.group };
        self.began?.checked_add(self.pause.checked_mul(group + 1)?)
    }

    /// The next group, if it is due.
    fn next(&mut self, now: Instant, places: usize) -> Option<u32> {
        if places == 0 {
            self.began = None;
            return None;
        }
        if self.began.is_none() {
            (self.began, self.group) = (Some(now), 0);
        }
        let round = self.pause.saturating_mul(self.groups);
        let late = now.checked_duration_since(self.due(places)?)?;
        if self.group >= self.groups || self.group as usize >= places {
            self.began = self.began.and_then(|began| began.checked_add(round));
            self.group = 0;
        }
        if late > round {
            // Nobody was served meanwhile. Missed rounds are not made up for.
            self.began = now.checked_sub(self.pause.saturating_mul(self.group + 1));
        }
        self.group += 1;
        Some(self.group - 1)
    }
}

impl Streams {
    pub(super) fn new(list: Arc<WorkList>, idle: Duration) -> Self {
        Self {
            list,
            all: Vec::new(),
            free: Vec::new(),
            alarms: BinaryHeap::new(),
            rounds: Rounds::new(idle),
            scratch: vec![0; SCRATCH],
            taken: Vec::new(),
        }
    }

    /// Adds a stream, and has it served.
    pub(super) fn add(&mut self, newcomer: Newcomer) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            u32::try_from(self.all.len() - 1).expect("there are fewer sockets")
        });
        let bell = Bell::new(place, self.list.clone());
        bell.ring(Reasons::LISTENER);
        bell.ring(Reasons::SOCKET);
        self.all[place as usize] = Some(Box::new(Detached::new(newcomer, bell)));
    }

    /// Serves the streams at these places: takes what their listeners have, and writes it.
    pub(super) fn serve(&mut self, places: &[u32], chunks: &mut Chunks) {
        let now = Instant::now();
        // All are taken, then all are written: alternating with the kernel's work would empty the
        // processor's caches each time.
        for place in places {
            let Some(stream) = Self::at(&mut self.all, *place) else { continue };
            match stream.serve(now, chunks, &mut self.scratch) {
                Ok(wants) => {
                    self.taken.extend(wants.chunks.map(|chunks| (*place, chunks)));
                    self.set_alarm(*place, wants.at);
                }
                Err(Gone) => self.close(*place),
            }
        }
        let mut taken = std::mem::take(&mut self.taken);
        for (place, range) in taken.drain(..) {
            let Some(stream) = Self::at(&mut self.all, place) else { continue };
            match stream.write(now, chunks.get(range)) {
                Ok(at) => self.set_alarm(place, at),
                Err(Gone) => self.close(place),
            }
        }
        self.taken = taken;
        chunks.clear();
    }

    /// Rings those whose time has come.
    pub(super) fn ring_those_due(&mut self, now: Instant) {
        while let Some(Reverse((at, place))) = self.alarms.peek().copied()
            && at <= now
        {
            self.alarms.pop();
            if let Some(stream) = Self::at(&mut self.all, place) {
                stream.alarm = None;
                stream.bell.ring(Reasons::LISTENER);
            }
        }
        while let Some(group) = self.rounds.next(now, self.all.len()) {
            let places = self.all.iter().skip(group as usize).step_by(self.rounds.groups as usize);
            for stream in places.flatten() {
                stream.bell.ring(Reasons::COMMENT);
            }
        }
    }

    /// When one is due at the earliest.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let alarm = self.alarms.peek().map(|Reverse((at, _))| *at);
        alarm.into_iter().chain(self.rounds.due(self.all.len())).min()
    }

    fn set_alarm(&mut self, place: u32, at: Option<Instant>) {
        let Some(at) = at else { return };
        let Some(stream) = Self::at(&mut self.all, place) else { return };
        if stream.alarm.is_none_or(|alarm| at < alarm) {
            stream.alarm = Some(at);
            self.alarms.push(Reverse((at, place)));
        }
    }

    /// The stream at a place; `None` if it has closed.
    fn at(all: &mut [Option<Box<Detached>>], place: u32) -> Option<&mut Detached> {
        all.get_mut(place as usize)?.as_deref_mut()
    }

    fn close(&mut self, place: u32) {
        self.all[place as usize] = None;
        self.free.push(place);
        if self.free.len() == self.all.len() {
            (self.all, self.free) = (Vec::new(), Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(15);

    /// How often each place had its turn until `end`, and the largest group.
    fn turns(rounds: &mut Rounds, places: usize, end: Instant) -> (Vec<usize>, usize) {
        let (mut turns, mut largest) = (vec![0; places], 0);
        // The first question begins a round.
        let mut now = Instant::now();
        while now < end {
            while let Some(group) = rounds.next(now, places) {
                let group = (group as usize..places).step_by(rounds.groups as usize);
                largest = largest.max(group.len());
                group.for_each(|place| turns[place] += 1);
            }
            now = rounds.due(places).unwrap();
        }
        (turns, largest)
    }

    #[tokio::test(start_paused = true)]
    async fn each_place_has_one_turn_a_round_and_never_many_at_once() {
        for places in [1, 2, 63, 64, 65, 1000] {
            let (turns, largest) =
                turns(&mut Rounds::new(IDLE), places, Instant::now() + 10 * IDLE);
            assert!(turns.iter().all(|turns| (9..=10).contains(turns)), "{places}: {turns:?}");
            assert!(largest <= places.div_ceil(64), "{places}: {largest}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_comes_later_has_its_turn_in_time() {
        let mut rounds = Rounds::new(IDLE);
        let begun = Instant::now();
        assert_eq!(rounds.next(begun, 1), None);
        assert_eq!(rounds.next(rounds.due(1).unwrap(), 1), Some(0));
        let due = rounds.due(1).unwrap();
        assert!(due - begun > IDLE, "the next group is empty");
        let due = rounds.due(3).unwrap();
        assert!(due - begun < IDLE / 16, "{:?}", due - begun);
        assert_eq!((rounds.next(due, 3), rounds.next(due, 3)), (Some(1), None));
    }

    #[tokio::test(start_paused = true)]
    async fn missed_rounds_are_not_made_up_for() {
        let mut rounds = Rounds::new(IDLE);
        let begun = Instant::now();
        assert_eq!(rounds.next(begun, 64), None);
        let mut later = 0;
        while rounds.next(begun + 100 * IDLE, 64).is_some() {
            later += 1;
        }
        assert!(later <= 65, "{later}");
    }

    #[tokio::test]
    async fn any_time_between_comments_is_possible() {
        for idle in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let mut rounds = Rounds::new(idle);
            let now = Instant::now();
            assert_eq!(rounds.next(now, 1), None);
            assert!(rounds.due(1).is_none_or(|due| due > now));
        }
    }
}
