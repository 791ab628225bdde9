//! The filter language of the timeline: `method:read -subject:log took:>5ms or status:failed`.

use std::time::Duration;

use super::row::{Row, Status, millis};

/// Which rows are shown: any of several alternatives, each of which is a list of conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    alternatives: Vec<Vec<Term>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    negated: bool,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Method(String),
    Subject(String),
    Lanes(Vec<String>),
    Way(String),
    Status(String),
    Took(Comparison, f64),
    Size(Comparison, f64),
    /// In the method, the subject or the body.
    Text(String),
    After(u64),
    /// Begun between two times, in milliseconds.
    Between(f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Above,
    Below,
}

impl Filter {
    /// Parses a filter. An invalid condition is an error that names it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut alternatives = vec![Vec::new()];
        for word in text.split_whitespace() {
            if word.eq_ignore_ascii_case("or") {
                alternatives.push(Vec::new());
            } else if let Some(last) = alternatives.last_mut() {
                last.push(term(word)?);
            }
        }
        alternatives.retain(|terms| !terms.is_empty());
        Ok(Self { alternatives })
    }

    pub(crate) fn is_all(&self) -> bool {
        self.alternatives.is_empty()
    }

    pub(crate) fn fits(&self, row: &Row) -> bool {
        let fits = |term: &Term| term.test.fits(row) != term.negated;
        self.is_all() || self.alternatives.iter().any(|terms| terms.iter().all(fits))
    }
}

fn term(word: &str) -> Result<Term, String> {
    let (negated, word) = match word.strip_prefix('-') {
        Some(rest) if !rest.is_empty() => (true, rest),
        _ => (false, word),
    };
    let Some((name, value)) = word.split_once(':') else {
        return Ok(Term { negated, test: Test::Text(word.to_lowercase()) });
    };
    let lower = value.to_lowercase();
    let test = match name {
        "method" => Test::Method(lower),
        "subject" => Test::Subject(lower),
        "lane" => Test::Lanes(lower.split(',').map(str::to_owned).collect()),
        "dir" if ["in", "out", "here"].contains(&&*lower) => Test::Way(lower),
        "dir" => return Err("`dir:` is `in`, `out` or `here`".to_owned()),
        "status" => Test::Status(lower),
        "took" => {
            let (comparison, value) = compared(&lower, "took")?;
            Test::Took(comparison, time(value)?)
        }
        "size" => {
            let (comparison, value) = compared(&lower, "size")?;
            Test::Size(comparison, size(value)?)
        }
        "between" => {
            let ends = lower.split_once('-').map(|(from, to)| (from.parse(), to.parse()));
            let Some((Ok(from), Ok(to))) = ends else {
                return Err("`between:` takes two times in milliseconds, `1000-2000`".to_owned());
            };
            Test::Between(from, to)
        }
        "after" => Test::After(value.parse().map_err(|_| "`after:` takes a row's number")?),
        // A URI is a text.
        _ => Test::Text(word.to_lowercase()),
    };
    Ok(Term { negated, test })
}

fn compared<'a>(value: &'a str, name: &str) -> Result<(Comparison, &'a str), String> {
    match (value.strip_prefix('>'), value.strip_prefix('<')) {
        (Some(rest), _) => Ok((Comparison::Above, rest)),
        (_, Some(rest)) => Ok((Comparison::Below, rest)),
        _ => Err(format!("write `{name}:>5` or `{name}:<5`")),
    }
}

/// Milliseconds, or a number with `s`.
fn time(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => text.strip_suffix('s').map_or((text, 1.0), |number| (number, 1000.0)),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a time such as 5ms"))?;
    Ok(number * factor)
}

/// Bytes, or a number with `kb` or `mb`.
fn size(text: &str) -> Result<f64, String> {
    let (number, factor) = match (text.strip_suffix("kb"), text.strip_suffix("mb")) {
        (Some(number), _) => (number, 1e3),
        (_, Some(number)) => (number, 1e6),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a size such as 4kb"))?;
    Ok(number * factor)
}

impl Comparison {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Above => value > bound,
            Self::Below => value < bound,
        }
    }
}

impl Test {
    fn fits(&self, row: &Row) -> bool {
        let has = |text: &str, word: &str| text.to_lowercase().contains(word);
        match self {
            Self::Method(word) => has(&row.what, word),
            Self::Subject(word) => has(&row.subject, word),
            Self::Lanes(lanes) => lanes.iter().any(|lane| lane == row.lane.name()),
            Self::Way(way) => row.way.name() == way,
            Self::Status(word) if word == "failed" => matches!(row.status, Status::Failed(_)),
            Self::Status(word) => has(row.status.name(), word),
            Self::Took(comparison, bound) => {
                let took = row.took.as_ref().map(Duration::as_secs_f64);
                took.is_some_and(|took| comparison.holds(took * 1e3, *bound))
            }
            Self::Size(comparison, bound) => comparison.holds(row.bytes as f64, *bound),
            Self::Between(from, to) => (*from..=*to).contains(&millis(row.at)),
            Self::After(number) => row.number >= *number,
            Self::Text(word) => {
                let body = |message: &Option<std::sync::Arc<tidings_mirror::Message>>| {
                    message.as_ref().is_some_and(|message| has(message.text(), word))
                };
                has(&row.what, word)
                    || has(&row.subject, word)
                    || body(&row.message)
                    || body(&row.answer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Lane, Way};
    use super::*;
    use std::time::SystemTime;

    fn row() -> Row {
        let mut row = Row::new(SystemTime::UNIX_EPOCH, Lane::Reads, Way::Sent, "resources/read");
        row.subject = "station://Log".to_owned();
        (row.status, row.took) = (Status::Answered, Some(Duration::from_millis(7)));
        (row.bytes, row.number) = (4200, 9);
        row
    }

    #[track_caller]
    fn check(filter: &str, fits: bool) {
        assert_eq!(Filter::parse(filter).unwrap().fits(&row()), fits, "{filter}");
    }

    #[test]
    fn conditions_are_joined_and_alternatives_are_not() {
        check("", true);
        check("method:read subject:log", true);
        check("method:read subject:status", false);
        check("subject:status or method:READ", true);
        check("-method:ping took:>1ms", true);
        check("took:>1s", false);
        check("took:<1s size:>4kb size:<1mb", true);
        check("dir:in or status:failed", false);
        check("lane:calls,reads", true);
        check("station://log", true);
        check("-station", false);
        check("after:9 -after:10", true);
        check("between:0-5 -between:1-5", true);
    }

    #[test]
    fn a_condition_that_cannot_be_met_is_named() {
        for (filter, why) in [
            ("took:5", "took:>5"),
            ("took:>x", "`x`"),
            ("dir:up", "`in`"),
            ("between:1", "`1000-2000`"),
        ] {
            let error = Filter::parse(filter).unwrap_err();
            assert!(error.contains(why), "{filter}: {error}");
        }
    }
}
