//! Addresses in HTML, resolved against its base.

use std::borrow::Cow;

use super::tokens::Tag;
use crate::parse::{is_relative, joined, unescaped};

/// Attributes with one address.
const ADDRESSES: [&str; 6] = ["background", "cite", "href", "longdesc", "poster", "src"];
/// How much longer a text may become: the base is repeated for each address.
const MORE: usize = 256 << 10;

/// The base of one text's relative addresses.
#[derive(Debug, Default)]
pub(crate) struct Links<'a> {
    base: Option<&'a str>,
    /// How much longer the text has become.
    more: usize,
}

impl<'a> Links<'a> {
    pub(crate) fn new(base: Option<&'a str>) -> Self {
        Self { base, more: 0 }
    }

    /// The part between the name and the end of a tag, with every relative address resolved and the
    /// rest unchanged.
    pub(super) fn attributes<'t>(&mut self, tag: &Tag<'t>) -> Cow<'t, str> {
        let end = if tag.is_closed { "/>" } else { ">" };
        // Invariant: the name has only ASCII letters and digits, so its length did not change. It
        // and the angle bracket come before the attributes.
        let begin = 1 + tag.name.len();
        let written = tag.written.strip_suffix(end).and_then(|written| written.get(begin..));
        let written = written.unwrap_or_default();
        let mut out = String::new();
        // Positions in the whole text.
        let start = tag.end - tag.written.len() + begin;
        let mut taken = 0;
        for attribute in &tag.attributes {
            if !ADDRESSES.contains(&attribute.name.as_str()) {
                continue;
            }
            if let Some(absolute) = self.resolved(attribute.value) {
                out.push_str(&written[taken..attribute.place.start - start]);
                out.push_str(&absolute);
                taken = attribute.place.end - start;
            }
        }
        if taken == 0 {
            return Cow::Borrowed(written);
        }
        out.push_str(&written[taken..]);
        Cow::Owned(out)
    }

    /// The resolved address of an attribute, escaped. `None` if it stays unchanged: it is absolute,
    /// leads to a place in the text itself, or cannot be resolved.
    pub(super) fn resolved(&mut self, written: &str) -> Option<String> {
        let base = self.base.filter(|_| self.more < MORE)?;
        let address = meant(written);
        if address.is_empty() || address.starts_with('#') || !is_relative(&address) {
            return None;
        }
        let absolute = joined(base, &address);
        let absolute = (absolute != address).then(|| escaped(&absolute))?;
        self.more += absolute.len();
        Some(absolute)
    }
}

/// The address of an attribute: without references, and without characters that browsers ignore.
fn meant(written: &str) -> String {
    let address = unescaped(written);
    let address = address.trim_matches(|letter| letter <= ' ').trim();
    address.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect()
}

/// An address escaped for an attribute, with quotation marks of any kind or none.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::html::tokens::{Token, tokens};

    const BASE: &str = "https://a.org/b/c";

    /// The same HTML with all addresses resolved.
    fn resolved(source: &str, base: Option<&str>) -> String {
        let mut links = Links::new(base);
        let (mut out, mut taken) = (String::new(), 0);
        for token in tokens(source) {
            let Token::Start(tag) = token else { continue };
            let begin = tag.end - tag.written.len() + 1 + tag.name.len();
            out.push_str(&source[taken..begin]);
            out.push_str(&links.attributes(&tag));
            out.push_str(if tag.is_closed { "/>" } else { ">" });
            taken = tag.end;
        }
        out + &source[taken..]
    }

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
            let once = resolved(&source, Some(BASE));
            prop_assert_eq!(&resolved(&once, Some(BASE)), &once);
        }
    }
}
