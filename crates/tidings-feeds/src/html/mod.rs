//! HTML from strangers: made safe, as Markdown, or as plain text.
//!
//! All HTML is levelled first: parsers take time and memory in proportion to the depth of elements
//! and the number of attributes, and HTML limits neither.

mod implied;
mod level;
mod links;
mod markdown;
mod tokens;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use serde::Deserialize;

pub(crate) use self::implied::open_before;
pub(crate) use self::level::{Splitter, VOID, is_inline, levelled};
use self::links::Links;
pub(crate) use self::markdown::markdown_of;
pub(crate) use self::tokens::{Tag, Token, quoted_angles, tokens};
use crate::parse::unescaped;

/// The version of these rules, stored with the texts they produced: the library and its release,
/// and a number that grows with every change here or in checksums.
macro_rules! rules {
    () => {
        "ammonia 4.2.4, 4"
    };
}
pub(crate) use rules;

/// The library's own rules, except for the source address of a quotation, which nobody follows and
/// nobody checks.
static SANITISER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut builder = ammonia::Builder::default();
    for tag in ["blockquote", "del", "ins", "q"] {
        builder.rm_tag_attributes(tag, ["cite"]);
    }
    builder
});
/// The elements that it knows.
static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| SANITISER.clone_tags());

/// The form of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TextFormat {
    /// Words and line breaks.
    #[default]
    Text,
    Markdown,
    /// Without anything harmful.
    Html,
}

/// A text in its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// Whether there is more of it.
    pub(crate) is_cut: bool,
}

/// How many bytes of markup are read for each shown character, and in addition.
const MARKUP: usize = 16;
const MARKUP_BESIDES: usize = 16 << 10;
/// How much longer than twice its source a safe text may be; a longer one is shown as plain words.
const LONGER: usize = 64 << 10;
/// How often markup is shortened until it fits.
const TRIES: usize = 4;

/// A text of a feed, cut to this many characters, with addresses resolved against a base. The time
/// is in proportion to the shown text: a millisecond for a long article, tens of them for hostile
/// markup.
pub(crate) fn shown(source: &str, base: Option<&str>, format: TextFormat, most: usize) -> Shown {
    let looked_at = most.saturating_mul(MARKUP).saturating_add(MARKUP_BESIDES);
    let beginning = &source[..source.floor_char_boundary(looked_at)];
    let mut shown = match format {
        TextFormat::Text => cut(&plain(beginning), most),
        TextFormat::Markdown => cut_outside_code(&markdown(beginning, base), most),
        TextFormat::Html => html(beginning, base, most),
    };
    shown.is_cut |= beginning.len() < source.len();
    shown.text = visible(&shown.text).into_owned();
    shown
}

/// A whole text of a feed as safe HTML, with addresses resolved against a base; `None` if nothing
/// is left of it.
pub(crate) fn safe<'a>(source: &'a str, base: Option<&str>) -> Option<Cow<'a, str>> {
    let safe = if has_tag(source) {
        let safe = cleaned(source, base);
        let is_longer = safe.len() > source.len().saturating_mul(2).saturating_add(LONGER);
        Cow::Owned(if is_longer { quoted(&plain(source), usize::MAX) } else { safe })
    } else {
        Cow::Borrowed(source)
    };
    let safe = match visible(&safe) {
        Cow::Borrowed(_) => safe,
        Cow::Owned(visible) => Cow::Owned(visible),
    };
    Some(safe).filter(|safe| !safe.trim().is_empty())
}

/// A text without invisible characters that programs read: tags of plane 14, which hide whole
/// sentences, invisible operators, and marks that reverse the order of letters.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |it: char| {
        matches!(it, '\u{e0000}'..='\u{e0fff}' | '\u{2061}'..='\u{2064}' | '\u{206a}'..='\u{206f}'
            | '\u{202d}' | '\u{202e}')
    };
    if text.contains(is_hidden) {
        Cow::Owned(text.replace(is_hidden, ""))
    } else {
        Cow::Borrowed(text)
    }
}

/// A line of words without markup of Markdown.
pub(crate) fn as_markdown(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        if matches!(
            character,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!'
        ) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

/// HTML without anything harmful: scripts, styles, forms, frames, addresses that run something. A
/// text without tags has none of these and stays unchanged.
fn sanitised<'a>(source: &'a str, base: Option<&str>) -> Cow<'a, str> {
    if has_tag(source) { Cow::Owned(cleaned(source, base)) } else { Cow::Borrowed(source) }
}

fn cleaned(source: &str, base: Option<&str>) -> String {
    SANITISER.clean(&levelled(source, base)).to_string()
}

/// Whether a text contains a tag, a comment or a declaration.
pub(crate) fn has_tag(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| begins_tag(&text[at..]))
}

/// Whether a text begins with one.
pub(crate) fn begins_tag(text: &str) -> bool {
    let opens = |next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
    text.strip_prefix('<').is_some_and(|rest| rest.starts_with(opens))
}

/// Whether an address runs something, or contains its own content.
pub(crate) fn is_harmful(address: &str) -> bool {
    // Readers of addresses ignore these too.
    let letters = address.chars().filter(|it| !it.is_control() && !it.is_whitespace());
    let begin: String = letters.take(16).collect();
    let begin = begin.to_ascii_lowercase();
    ["data:", "javascript:", "vbscript:"].iter().any(|it| begin.starts_with(it))
}

/// HTML as Markdown.
fn markdown(source: &str, base: Option<&str>) -> String {
    let options = htmd::options::Options::default();
    markdown_of(&sanitised(source, base), options).replace('\u{a0}', " ")
}

/// The words of HTML, with a line for each paragraph.
pub(crate) fn plain(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    level::pieces(source, Links::default(), |piece| match piece {
        level::Piece::Text(words) => text.push_str(&unescaped(words)),
        level::Piece::Open(level::Tag { name, .. })
        | level::Piece::Void(level::Tag { name, .. })
        | level::Piece::Close(name) => {
            if !is_inline(name) {
                text.push('\n');
            }
        }
    });
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.join(" ")
    });
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn html(source: &str, base: Option<&str>, most: usize) -> Shown {
    let mut length = source.len();
    for _ in 0..TRIES {
        let beginning = &source[..source.floor_char_boundary(length)];
        let safe = sanitised(beginning, base);
        let count = safe.chars().count();
        if count <= most {
            return Shown { text: safe.into_owned(), is_cut: beginning.len() < source.len() };
        }
        length = beginning.len() / (count / most.max(1) + 1);
    }
    // Much markup around few words: show the words.
    Shown { text: quoted(&plain(source), most), is_cut: true }
}

/// Words as HTML, as many as fit with their references.
fn quoted(words: &str, most: usize) -> String {
    let mut text = String::new();
    let mut left = most;
    for character in words.chars() {
        let reference = match character {
            '<' => "&lt;",
            '>' => "&gt;",
            '&' => "&amp;",
            _ => "",
        };
        let Some(rest) = left.checked_sub(reference.len().max(1)) else { break };
        left = rest;
        if reference.is_empty() {
            text.push(character);
        } else {
            text.push_str(reference);
        }
    }
    text
}

/// The same for Markdown. Inline code that was cut is not code any more, so a tag in it would be
/// one.
fn cut_outside_code(text: &str, most: usize) -> Shown {
    let mut shown = cut(text, most);
    let is_fenced = shown.text.matches("```").count() % 2 == 1;
    let mark = shown.text.rfind('`').filter(|_| shown.is_cut && !is_fenced).unwrap_or(text.len());
    if let Some(at) = shown.text.get(mark..).and_then(|code| code.find('<')) {
        shown.text.truncate(mark + at);
        shown.text.push('…');
    }
    shown
}

/// The first characters of a text, with a mark where it was cut.
fn cut(text: &str, most: usize) -> Shown {
    let text = text.trim();
    let Some((_, _)) = text.char_indices().nth(most) else {
        return Shown { text: text.to_owned(), is_cut: false };
    };
    let end = text.char_indices().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    let text = Cow::from(text[..end].trim_end());
    Shown { text: format!("{text}…"), is_cut: true }
}

#[cfg(test)]
mod tests;
