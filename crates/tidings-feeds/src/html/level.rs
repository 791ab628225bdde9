//! Levelled HTML: known elements, each ended, with limits on depth and attributes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::iter::Peekable;

use super::KNOWN;
use super::implied::{is_block, open_before};
use super::links::Links;
use super::tokens::{Tag as Start, Token, quoted_angles, tokens};
use crate::parse::unescaped;

/// The maximum depth of elements. Deeper ones lose their tags and keep their content.
const DEPTH: usize = 48;
/// The maximum number of attributes of a tag; with more, it loses all of them, because they are
/// compared with each other.
const ATTRIBUTES: usize = 40;
/// The maximum number of references in a tag, and after how many a text is split: reading them
/// takes time in proportion to the square of their number.
const REFERENCES: usize = 64;
/// The longest tag; a longer one loses its attributes.
const LONGEST: usize = 32 << 10;

/// Elements without an end tag.
pub(crate) const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements without words for readers, dropped with their content.
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
/// Elements that can occur in the middle of a word or formula.
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

/// Elements that are ended by the next of their kind.
const ENDED_BY_NEXT: [&str; 6] = ["dd", "dt", "li", "p", "td", "tr"];

/// A part of HTML.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Open(Tag<'a>),
    Void(Tag<'a>),
    /// The end of an element of this name.
    Close(&'a str),
}

/// A rewritten tag.
pub(super) struct Tag<'a> {
    /// In lower case.
    pub(super) name: &'a str,
    attributes: Cow<'a, str>,
}

/// Splits texts with too many references, using comments. It counts across texts, because texts
/// become one if the tag between them is dropped.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    references: usize,
}

impl Splitter {
    /// Passes on the parts of a text in order, with the comments between them.
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

/// Levelled HTML, with addresses resolved against a base.
pub(crate) fn levelled(source: &str, base: Option<&str>) -> String {
    let mut level = String::with_capacity(source.len());
    let mut open: Vec<String> = Vec::new();
    // Elements that are too deep, by name: their end tags are ignored.
    let mut deeper: HashMap<String, usize> = HashMap::new();
    let mut splitter = Splitter::default();
    pieces(source, Links::new(base), |piece| match piece {
        Piece::Text(text) => splitter.split(text, |part| level.push_str(part)),
        Piece::Void(tag) => {
            end_down_to(open_before(tag.name, &open), &mut open, &mut level);
            tag.write(&mut level);
        }
        Piece::Open(tag) if !KNOWN.contains(tag.name) => {
            // The words of two such elements stay apart.
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
        Piece::Close(end) => {
            if let Some(count) = deeper.get_mut(end).filter(|count| **count > 0) {
                *count -= 1;
            } else if let Some(at) = open.iter().rposition(|name| name == end) {
                end_down_to(at, &mut open, &mut level);
            }
        }
    });
    end_down_to(0, &mut open, &mut level);
    level
}

/// Writes the end tags of all elements except the first ones.
fn end_down_to(count: usize, open: &mut Vec<String>, level: &mut String) {
    for name in open.drain(count..).rev() {
        let _ = write!(level, "</{name}>");
    }
}

/// Passes on the parts of HTML in order, without comments and hidden content.
pub(super) fn pieces(source: &str, mut links: Links<'_>, mut take: impl FnMut(Piece<'_>)) {
    let mut parts = tokens(source).peekable();
    // Once a font without size hid nothing, it is ignored from then on, so that nothing is read
    // twice for it again.
    let mut shrinks = true;
    while let Some(part) = parts.next() {
        match part {
            Token::Text(text) => take(Piece::Text(&quoted_angles(text))),
            Token::Start(start) if is_name(&start.name) => {
                let tag = Tag::of(&start, &mut links);
                if UNREAD.contains(&tag.name) {
                    link(&start, &mut links, &mut take);
                    parts.by_ref().find(|part| matches!(part, Token::End(end) if end == tag.name));
                } else if VOID.contains(&tag.name) {
                    link(&start, &mut links, &mut take);
                    take(Piece::Void(tag));
                } else if !is_hidden(&start, shrinks) {
                    link(&start, &mut links, &mut take);
                    take(Piece::Open(tag));
                } else if start.is_closed && !KNOWN.contains(tag.name) {
                    // Elements of drawings and formulas can end where they begin.
                } else if is_hidden(&start, false) || !has_size_inside(source, &start) {
                    pass_hidden(&mut parts, tag.name, |_| {});
                } else {
                    shrinks = false;
                    take(Piece::Open(tag));
                }
            }
            Token::End(name) if is_name(&name) => take(Piece::Close(&name)),
            Token::Start(_) | Token::End(_) | Token::Unended(_) => {}
        }
    }
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a part of an element may have a size of its own, where the font has none.
fn has_size_inside(source: &str, tag: &Start<'_>) -> bool {
    let mut has_size = false;
    let inside = source.get(tag.end..).unwrap_or_default();
    pass_hidden(&mut tokens(inside).peekable(), &tag.name, |part| {
        has_size |= matches!(part, Token::Start(tag) if tag.written.contains("font-size"));
    });
    has_size
}

/// Passes on a link to the content of a player or frame, because readers have neither.
fn link(tag: &Start<'_>, links: &mut Links<'_>, take: &mut impl FnMut(Piece<'_>)) {
    let source = match tag.name.as_str() {
        "iframe" | "video" | "audio" | "embed" | "source" => "src",
        "object" => "data",
        _ => return,
    };
    let Some(address) = tag.attributes.iter().find(|it| it.name == source) else { return };
    let absolute = links.resolved(address.value);
    let address = absolute.as_deref().unwrap_or(address.value.trim());
    // Only addresses on the web are links.
    if !address.starts_with("http://") && !address.starts_with("https://") {
        return;
    }
    let attributes = Cow::Owned(format!(" href=\"{}\"", address.replace('"', "%22")));
    take(Piece::Open(Tag { name: "p", attributes: Cow::Borrowed("") }));
    take(Piece::Open(Tag { name: "a", attributes }));
    take(Piece::Text(&address.replace('<', "&lt;").replace('>', "&gt;")));
    take(Piece::Close("a"));
    take(Piece::Close("p"));
}

/// Skips a hidden element and passes on its parts. It continues to the matching end tag, counting
/// those of the same name inside. An element whose end tag may be omitted also ends with its
/// parent.
fn pass_hidden<'a>(
    parts: &mut Peekable<impl Iterator<Item = Token<'a>>>,
    name: &str,
    mut pass: impl FnMut(&Token<'a>),
) {
    let ends_by_next = ENDED_BY_NEXT.contains(&name);
    let mut depth = 1_usize;
    let mut inside: HashMap<String, usize> = HashMap::new();
    while let Some(part) = parts.peek() {
        match part {
            // The next paragraph ends the one before it.
            Token::Start(tag) if tag.name == name && ends_by_next => return,
            Token::Start(tag) if tag.name == name => depth += 1,
            Token::End(end) if end == name => depth -= 1,
            Token::Start(tag) if ends_by_next && is_block(&tag.name) => {
                *inside.entry(tag.name.clone()).or_default() += 1;
            }
            Token::End(end) if ends_by_next && is_block(end) => {
                match inside.get_mut(end).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None => return,
                }
            }
            _ => {}
        }
        pass(part);
        parts.next();
        if depth == 0 {
            return;
        }
    }
}

pub(crate) fn is_inline(name: &str) -> bool {
    INLINE.contains(&name)
}

impl<'a> Tag<'a> {
    /// A rewritten tag: without the slash at its end, which has no meaning, and without its
    /// attributes if there are too many.
    fn of(start: &'a Start<'_>, links: &mut Links<'_>) -> Self {
        let is_plain = start.attributes.len() > ATTRIBUTES
            || start.references() > REFERENCES
            || start.written.len() > LONGEST;
        let attributes = if is_plain { Cow::Borrowed("") } else { links.attributes(start) };
        Self { name: &start.name, attributes }
    }

    fn write(&self, text: &mut String) {
        let _ = write!(text, "<{}{}>", self.name, self.attributes);
    }
}

/// Whether an element is hidden, by an attribute or its style, in which a font without size may
/// count.
fn is_hidden(tag: &Start<'_>, shrinks: bool) -> bool {
    tag.attributes.iter().any(|attribute| match attribute.name.as_str() {
        "hidden" => true,
        "style" => hides(&unescaped(attribute.value), shrinks),
        _ => false,
    })
}

/// A large offset is outside the page, in any unit.
const ASIDE: f32 = -500.0;

/// Whether a style hides its element.
fn hides(style: &str, shrinks: bool) -> bool {
    let mut plain = String::with_capacity(style.len());
    let mut parts = style.split("/*");
    plain.push_str(parts.next().unwrap_or_default());
    // A comment is not part of a word.
    parts.for_each(|part| plain.push_str(part.split_once("*/").map_or("", |(_, after)| after)));
    plain.to_ascii_lowercase().split(';').any(|rule| {
        let Some((property, value)) = rule.split_once(':') else { return false };
        let value = value.split('!').next().unwrap_or_default().trim();
        match property.trim() {
            "display" => value == "none",
            "visibility" => value == "hidden",
            // Outside the page.
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
