//! Dates that begin with their year: ISO 8601 in every length, and its relatives.

use jiff::ToSpan as _;
use jiff::civil::{Date, ISOWeekDate, Weekday};

use super::clock::{Time, number, time, zone};
use super::{Moment, day, full_year, moment, words};

/// The zone of Korean dates without one.
const KOREA: i64 = 9 * 3600;

/// Parses a date that begins with its year.
pub(super) fn parse(text: &str) -> Option<Moment> {
    let (day, rest, zone) = if let Some(found) = east_asian(text) {
        found
    } else {
        let (day, rest) = date(text)?;
        (day, rest, 0)
    };
    let (time, offset) = clock(rest, zone)?;
    moment(day, time, offset)
}

/// `2004年05月28日` and `2004년 05월 28일`; the second kind is in Korean time.
fn east_asian(text: &str) -> Option<(Date, &str, i64)> {
    let (year, rest) = number(text, 4)?;
    let (mark, zone) = match rest.chars().next()? {
        '年' => (['年', '月', '日'], 0),
        '년' => (['년', '월', '일'], KOREA),
        _ => return None,
    };
    let rest = rest.strip_prefix(mark[0])?.trim_start();
    let Some((month, rest)) = number(rest, 2) else { return Some((day(year, 1, 1)?, rest, zone)) };
    let rest = rest.trim_start().strip_prefix(mark[1])?.trim_start();
    let Some((date, rest)) = number(rest, 2) else {
        return Some((day(year, month, 1)?, rest, zone));
    };
    let rest = rest.trim_start().strip_prefix(mark[2])?.trim_start();
    Some((day(year, month, date)?, rest, zone))
}

/// The day at the beginning of a text, and what follows it.
fn date(text: &str) -> Option<(Date, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let part = |range: std::ops::Range<usize>| number.get(range)?.parse::<i64>().ok();
    match digits {
        // `-03-12`, `-0312` and `-03-12-31`: a year without its century.
        0 => short(text),
        4 => after_year(part(0..4)?, rest),
        2 => match rest.as_bytes().first()? {
            b'-' => after_year(full_year(part(0..2)?), rest).filter(|_| rest.len() > 3),
            _ => None,
        },
        5 => Some((ordinal(full_year(part(0..2)?), part(2..5)?)?, rest)),
        6 => Some((day(full_year(part(0..2)?), part(2..4)?, part(4..6)?)?, rest)),
        7 => Some((ordinal(part(0..4)?, part(4..7)?)?, rest)),
        8 => Some((day(part(0..4)?, part(4..6)?, part(6..8)?)?, rest)),
        // The time follows at once.
        12 | 14 => Some((day(part(0..4)?, part(4..6)?, part(6..8)?)?, &text[8..])),
        _ => None,
    }
}

fn short(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = number(text.strip_prefix('-')?, 2)?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let (month, rest) = if rest.is_empty() { (1, rest) } else { number(rest, 2)? };
    if rest.is_empty() {
        return Some((day(full_year(year), month, 1)?, rest));
    }
    let (date, rest) = number(rest.strip_prefix('-')?, 2)?;
    Some((day(full_year(year), month, date)?, rest))
}

/// What follows a year with four digits.
fn after_year(year: i64, rest: &str) -> Option<(Date, &str)> {
    let Some(mark) = rest.chars().next() else { return Some((day(year, 1, 1)?, rest)) };
    if mark == 'W' {
        return week(year, &rest[1..]);
    }
    if !matches!(mark, '-' | '/' | '.') {
        // A year and a time without a day is not a date.
        return None;
    }
    let after = &rest[1..];
    if let Some(after) = after.strip_prefix('W') {
        return week(year, after);
    }
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (month, rest) = match digits {
        0 => {
            let end = after.find(mark)?;
            (words::month(&after[..end].to_lowercase())?, &after[end..])
        }
        1 | 2 => number(after, 2)?,
        // Three digits are a day of the year, unless a day follows: then one zero is too much.
        3 if after[3..].starts_with(mark) && after.starts_with('0') => number(&after[1..], 2)?,
        3 => return Some((ordinal(year, number(after, 3)?.0)?, &after[3..])),
        4 => {
            let date = day(year, number(after, 2)?.0, number(&after[2..], 2)?.0)?;
            return Some((date, &after[4..]));
        }
        _ => return None,
    };
    let Some(rest) = rest.strip_prefix(mark) else { return Some((day(year, month, 1)?, rest)) };
    let (date, rest) = number(rest, 2)?;
    Some((day(year, month, date)?, rest))
}

/// A day by its number in the year.
fn ordinal(year: i64, number: i64) -> Option<Date> {
    day(year, 1, 1)?.with().day_of_year(number.try_into().ok()?).build().ok()
}

/// A day by its week: the first week has the first Thursday of the year.
fn week(year: i64, rest: &str) -> Option<(Date, &str)> {
    let (week, rest) = number(rest, 2)?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let (weekday, rest) = number(rest, 1).unwrap_or((1, rest));
    if !(1..=53).contains(&week) || !(1..=7).contains(&weekday) || !(1..=9998).contains(&year) {
        return None;
    }
    // Counted from the first: a week 53 that the year does not have is the first of the next.
    let first = ISOWeekDate::new(year.try_into().ok()?, 1, Weekday::Monday).ok()?.date();
    Some((first.checked_add(((week - 1) * 7 + weekday - 1).days()).ok()?, rest))
}

/// The time and the zone after a day; nothing is midnight.
fn clock(rest: &str, zone_of_day: i64) -> Option<(Time, i64)> {
    let rest = rest.trim_start_matches(['T', 't', ' ', ',', '\u{a0}', '_']).trim_start();
    if rest.is_empty() {
        return Some((Time::default(), zone_of_day));
    }
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let before = words::half(&first.to_lowercase());
    let rest = if before.is_some() { after.trim_start() } else { rest };
    let Some((time, rest)) = time(rest) else {
        // A day with a zone and no time.
        return Some((Time::default(), zone(rest).filter(|_| !rest.contains(':'))?));
    };
    let mut rest = rest.trim();
    let mut half = before;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    if let Some(after) = words::half(&rest[..end].to_lowercase()) {
        half = Some(after);
        rest = rest[end..].trim_start();
    }
    // `오전` and `오후` are said in Korea, where the zone need not be.
    let korean = matches!(first, "오전" | "오후");
    let zone_of_day = if korean { KOREA } else { zone_of_day };
    let time = match half {
        Some(half) => time.in_half(half)?,
        None => time,
    };
    // A name in brackets after the zone repeats it.
    let rest = rest.split(['(', '[']).next().unwrap_or_default().trim();
    let offset = if rest.is_empty() { zone_of_day } else { zone(rest)? };
    Some((time, offset))
}
