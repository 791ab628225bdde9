//! References: `&amp;`, `&#8217;`, `&eacute;`, and entities that documents declare.

pub(super) mod bare;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use web_atoms::NAMED_ENTITIES;

/// The maximum depth of declared entities in each other.
const DEPTH: usize = 8;
/// The maximum number of bytes from the entities of one document in total.
const EXPANSION: usize = 1 << 20;
/// The longest name of a reference; a longer one is text behind an ampersand.
const LONGEST: usize = 64;

/// The entities of one document.
#[derive(Debug)]
pub(super) struct Entities {
    declared: HashMap<String, String>,
    /// Whether references without a semicolon are resolved.
    takes_bare: bool,
    /// Bytes that may still be expanded to. Invariant: it only shrinks, so no document expands
    /// beyond the limit.
    left: usize,
    /// Whether something was not expanded because of a limit.
    pub(super) exhausted: bool,
}

impl Entities {
    pub(super) fn new(declared: HashMap<String, String>) -> Self {
        Self { declared, takes_bare: false, left: EXPANSION, exhausted: false }
    }

    /// Those of HTML, which accepts missing semicolons.
    pub(super) fn of_html() -> Self {
        Self { takes_bare: true, ..Self::new(HashMap::new()) }
    }

    /// Appends the value of `&name;`, or the reference itself if it is unknown. Returns which.
    pub(super) fn resolve(&mut self, name: &str, text: &mut String) -> bool {
        self.resolve_at(name, text, 0)
    }

    fn resolve_at(&mut self, name: &str, text: &mut String, depth: usize) -> bool {
        match name {
            "amp" => text.push('&'),
            "lt" => text.push('<'),
            "gt" => text.push('>'),
            "quot" => text.push('"'),
            "apos" => text.push('\''),
            _ => {
                let known = match name.strip_prefix('#') {
                    Some(number) => numeric(number, text),
                    None => self.expand(name, text, depth) || named(name, text),
                };
                if !known {
                    let _ = write!(text, "&{name};");
                }
                return known;
            }
        }
        true
    }

    fn expand(&mut self, name: &str, text: &mut String, depth: usize) -> bool {
        let Some(value) = self.declared.get(name) else { return false };
        if depth >= DEPTH || value.len() > self.left {
            self.exhausted = true;
            return false;
        }
        self.left -= value.len();
        if value.contains('&') {
            let value = value.clone();
            self.unescape_at(&value, text, depth + 1);
        } else {
            text.push_str(value);
        }
        true
    }

    /// A text with all its references resolved.
    pub(super) fn unescape<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if !text.contains('&') {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        self.unescape_at(text, &mut out, 0);
        Cow::Owned(out)
    }

    fn unescape_at(&mut self, text: &str, out: &mut String, depth: usize) {
        let mut rest = text;
        while let Some(start) = rest.find('&') {
            out.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            if let Some(length) = self.takes_bare.then(|| bare::take(rest, out)).flatten() {
                rest = &rest[length..];
                continue;
            }
            let window = rest.as_bytes();
            let end =
                window.iter().take(LONGEST).position(|byte| matches!(byte, b';' | b'&' | b' '));
            match end {
                Some(end) if window[end] == b';' && end > 0 => {
                    self.resolve_at(&rest[..end], out, depth);
                    rest = &rest[end + 1..];
                }
                _ => out.push('&'),
            }
        }
        out.push_str(rest);
    }
}

/// A reference by number. Numbers in the range of control characters of ISO 8859-1 have their
/// meaning in Windows.
fn numeric(number: &str, text: &mut String) -> bool {
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    let Ok(code) = code else { return false };
    if let Ok(byte) = u8::try_from(code)
        && (0x80..0xa0).contains(&byte)
    {
        text.push_str(&encoding_rs::WINDOWS_1252.decode_without_bom_handling(&[byte]).0);
        return true;
    }
    match char::from_u32(code) {
        // No document may contain these, even as a number.
        Some(letter) if letter.is_control() && !matches!(letter, '\t' | '\n' | '\r') => true,
        Some(letter) => {
            text.push(letter);
            true
        }
        None => {
            text.push(char::REPLACEMENT_CHARACTER);
            true
        }
    }
}

/// A reference by one of the names of HTML, which end with a semicolon.
fn named(name: &str, text: &mut String) -> bool {
    listed(&format!("{name};"), text)
}

/// Appends the value of a name in the table of HTML, and returns whether there is one. The table
/// also holds the beginnings of all names, which have no value.
fn listed(name: &str, text: &mut String) -> bool {
    let Some((first, second)) = NAMED_ENTITIES.get(name).filter(|(first, _)| *first != 0) else {
        return false;
    };
    let codes = [*first, *second].into_iter().filter(|code| *code != 0);
    text.extend(codes.filter_map(char::from_u32));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Entities::new(HashMap::new()).unescape(text), expected);
    }

    #[test]
    fn references_of_xml_and_html_are_resolved() {
        check("a &lt; b &amp;&amp; c", "a < b && c");
        check("caf&eacute; &hellip; &NotEqualTilde;", "café … \u{2242}\u{338}");
        check("&#8217;&#x2019;&#X2019;", "’’’");
        check("&#146;&#151;&#128;", "’—€");
    }

    #[test]
    fn what_is_no_reference_stays() {
        check("AT&T & R&D; &; &nosuch; &", "AT&T & R&D; &; &nosuch; &");
        check("?a=1&b=2;c", "?a=1&b=2;c");
        check("&#xD800;&#99999999;", "\u{fffd}\u{fffd}");
        check("a&#0;b&#7;", "ab");
    }

    #[test]
    fn only_whole_names_are_references() {
        check("&eacut; &hellip&hell; &Aacute;", "&eacut; &hellip&hell; Á");
        check("&CounterClockwiseContourIntegral;", "∳");
        check("&CounterClockwiseContourIntegrals;", "&CounterClockwiseContourIntegrals;");
        check("&Scaron;&alpha;&fjlig;&ThickSpace;", "Šαfj\u{205f}\u{200a}");
    }

    #[test]
    fn declared_entities_expand_within_limits() {
        let mut declared = HashMap::from([("l0".to_owned(), "ha".repeat(50))]);
        for level in 1..20 {
            declared.insert(format!("l{level}"), format!("&l{};", level - 1).repeat(10));
        }
        let mut entities = Entities::new(declared);
        assert_eq!(entities.unescape("&l0;"), "ha".repeat(50));
        assert!(entities.unescape("&l19;").len() <= 2 * EXPANSION);
        assert!(entities.exhausted);
    }
}
