//! The main article of a page, as Markdown.

use ammonia::UrlRelative;
use dom_smoothie::{Article as Found, Metadata, Readability};
use htmd::options::Options;
use tidings_store::date::Moment;

use super::bound::{Bounded, bounded};
use crate::html::{levelled, markdown_of, visible};

/// The longest description of a page that is used.
const LONGEST: usize = 1_000;

/// An article with the details of its page.
#[derive(Debug, Default)]
pub(super) struct Article {
    pub(super) title: Option<String>,
    pub(super) byline: Option<String>,
    pub(super) site: Option<String>,
    pub(super) published: Option<Moment>,
    pub(super) language: Option<String>,
    pub(super) markdown: String,
    /// Whether the whole page was read.
    pub(super) is_whole: bool,
}

/// Reads a page. The time is in proportion to its length; call it on a thread that may wait.
pub(super) fn article(html: &str, url: &str) -> Article {
    let Bounded { html, is_whole } = bounded(html);
    let Ok(mut page) = Readability::new(html.as_str(), Some(url), None) else {
        return Article { markdown: markdown(&html, url), is_whole, ..Article::default() };
    };
    let said = page.get_article_metadata(page.parse_json_ld());
    let (said, content) = match page.parse() {
        Ok(found) => (metadata(&found, said), found.content.to_string()),
        // Nothing on it looks like an article, so all of it is shown.
        Err(_) => (said, html),
    };
    Article {
        title: line(Some(said.title)),
        byline: line(said.byline),
        site: line(said.site_name),
        published: said.published_time.as_deref().and_then(Moment::parse),
        language: line(said.lang),
        markdown: markdown(&content, url),
        is_whole,
    }
}

/// The details of the article take precedence over those of the page.
fn metadata(found: &Found, said: Metadata) -> Metadata {
    Metadata {
        title: if found.title.is_empty() { said.title } else { found.title.clone() },
        byline: found.byline.clone().or(said.byline),
        site_name: found.site_name.clone().or(said.site_name),
        published_time: found.published_time.clone().or(said.published_time),
        lang: found.lang.clone().or(said.lang),
        ..Metadata::default()
    }
}

/// Markup as Markdown, without anything harmful.
fn markdown(html: &str, url: &str) -> String {
    let mut cleaner = ammonia::Builder::default();
    cleaner.rm_tags(["title"]);
    if let Ok(base) = ammonia::Url::parse(url) {
        cleaner.url_relative(UrlRelative::RewriteWithBase(base));
    }
    // The found article has no comments any more that would split its texts.
    let clean = cleaner.clean(&levelled(html, None)).to_string();
    let options = Options { ul_bullet_spacing: 1, ol_number_spacing: 1, ..Options::default() };
    markdown_of(&clean, options).trim().to_owned()
}

/// A text of one line, if there is any.
fn line(text: Option<String>) -> Option<String> {
    let text = text?;
    let text = visible(&text);
    let words: Vec<_> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    line.truncate(line.floor_char_boundary(LONGEST));
    if line.is_empty() { None } else { Some(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://example.com/a/b";

    fn paragraphs() -> String {
        let text = "Some words of an article, and more of them, until it is one. ".repeat(6);
        format!("<p>{text}</p>").repeat(4)
    }

    #[test]
    fn what_no_reader_sees_is_not_in_an_article() {
        let hidden = "<p style='display:none'>obey</p><p hidden>obey</p>";
        let html = format!("<title>A\u{e0041}b</title><article>{}{hidden}</article>", paragraphs());
        let article = article(&html, URL);
        assert!(!article.markdown.contains("obey"), "{}", article.markdown);
        assert_eq!(article.title.as_deref(), Some("Ab"));
    }

    #[test]
    fn the_article_is_kept_and_the_rest_of_the_page_is_not() {
        let html = format!(
            "<html lang=en><head><title>On Things | The Paper</title>
            <meta property='og:site_name' content='The Paper'>
            <meta property='article:published_time' content='2024-01-02T03:04:05Z'>
            <meta name='author' content='Jane Smith'></head>
            <body><nav class=menu><ul><li><a href='/x'>Home</a><li><a href='/y'>Sport</a></ul></nav>
            <article><h1>On Things</h1>{}<p>See <a href='../c'>this</a> and
            <a href='javascript:alert(1)'>that</a>.<script>steal()</script></p></article>
            <footer>All rights reserved</footer></body></html>",
            paragraphs()
        );
        let article = article(&html, URL);
        assert_eq!(article.site.as_deref(), Some("The Paper"));
        assert!(article.title.unwrap().starts_with("On Things"));
        assert_eq!(article.byline.as_deref(), Some("Jane Smith"));
        assert_eq!(article.published.unwrap().to_string(), "2024-01-02T03:04:05Z");
        assert_eq!(article.language.as_deref(), Some("en"));
        let text = &article.markdown;
        assert!(text.contains("Some words of an article"), "{text}");
        assert!(text.contains("[this](https://example.com/c)"), "{text}");
        for gone in ["Sport", "steal", "javascript", "<p>"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        assert!(article.is_whole);
    }

    #[test]
    fn a_page_without_an_article_is_shown_whole() {
        let article = article("<title>T</title><ul><li>one<li>two</ul>", URL);
        assert_eq!(article.title.as_deref(), Some("T"));
        assert_eq!(article.markdown, "* one\n* two");
    }

    #[test]
    fn hostile_pages_are_read_too() {
        let deep = format!("{}x", "<div>".repeat(100_000));
        assert_eq!(article(&deep, URL).markdown, "x");
        let tables = format!("{}x", "<table><tr><td>".repeat(5_000));
        assert!(article(&tables, URL).markdown.contains('x'));
        let quotes = format!("{}x", "<blockquote><ul><li>".repeat(5_000));
        assert!(article(&quotes, URL).markdown.contains('x'));
        let formats: Vec<_> = (0..5_000).map(|number| format!("<b id={number}><p>y")).collect();
        assert!(article(&formats.concat(), URL).markdown.contains('y'));
        let links = "<a href=x>".repeat(5_000) + "z";
        assert!(article(&links, URL).markdown.contains('z'));
        for references in ["&amp;".repeat(20_000), "<".repeat(20_000)] {
            assert!(article(&format!("<p>{references}"), URL).markdown.len() >= 20_000);
        }
        assert_eq!(article("", URL).markdown, "");
    }
}
