//! What is asked for, and how that is said in headers.

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, ETAG, HOST, HeaderMap, HeaderName,
    HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, TRANSFER_ENCODING,
};
use serde::{Deserialize, Serialize};

use super::failure::FetchError;
use super::unpack;

/// A validator that is longer is not worth keeping; nobody means one like that.
const LONGEST_VALIDATOR: usize = 8 << 10;
/// What the client alone says: with these a request could be made to look like two, or like one to
/// another host.
const RESERVED: [HeaderName; 4] = [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING];

/// One document to fetch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Where it is.
    pub(crate) url: String,
    /// Of the version that is already here.
    pub(crate) validators: Validators,
    /// Sent to the server of the URL, and to no other it may redirect to. They take the place of
    /// our own of the same names.
    pub(crate) headers: Vec<(String, String)>,
    /// What is hoped for.
    pub(crate) accept: Accept,
}

/// What kind of document is hoped for. Servers are told; what they send is not judged by it, since
/// many a feed comes as `text/html`.
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

/// What a server gave to recognise a version by, byte for byte: each is one letter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Validators {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// Not read as a date: servers compare it as text.
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
    /// The headers that every server on the way gets. The validators are among them: they came
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
            // What is no header value did not come from a server, and means nothing to one.
            let bytes = |text: &String| text.chars().map(|it| u8::try_from(it).ok()).collect();
            let bytes: Option<Vec<u8>> = value.as_ref().and_then(bytes);
            if let Some(value) = bytes.and_then(|it| HeaderValue::from_bytes(&it).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// The headers that only the server of the URL gets.
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
