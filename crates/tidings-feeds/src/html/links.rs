//! Addresses in HTML, seen from where it was found.

use std::borrow::Cow;

use super::level::after;
use crate::parse::{is_relative, joined, unescaped};

/// Attributes that are one address.
const ADDRESSES: [&str; 6] = ["background", "cite", "href", "longdesc", "poster", "src"];
/// How much longer a text may become: a base is written as often as there are addresses.
const MORE: usize = 256 << 10;

/// The same HTML with every relative address resolved, and all else as it was. What leads to a place
/// in the text itself stays.
pub(crate) fn resolved<'a>(source: &'a str, base: Option<&str>) -> Cow<'a, str> {
    let Some(base) = base else { return Cow::Borrowed(source) };
    let mut out = String::new();
    let (mut taken, mut more) = (0, 0);
    addresses(source, |start, end| {
        let address = meant(&source[start..end]);
        let is_outside = !address.is_empty() && !address.starts_with('#');
        if is_outside && is_relative(&address) && more < MORE {
            let absolute = joined(base, &address);
            // What cannot be resolved is as it was.
            if absolute != address {
                let absolute = escaped(&absolute);
                more += absolute.len();
                out.push_str(&source[taken..start]);
                out.push_str(&absolute);
                taken = end;
            }
        }
    });
    if taken == 0 {
        return Cow::Borrowed(source);
    }
    out.push_str(&source[taken..]);
    Cow::Owned(out)
}

/// The address that an attribute means: without references, and without what browsers pass over.
fn meant(written: &str) -> String {
    let address = unescaped(written);
    let address = address.trim_matches(|letter| letter <= ' ').trim();
    address.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect()
}

/// An address as it can stand in an attribute, in quotation marks of any kind or in none.
fn escaped(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for letter in address.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("%22"),
            '\'' => out.push_str("&#39;"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            _ if letter.is_ascii_whitespace() => out.push_str("%20"),
            _ => out.push(letter),
        }
    }
    out
}

/// Gives where each address begins and ends, in order; reads the text once.
fn addresses(source: &str, mut take: impl FnMut(usize, usize)) {
    let bytes = source.as_bytes();
    let mut at = 0;
    while let Some(found) = source[at..].find('<') {
        at += found + 1;
        let rest = &source[at..];
        if let Some(comment) = rest.strip_prefix("!--") {
            let Some(end) = comment.find("-->") else { return };
            at += end + 6;
        } else if rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let name = word(bytes, at);
            let Some(end) = tag(bytes, at + name, &mut take) else { return };
            let name = &source[at..at + name];
            at = end;
            // What is in these is no markup.
            if ["script", "style"].iter().any(|it| name.eq_ignore_ascii_case(it)) {
                at = source.len() - after(&source[at..], name).len();
            }
        }
    }
}

/// The attributes of a tag whose name ends here; gives where the tag ends, if it does.
fn tag(bytes: &[u8], mut at: usize, take: &mut impl FnMut(usize, usize)) -> Option<usize> {
    loop {
        at += count(bytes, at, |byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'='));
        if *bytes.get(at)? == b'>' {
            return Some(at + 1);
        }
        let name = &bytes[at..at + word(bytes, at)];
        at += name.len();
        let equals = at + spaces(bytes, at);
        if bytes.get(equals) != Some(&b'=') {
            continue;
        }
        let start = equals + 1 + spaces(bytes, equals + 1);
        let first = *bytes.get(start)?;
        let (start, end) = if matches!(first, b'"' | b'\'') {
            let end = start + 1 + count(bytes, start + 1, |byte| byte != first);
            bytes.get(end)?;
            (start + 1, end)
        } else {
            let length = count(bytes, start, |byte| !byte.is_ascii_whitespace() && byte != b'>');
            (start, start + length)
        };
        if ADDRESSES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
            take(start, end);
        }
        // A quotation mark that ends a value is passed; nothing else is.
        at = end + usize::from(matches!(bytes.get(end), Some(b'"' | b'\'')));
    }
}

/// How many bytes from here on are so.
fn count(bytes: &[u8], at: usize, fits: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().take_while(|byte| fits(**byte)).count()
}

fn spaces(bytes: &[u8], at: usize) -> usize {
    count(bytes, at, |byte| byte.is_ascii_whitespace())
}

/// The length of a name.
fn word(bytes: &[u8], at: usize) -> usize {
    count(bytes, at, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'=' | b'>'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = "https://a.org/b/c";

    #[track_caller]
    fn check(source: &str, expected: &str) {
        assert_eq!(resolved(source, Some(BASE)), expected);
    }

    #[test]
    fn addresses_are_seen_from_the_base() {
        check("<a href=\"d?e&amp;f\">x</a>", "<a href=\"https://a.org/b/d?e&amp;f\">x</a>");
        check(
            "<IMG alt='a > b' SRC = '/i.png'/>",
            "<IMG alt='a > b' SRC = 'https://a.org/i.png'/>",
        );
        check("<a href=../d>x", "<a href=https://a.org/d>x");
        check("<video poster=//b.org/p></video>", "<video poster=https://b.org/p></video>");
    }

    #[test]
    fn all_else_stays() {
        for source in [
            "href=x <b>y</b> < a href=z",
            "<a href='#note'><a href=''><a href><a href=",
            "<a href='http://b.org/'>x</a><a href='mailto:a@b.org'>",
            "<img src='data:image/png;base64,x'>",
            "<!-- <a href=x> --><a data-href=x title='href=y'>",
            "<script>'<a href=x>'</script>",
            "<a href='x",
            "<a href=http://b.org/x/>",
            // References and ends of lines hide nothing.
            "<a href='&#x6D;&#97;il&#116;o:a@b.org'><a href=http&#58;//b.org/x?a&amp;b>",
            "<a href='http&colon;//b.org/'><a href=http&#58//b.org/><a href=' ht\ntp://b.org/'>",
            "<a href='&#35;note'><a href='&#32;'><a href='&#10;mailto:a@b.org'>",
        ] {
            check(source, source);
        }
        assert_eq!(resolved("<a href=x>", None), "<a href=x>");
    }

    #[test]
    fn references_are_part_of_an_address() {
        check("<a href=&#47;d&#x2f;e>", "<a href=https://a.org/d/e>");
        check("<a href='d?e&f&copy=1&copy'>", "<a href='https://a.org/b/d?e&amp;f&amp;copy=1©'>");
        check("<a href='&#46;&period;/d e\n'>", "<a href='https://a.org/d%20e'>");
        check("<a href='//b.org&sol;d'>", "<a href='https://b.org/d'>");
    }

    #[test]
    fn an_address_cannot_leave_its_attribute() {
        for mark in ["", "'", "\""] {
            let html = format!("<a href={mark}x&#39;&quot;&gt;&#32;&lt;b&gt;&#9;&amp;quot;{mark}>");
            let address = "https://a.org/b/x&#39;%22%3E%20%3Cb%3E&amp;quot;";
            check(&html, &format!("<a href={mark}{address}{mark}>"));
        }
    }

    #[test]
    fn a_base_cannot_leave_its_attribute() {
        let base = "https://a.org/'\"> <script>/";
        let html = resolved("<a href=x title='y'>", Some(base));
        assert_eq!(html, "<a href=https://a.org/&#39;%22%3E%20%3Cscript%3E/x title='y'>");
    }

    #[test]
    fn a_text_does_not_grow_without_bound() {
        let base = format!("https://a.org/{}/", "b".repeat(1000));
        let source = "<a href=x>".repeat(20_000);
        assert!(resolved(&source, Some(&base)).len() < source.len() + MORE + 2 * base.len());
    }

    proptest! {
        #[test]
        fn once_is_enough(source in "(<a |<b>|href=|src=|'|\"|x/y|#|//|:|<!--|-->|<script>|</script>|&#58;|&#x2F|&colon;|&quot;|&#39;|&gt;|&amp|&#32;|&copy|mailto|[ é>/=&;\\n\u{a0}])*") {
            let once = resolved(&source, Some(BASE)).into_owned();
            prop_assert_eq!(resolved(&once, Some(BASE)), once.as_str());
        }
    }
}
