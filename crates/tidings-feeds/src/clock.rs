//! The time of the wall clock, also while tests hold the other one.

use tidings_store::date::Moment;
use tokio::time::Instant;

/// Tells the time. It does not follow a clock that is set back, and it goes on while the machine
/// sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    wall: Moment,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), wall: wall() }
    }

    /// The later one of what the wall says and what it would say if nobody had touched it.
    pub(crate) fn time(&self) -> Moment {
        self.wall.after(self.began.elapsed()).max(wall())
    }

    /// When a time will have come.
    pub(crate) fn instant(&self, time: Moment) -> Instant {
        Instant::now() + time.since(self.time())
    }
}

/// No time is before 1970, whatever the wall says.
fn wall() -> Moment {
    Moment::now().max(Moment::EPOCH)
}
