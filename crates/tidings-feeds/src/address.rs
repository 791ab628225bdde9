//! The address of a feed: on the web, or a file of this machine. A text becomes an address once,
//! where it comes in.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::Url;

/// Who names a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Whoever runs the program: files may be named too.
    Operator,
    /// Anybody else: a client, a page, a list from elsewhere. Only what is on the web may be named,
    /// or any file of this machine could be had.
    Client,
}

/// Where a feed is.
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
    /// A file of this machine.
    File(FileAddress),
}

/// An address on the web, as it was written: the text names the feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebAddress {
    text: String,
    /// `None` only for a text of a store that this release takes for no URL: to ask for it fails.
    url: Option<Url>,
}

/// A file of this machine, as it was written: by its path, or as a `file:` URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileAddress {
    text: String,
    path: PathBuf,
}

/// A text that is no address of a feed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the URL of a feed; it begins with `https://` or `http://`")]
pub struct AddressError(String);

impl FeedAddress {
    /// Reads what somebody named. `feed://` and `feed:https://` are understood.
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

    /// Reads what a store has, which was an address when it was written.
    pub(crate) fn stored(text: String) -> Self {
        match FileAddress::parse(&text) {
            Some(file) => Self::File(file),
            None => Self::Web(WebAddress::stored(text)),
        }
    }

    /// Where the feed is that was asked for here. Only what is on the web moves, and only there.
    pub(crate) fn moved_to(&self, text: String) -> Self {
        match self {
            Self::Web(_) => Self::Web(WebAddress::stored(text)),
            Self::File(_) => self.clone(),
        }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Web(WebAddress { text, .. }) | Self::File(FileAddress { text, .. }) => text,
        }
    }

    /// The same if it is on the web.
    #[must_use]
    pub fn web(&self) -> Option<&WebAddress> {
        if let Self::Web(address) = self { Some(address) } else { None }
    }

    /// The same if it is a file.
    #[must_use]
    pub fn file(&self) -> Option<&FileAddress> {
        if let Self::File(address) = self { Some(address) } else { None }
    }

    /// The same as it is from every directory: a path that is not whole begins in this one, or in
    /// the current one.
    #[must_use]
    pub fn absolute(&self, base: Option<&Path>) -> Self {
        match self {
            Self::Web(_) => self.clone(),
            Self::File(file) => Self::File(file.absolute(base)),
        }
    }

    /// Without a name and a password.
    pub(crate) fn public(&self) -> String {
        let text = self.as_str();
        let (Self::Web(_), Some((scheme, rest))) = (self, text.split_once("://")) else {
            return text.to_owned();
        };
        format!("{scheme}://{}", without_user(rest))
    }

    /// Whether both are of one server.
    pub(crate) fn has_same_origin(&self, other: &Self) -> bool {
        self.web().zip(other.web()).is_some_and(|(one, other)| one.has_same_origin(other))
    }
}

impl WebAddress {
    /// Reads an address on the web. `feed://` and `feed:https://` are understood.
    ///
    /// # Errors
    ///
    /// It is none.
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

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a name or a password is in it, with which no request is made.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        let has = |url: &Url| !url.username().is_empty() || url.password().is_some();
        self.url.as_ref().is_some_and(has)
    }

    /// Whom a request to it is counted by.
    pub(crate) fn host(&self) -> Option<&str> {
        self.url.as_ref()?.host_str().map(|host| host.trim_end_matches('.'))
    }

    /// Whether both are of one server.
    pub(crate) fn has_same_origin(&self, other: &Self) -> bool {
        let both = self.url.as_ref().zip(other.url.as_ref());
        both.is_some_and(|(one, other)| one.origin() == other.origin())
    }
}

impl FileAddress {
    /// Reads a path, plain or as `file:`; nothing if it is a URL, or was meant to be one of the web.
    ///
    /// Never called with what a document says: a feed does not name files.
    fn parse(text: &str) -> Option<Self> {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if text.is_empty() || matches!(scheme.as_deref(), Some("http" | "https")) {
            return None;
        }
        let path = match Url::parse(text) {
            Ok(url) if url.scheme() == "file" => url.to_file_path().ok()?,
            // A letter alone is a drive, not a scheme.
            Ok(url) if url.scheme().len() > 1 => return None,
            _ => PathBuf::from(text),
        };
        Some(Self { text: text.to_owned(), path })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn absolute(&self, base: Option<&Path>) -> Self {
        // A URL is whole already.
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

/// What is shown of an address where there is no room for all of it: from its host on, without a
/// name and a password. Also for a text with names of variables, which is no address.
pub(crate) fn brief(text: &str) -> &str {
    without_user(text.split_once("://").map_or(text, |(_, rest)| rest))
}

/// What follows a scheme, from the host on.
fn without_user(rest: &str) -> &str {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest[..end].rfind('@').map_or(rest, |at| &rest[at + 1..])
}

fn is_web(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// An address as it is on the web: `feed://a.org/x` is what old browsers called `http://a.org/x`, and
/// `feed:https://a.org/x` what they called that address.
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
        // A redirect names no file, and a file moves nowhere.
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
