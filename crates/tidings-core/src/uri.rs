//! [`ResourceUri`]: the URI of one resource, validated once.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The URI of one resource: absolute, exactly as it was written.
///
/// Cloning is cheap: every clone shares one text.
///
/// Two URIs are equal if their texts are. `HTTP://a` and `http://a`, or `%7e` and `~`, may mean the
/// same resource, but a client matches a notice by the string it sent, so URIs are not normalised.
///
/// Characters outside ASCII are accepted, although RFC 3986 wants them percent-encoded: servers
/// offer `file:///menü.txt`, and clients send it back.
///
/// ```
/// use tidings_core::ResourceUri;
///
/// let uri = ResourceUri::parse("feed://news/today?limit=10")?;
/// assert_eq!(uri.scheme(), "feed");
/// assert_eq!(uri.query(), Some("limit=10"));
/// assert_eq!(uri.without_query(), "feed://news/today");
/// # Ok::<(), tidings_core::UriError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceUri {
    // Invariant: passed `check`.
    text: Arc<str>,
}

impl ResourceUri {
    /// The longest accepted URI, in bytes.
    ///
    /// Common proxies and servers refuse request lines of about this length, so a longer URI is a
    /// mistake or an attack.
    pub const MAX_LENGTH: usize = 8192;

    /// Checks that a text is an absolute URI, and keeps it unchanged.
    ///
    /// The part after the scheme is checked for its length and for characters that no URI can
    /// contain. Its structure depends on the scheme.
    ///
    /// ```
    /// use tidings_core::{ResourceUri, UriError};
    ///
    /// assert!(ResourceUri::parse("urn:isbn:0451450523").is_ok());
    /// assert_eq!(ResourceUri::parse("notes/today.md"), Err(UriError::NoScheme));
    /// ```
    ///
    /// # Errors
    ///
    /// If the text is empty or too long, does not start with a scheme and a colon, or contains
    /// white space or a control character.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        check(text)?;
        Ok(Self { text: text.into() })
    }

    /// The whole URI, as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the first colon.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.text.split_once(':').expect("a parsed URI has a colon").0
    }

    /// The part between the first question mark and the fragment.
    ///
    /// An empty query, as in `a:b?`, is a query. A question mark inside the fragment does not start
    /// one.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        Some(self.before_fragment().split_once('?')?.1)
    }

    /// The part before the query.
    ///
    /// A fragment after a query is dropped with it; without a query nothing is dropped.
    #[must_use]
    pub fn without_query(&self) -> &str {
        self.before_fragment().split_once('?').map_or(&self.text, |(before, _)| before)
    }

    fn before_fragment(&self) -> &str {
        self.text.split_once('#').map_or(&self.text, |(before, _)| before)
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl fmt::Debug for ResourceUri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, formatter)
    }
}

impl AsRef<str> for ResourceUri {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

// Equality, order and hash are those of the text, so a map keyed by URIs can be searched with a
// plain `&str`.
impl Borrow<str> for ResourceUri {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl FromStr for ResourceUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        Self::parse(text)
    }
}

/// Why a text is not a resource URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    /// An empty text.
    #[error("the URI is empty")]
    Empty,
    /// More bytes than [`ResourceUri::MAX_LENGTH`].
    #[error("the URI has {length} bytes and may have at most {}", ResourceUri::MAX_LENGTH)]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// No colon before the first slash, question mark or hash: a relative reference.
    #[error("the URI has no scheme; start it with one, as in `file:///` or `https://`")]
    NoScheme,
    /// Text before the first colon that is not a valid scheme.
    #[error(
        "`{scheme}` is not a URI scheme; a scheme starts with a letter and goes on with \
         letters, digits, `+`, `-` and `.`"
    )]
    BadScheme {
        /// The text before the colon.
        scheme: String,
    },
    /// White space or a control character.
    #[error("the URI has {character:?} at byte {at}; percent-encode it or leave it out")]
    BadCharacter {
        /// The first such character.
        character: char,
        /// Its position in bytes.
        at: usize,
    },
}

fn check(text: &str) -> Result<(), UriError> {
    if text.is_empty() {
        return Err(UriError::Empty);
    }
    if text.len() > ResourceUri::MAX_LENGTH {
        return Err(UriError::TooLong { length: text.len() });
    }
    let is_bad = |character: &char| character.is_control() || character.is_whitespace();
    if let Some((at, character)) = text.char_indices().find(|(_, character)| is_bad(character)) {
        return Err(UriError::BadCharacter { character, at });
    }
    let end = text.find([':', '/', '?', '#']).filter(|end| text.as_bytes()[*end] == b':');
    let scheme = &text[..end.ok_or(UriError::NoScheme)?];
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if is_scheme { Ok(()) } else { Err(UriError::BadScheme { scheme: scheme.to_owned() }) }
}

/// The URIs that this one is a sub-resource of, nearest first: those that it continues after a `/`,
/// a `?` or a `#`, and those that end in `/` and start it.
///
/// A server may announce a change of a sub-resource to subscribers of these.
///
/// ```
/// let parents: Vec<_> = tidings_core::uri::parents("dir://a/b?c").collect();
/// assert_eq!(parents, ["dir://a/b", "dir://a/", "dir://a", "dir://", "dir:/", "dir:"]);
/// ```
pub fn parents(uri: &str) -> impl Iterator<Item = &str> {
    let bytes = uri.as_bytes();
    let is_end =
        move |end: &usize| bytes[end - 1] == b'/' || matches!(bytes[*end], b'/' | b'?' | b'#');
    (1..uri.len()).rev().filter(is_end).map(move |end| &uri[..end])
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_parts(text: &str, scheme: &str, without_query: &str, query: Option<&str>) {
        let uri = ResourceUri::parse(text).unwrap();
        assert_eq!(
            (uri.scheme(), uri.without_query(), uri.query()),
            (scheme, without_query, query)
        );
    }

    #[test]
    fn a_sub_resource_continues_its_parent_at_a_border() {
        let is_below = |uri: &str, parent: &str| parents(uri).any(|found| found == parent);
        for uri in ["dir://a/b", "dir://a?b", "dir://a#b", "dir://a/b/c", "dir://a//b", "dir://a/ü"]
        {
            assert!(is_below(uri, "dir://a"), "{uri}");
        }
        assert!(is_below("dir://a/b", "dir://a/") && is_below("dir://a//b", "dir://a/"));
        for uri in ["dir://a", "dir://ab", "dir://a.b", "dir://b/a", "dir://"] {
            assert!(!is_below(uri, "dir://a"), "{uri}");
        }
        let all: Vec<_> = parents("dir://a//b").collect();
        assert_eq!(all.len(), all.iter().collect::<HashSet<_>>().len(), "each is found once");
        assert_eq!(parents("").count(), 0);
    }

    #[test]
    fn parts_are_found_as_written() {
        check_parts("cas:", "cas", "cas:", None);
        check_parts("urn:a:b", "urn", "urn:a:b", None);
        check_parts("A+b-1.c://x?y=z", "A+b-1.c", "A+b-1.c://x", Some("y=z"));
        check_parts("a:b?", "a", "a:b", Some(""));
        check_parts("a:b?c?d#e?f", "a", "a:b", Some("c?d"));
        check_parts("a:b#c?d", "a", "a:b#c?d", None);
        check_parts("file:///menü.txt", "file", "file:///menü.txt", None);
    }

    #[track_caller]
    fn check_error(text: &str, message: &str) {
        assert_eq!(ResourceUri::parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn errors_say_what_to_do() {
        check_error("", "the URI is empty");
        check_error(
            &format!("a:{}", "b".repeat(8191)),
            "the URI has 8193 bytes and may have at most 8192",
        );
        let no_scheme = "the URI has no scheme; start it with one, as in `file:///` or `https://`";
        check_error("notes.md", no_scheme);
        check_error("/notes:today", no_scheme);
        check_error("?a:b", no_scheme);
        let rule = "is not a URI scheme; a scheme starts with a letter and goes on with letters, \
                    digits, `+`, `-` and `.`";
        check_error("1a:b", &format!("`1a` {rule}"));
        check_error(":b", &format!("`` {rule}"));
        check_error("ü:b", &format!("`ü` {rule}"));
        check_error("a:b c", "the URI has ' ' at byte 3; percent-encode it or leave it out");
        check_error("a:b\n", "the URI has '\\n' at byte 3; percent-encode it or leave it out");
        check_error(
            "a:b\u{a0}",
            "the URI has '\\u{a0}' at byte 3; percent-encode it or leave it out",
        );
    }

    #[test]
    fn the_longest_uri_is_accepted() {
        assert!(ResourceUri::parse(&format!("a:{}", "b".repeat(8190))).is_ok());
    }

    #[test]
    fn equivalent_spellings_stay_different() {
        let parse = |text| ResourceUri::parse(text).unwrap();
        assert_ne!(parse("HTTP://a"), parse("http://a"));
        assert_ne!(parse("a:%7e"), parse("a:~"));
        assert_ne!(parse("a:/b/../c"), parse("a:/c"));
    }

    #[test]
    fn a_set_of_uris_can_be_asked_with_a_plain_text() {
        let uri = ResourceUri::parse("a:b").unwrap();
        assert!(HashSet::from([uri.clone()]).contains("a:b"));
        assert!(BTreeSet::from([uri]).contains("a:b"));
    }

    proptest! {
        #[test]
        fn what_parses_is_kept_to_the_byte(text in ".{0,40}|[a-z]{1,4}:[^ ]{0,40}") {
            if let Ok(uri) = ResourceUri::parse(&text) {
                prop_assert_eq!(uri.to_string(), text.clone());
                prop_assert!(text.starts_with(uri.without_query()));
                prop_assert!(text.starts_with(uri.scheme()));
                prop_assert!(uri.query().is_none_or(|query| text.contains(query)));
            }
        }
    }
}
