//! Log lines that an attacker could cause at will, limited in rate.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// How often one kind of line is logged.
const EVERY: Duration = Duration::from_mins(1);

/// One kind of line.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    logged: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// Whether to log it now, and how many were skipped before.
    pub(crate) fn now(&self) -> Option<u64> {
        let mut state = self.state.lock().expect("no code panics while it counts lines");
        if state.logged.is_some_and(|logged| logged.elapsed() < EVERY) {
            state.left_out += 1;
            return None;
        }
        state.logged = Some(Instant::now());
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_a_minute_says_how_many_were_left_out() {
        let seldom = Seldom::default();
        assert_eq!(seldom.now(), Some(0));
        assert_eq!((seldom.now(), seldom.now()), (None, None));
        tokio::time::advance(EVERY).await;
        assert_eq!(seldom.now(), Some(2));
        assert_eq!(seldom.now(), None);
    }
}
