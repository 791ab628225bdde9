//! The wall clock, also while tests pause the other one.

use tidings_store::date::Moment;
use tokio::time::Instant;

/// The time. It does not go back with the wall clock, and it advances while the machine sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    wall: Moment,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), wall: wall() }
    }

    /// The later of the wall clock and the clock that nobody sets.
    pub(crate) fn time(&self) -> Moment {
        self.wall.after(self.began.elapsed()).max(wall())
    }

    /// The instant of a future time.
    pub(crate) fn instant(&self, time: Moment) -> Instant {
        Instant::now() + time.since(self.time())
    }
}

/// No time is before 1970, whatever the wall clock shows.
fn wall() -> Moment {
    Moment::now().max(Moment::EPOCH)
}
