//! What is asked for, and how that is said in headers.

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, ETAG, HOST, HeaderMap, HeaderName,
    HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, TRANSFER_ENCODING,
};
use serde::{Deserialize, Serialize};

use super::failure::FetchError;
use super::unpack;

/// A validator that is longer is not worth keeping; nobody means one like that.
const LONGEST_VALIDATOR: usize = 1024;
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

/// What a server gave to recognise a version by, letter for letter.
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
            let text = headers.get(name)?.to_str().ok()?;
            (1..=LONGEST_VALIDATOR).contains(&text.len()).then(|| text.to_owned())
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
            let value = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok());
            if let Some(value) = value {
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
