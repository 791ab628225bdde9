//! A page made harmless for whoever builds a tree of it: nested so deep, so many elements, no
//! attributes without end. What is left out costs its markup and not its text.
//!
//! Trees are walked by functions that call themselves, and elements that are never closed are
//! opened again in every paragraph that follows: a page of a few kilobytes can take all memory.
//! So this closes what it opens. It reads every byte once.

use crate::html::{Splitter, VOID, open_before};

/// How deep elements may be in each other.
const DEPTH: usize = 100;
/// How many of them may be of those that are opened again after every block.
const FORMATTING_DEPTH: usize = 8;
/// How many elements there may be; the longest articles have a tenth of it.
const ELEMENTS: usize = 50_000;
/// The longest page, without what is left out; an article is a tenth of it.
const LENGTH: usize = 2 << 20;
/// A longer tag is kept without its attributes: they are compared with each other.
const TAG: usize = 2_048;
/// How many references a tag may have before it loses its attributes.
const REFERENCES: usize = 64;
/// How much of a title is kept.
const TITLE: usize = 4 << 10;
/// The longest description of the page for machines that is kept.
const DATA: usize = 64 << 10;

/// Elements that are left out with all they hold.
const DROPPED: &[&str] = &[
    "iframe",
    "math",
    "noembed",
    "noframes",
    "noscript",
    "object",
    "plaintext",
    "style",
    "svg",
    "template",
    "textarea",
    "xmp",
];
/// Elements that are opened again after a block.
const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];

/// A page within bounds.
#[derive(Debug, Default)]
pub(super) struct Bounded {
    pub(super) html: String,
    /// Whether it is there to its end.
    pub(super) is_whole: bool,
}

/// Makes a page harmless.
pub(super) fn bounded(html: &str) -> Bounded {
    let mut page = Page::default();
    let is_whole = page.read(html).is_some() && !page.is_cut;
    page.close_down_to(0);
    Bounded { html: page.html, is_whole }
}

#[derive(Default)]
struct Page {
    html: String,
    /// The elements that are open.
    open: Vec<String>,
    formatting: usize,
    /// How many were opened and left out because they were too deep.
    skipped: usize,
    elements: usize,
    splitter: Splitter,
    /// Whether something that is left out has no end, and all after it is left out with it.
    is_cut: bool,
}

impl Page {
    /// Reads to the end; nothing if there is more than fits.
    fn read(&mut self, html: &str) -> Option<()> {
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            self.words(&rest[..start])?;
            rest = &rest[start..];
            rest = if let Some(comment) = rest.strip_prefix("<!--") {
                after(comment, "-->")
            } else if rest.starts_with("<!") || rest.starts_with("<?") {
                after(rest, ">")
            } else if let Some(tag) = rest.strip_prefix("</").filter(|it| begins_a_name(it)) {
                let (tag, after) = split_tag(tag);
                self.end(&name(tag));
                after
            } else if let Some(tag) = rest.strip_prefix('<').filter(|it| begins_a_name(it)) {
                let (tag, after) = split_tag(tag);
                self.start(tag, after)?
            } else {
                self.words("&lt;")?;
                &rest[1..]
            };
        }
        self.words(rest)
    }

    /// Writes what a reader sees.
    fn words(&mut self, text: &str) -> Option<()> {
        let mut splitter = std::mem::take(&mut self.splitter);
        let mut written = Some(());
        splitter.split(text, |part| written = written.and_then(|()| self.text(part)));
        self.splitter = splitter;
        written
    }

    fn text(&mut self, text: &str) -> Option<()> {
        let room = LENGTH.saturating_sub(self.html.len());
        self.html.push_str(&text[..text.floor_char_boundary(room)]);
        (text.len() <= room).then_some(())
    }

    /// Begins an element and gives what comes after what was read of it.
    fn start<'a>(&mut self, tag: &str, after: &'a str) -> Option<&'a str> {
        let name = name(tag);
        match name.as_str() {
            "script" | "title" => {
                let (content, after) = self.raw(after, &name);
                let content = match name.as_str() {
                    "title" => &content[..content.floor_char_boundary(TITLE)],
                    _ if tag.contains("ld+json") && content.len() <= DATA => content,
                    _ => return Some(after),
                };
                self.element(tag, &name)?;
                self.text(content)?;
                self.text(&format!("</{name}>"))?;
                return Some(after);
            }
            // Drawings and formulas may end where they begin; nothing else does.
            "svg" | "math" if tag.ends_with('/') => return Some(after),
            dropped if DROPPED.contains(&dropped) => return Some(self.raw(after, &name).1),
            _ => {}
        }
        self.end_what_it_ends(&name);
        if VOID.contains(&name.as_str()) {
            self.element(tag, &name)?;
            return Some(after);
        }
        let is_formatting = FORMATTING.contains(&name.as_str());
        if self.open.len() >= DEPTH || is_formatting && self.formatting >= FORMATTING_DEPTH {
            self.skipped += 1;
            return Some(after);
        }
        self.element(tag, &name)?;
        self.formatting += usize::from(is_formatting);
        self.open.push(name);
        Some(after)
    }

    /// What is in an element that holds no others, and what comes after it.
    fn raw<'a>(&mut self, text: &'a str, name: &str) -> (&'a str, &'a str) {
        let mut from = 0;
        while let Some(found) = text[from..].find("</") {
            let start = from + found;
            let tag = &text[start + 2..];
            if tag.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name)) {
                return (&text[..start], after(tag, ">"));
            }
            from = start + 2;
        }
        self.is_cut |= !text.is_empty();
        (text, "")
    }

    fn element(&mut self, tag: &str, name: &str) -> Option<()> {
        self.elements += 1;
        if self.elements > ELEMENTS {
            return None;
        }
        let references = tag.bytes().filter(|byte| *byte == b'&').count();
        let tag = if tag.len() <= TAG && references <= REFERENCES { tag } else { name };
        self.text("<")?;
        self.text(tag)?;
        self.text(">")
    }

    fn end(&mut self, name: &str) {
        if VOID.contains(&name) {
            return;
        }
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if let Some(position) = self.open.iter().rposition(|open| open == name) {
            self.close_down_to(position);
        }
    }

    /// Many elements end where the next of their kind begins, with what formats a text in them.
    fn end_what_it_ends(&mut self, name: &str) {
        let length = open_before(name, &self.open);
        self.close_down_to(length);
    }

    fn close_down_to(&mut self, length: usize) {
        while self.open.len() > length {
            let Some(name) = self.open.pop() else { return };
            self.formatting -= usize::from(FORMATTING.contains(&name.as_str()));
            // There is room for a few more letters than for a page.
            self.html.push_str("</");
            self.html.push_str(&name);
            self.html.push('>');
        }
    }
}

fn begins_a_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

/// The name that a tag begins with.
fn name(tag: &str) -> String {
    let is_end = |letter: char| letter.is_whitespace() || letter == '/' || letter == '>';
    tag.split(is_end).next().unwrap_or_default().to_ascii_lowercase()
}

fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.split_once(end).map_or("", |(_, after)| after)
}

/// A tag without its brackets, and what comes after it. A bracket between quotation marks does
/// not end it.
fn split_tag(text: &str) -> (&str, &str) {
    let mut quote = None;
    let mut is_value = false;
    for (position, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(mark), _) if byte == mark => quote = None,
            (None, b'>') => return (&text[..position], &text[position + 1..]),
            (None, b'"' | b'\'') if is_value => quote = Some(byte),
            _ => {}
        }
        is_value = byte == b'=' || is_value && byte.is_ascii_whitespace();
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &str) {
        assert_eq!(bounded(html).html, expected, "{html}");
    }

    #[test]
    fn what_is_opened_is_closed_and_what_is_not_is_not() {
        check("<P>a<p>b</div></p>", "<P>a</p><p>b</p>");
        check("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c");
        check("<b><i>x</b>y</i>", "<b><i>x</i></b>y");
        check(
            "<table><tr><td>1<td>2<tr><td>3</table>",
            "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
        );
        check("a<br/>b<img src='x>y'>c", "a<br/>b<img src='x>y'>c");
        check("1 < 2 <3", "1 &lt; 2 &lt;3");
    }

    #[test]
    fn what_is_for_machines_is_left_out() {
        check("<!doctype html><!-- <p> -->a<?x?>", "a");
        check("a<script>if (1<2) '</p>'</SCRIPT>b<style>p{}</style>c<svg><p></svg>d", "abcd");
        let data = "<script type=\"application/ld+json\">{\"a\":\"<b>\"}</script>";
        check(data, data);
        check("<title>a <b> c</title>x", "<title>a <b> c</title>x");
        check("a<svg/>b<math />c", "abc");
        check("a<script>never closed", "a");
        check("a<p class='never closed>b", "a<p class='never closed>b></p>");
    }

    #[test]
    fn depth_is_bounded_and_texts_stay() {
        let html = format!("{}x{}y", "<div>".repeat(100_000), "</div>".repeat(100_000));
        let bounded = bounded(&html);
        assert_eq!(bounded.html.matches("<div>").count(), DEPTH);
        assert!(bounded.is_whole && bounded.html.ends_with("</div>y"));
        check("<p><b>x<p>y", "<p><b>x</b></p><p>y</p>");
        let formats: Vec<_> = (0..1000).map(|number| format!("<b id={number}>")).collect();
        let html = format!("{}{}", formats.concat(), "<p>z</p>".repeat(10));
        assert_eq!(super::bounded(&html).html.matches("<b ").count(), FORMATTING_DEPTH);
    }

    #[test]
    fn what_never_ends_is_not_taken_for_the_end_of_the_page() {
        for (html, is_whole) in [("a<svg>b", false), ("a<svg>b</svg>c", true), ("a<svg/>b", true)] {
            assert_eq!(bounded(html).is_whole, is_whole, "{html}");
        }
    }

    #[test]
    fn references_without_end_are_split_and_all_there() {
        for (text, reference) in [("&amp;", "&amp;"), ("<", "&lt;"), ("&amp;</x>", "&amp;")] {
            let html = bounded(&text.repeat(1_000)).html;
            assert_eq!(html.matches(reference).count(), 1_000);
            assert!(html.split("<!---->").all(|part| part.matches('&').count() <= REFERENCES));
        }
        let tag = format!("<a href='{}'>x", "&amp;".repeat(REFERENCES + 1));
        check(&tag, "<a>x</a>");
    }

    #[test]
    fn size_is_bounded() {
        let many = bounded(&"<p>x".repeat(ELEMENTS + 1));
        assert!(!many.is_whole);
        assert_eq!(many.html.matches("<p>").count(), ELEMENTS);
        let long = bounded(&"€".repeat(LENGTH));
        assert!(!long.is_whole && long.html.len() <= LENGTH);
        let wide = bounded(&format!("<p {}>x", "a ".repeat(TAG)));
        assert_eq!(wide.html, "<p>x</p>");
    }
}
