//! HTML of known elements, each ended, none too deep in others, and with no more attributes than
//! anybody needs.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::KNOWN;
use super::implied::{is_block, open_before};

/// How deep elements may lie in each other. What is deeper stays, without its tags.
const DEPTH: usize = 48;
/// How many signs between attributes and references a tag may have; one with more loses its
/// attributes.
const SIGNS: usize = 128;
/// After how many references a text is split: to read one takes time in proportion to the square of
/// them.
const REFERENCES: usize = 64;
/// The longest tag; one that is longer loses its attributes.
const LONGEST: usize = 32 << 10;

/// Elements that have no end.
pub(crate) const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements that hold no words for readers, with all that is in them.
const UNREAD: [&str; 15] = [
    "iframe",
    "math",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "plaintext",
    "script",
    "select",
    "style",
    "svg",
    "template",
    "textarea",
    "title",
    "xmp",
];
/// Elements that can stand in the middle of a word.
const INLINE: [&str; 30] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup",
    "time", "u", "var", "wbr",
];

/// A part of HTML.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Open(Tag<'a>),
    Void(Tag<'a>),
    Close(Tag<'a>),
}

/// A tag; one that ends an element has a name and nothing else.
#[derive(Clone, Copy)]
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: &'a str,
    /// As they were written.
    attributes: &'a str,
}

/// Splits texts that have too many references, with comments. It counts from text to text: those
/// between which a tag was left out become one.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    references: usize,
}

impl Splitter {
    /// Gives the parts of a text in order, with the comments between them.
    pub(crate) fn split(&mut self, text: &str, mut take: impl FnMut(&str)) {
        let mut begin = 0;
        for (at, _) in text.match_indices('&') {
            self.references += 1;
            if self.references > REFERENCES {
                take(&text[begin..at]);
                take("<!---->");
                begin = at;
                self.references = 1;
            }
        }
        take(&text[begin..]);
    }
}

/// The same HTML, levelled.
pub(crate) fn levelled(source: &str) -> String {
    let mut level = String::with_capacity(source.len());
    let mut open: Vec<String> = Vec::new();
    // Elements that are too deep, by name: their ends end nothing.
    let mut deeper: HashMap<String, usize> = HashMap::new();
    let mut splitter = Splitter::default();
    pieces(source, |piece| match piece {
        Piece::Text(text) => splitter.split(text, |part| level.push_str(part)),
        Piece::Void(tag) => {
            end_down_to(open_before(tag.name, &open), &mut open, &mut level);
            tag.write(&mut level);
        }
        Piece::Open(tag) if !KNOWN.contains(tag.name) => {
            // Words in two of them are two.
            if is_block(tag.name) && !level.is_empty() {
                level.push(' ');
            }
        }
        Piece::Open(tag) => {
            end_down_to(open_before(tag.name, &open), &mut open, &mut level);
            if open.len() < DEPTH {
                tag.write(&mut level);
                open.push(tag.name.to_owned());
            } else {
                *deeper.entry(tag.name.to_owned()).or_default() += 1;
                if !is_inline(tag.name) {
                    level.push(' ');
                }
            }
        }
        Piece::Close(tag) => {
            if let Some(count) = deeper.get_mut(tag.name).filter(|count| **count > 0) {
                *count -= 1;
            } else if let Some(at) = open.iter().rposition(|name| name == tag.name) {
                end_down_to(at, &mut open, &mut level);
            }
        }
    });
    end_down_to(0, &mut open, &mut level);
    level
}

/// Writes the ends of all elements but the first so many.
fn end_down_to(count: usize, open: &mut Vec<String>, level: &mut String) {
    for name in open.drain(count..).rev() {
        let _ = write!(level, "</{name}>");
    }
}

/// Gives the parts of HTML in order, without comments and what is not for readers; reads it once.
pub(super) fn pieces(source: &str, mut take: impl FnMut(Piece<'_>)) {
    let mut rest = source;
    // Once there is no end of a comment any more, none is looked for.
    let mut comments = true;
    while let Some(at) = rest.find('<') {
        if at > 0 {
            take(Piece::Text(&rest[..at]));
        }
        let here = &rest[at..];
        let next = here.as_bytes().get(1).copied().unwrap_or_default();
        if let Some(comment) = here.strip_prefix("<!--") {
            let end = if comments { comment.find("-->") } else { None };
            comments &= end.is_some();
            rest = end.map_or("", |end| &comment[end + 3..]);
        } else if next == b'!' || next == b'?' {
            rest = here.find('>').map_or("", |end| &here[end + 1..]);
        } else if next == b'/' || next.is_ascii_alphabetic() {
            let Some((length, signs)) = tag_length(here) else { return };
            rest = &here[length..];
            let written = &here[1..length - 1];
            let is_end = next == b'/';
            let written = if is_end { &written[1..] } else { written };
            let end = written.find(|it: char| it.is_ascii_whitespace() || matches!(it, '/' | '>'));
            let (name, attributes) = written.split_at(end.unwrap_or(written.len()));
            let name = name.to_ascii_lowercase();
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) || name.is_empty() {
                continue;
            }
            let is_plain = is_end || signs > SIGNS || attributes.len() > LONGEST;
            let tag = Tag { name: &name, attributes: if is_plain { "" } else { attributes } };
            if is_end {
                take(Piece::Close(tag));
            } else if UNREAD.contains(&&*name) {
                // Drawings and formulas may end where they begin; nothing else does.
                let is_empty = written.ends_with('/') && matches!(&*name, "svg" | "math");
                rest = if is_empty { rest } else { after(rest, &name) };
            } else if VOID.contains(&&*name) {
                take(Piece::Void(tag));
            } else {
                take(Piece::Open(tag));
            }
        } else {
            // A sign that begins nothing.
            take(Piece::Text("&lt;"));
            rest = &here[1..];
        }
    }
    if !rest.is_empty() {
        take(Piece::Text(rest));
    }
}

pub(super) fn is_inline(name: &str) -> bool {
    INLINE.contains(&name)
}

impl Tag<'_> {
    fn write(&self, text: &mut String) {
        // A slash at the end says nothing, unless it is that of an address without quotation marks.
        let attributes = match self.attributes.strip_suffix('/') {
            Some(rest) if !rest.contains('=') || rest.ends_with([' ', '\n', '"', '\'']) => rest,
            _ => self.attributes,
        };
        let _ = write!(text, "<{}{attributes}>", self.name);
    }
}

/// How long a tag is, and how many signs between attributes it has. `None` if it does not end; then
/// nothing after it is read as anything else either.
fn tag_length(here: &str) -> Option<(usize, usize)> {
    let (mut quote, mut signs) = (None, 0);
    let mut before = b' ';
    for (at, byte) in here.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some((at + 1, signs)),
            // Only after an equals sign does a quotation mark quote.
            (None, b'"' | b'\'') => {
                signs += 1;
                quote = (before == b'=').then_some(byte);
            }
            (_, b'&') | (None, b'/') => signs += 1,
            (None, _) if byte.is_ascii_whitespace() => signs += 1,
            (Some(mark), _) if mark == byte => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

/// What follows the end of an element of which nothing is read.
pub(super) fn after<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let here = &rest[from + at + 2..];
        let is_its = here.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name));
        if is_its {
            return here.find('>').map_or("", |end| &here[end + 1..]);
        }
        from += at + 2;
    }
    ""
}
