//! HTML of strangers, shown: made safe, as Markdown, or as plain text.
//!
//! Whatever it is, it is levelled first: parsers of HTML take time and room in proportion to how deep
//! elements lie in each other and how many attributes they have, and neither has a limit in HTML.

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

/// The rules by which texts are made safe, as they are kept with what was made by them: the library
/// and its release, and a number that goes up with whatever is changed here or in checksums.
macro_rules! rules {
    () => {
        "ammonia 4.2.4, 4"
    };
}
pub(crate) use rules;

/// The library with its own rules, but for where a quotation is from: an address that nobody
/// follows and that is not looked at.
static SANITISER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut builder = ammonia::Builder::default();
    for tag in ["blockquote", "del", "ins", "q"] {
        builder.rm_tag_attributes(tag, ["cite"]);
    }
    builder
});
/// The elements that it knows.
static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| SANITISER.clone_tags());

/// How a text is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TextFormat {
    /// Words and line breaks.
    #[default]
    Text,
    Markdown,
    /// Without what can do harm.
    Html,
}

/// A text that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// Whether there is more of it.
    pub(crate) is_cut: bool,
}

/// How many bytes of markup are looked at for each character that is shown, and besides.
const MARKUP: usize = 16;
const MARKUP_BESIDES: usize = 16 << 10;
/// How much longer than twice what was received a text may be that is made safe; of one that is
/// longer only the words are shown.
const LONGER: usize = 64 << 10;
/// How often markup is cut shorter until it fits.
const TRIES: usize = 4;

/// A text of a feed, at most so many characters of it, with addresses seen from a base. It takes
/// time in proportion to what is shown, a millisecond for a long article; on hostile markup, tens
/// of them.
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

/// A text of a feed as HTML that can do no harm, whole, with addresses seen from a base; none if
/// nothing is left of it.
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

/// A text without characters that no reader sees and a program reads: tags of plane 14, with which
/// whole sentences are hidden, operators without a sign, and what turns the order of letters around.
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

/// A line of words in which nothing is markup of Markdown.
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

/// HTML without what can do harm: scripts, styles, forms, frames, addresses that run something.
/// What has no tag has none of these, and is as it was.
fn sanitised<'a>(source: &'a str, base: Option<&str>) -> Cow<'a, str> {
    if has_tag(source) { Cow::Owned(cleaned(source, base)) } else { Cow::Borrowed(source) }
}

fn cleaned(source: &str, base: Option<&str>) -> String {
    SANITISER.clean(&levelled(source, base)).to_string()
}

/// Whether anything in a text would be read as a tag, a comment or a declaration.
pub(crate) fn has_tag(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| begins_tag(&text[at..]))
}

/// Whether a text begins with one.
pub(crate) fn begins_tag(text: &str) -> bool {
    let opens = |next: char| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?');
    text.strip_prefix('<').is_some_and(|rest| rest.starts_with(opens))
}

/// Whether an address is one that runs something, or is its own content.
pub(crate) fn is_harmful(address: &str) -> bool {
    // Readers of addresses pass over these too.
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
    // Much markup around few words: then the words.
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

/// The same of Markdown. What was cut in the middle of code in a line is no code any more, and what
/// looks like a tag in it would be one.
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

/// So many characters of a text, with a sign where it was cut.
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
