//! Dates as feeds write them: the standards, and common deviations.

mod clock;
mod iso;
mod words;
mod written;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::time::{days_of, rfc3339_of};

/// The longest text that is parsed; no date is as long.
const LONGEST: usize = 120;
/// The range of years that can be written with four digits.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;

/// A moment in UTC, to the second.
///
/// Its text is RFC 3339.
///
/// ```
/// use tidings_store::date::Moment;
///
/// let moment = Moment::parse("Thu, 01 Jan 2004 19:48:21 EST").expect("a date");
/// assert_eq!(moment.to_string(), "2004-01-02T00:48:21Z");
/// assert_eq!(Moment::parse("soon"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Parses a date in any form that feeds use: RFC 822 and its successors, ISO 8601 in every
    /// length, `asctime`, seconds since 1970, months in a dozen languages. Without a zone it is
    /// UTC; without a time, midnight. Returns `None` for anything else, and outside the years 1 to
    /// 9999.
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
        // From the first to the last year; nothing is computed far outside.
        let range =
            days_of(*YEARS.start(), 1, 1) * 86_400..days_of(*YEARS.end() + 1, 1, 1) * 86_400;
        range.contains(&seconds).then_some(Self(seconds))
    }

    /// Seconds since the beginning of 1970.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0
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

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&rfc3339_of(self.0))
    }
}

/// The parts of a date before they are a moment.
#[derive(Clone, Copy, Debug)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    time: clock::Time,
    /// Seconds east of UTC.
    offset: i64,
}

impl Parts {
    /// The moment these parts name; `None` if there is no such day or time.
    fn moment(self) -> Option<Moment> {
        let Self { year, month, day, time, offset } = self;
        if !YEARS.contains(&year) || !(1..=12).contains(&month) {
            return None;
        }
        if day < 1 || day > days_in(year, month) {
            return None;
        }
        Moment::from_unix(days_of(year, month, day) * 86_400 + time.seconds() - offset)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The year that two digits mean: feeds are younger than 1990.
fn full_year(year: i64) -> i64 {
    year + if year < 90 { 2000 } else { 1900 }
}
