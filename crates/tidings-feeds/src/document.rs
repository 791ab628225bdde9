//! One document fetched by its URL, with the same checks as any feed.

use std::error::Error;

use crate::address::WebAddress;
use crate::fetch::{self, Accept, Fetcher, Request};

/// A document from the web.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Its content, unpacked.
    pub bytes: Vec<u8>,
    /// Its type according to the server.
    pub content_type: Option<String>,
    /// Its final URL.
    pub url: String,
}

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchDocumentError {
    /// Nothing can be fetched on this machine.
    #[error("no document can be fetched")]
    Client(#[source] Box<dyn Error + Send + Sync>),
    /// The server does not have it, or it may not be fetched.
    #[error(transparent)]
    Fetch(Box<dyn Error + Send + Sync>),
}

impl FetchDocumentError {
    /// Whether it was not fetched because it is on a private address, or on a port that is not for
    /// the web.
    #[must_use]
    pub fn is_private(&self) -> bool {
        let Self::Fetch(error) = self else { return false };
        error.downcast_ref::<fetch::FetchError>().is_some_and(fetch::FetchError::is_private)
    }
}

/// Fetches one document with the usual limits of size, time, redirects and addresses.
///
/// # Errors
///
/// It is missing, may not be fetched, or is too large.
pub async fn fetch_document(
    address: &WebAddress,
    allow_private: bool,
) -> Result<Fetched, FetchDocumentError> {
    let config = fetch::Config { allow_private, ..fetch::Config::default() };
    let fetcher =
        Fetcher::new(config).map_err(|error| FetchDocumentError::Client(Box::new(error)))?;
    let request =
        Request { url: address.as_str().to_owned(), accept: Accept::Feed, ..Request::default() };
    match fetcher.fetch(request).await {
        Ok(fetch::Fetched::Document { bytes, content_type, url, .. }) => {
            Ok(Fetched { bytes, content_type, url })
        }
        // The request has no validators, so this answer is wrong.
        Ok(fetch::Fetched::NotModified { .. }) => {
            Err(FetchDocumentError::Fetch("the server says that nothing changed".into()))
        }
        Err(error) => Err(FetchDocumentError::Fetch(Box::new(error))),
    }
}
