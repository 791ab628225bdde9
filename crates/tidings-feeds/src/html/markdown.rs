//! HTML as Markdown, without any remaining HTML markup.

use std::fmt::Write as _;

use htmd::HtmlToMarkdown;
use htmd::options::Options;

use super::tokens::{Token, tokens};

/// Safe HTML as safe Markdown.
///
/// The converter writes texts and attributes without references, and a reader of Markdown would
/// take them for tags. So every character that could begin a tag keeps its reference.
pub(crate) fn markdown_of(safe: &str, options: Options) -> String {
    let quoted = quoted(safe);
    let converter = HtmlToMarkdown::builder().options(options).build();
    // Nothing here can fail; otherwise it is shown with all its references.
    converter.convert(&quoted).unwrap_or(quoted)
}

/// The same HTML, where each angle bracket outside markup is a reference that survives one parse,
/// except in code and where it cannot begin a tag.
fn quoted(safe: &str) -> String {
    let mut out = String::with_capacity(safe.len());
    let mut code = Code::default();
    for token in tokens(safe) {
        match token {
            Token::Text(text) => words(text, code.is_shown, &mut out),
            Token::Start(tag) => {
                code.begin(&tag.name, &safe[tag.end..]);
                attributes(tag.written, &mut out);
            }
            Token::End(name) => {
                code.end(&name);
                let _ = write!(out, "</{name}>");
            }
            // An unfinished part is not markup, and would not be parsed as such.
            Token::Unended(_) => {}
        }
    }
    out
}

/// A text between tags.
fn words(text: &str, is_code: bool, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("&lt;").or_else(|| rest.strip_prefix('<')) {
            let is_bare = is_code
                || after.starts_with([' ', '\n', '=', '-'])
                || after.starts_with(|next: char| next.is_ascii_digit());
            out.push_str(if is_bare { "&lt;" } else { "&amp;lt;" });
            rest = after;
        } else {
            out.push('&');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
}

/// A tag whose attributes do not begin a tag.
fn attributes(tag: &str, out: &mut String) {
    let Some(inner) = tag.strip_prefix('<') else { return };
    out.push('<');
    out.push_str(&inner.replace("&lt;", "&amp;lt;").replace('<', "&amp;lt;"));
}

/// Whether an element is code that is shown between marks, where references are not read.
#[derive(Default)]
struct Code {
    is_fenced: bool,
    depth: usize,
    is_shown: bool,
}

impl Code {
    fn begin(&mut self, name: &str, after: &str) {
        if name == "pre" {
            self.is_fenced = true;
        } else if name == "code" {
            self.depth += 1;
            // Marks inside could end it, and so could an empty line.
            let end = after.find("</code>").unwrap_or(after.len());
            let code = &after[..end];
            self.is_shown = self.depth == 1
                && !code.contains(['`', '~', '<'])
                && (self.is_fenced || !code.contains('\n'));
        }
    }

    fn end(&mut self, name: &str) {
        if name == "pre" {
            self.is_fenced = false;
        } else if name == "code" {
            self.depth = self.depth.saturating_sub(1);
            self.is_shown &= self.depth > 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::html::{TextFormat, shown};

    fn markdown(html: &str) -> String {
        shown(html, Some("https://a.org/"), TextFormat::Markdown, 10_000).text
    }

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(markdown(html), expected);
    }

    /// Each of these was once a tag for a reader of the Markdown.
    #[test]
    fn what_only_looks_like_a_tag_stays_words() {
        check("&lt;<b></b>img src=x onerror=y()&gt;", "&lt;img src=x onerror=y()>");
        check("<p>&lt;<span>img src=x&gt;</span></p>", "&lt;img src=x>");
        check("<pre>&lt;script&gt;x()&lt;/script&gt;</pre>", "&lt;script>x()&lt;/script>");
        let link = "<a href='https://a.org/&quot;&gt;&lt;img src=x&gt;'>x</a>";
        assert!(!markdown(link).contains("<img"), "{}", markdown(link));
        assert!(!markdown("<img alt='&lt;b&gt;' src=i>").contains("<b"));
        check("<p>1 &lt; 2, &lt;3</p>", "1 < 2, <3");
    }

    #[test]
    fn code_is_shown_as_it_is() {
        check("<p>a <code>Vec&lt;T&gt;</code></p>", "a `Vec<T>`");
        check("<pre><code>a &lt; b\n\n&lt;T&gt;</code></pre>", "```\na < b\n\n<T>\n```");
        let cut = shown("<code>Vec&lt;T&gt; and more</code>", None, TextFormat::Markdown, 8);
        assert_eq!((cut.text.as_str(), cut.is_cut), ("`Vec…", true));
        // Unless it could end early.
        check("<code>a` &lt;b&gt;</code>", "``a` &lt;b>``");
    }

    fn is_tag(text: &str) -> bool {
        // An address may be in angle brackets.
        let is_address = |at: usize| text[..at].ends_with("](");
        text.match_indices('<')
            .any(|(at, _)| crate::html::begins_tag(&text[at..]) && !is_address(at))
    }

    proptest! {
        #[test]
        fn no_markup_is_left(parts in prop::collection::vec(prop::sample::select(vec![
            "&lt;", "<", "&amp;lt;", "img src=x", "script", "/b", "!--", "&gt;", ">", " ", "\n\n", "a", "`", "\\",
            "<b>", "</b>", "<i></i>", "<span>", "</span>", "<p>", "</p>", "<pre>", "</pre>",
            "<a href='/&lt;b&gt;'>", "</a>", "<img alt='&lt;b' src=x>", "<a href='x' title='&lt;c&gt;'>",
            "<ul><li>", "</ul>", "<table><tr><td>", "</table>", "<h2>", "</h2>", "<br>", "<blockquote>",
        ]), 0..12)) {
            let html = parts.concat();
            let markdown = markdown(&html);
            prop_assert!(!is_tag(&markdown), "{html}\n{markdown}");
        }
    }
}
