//! The retry schedule, pure.

use std::time::Duration;

/// The wait before a retry: twice as long each time, up to a maximum, minus a random part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the first retry, before the random part is subtracted; default 250 ms.
    pub first: Duration,
    /// The longest wait; default 15 s.
    pub most: Duration,
    /// The number of retries before giving up; default no limit.
    pub attempts: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(250), most: Duration::from_secs(15), attempts: None }
    }
}

impl Backoff {
    /// The wait after `failed` attempts, or `None` to give up. `random` is from 0 to 1: the clients
    /// of one server must not all return at the same moment.
    #[must_use]
    pub fn wait(&self, failed: u32, random: f64) -> Option<Duration> {
        if self.attempts.is_some_and(|attempts| failed >= attempts) {
            return None;
        }
        let full = self.first.saturating_mul(2u32.saturating_pow(failed)).min(self.most);
        Some(full.mul_f64(1.0 - random.clamp(0.0, 1.0) / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most() {
        let backoff = Backoff { attempts: Some(8), ..Backoff::default() };
        let waits: Vec<_> =
            (0..9).map(|failed| backoff.wait(failed, 0.0).map(|wait| wait.as_millis())).collect();
        let expected = [250, 500, 1000, 2000, 4000, 8000, 15000, 15000];
        assert_eq!(waits[..8], expected.map(Some));
        assert_eq!(waits[8], None, "eight attempts were allowed");
    }

    #[test]
    fn the_random_part_takes_off_up_to_a_half() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(0, 1.0), Some(Duration::from_millis(125)));
        assert_eq!(backoff.wait(u32::MAX, 0.5), Some(Duration::from_millis(11_250)));
    }
}
