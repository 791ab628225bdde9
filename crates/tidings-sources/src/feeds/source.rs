//! The feeds as a source: reads are answered from what is kept, and who listens hears of news.

use std::sync::Arc;

use tidings_core::{Fingerprint, ResourceUri};
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
    ResourceContents,
};
use tidings_server::{
    AnswerError, Completion, CompletionOf, Contents, EditError, Exchange, Shelf, Source,
};
use tokio_util::sync::CancellationToken;

use crate::feeds::offer::Offer;
use crate::feeds::others::Others;
use crate::feeds::rounds::{Mode, Rounds};
use crate::feeds::store::{FeedRow, Found, Label, StoreError};
use crate::feeds::view::{self, Filter, TEMPLATE, View};
use crate::feeds::{Feeds, Inner, prompts, tools};

impl Source for Feeds {
    async fn start(&self, shelf: &Shelf) -> Result<(), EditError> {
        // Held from the first look on: a feed that is added meanwhile waits for its turn.
        let mut place = self.0.offer();
        let mut offer = Offer::new(shelf, tools::offered(&self.0.config), prompts::offered())?;
        offer.refresh(&self.0.board())?;
        *place = Some(offer);
        Ok(())
    }

    async fn run(&self, shelf: Shelf, cancel: CancellationToken) {
        drop(shelf);
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
    }

    async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        let body = match View::parse(uri)? {
            View::All => self.0.board().all(),
            View::Meta(id) => view::meta(&*self.0.known(&id)?),
            View::Feed(id) => {
                let feed = |found: Found| view::feed(&found.feed, &found.entries);
                self.0.find(id, Filter::default(), feed).await?
            }
            View::Items(id, filter) => {
                self.0.find(id, filter, |found| view::items(&found.entries)).await?
            }
        };
        let part = ResourceContents::text(body, uri.as_ref()).with_mime_type("application/json");
        Ok(Contents::new(vec![part]))
    }

    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        if !View::is_ours(uri) {
            return None;
        }
        match View::parse(uri) {
            Ok(view) => view.feed_id().map(no_feed),
            Err(error) => Some(error),
        }
    }

    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let view = View::parse(uri).ok()?;
        self.0.board().version(&view)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        exchange: &Exchange,
    ) -> Result<CallToolResponse, AnswerError> {
        tools::call(&self.0, request, exchange).await
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        _exchange: &Exchange,
    ) -> Result<GetPromptResponse, AnswerError> {
        prompts::fill(&self.0, request).await
    }

    async fn complete(&self, completion: Completion) -> Result<Vec<String>, AnswerError> {
        match &completion.of {
            CompletionOf::Template(template) if template == TEMPLATE => {}
            CompletionOf::Prompt(_) => return prompts::complete(&self.0, &completion).await,
            _ => return Ok(Vec::new()),
        }
        let label = match completion.argument.as_str() {
            "feedId" => return Ok(self.0.fitting_ids(&completion.value)),
            "category" => Label::Category,
            "author" => Label::Author,
            _ => return Ok(Vec::new()),
        };
        let id = completion.known.get("feedId").cloned();
        self.0.fitting_labels(id, label, &completion.value).await
    }
}

impl Inner {
    /// A feed that was fetched at least once.
    pub(crate) fn known(&self, id: &str) -> Result<Arc<FeedRow>, AnswerError> {
        let row = self.board().get(id).cloned().ok_or_else(|| no_feed(id))?;
        if row.is_known() { Ok(row) } else { Err(unavailable(&row)) }
    }

    /// What is found, as it is read: to make texts safe takes time, and is for a thread that may
    /// take it.
    async fn find(
        self: &Arc<Self>,
        id: String,
        filter: Filter,
        read: fn(Found) -> String,
    ) -> Result<String, AnswerError> {
        self.known(&id)?;
        let name = id.clone();
        let _turn = self.reading.acquire().await;
        let body =
            self.blocking(move |inner| Ok(inner.store.find(&id, &filter)?.map(read))).await?;
        body.ok_or_else(|| no_feed(&name))
    }

    /// Asks the store on a thread that may wait.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, AnswerError> {
        let inner = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        match done {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(AnswerError::Failed(error.outside())),
            Err(_) => Err(AnswerError::Failed("the read was given up".to_owned())),
        }
    }

    /// The labels of a feed's items, or of all items, that begin with what was typed.
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

    /// The ids that begin with what was typed, and those of feeds with a word that does.
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

fn no_feed(id: &str) -> AnswerError {
    AnswerError::Absent(format!("Feed with ID '{id}' not found"))
}

/// Why there is nothing yet, and when there may be.
fn unavailable(row: &FeedRow) -> AnswerError {
    let reason = match &row.last_error {
        Some(error) => format!("Feed fetch failed: {error}"),
        None => "Feed has not been fetched yet".to_owned(),
    };
    let next = match (row.next_fetch, &row.last_error) {
        _ if row.paused => "; it is paused".to_owned(),
        (Some(next), _) => format!("; it is tried again at {next}"),
        (None, Some(_)) => "; it is not tried again by itself".to_owned(),
        (None, None) => String::new(),
    };
    AnswerError::Unavailable(format!("{reason}{next}"))
}
