//! The time of the wall clock, also while tests hold the other one.

use std::time::{Duration, SystemTime};

use tidings_store::date::Moment;
use tokio::time::Instant;

use crate::schedule::Time;

/// Tells the time. It does not follow a clock that is set back, and it goes on while the machine
/// sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    wall: Time,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), wall: wall() }
    }

    /// The later one of what the wall says and what it would say if nobody had touched it.
    pub(crate) fn time(&self) -> Time {
        self.wall.after(self.began.elapsed()).max(wall())
    }

    /// When a time will have come.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        Instant::now() + time.since(self.time())
    }
}

/// A time to the second, as it is kept.
pub(crate) fn moment(time: Time) -> Moment {
    let seconds = i64::try_from(time.0 / 1000).unwrap_or(i64::MAX);
    Moment::from_unix(seconds.min(LAST)).expect("it is between 1970 and 9999")
}

/// The last second that has four digits for its year.
const LAST: i64 = 253_402_300_799;

fn wall() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Time::default().after(since)
}
