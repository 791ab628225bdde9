//! Requests, and their headers.

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, ETAG, HOST, HeaderMap, HeaderName,
    HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, TRANSFER_ENCODING,
};
use serde::{Deserialize, Serialize};

use super::failure::FetchError;
use super::unpack;

/// A longer validator is not stored; it is surely a mistake.
const LONGEST_VALIDATOR: usize = 8 << 10;
/// Headers that only the client sets: with these a request could be split in two, or sent to
/// another host.
const RESERVED: [HeaderName; 4] = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING];

/// One document to fetch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Its URL.
    pub(crate) url: String,
    /// The validators of the stored version.
    pub(crate) validators: Validators,
    /// Sent only to the server of the URL, not after a redirect elsewhere. They replace our own
    /// headers of the same names.
    pub(crate) headers: Vec<(String, String)>,
    /// The expected kind.
    pub(crate) accept: Accept,
}

/// The expected kind of document, for the header `Accept`. Answers are not judged by it, because
/// many feeds come as `text/html`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Accept {
    /// RSS, Atom or JSON Feed.
    #[default]
    Feed,
    /// A web page.
    Page,
    /// A list of feeds.
    Opml,
}

/// The validators of a version, compared byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Validators {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// Not parsed as a date: servers compare it as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
}

impl Validators {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let text = |name| {
            let bytes = headers.get(name)?.as_bytes();
            let is_kept = (1..=LONGEST_VALIDATOR).contains(&bytes.len());
            is_kept.then(|| bytes.iter().copied().map(char::from).collect())
        };
        Self { etag: text(ETAG), last_modified: text(LAST_MODIFIED) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

impl Accept {
    fn value(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Feed => {
                "application/atom+xml, application/rss+xml, application/feed+json, \
                 application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.5"
            }
            Self::Page => "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
            Self::Opml => "text/x-opml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5",
        })
    }
}

impl Request {
    /// The headers for every server on the way. The validators are among them, because they came
    /// from the end of the same way.
    pub(super) fn headers_for_all(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, self.accept.value());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(unpack::UNDERSTOOD));
        let validators = [
            (IF_NONE_MATCH, &self.validators.etag),
            (IF_MODIFIED_SINCE, &self.validators.last_modified),
        ];
        for (name, value) in validators {
            // An invalid header value did not come from a server, so it is not sent.
            let bytes = |text: &String| text.chars().map(|it| u8::try_from(it).ok()).collect();
            let bytes: Option<Vec<u8>> = value.as_ref().and_then(bytes);
            if let Some(value) = bytes.and_then(|it| HeaderValue::from_bytes(&it).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// The headers for the server of the URL only.
    pub(super) fn headers_for_origin(&self) -> Result<HeaderMap, FetchError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed =
                HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::from_str(value).ok());
            let parsed = parsed.filter(|(key, _)| !RESERVED.contains(key));
            let (key, mut value) = parsed.ok_or_else(|| FetchError::Header(name.clone()))?;
            value.set_sensitive(true);
            headers.append(key, value);
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validators_go_back_byte_for_byte() {
        for value in [&b"\"caf\xe9\""[..], b"W/\"a, b\"", b"\"\xc3\xa9\t\"", &[b'x'; 8 << 10]] {
            let mut headers = HeaderMap::new();
            for name in [ETAG, LAST_MODIFIED] {
                headers.insert(name, HeaderValue::from_bytes(value).unwrap());
            }
            let request = Request { validators: Validators::read(&headers), ..Request::default() };
            let sent = request.headers_for_all();
            for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
                assert_eq!(sent[name].as_bytes(), value);
            }
        }
    }
}
