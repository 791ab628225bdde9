//! What a run measured: latencies, notices for nothing, notices per change, time to recover.

use std::time::Duration;

use serde_json::{Value, json};
use tidings_mirror::Era;

use super::topic::Topic;

/// The bars of a small picture.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the picture.
const COLUMNS: usize = 24;

/// The measurements of one run, over both eras.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measures {
    /// From the moment a change was asked for to its notice, in the order they were measured.
    latencies: Vec<Duration>,
    /// Changes that were caused and should be announced.
    changes: usize,
    /// Notices of these changes.
    notices: usize,
    /// Notices that came, and those for nothing.
    heard: usize,
    for_nothing: usize,
    /// From the restart to the first list.
    recovery: Option<Duration>,
    /// The topics whose notices came.
    told: Vec<(Era, Topic)>,
}

impl Measures {
    pub(crate) fn latency(&mut self, latency: Duration) {
        self.latencies.push(latency);
    }

    /// One change, the notices of one topic that followed, and how many of them told nothing new.
    pub(crate) fn change(&mut self, notices: usize, for_nothing: usize) {
        self.changes += 1;
        self.notices += notices;
        self.heard += notices;
        self.for_nothing += for_nothing;
    }

    /// What was heard while nothing was changed.
    pub(crate) fn quiet(&mut self, heard: usize, for_nothing: usize) {
        self.heard += heard;
        self.for_nothing += for_nothing;
    }

    /// Notes that notices of a topic come.
    pub(crate) fn told(&mut self, era: Era, topic: &Topic) {
        self.told.push((era, topic.clone()));
    }

    pub(crate) fn was_told(&self, era: Era, topic: &Topic) -> bool {
        self.told.iter().any(|(then, told)| *then == era && told == topic)
    }

    pub(crate) fn recovered(&mut self, after: Duration) {
        self.recovery = Some(self.recovery.map_or(after, |before| before.max(after)));
    }

    /// The longest latency so far.
    pub(crate) fn slowest(&self) -> Duration {
        self.latencies.iter().max().copied().unwrap_or_default()
    }

    /// The value that this share of the latencies does not exceed.
    fn quantile(&self, share: f64) -> Option<Duration> {
        let mut sorted = self.latencies.clone();
        sorted.sort();
        let last = sorted.len().checked_sub(1)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (share * last as f64).ceil() as usize;
        sorted.get(place).copied()
    }

    /// As lines for a person; empty if nothing was measured.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let at = |share| self.quantile(share).unwrap_or_default();
        if !self.latencies.is_empty() {
            lines.push(format!(
                "change to notice: min {}, p50 {}, p99 {}  {}",
                milliseconds(at(0.0)),
                milliseconds(at(0.5)),
                milliseconds(at(0.99)),
                self.picture()
            ));
        }
        if self.changes > 0 {
            let each = self.notices as f64 / self.changes as f64;
            lines.push(format!("notices per change: {each:.2} ({} changes)", self.changes));
        }
        if self.heard > 0 {
            let share = 100.0 * self.for_nothing as f64 / self.heard as f64;
            let (some, all) = (self.for_nothing, self.heard);
            lines.push(format!("notices for nothing: {share:.0} % ({some} of {all})"));
        }
        if let Some(recovery) = self.recovery {
            lines.push(format!("time to recover from a restart: {}", milliseconds(recovery)));
        }
        lines
    }

    pub(crate) fn json(&self) -> Value {
        let number = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let at = |share| self.quantile(share).map(number);
        json!({
            "latency_ms": { "min": at(0.0), "p50": at(0.5), "p99": at(0.99), "count": self.latencies.len() },
            "changes": self.changes,
            "notices": self.notices,
            "heard": self.heard,
            "for_nothing": self.for_nothing,
            "recovery_ms": self.recovery.map(number),
        })
    }

    /// The latencies in the order they were measured, as bars.
    fn picture(&self) -> String {
        let shown = self.latencies.iter().rev().take(COLUMNS).rev();
        let most = self.quantile(1.0).unwrap_or_default().as_secs_f64().max(f64::MIN_POSITIVE);
        let bar = |time: &Duration| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "one of eight"
            )]
            let height = (time.as_secs_f64() / most * 7.0).round() as usize;
            BARS[height.min(7)]
        };
        shown.map(bar).collect()
    }
}

pub(crate) fn milliseconds(time: Duration) -> String {
    let value = time.as_secs_f64() * 1e3;
    if value < 10.0 { format!("{value:.1} ms") } else { format!("{value:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_told_with_a_picture() {
        let mut measures = Measures::default();
        assert!(measures.lines().is_empty());
        for value in [10, 20, 80, 5] {
            measures.latency(Duration::from_millis(value));
        }
        measures.change(2, 1);
        measures.change(1, 0);
        measures.quiet(1, 1);
        measures.recovered(Duration::from_millis(300));
        assert_eq!(
            measures.lines(),
            [
                "change to notice: min 5.0 ms, p50 20 ms, p99 80 ms  ▂▃█▁",
                "notices per change: 1.50 (2 changes)",
                "notices for nothing: 50 % (2 of 4)",
                "time to recover from a restart: 300 ms",
            ]
        );
        assert_eq!(measures.json()["latency_ms"]["p50"], 20.0);
    }
}
