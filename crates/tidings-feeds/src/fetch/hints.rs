//! Hints in an answer's headers about the next request.

use std::time::{Duration, SystemTime};

use reqwest::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderMap, HeaderName, RETRY_AFTER};

use crate::schedule::FeedHints;

/// Longer times are mistakes; a feed must not be lost to them.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// The hints of an answer's headers, each counted from the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// How long the answer stays fresh by `Cache-Control`, less its `Age`.
    pub(crate) max_age: Option<Duration>,
    /// The same by `Expires`, the older header.
    pub(crate) expires: Option<Duration>,
    /// `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
}

impl Hints {
    /// Reads the headers of an answer at `now`.
    pub(super) fn read(headers: &HeaderMap, now: SystemTime) -> Self {
        // Two dates of one clock have the right distance, even if the clock is wrong.
        let now = text(headers, &DATE).and_then(date).unwrap_or(now);
        let until = |date: SystemTime| date.duration_since(now).unwrap_or_default().min(LONGEST);
        let age = text(headers, &AGE).and_then(seconds).unwrap_or_default();
        Self {
            max_age: max_age(headers).map(|fresh| fresh.saturating_sub(age)),
            expires: text(headers, &EXPIRES).and_then(date).map(until),
            retry_after: text(headers, &RETRY_AFTER)
                .and_then(|value| seconds(value).or_else(|| date(value).map(until))),
        }
    }
}

/// In the form of the schedule; the document's hints are added later.
impl From<Hints> for FeedHints {
    fn from(hints: Hints) -> Self {
        let Hints { max_age, expires, retry_after } = hints;
        Self { max_age, expires, retry_after, ..Self::default() }
    }
}

/// The first `max-age`; zero for `no-cache` and `no-store`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives = values.flat_map(|value| value.split(',')).map(str::trim);
    let mut fresh = None;
    for directive in directives {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-cache" | "no-store" => return None,
            "max-age" if fresh.is_none() => fresh = seconds(value.trim().trim_matches('"')),
            _ => {}
        }
    }
    fresh
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

fn seconds(value: &str) -> Option<Duration> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits that do not fit are still a large number.
    Some(value.parse().map_or(LONGEST, Duration::from_secs).min(LONGEST))
}

fn date(value: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(value).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    const NOW: u64 = 1_794_787_200;
    const DAY: u64 = 86_400;

    fn read(headers: &[(&'static str, &str)]) -> Hints {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        Hints::read(&map, SystemTime::UNIX_EPOCH + Duration::from_secs(NOW))
    }

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], expected: [Option<u64>; 3]) {
        let hints = read(headers);
        let found = [hints.max_age, hints.expires, hints.retry_after];
        assert_eq!(found.map(|hint| hint.map(|hint| hint.as_secs())), expected, "{headers:?}");
    }

    #[test]
    fn freshness_is_read_from_both_headers() {
        check(&[], [None, None, None]);
        check(&[("cache-control", "public, max-age=300")], [Some(300), None, None]);
        check(
            &[("cache-control", "public"), ("cache-control", "Max-Age=\"60\"")],
            [Some(60), None, None],
        );
        check(&[("cache-control", "max-age=300"), ("age", "200")], [Some(100), None, None]);
        check(&[("cache-control", "max-age=300, no-cache")], [None, None, None]);
        check(&[("cache-control", "max-age=-5")], [None, None, None]);
        check(&[("expires", "Mon, 16 Nov 2026 01:00:00 GMT")], [None, Some(3600), None]);
        check(&[("expires", "0")], [None, None, None]);
        check(&[("expires", "Thu, 01 Jan 1970 00:00:00 GMT")], [None, Some(0), None]);
    }

    #[test]
    fn retry_after_has_two_forms() {
        check(&[("retry-after", "120")], [None, None, Some(120)]);
        check(&[("retry-after", "Mon, 16 Nov 2026 00:10:00 GMT")], [None, None, Some(600)]);
        check(&[("retry-after", "soon")], [None, None, None]);
    }

    #[test]
    fn dates_are_compared_with_the_clock_that_made_them() {
        let headers = [
            ("date", "Sun, 15 Nov 2026 00:00:00 GMT"),
            ("retry-after", "Sun, 15 Nov 2026 00:05:00 GMT"),
        ];
        check(&headers, [None, None, Some(300)]);
    }

    #[test]
    fn nobody_is_left_alone_for_ever() {
        check(&[("retry-after", "99999999999999999999999")], [None, None, Some(30 * DAY)]);
        check(&[("expires", "Tue, 16 Nov 9999 00:00:00 GMT")], [None, Some(30 * DAY), None]);
    }
}
