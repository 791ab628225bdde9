//! A web page for a reader: its main article as Markdown, or its text, within limits.

mod article;
mod bound;

use tidings_store::date::Moment;
use tokio::sync::Semaphore;

use self::article::Article;
use crate::ask::causes;
use crate::fetch::{Accept, Fetched, Request};
use crate::html;
use crate::parse;
use crate::{Feeds, WebAddress};

/// How many pages are read at once, each on a thread of its own.
static READING: Semaphore = Semaphore::const_new(2);

/// The wanted form of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The main article as Markdown; other documents unchanged.
    #[default]
    Article,
    /// The text as received.
    Raw,
}

/// A fetched page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Its final URL, after all redirects.
    pub url: String,
    /// Whether that differs from the requested one.
    pub was_redirected: bool,
    /// Its media type.
    pub content_type: String,
    /// Its title.
    pub title: Option<String>,
    /// Its author.
    pub byline: Option<String>,
    /// Its site.
    pub site: Option<String>,
    /// When it was published.
    pub published: Option<Moment>,
    /// Its language.
    pub language: Option<String>,
    /// Its text.
    pub text: String,
    /// Whether the text is Markdown of the main article.
    pub is_article: bool,
    /// Whether the whole page was read; of an endless page only the beginning is.
    pub is_whole: bool,
}

/// Why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchPageError {
    /// An address that is not on the web.
    #[error("`{0}` is not a URL on the web; it begins with `https://` or `http://`")]
    Url(String),
    /// This process does not fetch.
    #[error("nothing is fetched here")]
    Offline,
    /// It could not be fetched, with the reason.
    #[error("`{url}` could not be fetched: {reason}")]
    Fetch {
        /// The address.
        url: String,
        /// The reason.
        reason: String,
    },
    /// Not a text.
    #[error("`{url}` is {content_type}; only web pages, plain text, JSON and XML can be shown")]
    NotText {
        /// Its address.
        url: String,
        /// Its type.
        content_type: String,
    },
}

impl Feeds {
    /// Fetches a page on the web and makes it readable. Every redirect is checked like any request.
    ///
    /// # Errors
    ///
    /// It cannot be fetched, or is not a text.
    pub async fn fetch_page(&self, url: &str, form: Form) -> Result<Page, FetchPageError> {
        let asked = url.trim();
        let address =
            WebAddress::parse(asked).map_err(|_| FetchPageError::Url(asked.to_owned()))?;
        let asked = address.as_str();
        let fetcher = self.0.fetcher.as_ref().ok_or(FetchPageError::Offline)?;
        let failed = |reason: String| FetchPageError::Fetch { url: asked.to_owned(), reason };
        let request = Request { url: asked.to_owned(), accept: Accept::Page, ..Request::default() };
        let fetched = fetcher.fetch(request).await.map_err(|error| failed(causes(&error)))?;
        let Fetched::Document { bytes, content_type, url, .. } = fetched else {
            return Err(failed("the server says that nothing changed".to_owned()));
        };
        let was_redirected = !is_same(asked, &url);
        let turn = READING.acquire().await.map_err(|error| failed(error.to_string()))?;
        let read = move || {
            // Held to the end of the work, even if the caller left.
            let _turn = turn;
            let page = read(&bytes, content_type.as_deref(), &url, form);
            page.map(|page| Page { was_redirected, ..page })
        };
        let page = tokio::task::spawn_blocking(read).await;
        page.map_err(|_| failed("it could not be read".to_owned()))?
    }
}

/// Makes a document readable.
fn read(bytes: &[u8], header: Option<&str>, url: &str, form: Form) -> Result<Page, FetchPageError> {
    let kind = kind(bytes, header);
    if !is_text(&kind) {
        let url = url.to_owned();
        return Err(FetchPageError::NotText { url, content_type: kind });
    }
    let is_page = matches!(kind.as_str(), "text/html" | "application/xhtml+xml");
    let text = parse::text(bytes, charset(bytes, header, is_page).as_deref());
    let is_article = is_page && form == Form::Article;
    let Article { title, byline, site, published, language, markdown, is_whole } = if is_article {
        article::article(&text, url)
    } else {
        Article { markdown: text, is_whole: true, ..Article::default() }
    };
    Ok(Page {
        url: url.to_owned(),
        was_redirected: false,
        content_type: kind,
        title,
        byline,
        site,
        published,
        language,
        text: html::visible(&markdown).into_owned(),
        is_article,
        is_whole,
    })
}

/// The type of a document: by its first bytes if they show that it is not text, else by the server,
/// else by its content.
fn kind(bytes: &[u8], header: Option<&str>) -> String {
    let found = infer::get(bytes).map(|kind| kind.mime_type());
    if let Some(found) = found.filter(|kind| !is_text(kind)) {
        return found.to_owned();
    }
    let said = header.and_then(|header| header.split(';').next());
    let said = said.map(|kind| kind.trim().to_ascii_lowercase()).filter(|kind| !kind.is_empty());
    match (said, found) {
        (Some(said), _) if said != "application/octet-stream" => said,
        (_, Some(found)) => found.to_owned(),
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain".to_owned(),
        _ => "application/octet-stream".to_owned(),
    }
}

fn is_text(kind: &str) -> bool {
    let is_whole = ["application/json", "application/xml", "application/yaml", "application/toml"];
    // `x-sh` and similar types are programs that people read.
    kind.starts_with("text/")
        || is_whole.contains(&kind)
        || kind.starts_with("application/")
            && (kind.ends_with("+json") || kind.ends_with("+xml") || kind.ends_with("/javascript"))
}

/// The header with the charset that the page declares, if the header has none.
fn charset(bytes: &[u8], header: Option<&str>, is_page: bool) -> Option<String> {
    let has_charset = header.is_some_and(|it| it.to_ascii_lowercase().contains("charset"));
    if has_charset || !is_page {
        return header.map(str::to_owned);
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_ascii_lowercase();
    let declared =
        head.split_once("charset=").map(|(_, rest)| rest.trim_start_matches(['"', '\'']));
    let is_end = |letter: char| !letter.is_ascii_alphanumeric() && !"-_".contains(letter);
    let name = declared.and_then(|rest| rest.split(is_end).next()).filter(|name| !name.is_empty());
    match name {
        Some(name) => Some(format!("text/html; charset={name}")),
        None => header.map(str::to_owned),
    }
}

/// Whether two addresses differ only in their spelling.
fn is_same(asked: &str, found: &str) -> bool {
    let plain = |url: &str| {
        let url = url.split('#').next().unwrap_or_default();
        reqwest::Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.to_string())
    };
    plain(asked) == plain(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://example.com/";

    #[test]
    fn what_a_document_is_decides_how_it_is_shown() {
        let page = |bytes: &[u8], header| read(bytes, header, URL, Form::Article);
        let html = page(b"<p>a <b>b</b>", Some("Text/HTML; charset=utf-8")).unwrap();
        assert_eq!((html.text.as_str(), html.is_article), ("a **b**", true));
        let raw = read(b"<p>a <b>b</b>", Some("text/html"), URL, Form::Raw).unwrap();
        assert_eq!((raw.text.as_str(), raw.is_article), ("<p>a <b>b</b>", false));
        for (bytes, header) in [
            (&b"plain"[..], Some("text/plain")),
            (b"{\"a\": 1}", Some("application/feed+json")),
            (b"<a/>", Some("application/rss+xml")),
            (b"plain", None),
            (b"plain", Some("application/octet-stream")),
        ] {
            let shown = page(bytes, header).unwrap();
            assert_eq!((shown.text.as_bytes(), shown.is_article), (bytes, false));
        }
        for (bytes, header, kind) in [
            (&b"%PDF-1.7 x"[..], Some("text/html"), "application/pdf"),
            (b"x", Some("image/png"), "image/png"),
            (b"\xff\xfe\xfd", None, "application/octet-stream"),
            (b"\x89PNG\r\n\x1a\n", None, "image/png"),
        ] {
            let refused = page(bytes, header).unwrap_err().to_string();
            assert!(refused.contains(kind), "{refused}");
        }
    }

    #[test]
    fn a_page_says_how_it_is_written() {
        let latin = b"<meta charset=\"iso-8859-1\"><p>caf\xe9";
        assert_eq!(read(latin, Some("text/html"), URL, Form::Article).unwrap().text, "café");
        let header = Some("text/html; charset=windows-1252");
        assert_eq!(read(b"<p>caf\xe9", header, URL, Form::Article).unwrap().text, "café");
    }

    #[test]
    fn only_another_address_is_a_redirect() {
        assert!(is_same("https://EXAMPLE.com#top", URL));
        assert!(!is_same("https://example.com/a", URL));
    }
}
