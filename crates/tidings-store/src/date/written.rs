//! Dates in words: RFC 822 and its successors, `asctime`, and similar forms.

use super::clock::{Half, Time, number, time, zone};
use super::{Moment, day, full_year, iso, moment, words};

/// Parses a date whose month is a word, or whose parts are separated by slashes or full stops.
pub(super) fn parse(text: &str) -> Option<Moment> {
    let lower = text.to_lowercase();
    // Comments repeat the zone.
    let plain = lower.split('(').next().unwrap_or_default();
    let mut found = WordedParts::default();
    let mut first = true;
    for token in plain.split([' ', ',', '\t', '\n', '\r', '\u{a0}']).filter(|part| !part.is_empty())
    {
        found.take(token, first)?;
        first = false;
    }
    found.moment()
}

/// The parts that are known so far.
#[derive(Debug, Default)]
struct WordedParts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    time: Option<Time>,
    half: Option<Half>,
    offset: Option<i64>,
}

impl WordedParts {
    fn take(&mut self, token: &str, first: bool) -> Option<()> {
        let start = token.chars().next()?;
        if start.is_ascii_digit() {
            return self.take_number(token);
        }
        if matches!(start, '+' | '-' | '\u{2212}') {
            self.offset = Some(zone(token)?);
            return Some(());
        }
        self.take_word(token, first)
    }

    fn take_word(&mut self, token: &str, first: bool) -> Option<()> {
        let word = token.trim_end_matches('.');
        // In some languages a day begins like a month; the month comes after it.
        if self.time.is_none() || self.month.is_none() {
            if let Some((month, rest)) = word.split_once('-')
                && let Some(month) = words::month(month)
            {
                self.month = Some(month);
                return self.take_number(rest);
            }
            if let Some(month) = words::month(word) {
                self.month = Some(month);
                return Some(());
            }
        }
        if self.time.is_some() {
            if let Some(half) = words::half(word) {
                self.half = Some(half);
                return Some(());
            }
            if words::is_filler(word) && words::zone(word).is_none() {
                return Some(());
            }
            self.offset = Some(zone(token)?);
            return Some(());
        }
        (first || words::is_weekday(word) || words::is_filler(word)).then_some(())
    }

    fn take_number(&mut self, token: &str) -> Option<()> {
        if token.contains(':') {
            let (time, rest) = time(token)?;
            self.time = Some(time);
            match words::half(rest) {
                Some(half) => self.half = Some(half),
                None if rest.is_empty() => {}
                None => self.offset = Some(zone(rest)?),
            }
            return Some(());
        }
        let (value, rest) = number(token, 4)?;
        let digits = token.len() - rest.len();
        let rest = rest.trim_end_matches('.');
        match rest {
            "" | "st" | "nd" | "rd" | "th" | "er" | "º" | "°" | "ª" => {
                self.take_value(value, digits)
            }
            _ if digits == 4 => {
                // `2006/09/15` within a date in words.
                let date = iso::parse(token)?.civil().date();
                self.year = Some(date.year().into());
                self.month = Some(date.month().into());
                self.day = Some(date.day().into());
                Some(())
            }
            _ => self.take_joined(value, rest),
        }
    }

    fn take_value(&mut self, value: i64, digits: usize) -> Option<()> {
        // `0000` after the time is a zone without its sign.
        if digits == 4 && self.year.is_some() && value == 0 {
            self.offset = Some(0);
        } else if digits == 4 && self.year.is_none() {
            self.year = Some(value);
        } else if digits <= 2 && self.day.is_none() {
            self.day = Some(value);
        } else if digits == 2 && self.year.is_none() {
            self.year = Some(full_year(value));
        } else {
            return None;
        }
        Some(())
    }

    /// `15-Sep-06`, `31.12.2003`, `31/12/2003`, after the first number.
    fn take_joined(&mut self, first: i64, rest: &str) -> Option<()> {
        let mark = rest.chars().next().filter(|mark| matches!(mark, '-' | '.' | '/'))?;
        let (middle, year) = rest[1..].split_once(mark)?;
        let digits = year.len();
        let year = match number(year, 4)? {
            (year, "") if digits == 4 => year,
            (year, "") if digits == 2 => full_year(year),
            _ => return None,
        };
        let (day, month) = match number(middle, 2) {
            // Slashes are used in both orders: only an unambiguous date is accepted.
            Some((second, "")) if mark == '/' && first <= 12 && second > 12 => (second, first),
            Some((second, "")) if mark == '/' && first <= 12 && first != second => return None,
            Some((second, "")) => (first, second),
            _ => (first, words::month(middle)?),
        };
        (self.day, self.month, self.year) = (Some(day), Some(month), Some(year));
        Some(())
    }

    fn moment(self) -> Option<Moment> {
        let time = self.time.unwrap_or_default();
        let time = match self.half {
            Some(half) => time.in_half(half)?,
            None => time,
        };
        let date = day(self.year?, self.month?, self.day.unwrap_or(1))?;
        moment(date, time, self.offset.unwrap_or(0))
    }
}
