//! Hours and days at which a publisher does not want requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidings_store::date::Moment;

use super::length::share;

const HOUR: i64 = 3_600_000;
const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// Feeds that may be fetched from one hour on are spread over its beginning.
const SPREAD: Duration = Duration::from_mins(15);

/// Hours of the day and days of the week, in UTC. All of them together are ignored, because nobody
/// publishes a feed in order not to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skip {
    /// One bit for each hour.
    hours: u32,
    /// One bit for each day, from Monday on.
    days: u8,
}

impl Skip {
    /// From a feed's hints: hours from 0 to 23 (24 is midnight too), and English names of days.
    /// Anything else is ignored.
    pub(crate) fn new<'a>(
        hours: impl IntoIterator<Item = u8>,
        days: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let hours = hours.into_iter().filter(|hour| *hour <= 24);
        let days = days
            .into_iter()
            .filter_map(|name| DAYS.iter().position(|day| day.eq_ignore_ascii_case(name.trim())));
        Self {
            hours: hours.fold(0, |bits, hour| bits | 1 << (hour % 24)),
            days: days.fold(0, |bits, day| bits | 1 << day),
        }
    }

    /// Whether a moment is in an hour or on a day to be skipped.
    pub(crate) fn covers(self, moment: Moment) -> bool {
        let clock = moment.civil();
        let day = clock.weekday().to_monday_zero_offset();
        self.hours >> clock.hour() & 1 == 1 || self.days >> day & 1 == 1
    }

    /// The moment itself if it is allowed, or one early in the next allowed hour.
    pub(super) fn next_allowed(self, moment: Moment, random: u64) -> Moment {
        if !self.covers(moment) {
            return moment;
        }
        let hour = moment.millis().div_euclid(HOUR);
        (hour + 1..=hour + 7 * 24)
            .map(|hour| Moment::from_millis(hour * HOUR))
            .find(|hour| !self.covers(*hour))
            .map_or(moment, |hour| hour.after(share(SPREAD, random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday, at midnight.
    const MONDAY: i64 = 1_794_787_200_000;

    #[track_caller]
    fn check(skip: Skip, from_hour: i64, expected_hour: i64) {
        let found = skip.next_allowed(Moment::from_millis(MONDAY + from_hour * HOUR + 1), 0);
        let expected = i64::from(from_hour == expected_hour);
        assert_eq!(found, Moment::from_millis(MONDAY + expected_hour * HOUR + expected));
    }

    #[test]
    fn skipped_hours_and_days_lead_to_the_next_that_is_allowed() {
        let none: [&str; 0] = [];
        check(Skip::default(), 3, 3);
        check(Skip::new([0, 1, 2, 3], none), 1, 4);
        check(Skip::new([22, 23, 24, 1], none), 22, 26);
        check(Skip::new([], ["Monday", " tuesday "]), 5, 48);
        check(Skip::new([0], ["Monday"]), 5, 25);
        check(Skip::new([], ["Sunday"]), 23, 23);
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        assert_eq!(Skip::new([25, 255], ["Someday", ""]), Skip::default());
        check(Skip::new(0..24, DAYS), 7, 7);
    }
}
