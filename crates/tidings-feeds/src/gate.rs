//! The gate to the web: closed while this machine cannot reach it, and tested with one feed now and
//! then; pure.

use std::time::Duration;

use tidings_store::date::Moment;

use crate::agenda::Reach;

/// How often one feed is tried while the gate is closed.
const TRIED_EVERY: Duration = Duration::from_secs(30);

/// Open, or closed until then.
#[derive(Debug, Default)]
pub(crate) struct Gate(Option<Moment>);

impl Gate {
    /// The feeds that may be fetched now.
    pub(crate) fn reach(&self, now: Moment) -> Reach {
        if self.0.is_none_or(|until| until <= now) { Reach::Web } else { Reach::Near }
    }

    /// A feed of the web is fetched. If the gate is closed, the others wait for its result.
    pub(crate) fn asked(&mut self, now: Moment) {
        self.0 = self.0.map(|_| now.after(TRIED_EVERY));
    }

    /// Nothing could be reached; returns whether that is new.
    pub(crate) fn close(&mut self, now: Moment) -> bool {
        self.0.replace(now.after(TRIED_EVERY)).is_none()
    }

    /// A server answered.
    pub(crate) fn open(&mut self) {
        self.0 = None;
    }

    /// One feed is tried now, closed or not.
    pub(crate) fn knock(&mut self, now: Moment) {
        self.0 = self.0.map(|_| now);
    }

    /// When the next one is tried, if the gate is closed.
    pub(crate) fn opens_at(&self) -> Option<Moment> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_network_one_feed_is_tried_now_and_then() {
        let mut gate = Gate::default();
        let now = Moment::from_millis(1_000_000);
        gate.asked(now);
        assert_eq!(gate.reach(now), Reach::Web);
        assert!(gate.close(now) && !gate.close(now));
        assert_eq!(gate.reach(now), Reach::Near);
        let later = gate.opens_at().unwrap();
        assert_eq!(gate.reach(later), Reach::Web);
        gate.asked(later);
        assert_eq!(gate.reach(later), Reach::Near, "one at a time");
        gate.knock(later);
        assert_eq!(gate.reach(later), Reach::Web, "somebody waits");
        gate.open();
        assert_eq!((gate.reach(later), gate.opens_at()), (Reach::Web, None));
    }
}
