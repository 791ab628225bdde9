//! References without the semicolon at their end: `a &amp b`, `&copy 2024`, `it&#39s`.

use std::borrow::Cow;

use super::{listed, numeric};

/// Longer than any name that HTML accepts without a semicolon, and than any number.
const LONGEST: usize = 8;

/// A text with such references resolved and all others unchanged.
pub(in crate::parse) fn resolved(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        match take(rest, &mut out) {
            Some(length) => rest = &rest[length..],
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether there is such a reference in a text.
pub(in crate::parse) fn is_in(text: &str) -> bool {
    let mut out = String::new();
    text.match_indices('&').any(|(at, _)| take(&text[at + 1..], &mut out).is_some())
}

/// Appends the value of the reference at the beginning of a text behind an ampersand; returns its
/// length.
pub(super) fn take(text: &str, out: &mut String) -> Option<usize> {
    if let Some(number) = text.strip_prefix('#') {
        return take_number(number, out).map(|length| length + 1);
    }
    let length = count(text, u8::is_ascii_alphanumeric);
    // Addresses have such names, too: `?a=1&copy=2`.
    if text[length..].starts_with(|next: char| next.is_alphanumeric() || matches!(next, '=' | ';'))
    {
        return None;
    }
    // The table has the names that HTML accepts without a semicolon.
    listed(&text[..length], out).then_some(length)
}

/// A number ends with its digits, unless letters can be digits as well.
fn take_number(text: &str, out: &mut String) -> Option<usize> {
    let is_decimal = text.starts_with(|first: char| first.is_ascii_digit());
    let fits = if is_decimal { u8::is_ascii_digit } else { u8::is_ascii_alphanumeric };
    let length = count(text, fits);
    let next = text.as_bytes().get(length);
    // One digit is rather a fragment of an address, or a number in a list.
    let is_one = length > 1 && next.is_none_or(|next| !fits(next) && *next != b';');
    (is_one && numeric(&text[..length], out)).then_some(length)
}

fn count(text: &str, fits: fn(&u8) -> bool) -> usize {
    text.bytes().take(LONGEST).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(resolved(text), expected);
        assert_eq!(is_in(text), text != expected);
    }

    #[test]
    fn old_names_and_numbers_need_no_semicolon() {
        check("a &amp b &copy c &eacute", "a & b \u{a9} c é");
        check("&laquo&nbsp&raquo, &LT-&QUOT", "«\u{a0}», <-\"");
        check("it&#39s &#8217 &#x2019.", "it's ’ ’.");
    }

    #[test]
    fn what_is_an_address_or_no_reference_stays() {
        for text in [
            "R&D AT&T & &",
            "a&b=1",
            "?a=1&copy=2&reg=3&amp=4",
            "&copyright &notit &ampé",
            "&hellip &alpha &apos",
            "&amp; &copy; &#39; &#x27; &nosuch;",
            "?a&#1 &# &#x &#xg1 &#b",
        ] {
            check(text, text);
        }
    }
}
