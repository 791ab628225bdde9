//! HTML of known elements, each ended, none too deep in others, and with no more attributes than
//! anybody needs.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::KNOWN;
use super::implied::{is_block, open_before};
use crate::parse::unescaped;

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
const UNREAD: [&str; 13] = [
    "iframe",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "plaintext",
    "script",
    "select",
    "style",
    "template",
    "textarea",
    "title",
    "xmp",
];
/// Elements that can stand in the middle of a word, or of a formula.
const INLINE: [&str; 42] = [
    "a",
    "abbr",
    "acronym",
    "b",
    "bdi",
    "bdo",
    "big",
    "cite",
    "code",
    "data",
    "del",
    "dfn",
    "em",
    "font",
    "i",
    "ins",
    "kbd",
    "mark",
    "q",
    "s",
    "samp",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "time",
    "u",
    "var",
    "wbr",
    "math",
    "mfrac",
    "mi",
    "mn",
    "mo",
    "mrow",
    "msub",
    "msup",
    "mtext",
    "semantics",
    "svg",
    "tspan",
];

/// Elements that the next of their kind ends.
const ENDED_BY_NEXT: [&str; 6] = ["dd", "dt", "li", "p", "td", "tr"];

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
    // Once a font without size hid nothing, it is taken to hide nothing, so that nothing is read
    // twice for it again.
    let mut shrinks = true;
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
                link(&tag, &mut take);
                rest = after(rest, &name);
            } else if !VOID.contains(&&*name) && tag.is_hidden(shrinks) {
                // Elements of drawings and formulas can end where they begin.
                let ends_here = !KNOWN.contains(&*name) && attributes.ends_with('/');
                let after = if ends_here { rest } else { after_hidden(rest, &name) };
                // What is inside of a font without size may have a size of its own.
                let inside = &rest[..rest.len() - after.len()];
                if tag.is_hidden(false) || !inside.contains("font-size") {
                    rest = after;
                } else {
                    shrinks = false;
                    take(Piece::Open(tag));
                }
            } else if VOID.contains(&&*name) {
                link(&tag, &mut take);
                take(Piece::Void(tag));
            } else {
                link(&tag, &mut take);
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

/// Gives a link to what a player would play or a frame show: neither is there for readers.
fn link(tag: &Tag<'_>, take: &mut impl FnMut(Piece<'_>)) {
    let source = match tag.name {
        "iframe" | "video" | "audio" | "embed" | "source" => "src",
        "object" => "data",
        _ => return,
    };
    let address = tag.attribute(source).map(str::trim).unwrap_or_default();
    // What does not lead to the web leads nowhere.
    if !address.starts_with("http://") && !address.starts_with("https://") {
        return;
    }
    let attributes = format!(" href=\"{}\"", address.replace('"', "%22"));
    take(Piece::Open(Tag { name: "p", attributes: "" }));
    take(Piece::Open(Tag { name: "a", attributes: &attributes }));
    take(Piece::Text(&address.replace('<', "&lt;").replace('>', "&gt;")));
    take(Piece::Close(Tag { name: "a", attributes: "" }));
    take(Piece::Close(Tag { name: "p", attributes: "" }));
}

/// What comes after an element that is hidden: after the end that is its own, with those of the same
/// name inside it counted. One whose end may be left out ends with what it is in, too.
fn after_hidden<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut depth = 1_usize;
    let mut inside: HashMap<String, usize> = HashMap::new();
    let mut at = 0;
    while let Some(found) = rest[at..].find('<') {
        at += found + 1;
        let here = &rest[at..];
        let is_end = here.starts_with('/');
        let tag = here.strip_prefix('/').unwrap_or(here);
        let is_it = tag.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name))
            && tag[name.len()..].starts_with(|it: char| !it.is_ascii_alphanumeric());
        if !is_it {
            let other =
                tag.split(|it: char| !it.is_ascii_alphanumeric()).next().unwrap_or_default();
            let other = other.to_ascii_lowercase();
            if !ENDED_BY_NEXT.contains(&name) || !is_block(&other) {
                continue;
            }
            if !is_end {
                *inside.entry(other).or_default() += 1;
            } else if let Some(count) = inside.get_mut(&other).filter(|count| **count > 0) {
                *count -= 1;
            } else {
                return &rest[at - 1..];
            }
            continue;
        }
        // The next paragraph ends the one before it.
        if !is_end && ENDED_BY_NEXT.contains(&name) {
            return &rest[at - 1..];
        }
        depth = if is_end { depth - 1 } else { depth + 1 };
        if depth == 0 {
            return here.find('>').map_or("", |end| &here[end + 1..]);
        }
    }
    ""
}

pub(super) fn is_inline(name: &str) -> bool {
    INLINE.contains(&name)
}

impl Tag<'_> {
    /// The value of an attribute, as it was written.
    fn attribute(&self, name: &str) -> Option<&str> {
        self.each().find(|(written, _)| written.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All attributes, as they were written; those without a value have an empty one.
    fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = self.attributes;
        std::iter::from_fn(move || {
            rest = rest.trim_start_matches(|it: char| it.is_ascii_whitespace() || it == '/');
            let is_end = |it: char| it.is_ascii_whitespace() || matches!(it, '=' | '/');
            // A name may begin with anything, so that each turn reads something.
            let first = rest.chars().next()?.len_utf8();
            let end = rest[first..].find(is_end).map_or(rest.len(), |end| first + end);
            let (name, after) = rest.split_at(end);
            let Some(value) = after.trim_start().strip_prefix('=') else {
                rest = after;
                return Some((name, ""));
            };
            let value = value.trim_start();
            let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''));
            let (value, after) = match quote {
                Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
                None => {
                    value.split_once(|it: char| it.is_ascii_whitespace()).unwrap_or((value, ""))
                }
            };
            rest = after;
            Some((name, value))
        })
    }

    /// Whether no reader sees what is in the element: by its own word or by its style, for which a
    /// font without size may count.
    fn is_hidden(&self, shrinks: bool) -> bool {
        self.each().any(|(name, value)| {
            name.eq_ignore_ascii_case("hidden")
                || name.eq_ignore_ascii_case("style") && hides(&unescaped(value), shrinks)
        })
    }

    fn write(&self, text: &mut String) {
        // A slash at the end says nothing, unless it is that of an address without quotation marks.
        let attributes = match self.attributes.strip_suffix('/') {
            Some(rest) if !rest.contains('=') || rest.ends_with([' ', '\n', '"', '\'']) => rest,
            _ => self.attributes,
        };
        let _ = write!(text, "<{}{attributes}>", self.name);
    }
}

/// What is so far beside the page is not seen, in any unit.
const ASIDE: f32 = -500.0;

/// Whether a style hides its element.
fn hides(style: &str, shrinks: bool) -> bool {
    let mut plain = String::with_capacity(style.len());
    let mut parts = style.split("/*");
    plain.push_str(parts.next().unwrap_or_default());
    // A comment is no part of a word.
    parts.for_each(|part| plain.push_str(part.split_once("*/").map_or("", |(_, after)| after)));
    plain.to_ascii_lowercase().split(';').any(|rule| {
        let Some((property, value)) = rule.split_once(':') else { return false };
        let value = value.split('!').next().unwrap_or_default().trim();
        match property.trim() {
            "display" => value == "none",
            "visibility" => value == "hidden",
            // Beside the page, where nobody looks.
            "left" | "right" | "top" | "bottom" | "text-indent" | "margin-left" | "margin-top" => {
                let number = value.trim_end_matches(|it: char| !it.is_ascii_digit());
                number.parse::<f32>().is_ok_and(|value| value <= ASIDE)
            }
            "opacity" => value.parse::<f32>().is_ok_and(|value| value == 0.0),
            "font-size" => {
                let number = value.trim_end_matches(|it: char| !it.is_ascii_digit());
                shrinks && number.parse::<f32>().is_ok_and(|value| value == 0.0)
            }
            _ => false,
        }
    })
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
