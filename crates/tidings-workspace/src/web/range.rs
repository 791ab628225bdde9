//! HTTP ranges and entity tags of blobs; pure.

use std::ops::Range;

/// The part of a blob that a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlobPart {
    /// All bytes.
    Whole,
    /// These bytes.
    Of(Range<u64>),
    /// No bytes: the range begins after the end.
    Beyond,
}

/// Parses `Range`. An unknown unit or several ranges are ignored, as RFC 9110 allows.
pub(super) fn part(range: Option<&str>, size: u64) -> BlobPart {
    range.and_then(|range| asked(range, size)).unwrap_or(BlobPart::Whole)
}

fn asked(range: &str, size: u64) -> Option<BlobPart> {
    let (unit, range) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    if first.is_empty() {
        let length = number(last)?.min(size);
        return match (length, size) {
            // An empty blob has no first byte to name.
            (_, 0) => None,
            (0, _) => Some(BlobPart::Beyond),
            _ => Some(BlobPart::Of(size - length..size)),
        };
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    if first >= size {
        return Some(BlobPart::Beyond);
    }
    Some(BlobPart::Of(first..last.min(size - 1) + 1))
}

/// A number that is too large is after the end of every blob.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The entity tag of a hash.
pub(super) fn tag(hash: &str) -> String {
    format!("\"{hash}\"")
}

/// Whether an `If-None-Match` contains the tag, or `*`.
pub(super) fn names(tags: &str, tag: &str) -> bool {
    tags.split(',').map(str::trim).any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: &str, size: u64, expected: &BlobPart) {
        assert_eq!(part(Some(range), size), *expected);
    }

    #[test]
    fn a_range_is_from_to_or_the_end() {
        check("bytes=0-0", 10, &BlobPart::Of(0..1));
        check("bytes=2-5", 10, &BlobPart::Of(2..6));
        check("bytes=2-", 10, &BlobPart::Of(2..10));
        check("BYTES=9-99", 10, &BlobPart::Of(9..10));
        check("bytes=-3", 10, &BlobPart::Of(7..10));
        check("bytes=-30", 10, &BlobPart::Of(0..10));
        check("bytes=0-99999999999999999999999", 10, &BlobPart::Of(0..10));
    }

    #[test]
    fn what_is_behind_the_end_is_said() {
        check("bytes=10-", 10, &BlobPart::Beyond);
        check("bytes=99999999999999999999999-", 10, &BlobPart::Beyond);
        check("bytes=0-", 0, &BlobPart::Beyond);
        check("bytes=-0", 10, &BlobPart::Beyond);
    }

    #[test]
    fn what_is_not_understood_is_as_if_it_were_not_there() {
        for range in ["", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2", "lines=1-2"] {
            check(range, 10, &BlobPart::Whole);
        }
        check("bytes=0-1,4-5", 10, &BlobPart::Whole);
        check("bytes=+1-2", 10, &BlobPart::Whole);
        check("bytes=-5", 0, &BlobPart::Whole);
        assert_eq!(part(None, 10), BlobPart::Whole);
    }

    #[test]
    fn a_tag_is_found_among_others() {
        let tag = tag("ab");
        assert!(names("\"ab\"", &tag));
        assert!(names("\"x\", W/\"ab\"", &tag));
        assert!(names("*", &tag));
        assert!(!names("ab", &tag));
        assert!(!names("\"x\"", &tag));
    }
}
