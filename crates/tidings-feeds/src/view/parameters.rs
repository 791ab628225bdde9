//! The parameters of a filtered view. Errors name the parameter and the valid values.

use percent_encoding::percent_decode_str;
use tidings_server::AnswerError;
use tidings_store::date::Moment;

use crate::view::search::Search;
use crate::words;

/// The maximum number of items.
const LIMIT: u32 = 1_000;
/// Seconds of a day except the last.
const TO_END_OF_DAY: i64 = 86_399;

/// The requested items.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    /// From this moment on.
    pub(crate) since: Option<Moment>,
    /// Up to and including this moment.
    pub(crate) until: Option<Moment>,
    /// At most this many.
    pub(crate) limit: Option<u32>,
    /// Without this many of the newest.
    pub(crate) offset: u64,
    /// With this category, as labels are compared.
    pub(crate) category: Option<String>,
    /// By an author with this name or mail address, as labels are compared.
    pub(crate) author: Option<String>,
    /// With these words.
    pub(crate) search: Option<Search>,
}

impl Filter {
    /// Parses a query.
    pub(super) fn parse(query: &str) -> Result<Self, AnswerError> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|_| !query.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name, name)?, decoded(name, value)?);
            if pairs.iter().any(|(seen, _)| *seen == name) {
                let details = format!("`{name}` may be given once");
                return Err(AnswerError::invalid(name, value, details));
            }
            pairs.push((name, value));
        }
        Self::of(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Parses parameters that were separated already, each given once.
    pub(crate) fn of<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, AnswerError> {
        let mut filter = Self::default();
        let mut since = "";
        for (name, value) in pairs {
            filter.set(name, value)?;
            if name == "since" {
                since = value;
            }
        }
        if filter.since.zip(filter.until).is_some_and(|(since, until)| since > until) {
            let details = "`since` is after `until`";
            return Err(AnswerError::invalid("since", since, details));
        }
        Ok(filter)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), AnswerError> {
        let invalid = |details: &str| AnswerError::invalid(name, value, details);
        let text = |value: &str| {
            let folded = words::label(value);
            if folded.is_empty() { Err(invalid("it must not be empty")) } else { Ok(folded) }
        };
        let date = |bound| {
            parse_bound(value, bound).ok_or_else(|| {
                invalid("Date must be in ISO 8601 format (YYYY-MM-DDTHH:MM:SSZ or YYYY-MM-DD)")
            })
        };
        match name {
            "since" => self.since = Some(date(Bound::Since)?),
            "until" => self.until = Some(date(Bound::Until)?),
            "limit" => {
                let limit = number(value).and_then(|limit| u32::try_from(limit).ok());
                let limit = limit.filter(|limit| (1..=LIMIT).contains(limit));
                let details = "it must be a whole number from 1 to 1000";
                self.limit = Some(limit.ok_or_else(|| invalid(details))?);
            }
            "offset" => {
                let details = "it must be a whole number, 0 or more";
                self.offset = number(value).ok_or_else(|| invalid(details))?;
            }
            "category" => self.category = Some(text(value)?),
            "author" => self.author = Some(text(value)?),
            "search" => {
                let search = Search::parse(value).map_err(|error| invalid(&error.to_string()))?;
                self.search = Some(search);
            }
            _ => {
                return Err(invalid(
                    "there is no such parameter; there are `since`, `until`, `limit`, `offset`, \
                     `category`, `author` and `search`",
                ));
            }
        }
        Ok(())
    }
}

/// Why a query is refused where none is allowed: by its first parameter.
pub(super) fn unwanted(query: &str) -> AnswerError {
    let pair = query.split('&').next().unwrap_or_default();
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    match (decoded(name, name), decoded(name, value)) {
        (Ok(name), Ok(value)) => {
            let details =
                "only items take parameters, as feeds://feed/{feedId}/items; leave it out";
            AnswerError::invalid(name, value, details)
        }
        (Err(error), _) | (_, Err(error)) => error,
    }
}

/// The decoded name or value of a parameter.
fn decoded(name: &str, text: &str) -> Result<String, AnswerError> {
    let invalid = |details: &str| AnswerError::invalid(name, text, details);
    let is_escape =
        |part: &str| part.len() >= 2 && part.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if !text.split('%').skip(1).all(is_escape) {
        return Err(invalid(
            "`%` must be followed by two hexadecimal digits; a plain `%` is `%25`",
        ));
    }
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    let decoded = decoded.map_err(|_| invalid("percent-encoded bytes must be UTF-8"))?;
    Ok(decoded.into_owned())
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Since,
    Until,
}

/// The moment of a bound. Items are dated to the second, so a fraction is rounded into the range.
fn parse_bound(text: &str, bound: Bound) -> Option<Moment> {
    if has_shape(text, "0000-00-00") {
        let start = Moment::parse(text)?;
        return match bound {
            Bound::Since => Some(start),
            Bound::Until => Moment::from_unix(start.unix() + TO_END_OF_DAY),
        };
    }
    let zone = if text.ends_with(['Z', 'z']) { 1 } else { 6 };
    let (clock, zone) = text.split_at_checked(text.len().checked_sub(zone)?)?;
    // A plus that is not encoded is a space in a query.
    let zone = zone.replace(' ', "+");
    let is_zone = zone.len() == 1 || has_shape(&zone, "+00:00") || has_shape(&zone, "-00:00");
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let is_clock = has_shape(whole, "0000-00-00T00:00:00")
        || (has_shape(whole, "0000-00-00T00:00") && whole.len() == clock.len());
    if !is_zone || !is_clock || number(fraction).is_none() {
        return None;
    }
    let moment = Moment::parse(&format!("{whole}{zone}"))?;
    let is_between = fraction.bytes().any(|byte| byte != b'0');
    if is_between && bound == Bound::Since {
        return Moment::from_unix(moment.unix() + 1);
    }
    Some(moment)
}

/// Whether a text has digits where the shape has a zero, and equals the shape elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(byte, expected): (u8, u8)| match expected {
        b'0' => byte.is_ascii_digit(),
        _ => byte.eq_ignore_ascii_case(&expected),
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}
