//! Durations: fractions, and their stored form.

use std::time::Duration;

/// A fraction of a duration, from zero to all of it.
pub(super) fn share(length: Duration, random: u64) -> Duration {
    let whole = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let part = u128::from(whole) * u128::from(random) / u128::from(u64::MAX);
    Duration::from_millis(u64::try_from(part).unwrap_or(whole))
}

/// Durations are stored in milliseconds, as moments are.
pub(super) mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        length: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
