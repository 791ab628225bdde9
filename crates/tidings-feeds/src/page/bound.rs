//! Pages made harmless for a tree builder: limits on depth, elements and attributes. Beyond them,
//! markup is dropped and text is kept.
//!
//! Trees are walked recursively, and unclosed elements are opened again in every following
//! paragraph: a page of a few kilobytes can take all memory. So this closes every element that it
//! opens. It reads every byte once.

use crate::html::{Splitter, Tag, Token, VOID, open_before, quoted_angles, tokens};

/// The maximum depth of elements.
const DEPTH: usize = 100;
/// The maximum number of open elements that are opened again after every block.
const FORMATTING_DEPTH: usize = 8;
/// The maximum number of elements; the longest articles have a tenth of it.
const ELEMENTS: usize = 50_000;
/// The longest page without dropped parts; an article is a tenth of it.
const LENGTH: usize = 2 << 20;
/// A longer tag loses its attributes, because they are compared with each other.
const TAG: usize = 2_048;
/// The maximum number of references in a tag; with more, it loses its attributes.
const REFERENCES: usize = 64;
/// The longest title.
const TITLE: usize = 4 << 10;
/// The longest description of the page for machines.
const DATA: usize = 64 << 10;

/// Elements that are dropped with their content.
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
    /// Whether it is complete.
    pub(super) is_whole: bool,
}

/// Makes a page harmless.
pub(super) fn bounded(html: &str) -> Bounded {
    let mut page = PageBuilder::default();
    let is_whole = page.read(html).is_some() && !page.is_cut;
    page.close_down_to(0);
    Bounded { html: page.html, is_whole }
}

#[derive(Default)]
struct PageBuilder {
    html: String,
    /// The open elements.
    open: Vec<String>,
    formatting: usize,
    /// How many elements were dropped because they were too deep.
    skipped: usize,
    elements: usize,
    splitter: Splitter,
    /// Whether a dropped element has no end, so that the rest is dropped with it.
    is_cut: bool,
}

impl PageBuilder {
    /// Reads to the end; `None` if there is more than fits.
    fn read(&mut self, html: &str) -> Option<()> {
        let mut parts = tokens(html);
        while let Some(part) = parts.next() {
            match part {
                Token::Text(text) => self.words(&quoted_angles(text))?,
                Token::Start(tag) => self.start(&tag, &mut parts)?,
                Token::End(name) => self.end(&name),
                Token::Unended(_) => {}
            }
        }
        Some(())
    }

    /// Writes visible text.
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

    /// Begins an element; its dropped parts are skipped.
    fn start<'a>(
        &mut self,
        tag: &Tag<'_>,
        parts: &mut impl Iterator<Item = Token<'a>>,
    ) -> Option<()> {
        let name = tag.name.as_str();
        match name {
            "script" | "title" => {
                let content = self.content(parts, name);
                let content = match name {
                    "title" => &content[..content.floor_char_boundary(TITLE)],
                    _ if tag.written.contains("ld+json") && content.len() <= DATA => content,
                    _ => return Some(()),
                };
                self.element(tag)?;
                self.text(content)?;
                return self.text(&format!("</{name}>"));
            }
            // Only drawings and formulas may end where they begin.
            "svg" | "math" if tag.is_closed => return Some(()),
            dropped if DROPPED.contains(&dropped) => {
                self.content(parts, name);
                return Some(());
            }
            _ => {}
        }
        self.end_what_it_ends(name);
        if VOID.contains(&name) {
            return self.element(tag);
        }
        let is_formatting = FORMATTING.contains(&name);
        if self.open.len() >= DEPTH || is_formatting && self.formatting >= FORMATTING_DEPTH {
            self.skipped += 1;
            return Some(());
        }
        self.element(tag)?;
        self.formatting += usize::from(is_formatting);
        self.open.push(tag.name.clone());
        Some(())
    }

    /// Skips the content of an element, and returns its first text.
    fn content<'a>(&mut self, parts: &mut impl Iterator<Item = Token<'a>>, name: &str) -> &'a str {
        let mut content = None;
        let mut is_empty = true;
        for part in parts {
            match part {
                Token::End(end) if end == name => return content.unwrap_or_default(),
                Token::Text(text) => content = content.or(Some(text)),
                _ => {}
            }
            is_empty = false;
        }
        self.is_cut |= !is_empty;
        content.unwrap_or_default()
    }

    fn element(&mut self, tag: &Tag<'_>) -> Option<()> {
        self.elements += 1;
        if self.elements > ELEMENTS {
            return None;
        }
        if tag.written.len() <= TAG && tag.references() <= REFERENCES {
            self.text(tag.written)
        } else {
            self.text(&format!("<{}>", tag.name))
        }
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

    /// Many elements end where the next of their kind begins, with the formatting in them.
    fn end_what_it_ends(&mut self, name: &str) {
        let length = open_before(name, &self.open);
        self.close_down_to(length);
    }

    fn close_down_to(&mut self, length: usize) {
        while self.open.len() > length {
            let Some(name) = self.open.pop() else { return };
            self.formatting -= usize::from(FORMATTING.contains(&name.as_str()));
            // A few more letters than a page fit.
            self.html.push_str("</");
            self.html.push_str(&name);
            self.html.push('>');
        }
    }
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
        check("a<p class='never closed>b", "a");
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
