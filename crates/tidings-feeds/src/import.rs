//! Import of lists of feeds: valid feeds are added, and the others reported with their lines.

use crate::address::{Asker, WebAddress};
use crate::ask::causes;
use crate::config::{Earlier, FeedConfig};
use crate::fetch::{Accept, Fetched, Request};
use crate::opml::{self, ReadOpmlError};
use crate::store::Changes;
use crate::{Feeds, FeedsError};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The ids of the feeds that are new.
    pub added: Vec<String>,
    /// The ids of those that were stored already.
    pub known: Vec<String>,
    /// The entries that were skipped.
    pub problems: Vec<opml::Problem>,
}

/// Why a list was not imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is not a list of feeds.
    #[error(transparent)]
    Opml(#[from] ReadOpmlError),
    /// It could not be fetched, with the reason.
    #[error("the list `{url}` could not be fetched: {reason}")]
    Fetch {
        /// Its address.
        url: String,
        /// The reason.
        reason: String,
    },
    /// Its feeds cannot be stored.
    #[error(transparent)]
    Feeds(#[from] FeedsError),
}

impl Feeds {
    /// Adds the feeds of a list in OPML, with folders as categories. They stay after a restart; the
    /// settings of known feeds do not change. The origin of the list decides what it may name: see
    /// [`opml::read_list`].
    ///
    /// # Errors
    ///
    /// It is not a list of feeds, or its feeds cannot be stored.
    pub async fn import(&self, bytes: &[u8], asker: Asker) -> Result<Imported, ImportError> {
        let list = opml::read_list(bytes, asker)?;
        let registrations: Vec<_> = list.feeds.iter().map(FeedConfig::registration).collect();
        let work = move |inner: &crate::Inner| {
            let ids = inner.store.add_all(&registrations, inner.clock.time().to_second())?;
            for (id, _) in &ids {
                inner.publish(id, &Changes { metadata: true, ..Changes::default() })?;
                inner.touched.add(id);
            }
            Ok(ids)
        };
        let ids = self.change(work).await?;
        let (added, known): (Vec<_>, Vec<_>) = ids.into_iter().partition(|(_, is_new)| *is_new);
        let names = |ids: Vec<(String, bool)>| ids.into_iter().map(|(id, _)| id).collect();
        Ok(Imported { added: names(added), known: names(known), problems: list.problems })
    }

    /// Makes these the feeds of the configuration.
    ///
    /// # Errors
    ///
    /// They cannot be stored.
    pub async fn configure(
        &self,
        feeds: Vec<FeedConfig>,
        earlier: Earlier,
    ) -> Result<(), FeedsError> {
        self.change(move |inner| {
            let registrations: Vec<_> = feeds.iter().map(FeedConfig::registration).collect();
            inner.store.configure(&registrations, earlier, inner.clock.time().to_second())?;
            inner.catch_up()
        })
        .await
    }

    /// The bytes of a list on the web, fetched with the usual checks and limits.
    ///
    /// # Errors
    ///
    /// It cannot be fetched.
    pub async fn fetch_list(&self, address: &WebAddress) -> Result<Vec<u8>, ImportError> {
        let fetcher = self.0.fetcher.as_ref().ok_or(FeedsError::Offline)?;
        let url = || address.as_str().to_owned();
        let request = Request { url: url(), accept: Accept::Opml, ..Request::default() };
        let failed = |reason| ImportError::Fetch { url: url(), reason };
        match fetcher.fetch(request).await {
            Ok(Fetched::Document { bytes, .. }) => Ok(bytes),
            Ok(Fetched::NotModified { .. }) => {
                Err(failed("the server says that nothing changed".to_owned()))
            }
            Err(error) => Err(failed(causes(&error))),
        }
    }
}
