//! Moments in UTC, and dates as feeds write them: the standards, and common deviations.

mod clock;
mod iso;
mod words;
mod written;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::{Duration, SystemTime};

use jiff::SignedDuration;
use jiff::civil::{self, Date, DateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The beginning of 1970, from which moments are counted.
const EPOCH: DateTime = civil::date(1970, 1, 1).at(0, 0, 0, 0);
/// The longest text that is parsed; no date is as long.
const LONGEST: usize = 120;

/// A moment in UTC, to the millisecond, in the years 1 to 9999: those that RFC 3339 can write.
///
/// Its text is RFC 3339, to the second; `{:.3}` writes the milliseconds too. Sums end at
/// [`Moment::FIRST`] and [`Moment::LAST`], so no number from outside, however large, overflows.
///
/// ```
/// use tidings_store::date::Moment;
///
/// let moment = Moment::parse("Thu, 01 Jan 2004 19:48:21 EST").expect("a date");
/// assert_eq!(moment.to_string(), "2004-01-02T00:48:21Z");
/// assert_eq!(format!("{moment:.3}"), "2004-01-02T00:48:21.000Z");
/// assert_eq!(Moment::parse("soon"), None);
/// ```
// Milliseconds since 1970. Not `jiff::Timestamp`, which ends a day before the last that feeds write
// for "never", `9999-12-31`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// The beginning of the year 1.
    pub const FIRST: Self = Self(-62_135_596_800_000);
    /// The beginning of 1970, which is also the default.
    pub const EPOCH: Self = Self(0);
    /// The last millisecond of the year 9999.
    pub const LAST: Self = Self(253_402_300_799_999);

    /// The current time of the machine's clock.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Parses a date in any form that feeds use: RFC 822 and its successors, ISO 8601 in every
    /// length, `asctime`, seconds since 1970, months in a dozen languages. Without a zone it is
    /// UTC; without a time, midnight. A fraction of a second is dropped. Returns `None` for anything
    /// else, and outside the years 1 to 9999.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        iso::parse(text).or_else(|| written::parse(text)).or_else(|| Self::from_count(text))
    }

    /// A moment so many seconds after the beginning of 1970, if its year has four digits.
    #[must_use]
    pub fn from_unix(seconds: i64) -> Option<Self> {
        seconds.checked_mul(1000).map(Self).filter(|it| (Self::FIRST..=Self::LAST).contains(it))
    }

    /// Whole seconds since the beginning of 1970.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// A moment so many milliseconds after the beginning of 1970, or the nearest one there is.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::FIRST.0 {
            Self::FIRST
        } else if millis > Self::LAST.0 {
            Self::LAST
        } else {
            Self(millis)
        }
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The beginning of the second that the moment is in.
    #[must_use]
    pub fn to_second(self) -> Self {
        Self(self.unix() * 1000)
    }

    /// The moment a while later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(wait))
    }

    /// How long it is since an earlier moment; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or_default())
    }

    /// What calendar and clock show.
    #[must_use]
    pub fn civil(self) -> DateTime {
        EPOCH + SignedDuration::from_millis(self.0)
    }

    /// Digits alone are seconds, or milliseconds, since 1970.
    fn from_count(text: &str) -> Option<Self> {
        let (number, _) = text.split_once('.').unwrap_or((text, ""));
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match number.len() {
            9 | 10 => Self::from_unix(number.parse().ok()?),
            13 => Self::from_unix(number.parse::<i64>().ok()? / 1000),
            _ => None,
        }
    }
}

/// Outside the years 1 to 9999 it is the nearest moment.
impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        let millis = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => -millis(before.duration()),
        })
    }
}

/// As a number, it is milliseconds since 1970.
impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self::from_millis)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = formatter.precision().unwrap_or(0);
        write!(formatter, "{:.digits$}Z", self.civil())
    }
}

/// A day that exists, in the years that moments have.
fn day(year: i64, month: i64, day: i64) -> Option<Date> {
    let (year, month, day) = (year.try_into(), month.try_into(), day.try_into());
    Date::new(year.ok()?, month.ok()?, day.ok()?).ok().filter(|date| date.year() > 0)
}

/// The moment of a time on a day, so many seconds east of UTC.
fn moment(day: Date, time: clock::Time, offset: i64) -> Option<Moment> {
    let midnight = day.to_datetime(civil::Time::midnight()).duration_since(EPOCH);
    Moment::from_unix(midnight.as_secs() + time.seconds() - offset)
}

/// The year that two digits mean: feeds are younger than 1990.
fn full_year(year: i64) -> i64 {
    year + if year < 90 { 2000 } else { 1900 }
}
