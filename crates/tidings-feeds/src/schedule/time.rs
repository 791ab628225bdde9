//! Moments as the schedule counts them, so that it needs no clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment in milliseconds of Unix time. Sums end at [`Time::LATEST`], so no header, however
/// large its number, leads to a moment that is none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub(crate) struct Time(pub(crate) u64);

impl Time {
    /// The end of the year 9999, the last that dates can be written for.
    pub(crate) const LATEST: Self = Self(253_402_300_799_999);

    pub(crate) fn after(self, wait: Duration) -> Self {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(wait)).min(Self::LATEST)
    }

    /// How long it is since an earlier moment; nothing if that is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// A part of a length, from none of it to all of it.
pub(super) fn share(length: Duration, random: u64) -> Duration {
    let whole = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let part = u128::from(whole) * u128::from(random) / u128::from(u64::MAX);
    Duration::from_millis(u64::try_from(part).unwrap_or(whole))
}

/// Lengths are kept as milliseconds, as moments are.
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
