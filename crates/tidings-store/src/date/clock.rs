//! Time of day and time zone of a date.

use super::words;

/// A time of day; `24:00` and a leap second are in the next minute.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time {
    hour: i64,
    minute: i64,
    second: i64,
}

impl Time {
    /// A time that a clock can show.
    pub(super) fn new(hour: i64, minute: i64, second: i64) -> Option<Self> {
        let fits =
            (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
        let is_midnight = (hour, minute, second) == (24, 0, 0);
        (fits || is_midnight).then_some(Self { hour, minute, second })
    }

    pub(super) fn seconds(self) -> i64 {
        self.hour * 3600 + self.minute * 60 + self.second
    }

    /// The same time of a clock with twelve hours.
    pub(super) fn in_half(self, half: Half) -> Option<Self> {
        match (half, self.hour) {
            (Half::Morning, 12) => Self::new(0, self.minute, self.second),
            (Half::Afternoon, 0..12) => Self::new(self.hour + 12, self.minute, self.second),
            _ => Some(self),
        }
    }
}

/// Before or after noon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Morning,
    Afternoon,
}

/// Parses `hh:mm`, `hh:mm:ss` and `hh:mm:ss.fraction` at the start of a text, also without colons;
/// returns the time and the rest.
pub(super) fn time(text: &str) -> Option<(Time, &str)> {
    let (hour, rest) = number(text, 2)?;
    if let Some(rest) = rest.strip_prefix(':') {
        let (minute, rest) = number(rest, 2)?;
        let (second, rest) = match rest.strip_prefix(':') {
            Some(rest) => number(rest, 2)?,
            None => (0, rest),
        };
        return finish(hour, minute, second, rest);
    }
    let (minute, rest) = pair(rest)?;
    let (second, rest) = pair(rest).unwrap_or((0, rest));
    finish(hour, minute, second, rest)
}

fn finish(hour: i64, minute: i64, second: i64, rest: &str) -> Option<(Time, &str)> {
    let mut rest = rest;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let after = fraction.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if after.len() < fraction.len() {
            rest = after;
        }
    }
    // A fourth part is not a time.
    if rest.starts_with(':') {
        return None;
    }
    Some((Time::new(hour, minute, second)?, rest))
}

/// Parses a zone that is the whole text: `Z`, `+01:00`, `-0530`, `+02`, `EST`, `GMT+1`, or nothing.
/// An unknown name means UTC.
pub(super) fn zone(text: &str) -> Option<i64> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let mut name = lower.as_str();
    name = name.strip_prefix("etc/").unwrap_or(name);
    if name.is_empty() {
        return Some(0);
    }
    for prefix in ["gmt", "utc", "ut"] {
        if let Some(rest) = name.strip_prefix(prefix)
            && rest.starts_with(['+', '-'])
        {
            name = rest;
            break;
        }
    }
    // A typographic minus sign, as some servers write it.
    if let Some(rest) = name.strip_prefix('\u{2212}') {
        return offset(rest).map(|seconds| -seconds);
    }
    match name.as_bytes()[0] {
        b'+' => offset(&name[1..]),
        b'-' => offset(&name[1..]).map(|seconds| -seconds),
        letter if letter.is_ascii_alphabetic() => name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/_-+.".contains(&byte))
            .then(|| words::zone(name).unwrap_or(0)),
        b'0' if name.bytes().all(|byte| byte == b'0') => Some(0),
        _ => None,
    }
}

fn offset(text: &str) -> Option<i64> {
    let (hours, rest) = number(text, 2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() { (0, rest) } else { number(rest, 2)? };
    // No zone is a day away, and minutes beyond the hour are a mistake.
    (rest.is_empty() && hours < 24 && minutes < 100).then_some(hours * 3600 + minutes * 60)
}

/// One to `most` digits at the beginning, and what follows them.
pub(super) fn number(text: &str, most: usize) -> Option<(i64, &str)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let value = text.get(..digits)?.parse().ok()?;
    Some((value, &text[digits..]))
}

/// Exactly two digits at the beginning, and what follows them.
fn pair(text: &str) -> Option<(i64, &str)> {
    let digits = text.get(..2)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some((digits.parse().ok()?, &text[2..]))
}
