//! Timestamps of a workspace: milliseconds in UTC.

use std::fmt;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use tidings_store::time::rfc3339_of;

/// A timestamp: milliseconds since 1970 in UTC, written as `2026-01-31T09:30:00.250Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub i64);

impl Stamp {
    /// The current time of the machine's clock.
    #[must_use]
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// The timestamp of a system time.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = rfc3339_of(self.0.div_euclid(1000));
        write!(formatter, "{}.{:03}Z", second.trim_end_matches('Z'), self.0.rem_euclid(1000))
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_to_the_millisecond() {
        assert_eq!(Stamp(1_794_787_200_007).to_string(), "2026-11-16T00:00:00.007Z");
        assert_eq!(Stamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }
}
