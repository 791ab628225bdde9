//! A plan in words, for people.

use std::time::Duration;

use tidings_store::date::Moment;

use super::{Condition, Plan};

impl Plan {
    /// The condition of the feed and its next fetch, as one short line.
    pub(crate) fn explain(&self, now: Moment) -> String {
        let next = if self.next > now {
            format!("in {}", length(self.next.since(now)))
        } else {
            "now".to_owned()
        };
        let failures = match self.failures {
            1 => "the last attempt failed".to_owned(),
            many => format!("the last {many} attempts failed"),
        };
        let trial = self.moved.as_ref().map(|moved| format!("; moving to {}", moved.to));
        match self.condition {
            Condition::Good | Condition::New if self.not_before > now => {
                format!("the server sent `Retry-After`; next {next}")
            }
            Condition::Good | Condition::New => format!("next {next}{}", trial.unwrap_or_default()),
            Condition::Failing => format!("{failures}; next try {next}"),
            Condition::Resting => format!("{failures}; tried once a day, next {next}"),
            Condition::Paused => "paused".to_owned(),
            Condition::Gone => {
                "gone for ever, according to the server; not fetched again".to_owned()
            }
            Condition::Unserved => "of an earlier configuration; not fetched".to_owned(),
        }
    }
}

fn length(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..120 => format!("{} s", seconds.max(1)),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
