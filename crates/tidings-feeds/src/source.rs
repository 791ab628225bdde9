//! The feeds as a source: reads are answered from the store, and news is announced.

use std::sync::Arc;

use tidings_core::{Fingerprint, ResourceUri};
use tidings_server::model::{GetPromptRequestParams, GetPromptResponse, ResourceContents};
use tidings_server::{
    Answer, AnswerError, Completion, CompletionOf, Completions, Contents, Context, EditError,
    Shelf, Source,
};
use tokio_util::sync::CancellationToken;

use crate::offer::Offer;
use crate::others::Others;
use crate::rounds::{Mode, Rounds};
use crate::store::{FeedRow, FoundItems, Label, Listing, StoreError};
use crate::view::{self, FOLDER_TEMPLATE, Filter, TEMPLATE, View};
use crate::{Feeds, Inner, prompts, tools};

/// The default number of items of a folder.
const IN_FOLDER: u32 = 1_000;

impl Feeds {
    /// The feeds on this shelf, as a source.
    ///
    /// # Errors
    ///
    /// Another source has one of their names.
    pub fn on(self, shelf: Shelf) -> Result<impl Source, EditError> {
        {
            // Held from the first read on: a feed that is added meanwhile waits for its turn.
            let mut place = self.0.offer();
            let mut offer = Offer::new(shelf, tools::offered(&self.0), prompts::offered())?;
            offer.refresh(&self.0.board())?;
            *place = Some(offer);
        }
        Ok(Shelved(self.0))
    }

    /// Reads a resource of the feeds.
    ///
    /// # Errors
    ///
    /// Why nothing can be read.
    pub async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        let body = match View::parse(uri)? {
            View::All => self.0.board().all(),
            View::Meta(id) => view::meta(&*self.0.known(&id)?),
            View::Feed(id) => {
                let feed = |found: FoundItems| view::feed(&found.feed, &found.entries);
                self.0.find(id, Filter::default(), feed).await?
            }
            View::Items(id, filter) => {
                self.0.find(id, filter, |found| view::items(&found.entries)).await?
            }
            View::Folder(name, filter) => self.0.items_in(&name, filter).await?,
        };
        let part = ResourceContents::text(body, uri.as_ref()).with_mime_type("application/json");
        Ok(Contents::new(vec![part]))
    }
}

/// Feeds that a hub serves.
struct Shelved(Arc<Inner>);

impl Source for Shelved {
    async fn run(&self, cancel: CancellationToken) {
        let rounds = async {
            if let Some(fetcher) = &self.0.fetcher
                && self.0.turn(&cancel).await
            {
                let (rounds, line) = Rounds::new(self.0.clone(), fetcher.clone(), Mode::All);
                *self.0.line() = Some(line);
                rounds.run(cancel.clone()).await;
                *self.0.line() = None;
            }
        };
        tokio::join!(rounds, Others::new(self.0.clone()).run(cancel.clone()));
        // After a clean end, the whole database is in one file that can be copied.
        if self.0.config.role.writes() {
            let settled = self.0.blocking(|inner| inner.store.settle()).await;
            if let Err(error) = settled {
                tracing::debug!(%error, "the log of the store could not be emptied");
            }
        }
    }

    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        Feeds(self.0.clone()).read(uri).await
    }

    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        if !View::is_ours(uri) {
            return None;
        }
        match View::parse(uri) {
            Ok(View::Folder(name, _)) => Some(no_folder(&name)),
            Ok(view) => view.feed_id().map(no_feed),
            Err(error) => Some(error),
        }
    }

    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let view = View::parse(uri).ok()?;
        self.0.board().version(&view)
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        _: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        Ok(prompts::fill(&self.0, request).await?.into())
    }

    async fn complete(
        &self,
        completion: Completion,
        _: &Context,
    ) -> Result<Completions, AnswerError> {
        match &completion.of {
            CompletionOf::Template(template)
                if template == TEMPLATE || template == FOLDER_TEMPLATE => {}
            CompletionOf::Prompt(_) => {
                return Ok(prompts::complete(&self.0, &completion).await?.into());
            }
            _ => return Ok(Completions::default()),
        }
        let label = match completion.argument.as_str() {
            "feedId" => return Ok(self.0.fitting_ids(&completion.value).into()),
            "folder" => return Ok(self.0.fitting_folders(&completion.value).into()),
            "category" => Label::Category,
            "author" => Label::Author,
            _ => return Ok(Completions::default()),
        };
        let id = completion.known.get("feedId").cloned();
        Ok(self.0.fitting_labels(id, label, &completion.value).await?.into())
    }
}

impl Inner {
    /// A feed that was fetched at least once.
    pub(crate) fn known(&self, id: &str) -> Result<Arc<FeedRow>, AnswerError> {
        let row = self.board().get(id).cloned().ok_or_else(|| no_feed(id))?;
        if row.is_known() { Ok(row) } else { Err(unavailable(&row)) }
    }

    /// The matches as they are read. Making texts safe takes time, so it happens on a thread that
    /// may wait.
    async fn find(
        self: &Arc<Self>,
        id: String,
        filter: Filter,
        read: fn(FoundItems) -> String,
    ) -> Result<String, AnswerError> {
        self.known(&id)?;
        let name = id.clone();
        let _turn = self.reading.acquire().await;
        let body =
            self.blocking(move |inner| Ok(inner.store.find(&id, &filter)?.map(read))).await?;
        body.ok_or_else(|| no_feed(&name))
    }

    /// The items of the feeds in a folder, newest first.
    async fn items_in(self: &Arc<Self>, name: &str, filter: Filter) -> Result<String, AnswerError> {
        let feeds = self.keys_in(name).map_err(|_| no_folder(name))?;
        // A folder of feeds that were never fetched counts as unavailable, not as empty.
        let rows: Vec<_> = self.board().rows().cloned().collect();
        let mut inside = rows.iter().filter(|row| feeds.contains(&row.key));
        if !inside.clone().any(|row| row.is_known())
            && let Some(row) = inside.next()
        {
            return Err(unavailable(row));
        }
        // Without a limit, many feeds would return too many items.
        let filter = Filter { limit: filter.limit.or(Some(IN_FOLDER)), ..filter };
        let listing = Listing { feeds, filter, ..Listing::default() };
        let _turn = self.reading.acquire().await;
        let read = move |inner: &Self| {
            let items = inner.store.list(&listing)?.items;
            let entries: Vec<_> = items.into_iter().map(|kept| kept.entry).collect();
            Ok(view::items(&entries))
        };
        self.blocking(read).await
    }

    /// The folders that begin with the typed text.
    pub(crate) fn fitting_folders(&self, typed: &str) -> Vec<String> {
        let typed = typed.to_lowercase();
        let board = self.board();
        let fits = |name: &&str| name.to_lowercase().starts_with(&typed);
        board.folders().filter(fits).map(str::to_owned).collect()
    }

    /// Reads the store on a thread that may wait.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, AnswerError> {
        let inner = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        match done {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(AnswerError::Failed(error.outside())),
            Err(_) => Err(AnswerError::Failed("the read was cancelled".to_owned())),
        }
    }

    /// The labels of a feed's items, or of all items, that begin with the typed text.
    pub(crate) async fn fitting_labels(
        self: &Arc<Self>,
        id: Option<String>,
        label: Label,
        typed: &str,
    ) -> Result<Vec<String>, AnswerError> {
        let mut labels =
            self.blocking(move |inner| inner.store.labels(id.as_deref(), label)).await?;
        let typed = typed.to_lowercase();
        labels.retain(|label| label.to_lowercase().starts_with(&typed));
        Ok(labels)
    }

    /// The ids that begin with the typed text, and those of feeds with such a word.
    pub(crate) fn fitting_ids(&self, typed: &str) -> Vec<String> {
        let typed = typed.to_lowercase();
        let has_word = |row: &FeedRow| {
            let title = row.shown_title().to_lowercase();
            title.starts_with(&typed) || title.split(' ').any(|word| word.starts_with(&typed))
        };
        let board = self.board();
        let (by_id, rest): (Vec<_>, Vec<_>) =
            board.rows().partition(|row| row.id.starts_with(&typed));
        let by_title = rest.into_iter().filter(|row| has_word(row));
        by_id.into_iter().chain(by_title).map(|row| row.id.clone()).collect()
    }
}

fn no_folder(name: &str) -> AnswerError {
    AnswerError::Absent(format!("Folder '{name}' not found"))
}

fn no_feed(id: &str) -> AnswerError {
    AnswerError::Absent(format!("Feed with ID '{id}' not found"))
}

/// Why there are no items yet, and when there may be.
fn unavailable(row: &FeedRow) -> AnswerError {
    let reason = match &row.last_error {
        Some(error) => format!("Feed fetch failed: {error}"),
        None => "Feed has not been fetched yet".to_owned(),
    };
    let next = match (row.next_fetch, &row.last_error) {
        _ if row.is_paused() => "; it is paused".to_owned(),
        (Some(next), _) => format!("; it is tried again at {next}"),
        (None, Some(_)) => "; it is not tried again by itself".to_owned(),
        (None, None) => String::new(),
    };
    AnswerError::Unavailable(format!("{reason}{next}"))
}
