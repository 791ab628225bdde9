//! Lists of feeds taken in: what is good in them is added, and the rest is told by its line.

use crate::address::{Asker, WebAddress};
use crate::ask::causes;
use crate::config::{Earlier, FeedConfig};
use crate::fetch::{Accept, Fetched, Request};
use crate::opml::{self, ReadOpmlError};
use crate::store::Changes;
use crate::{Feeds, FeedsError};

/// What came of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The ids of the feeds that were not there before.
    pub added: Vec<String>,
    /// The ids of those that were.
    pub known: Vec<String>,
    /// What could not be taken.
    pub problems: Vec<opml::Problem>,
}

/// Why a list was not taken in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is none.
    #[error(transparent)]
    Opml(#[from] ReadOpmlError),
    /// It could not be fetched; why.
    #[error("the list `{url}` could not be fetched: {reason}")]
    Fetch {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// Its feeds cannot be kept.
    #[error(transparent)]
    Feeds(#[from] FeedsError),
}

impl Feeds {
    /// Adds the feeds of a list in OPML, with folders as categories. They stay after a restart;
    /// what is set for those that were there stays as it is. Whose list it is says what it may name:
    /// see [`opml::read_list`].
    ///
    /// # Errors
    ///
    /// It is no list, or its feeds cannot be kept.
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

    /// From now on the feeds of the configuration are these.
    ///
    /// # Errors
    ///
    /// They cannot be kept.
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

    /// The bytes of a list on the web, fetched as everything is: guarded and within limits.
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
