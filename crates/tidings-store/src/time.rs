//! Timestamps as the protocol writes them, and the calendar behind them.

use std::time::SystemTime;

/// A time in UTC to the second, as `2026-01-31T09:30:00Z`.
#[must_use]
pub fn rfc3339(moment: SystemTime) -> String {
    let seconds = match moment.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    };
    rfc3339_of(seconds)
}

/// The same for seconds since 1970.
#[must_use]
pub fn rfc3339_of(seconds: i64) -> String {
    let (year, month, day) = date_of(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day counted from 1970.
#[must_use]
pub fn date_of(days: i64) -> (i64, i64, i64) {
    // The calendar repeats every 400 years; years are counted from March, so that a leap day is
    // the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// The day, counted from 1970, of a date that exists; the inverse of [`date_of`].
#[must_use]
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(seconds: u64, expected: &str) {
        assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), expected);
    }

    #[test]
    fn moments_are_written_in_utc() {
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(1_709_251_199, "2024-02-29T23:59:59Z");
        check(1_794_787_200, "2026-11-16T00:00:00Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_moment_before_the_beginning_is_one_too() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339(before), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn a_date_is_a_day_and_back() {
        for days in (-800_000..3_000_000).step_by(97) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }
}
