//! Repair of text to nearly XML: after this, every tag is a tag and every section ends.
//!
//! A valid document is read once and not copied. Repaired are: characters that XML forbids, `<`
//! that does not begin a tag, tags with invalid attributes or ends, comments and sections without
//! an end. The document type is removed, and its entities are kept. The order of elements and
//! references are left to the reader.

mod doctype;
mod section;
mod tag;

use std::borrow::Cow;
use std::collections::HashMap;

use super::Problem;
use super::problem::Problems;
use tag::Tag;

/// A document ready to be read.
#[derive(Debug)]
pub(super) struct Cleaned<'a> {
    pub(super) text: Cow<'a, str>,
    /// The declarations of the document type.
    pub(super) entities: HashMap<String, String>,
    /// The names in the document type, in lower case: its name and its public name.
    pub(super) doctype: String,
    /// Whether it ends within a tag, a comment or a section.
    pub(super) cut: bool,
}

/// Repairs a text.
pub(super) fn clean<'a>(text: &'a str, problems: &mut Problems) -> Cleaned<'a> {
    if !has(text, |byte| byte == b'\r' || is_forbidden(byte)) {
        return Cleaner::new(text, problems).run();
    }
    let mut text = with_plain_lines(text);
    if has(&text, is_forbidden) {
        problems.add(Problem::ControlCharacters);
        text.retain(|letter| !u8::try_from(letter).is_ok_and(is_forbidden));
    }
    let cleaned = Cleaner::new(&text, problems).run();
    Cleaned { text: Cow::Owned(cleaned.text.into_owned()), ..cleaned }
}

/// Whether a text has such a byte. It is read in pieces without an early exit, which the compiler
/// makes fast.
fn has(text: &str, is_one: impl Fn(u8) -> bool) -> bool {
    let mut pieces = text.as_bytes().chunks(1024);
    pieces.any(|piece| piece.iter().fold(false, |found, byte| found | is_one(*byte)))
}

/// A text with the line ends of XML.
fn with_plain_lines(text: &str) -> String {
    let mut lines = text.split('\r');
    let mut plain = String::with_capacity(text.len());
    plain.push_str(lines.next().unwrap_or_default());
    for line in lines {
        plain.push('\n');
        plain.push_str(line.strip_prefix('\n').unwrap_or(line));
    }
    plain
}

fn is_forbidden(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r') || byte == 0x7f
}

struct Cleaner<'a, 'p> {
    text: &'a str,
    /// The repaired text so far; `None` until something is repaired.
    out: Option<String>,
    /// Up to here the text is in `out`, or would be.
    taken: usize,
    problems: &'p mut Problems,
    entities: HashMap<String, String>,
    doctype: String,
    cut: bool,
    /// Whether the rest is known to have no end of a comment, of a processing instruction, or of a
    /// CDATA section, so that it is searched once, however many begin.
    endless: [bool; 3],
    /// The name of the last element that began.
    name: &'a str,
    /// Whether a feed has begun.
    is_within: bool,
    /// The last found end of a CDATA section.
    section_end: usize,
}

impl<'a, 'p> Cleaner<'a, 'p> {
    fn new(text: &'a str, problems: &'p mut Problems) -> Self {
        Self {
            text,
            out: None,
            taken: 0,
            problems,
            entities: HashMap::new(),
            doctype: String::new(),
            cut: false,
            endless: [false; 3],
            name: "",
            is_within: false,
            section_end: 0,
        }
    }

    fn run(mut self) -> Cleaned<'a> {
        let mut position = 0;
        while let Some(found) = self.text[position..].find('<') {
            position = self.markup(position + found);
        }
        let text = match self.out {
            Some(mut out) => {
                out.push_str(&self.text[self.taken..]);
                Cow::Owned(out)
            }
            None => Cow::Borrowed(&self.text[self.taken..]),
        };
        Cleaned { text, entities: self.entities, doctype: self.doctype, cut: self.cut }
    }

    /// Replaces a part of the text.
    fn replace(&mut self, start: usize, end: usize, with: &str) {
        let taken = self.taken;
        let out = self.out.get_or_insert_default();
        out.push_str(&self.text[taken..start]);
        out.push_str(with);
        self.taken = end;
    }

    fn mend(&mut self, start: usize, end: usize, with: &str) {
        self.problems.add(Problem::Markup);
        self.replace(start, end, with);
    }

    /// Nothing from here on can be read.
    fn give_up(&mut self, start: usize) -> usize {
        self.cut = true;
        self.replace(start, self.text.len(), "");
        self.text.len()
    }

    /// Reads the markup at `start`; returns where to continue.
    fn markup(&mut self, start: usize) -> usize {
        let text: &'a str = self.text;
        let rest = &text[start..];
        let bytes = rest.as_bytes();
        match bytes.get(1) {
            Some(b'!') => self.bang(start, rest),
            Some(b'?') => self.section(start, rest, 2, "?>", 1),
            Some(b'/') => self.closing(start, rest),
            Some(byte) if is_name_start(*byte) => self.opening(start, rest),
            // The document ends with it; more may have followed.
            None => self.give_up(start),
            Some(_) => {
                self.mend(start, start + 1, "&lt;");
                start + 1
            }
        }
    }

    fn bang(&mut self, start: usize, rest: &str) -> usize {
        if rest.starts_with("<!--") {
            return self.section(start, rest, 4, "-->", 0);
        }
        if rest.starts_with(section::BEGIN) {
            return self.character_data(start);
        }
        let is_type = rest.get(..9).is_some_and(|word| word.eq_ignore_ascii_case("<!doctype"));
        if is_type && !self.is_within {
            let (end, found) = doctype::read(rest);
            self.cut |= end == rest.len() && !rest.ends_with('>');
            self.replace(start, start + end, "");
            self.doctype = found.name;
            if found.too_many {
                self.problems.add(Problem::Entities);
            }
            self.entities.extend(found.entities);
            return start + end;
        }
        let end = if is_type { doctype::late_end(rest) } else { rest.find('>').map(|at| at + 1) };
        match end {
            Some(end) => {
                self.mend(start, start + end, "");
                start + end
            }
            None => self.give_up(start),
        }
    }

    /// A CDATA section. Without an end, it ends with its element.
    fn character_data(&mut self, start: usize) -> usize {
        let from = start + section::BEGIN.len();
        if self.section_end < from && !self.endless[2] {
            match self.text[from..].find("]]>") {
                Some(end) => self.section_end = from + end,
                None => self.endless[2] = true,
            }
        }
        let end = Some(self.section_end).filter(|end| *end >= from);
        let inner = &self.text[from..end.unwrap_or(self.text.len())];
        // One within another: the end probably belongs to the other, unless this element ends there
        // and the other is not in one of its name.
        let is_odd = end.is_none_or(|end| {
            let other = inner.find(section::BEGIN);
            other.is_some_and(|other| !self.ends(end) || self.begins(&inner[..other]))
        });
        if let Some(length) = is_odd.then(|| section::lost_end(inner, self.name)).flatten() {
            let text = escape(section::without_rest(&inner[..length]));
            self.mend(start, from + length, &text);
            return from + length;
        }
        if let Some(end) = end {
            return end + 3;
        }
        // The received part of it is text.
        self.cut = true;
        self.mend(start, self.text.len(), &escape(inner));
        self.text.len()
    }

    /// Whether the last element that began ends behind the end of a section.
    fn ends(&self, end: usize) -> bool {
        let rest = self.text[end + "]]>".len()..].trim_start().strip_prefix("</");
        rest.is_some_and(|rest| name(rest) == self.name)
    }

    /// Whether an element with the name of the last begins at the end of a text.
    fn begins(&self, text: &str) -> bool {
        let text = text.trim_end();
        let tag = text.rfind('<').filter(|_| text.ends_with('>'));
        tag.is_some_and(|tag| name(&text[tag + 1..]) == self.name)
    }

    /// A comment or an instruction: up to its end, or without one to the next `>`.
    fn section(&mut self, start: usize, rest: &str, skip: usize, end: &str, which: usize) -> usize {
        if !self.endless[which] {
            if let Some(found) = rest[skip..].find(end) {
                return start + skip + found + end.len();
            }
            self.endless[which] = true;
        }
        match rest.find('>') {
            Some(end) => {
                self.mend(start, start + end + 1, "");
                start + end + 1
            }
            None => self.give_up(start),
        }
    }

    fn closing(&mut self, start: usize, rest: &str) -> usize {
        let name = rest[2..].bytes().take_while(|byte| is_name(*byte)).count();
        let spaces = rest[2 + name..].bytes().take_while(u8::is_ascii_whitespace).count();
        let end = 2 + name + spaces;
        match rest.as_bytes().get(end) {
            Some(b'>') if name > 0 => start + end + 1,
            None => self.give_up(start),
            // Text that begins like a tag.
            _ if name == 0 => {
                self.mend(start, start + 1, "&lt;");
                start + 1
            }
            Some(_) => {
                let stop = rest[end..].find(['>', '<']).map(|found| end + found);
                let Some(stop) = stop else { return self.give_up(start) };
                let end = if rest.as_bytes()[stop] == b'>' { stop + 1 } else { stop };
                let tag = format!("</{}>", &rest[2..2 + name]);
                self.mend(start, start + end, &tag);
                start + end
            }
        }
    }

    fn opening(&mut self, start: usize, rest: &'a str) -> usize {
        self.name = name(&rest[1..]);
        self.is_within = self.is_within || doctype::is_root(self.name);
        match tag::read(rest) {
            Tag::Fine(end) => start + end,
            Tag::Mended { end, text } => {
                self.mend(start, start + end, &text);
                start + end
            }
            Tag::Endless => self.give_up(start),
        }
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
}

/// The name at the beginning of a text.
fn name(text: &str) -> &str {
    &text[..text.bytes().take_while(|byte| is_name(*byte)).count()]
}

/// A text escaped for use between tags.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(letter),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(clean(text, &mut Problems::default()).text, expected);
    }

    #[test]
    fn what_is_fine_is_not_copied() {
        let text =
            "<?xml version='1.0'?><!-- x --><a b=\"c > d\" e='f'><g/>1 &lt; 2<![CDATA[<]]></a>";
        let cleaned = clean(text, &mut Problems::default());
        assert!(matches!(cleaned.text, Cow::Borrowed(same) if same == text));
        assert!(!cleaned.cut);
    }

    #[test]
    fn tags_are_mended() {
        check("<a>1 < 2 <3</a>", "<a>1 &lt; 2 &lt;3</a>");
        check("<a b=c d='e' f>", "<a b=\"c\" d=\"e\" f=\"\">");
        check("<a b=\"c\"d=\"e\">", "<a b=\"c\" d=\"e\">");
        check("<a href=\"x>y</a>", "<a href=\"x\">y</a>");
        check("<a b='c<d>e' f='g'/>", "<a b=\"c&lt;d>e\" f=\"g\"/>");
        check("<a <b>x</b", "<a><b>x");
        check("</a b='c'><d></e<f>", "</a><d></e><f>");
        check("<br/ ><!x><!-- y >z", "<br/>z");
    }

    #[test]
    fn control_characters_are_left_out() {
        check("<a>x\u{0}\u{b}\u{1f}y\tz</a>", "<a>xy\tz</a>");
    }

    #[test]
    fn ends_of_lines_are_the_same_whoever_wrote_them() {
        check("<a\r\n>1\r\n2\r3\n4\n\r5\r</a>", "<a\n>1\n2\n3\n4\n\n5\n</a>");
        let mut problems = Problems::default();
        clean("<a>\r</a>", &mut problems);
        assert_eq!(problems.into_vec(), []);
    }

    #[test]
    fn the_document_type_is_taken_out() {
        let text =
            "<!DOCTYPE rss PUBLIC \"-//Netscape//x\" [<!ENTITY a \"<b>&c;\">\n<!-- ]> -->]><a/>";
        let cleaned = clean(text, &mut Problems::default());
        assert_eq!(cleaned.text, "<a/>");
        assert_eq!(cleaned.entities["a"], "<b>&c;");
        assert!(cleaned.doctype.contains("netscape"));
    }

    #[test]
    fn a_cut_is_noticed() {
        for text in
            ["<a>x<", "<a>x<b", "<a b='", "<a>x</a", "<a>x<!--", "<a><![CDATA[x", "<!DOCTYPE a ["]
        {
            assert!(clean(text, &mut Problems::default()).cut, "{text}");
        }
    }
}
