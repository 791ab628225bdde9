//! The address of a feed: on the web, or a file on this machine. A text is parsed once, where it
//! comes in.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::Url;

/// The origin of a feed's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The operator of the program, who may also name files.
    Operator,
    /// Anybody else: a client, a page, a list from elsewhere. Only addresses on the web are
    /// accepted, because otherwise any file on this machine could be read.
    Client,
}

/// The location of a feed.
///
/// ```
/// use tidings_feeds::{Asker, FeedAddress};
///
/// let web = FeedAddress::parse("feed://example.com/news", Asker::Client)?;
/// assert_eq!(web.as_str(), "http://example.com/news");
/// assert!(FeedAddress::parse("/srv/news.xml", Asker::Operator).is_ok());
/// assert!(FeedAddress::parse("/srv/news.xml", Asker::Client).is_err());
/// # Ok::<(), tidings_feeds::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FeedAddress {
    /// On the web.
    Web(WebAddress),
    /// A file on this machine.
    File(FileAddress),
}

/// An address on the web in its original spelling: the text identifies the feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebAddress {
    text: String,
    /// `None` only for a stored text that this release does not accept as a URL: requests to it
    /// fail.
    url: Option<Url>,
}

/// A file on this machine in its original spelling: a path, or a `file:` URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileAddress {
    text: String,
    path: PathBuf,
}

/// A text that is not the address of a feed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the URL of a feed; it begins with `https://` or `http://`")]
pub struct AddressError(String);

impl FeedAddress {
    /// Parses an address. `feed://` and `feed:https://` are accepted.
    ///
    /// # Errors
    ///
    /// It is neither on the web nor, if the operator named it, a file.
    pub fn parse(text: &str, asker: Asker) -> Result<Self, AddressError> {
        let error = match WebAddress::parse(text) {
            Ok(address) => return Ok(Self::Web(address)),
            Err(error) => error,
        };
        let file = FileAddress::parse(&error.0).filter(|_| asker == Asker::Operator);
        file.map(Self::File).ok_or(error)
    }

    /// Parses a stored address, which was valid when it was written.
    pub(crate) fn stored(text: String) -> Self {
        match FileAddress::parse(&text) {
            Some(file) => Self::File(file),
            None => Self::Web(WebAddress::stored(text)),
        }
    }

    /// The address after a redirect. Only addresses on the web move, and only to the web.
    pub(crate) fn moved_to(&self, text: String) -> Self {
        match self {
            Self::Web(_) => Self::Web(WebAddress::stored(text)),
            Self::File(_) => self.clone(),
        }
    }

    /// Its original spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Web(WebAddress { text, .. }) | Self::File(FileAddress { text, .. }) => text,
        }
    }

    /// The address, if it is on the web.
    #[must_use]
    pub fn web(&self) -> Option<&WebAddress> {
        if let Self::Web(address) = self { Some(address) } else { None }
    }

    /// The address, if it is a file.
    #[must_use]
    pub fn file(&self) -> Option<&FileAddress> {
        if let Self::File(address) = self { Some(address) } else { None }
    }

    /// The same address independent of the directory: a relative path begins in this directory, or
    /// in the current one.
    #[must_use]
    pub fn absolute(&self, base: Option<&Path>) -> Self {
        match self {
            Self::Web(_) => self.clone(),
            Self::File(file) => Self::File(file.absolute(base)),
        }
    }

    /// Without a user name and password.
    pub(crate) fn public(&self) -> String {
        let text = self.as_str();
        let (Self::Web(_), Some((scheme, rest))) = (self, text.split_once("://")) else {
            return text.to_owned();
        };
        format!("{scheme}://{}", without_user(rest))
    }

    /// Whether both have the same server.
    pub(crate) fn has_same_origin(&self, other: &Self) -> bool {
        self.web().zip(other.web()).is_some_and(|(one, other)| one.has_same_origin(other))
    }
}

impl WebAddress {
    /// Parses an address on the web. `feed://` and `feed:https://` are accepted.
    ///
    /// # Errors
    ///
    /// The text is not such an address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = without_feed_scheme(text.trim());
        match Url::parse(&text) {
            Ok(url) if is_web(&text) => Ok(Self { text, url: Some(url) }),
            _ => Err(AddressError(text)),
        }
    }

    pub(crate) fn stored(text: String) -> Self {
        let url = Url::parse(&text).ok();
        Self { text, url }
    }

    /// Its original spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it has a user name or password. Requests do not use them.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        let has = |url: &Url| !url.username().is_empty() || url.password().is_some();
        self.url.as_ref().is_some_and(has)
    }

    /// The host that a request to it counts for.
    pub(crate) fn host(&self) -> Option<&str> {
        self.url.as_ref()?.host_str().map(|host| host.trim_end_matches('.'))
    }

    /// Whether both have the same server.
    pub(crate) fn has_same_origin(&self, other: &Self) -> bool {
        let both = self.url.as_ref().zip(other.url.as_ref());
        both.is_some_and(|(one, other)| one.origin() == other.origin())
    }
}

impl FileAddress {
    /// Parses a path, plain or as `file:`; `None` if it is a URL, or looks like one of the web.
    ///
    /// Never called with texts of documents: a feed does not name files.
    fn parse(text: &str) -> Option<Self> {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if text.is_empty() || matches!(scheme.as_deref(), Some("http" | "https")) {
            return None;
        }
        let path = match Url::parse(text) {
            Ok(url) if url.scheme() == "file" => url.to_file_path().ok()?,
            // A single letter is a drive, not a scheme.
            Ok(url) if url.scheme().len() > 1 => return None,
            _ => PathBuf::from(text),
        };
        Some(Self { text: text.to_owned(), path })
    }

    /// Its original spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn absolute(&self, base: Option<&Path>) -> Self {
        // A URL is absolute already.
        if Path::new(&self.text) != self.path {
            return self.clone();
        }
        let path = base.map_or_else(|| self.path.clone(), |base| base.join(&self.path));
        match std::path::absolute(path) {
            Ok(path) => Self { text: path.display().to_string(), path },
            Err(_) => self.clone(),
        }
    }
}

impl fmt::Display for FeedAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// An address in short: from its host on, without a user name and password. Also for a text with
/// names of variables, which is not an address.
pub(crate) fn brief(text: &str) -> &str {
    without_user(text.split_once("://").map_or(text, |(_, rest)| rest))
}

/// The text after a scheme, from the host on.
fn without_user(rest: &str) -> &str {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest[..end].rfind('@').map_or(rest, |at| &rest[at + 1..])
}

fn is_web(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// An address without the schemes of old browsers: `feed://a.org/x` means `http://a.org/x`, and
/// `feed:https://a.org/x` means `https://a.org/x`.
fn without_feed_scheme(text: &str) -> String {
    let is_feed = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("feed:"));
    match text.get(5..).filter(|_| is_feed) {
        Some(rest) if rest.starts_with("//") => format!("http:{rest}"),
        Some(rest) if is_web(rest) => rest.to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(text: &str) -> WebAddress {
        WebAddress::parse(text).unwrap()
    }

    #[track_caller]
    fn check_file(text: &str, expected: Option<&str>) {
        let address = FeedAddress::parse(text, Asker::Operator);
        let file = address.as_ref().ok().and_then(FeedAddress::file);
        assert_eq!(file.map(FileAddress::path), expected.map(Path::new), "{text}");
        assert!(file.is_none() || FeedAddress::parse(text, Asker::Client).is_err(), "{text}");
    }

    #[test]
    fn the_scheme_of_feeds_is_understood() {
        assert_eq!(web(" feed://a.org/x").as_str(), "http://a.org/x");
        assert_eq!(web("feed:https://a.org/x").as_str(), "https://a.org/x");
        assert_eq!(web("https://a.org/").as_str(), "https://a.org/");
        check_file("feed.xml", Some("feed.xml"));
    }

    #[test]
    fn what_cannot_be_an_address_is_none() {
        for url in ["https://a.org", "HTTP://a.org/x?y#z", "http://[::1]:80/"] {
            assert_eq!(web(url).as_str(), url);
        }
        for url in ["http://a b/../x", "http://", "https://[::1/", "http:a.org", "ftp://a.org/", ""]
        {
            let refused = FeedAddress::parse(url, Asker::Operator).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("`{url}` is not the URL of a feed")), "{refused}");
        }
    }

    #[test]
    fn files_are_told_from_the_web_and_only_the_operator_names_them() {
        check_file("feed.xml", Some("feed.xml"));
        check_file(" /srv/feed.xml", Some("/srv/feed.xml"));
        check_file("file:///srv/my%20feed.xml", Some("/srv/my feed.xml"));
        check_file("C:\\feed.xml", Some("C:\\feed.xml"));
        check_file("https://example.com/feed.xml", None);
        check_file("gopher://example.com/", None);
        check_file("http://a b/../../srv/feed.xml", None);
        check_file(" HTTPS:///", None);
    }

    #[test]
    fn a_path_is_whole_from_everywhere_and_a_url_stays() {
        let whole = |text: &str| {
            let address = FeedAddress::parse(text, Asker::Operator).unwrap();
            address.absolute(Some(Path::new("/feeds"))).to_string()
        };
        assert_eq!(whole("f.xml"), "/feeds/f.xml");
        assert_eq!(whole("/a/./f.xml"), "/a/f.xml");
        assert_eq!(whole("file:///f.xml"), "file:///f.xml");
        assert_eq!(whole("https://a.org/f"), "https://a.org/f");
    }

    #[test]
    fn what_a_store_has_is_an_address_whatever_it_is() {
        let stored = |text: &str| FeedAddress::stored(text.to_owned());
        assert!(stored("/srv/f.xml").file().is_some());
        let odd = stored("http://a b/");
        assert_eq!((odd.as_str(), odd.web().unwrap().host()), ("http://a b/", None));
        assert!(!odd.has_same_origin(&odd));
        // A redirect names no file, and a file does not move.
        assert!(stored("https://a.org/").moved_to("/etc/passwd".to_owned()).file().is_none());
        let file = stored("/srv/f.xml");
        assert_eq!(file.moved_to("https://a.org/".to_owned()), file);
    }

    #[test]
    fn names_and_passwords_are_found_and_not_shown() {
        let address = FeedAddress::Web(web("https://me:secret@a.org/@x?y=a@b"));
        assert!(address.web().unwrap().has_credentials());
        assert_eq!(address.public(), "https://a.org/@x?y=a@b");
        assert_eq!(brief(address.as_str()), "a.org/@x?y=a@b");
        assert!(!web("https://a.org/@me?x=a@b").has_credentials());
    }

    #[test]
    fn one_server_has_one_scheme_host_and_port() {
        assert!(web("https://a.org/x").has_same_origin(&web("https://A.org:443/y")));
        assert!(!web("https://a.org/x").has_same_origin(&web("http://a.org/x")));
        assert_eq!(web("https://Example.com./").host(), Some("example.com"));
    }
}
