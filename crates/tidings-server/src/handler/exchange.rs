//! What a tool or a prompt can do while it answers: announce, report progress, log, ask the client.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequest, ElicitRequestParams, ElicitResult, Implementation,
    ListRootsRequest, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ServerRequest,
};
use rmcp::service::RequestContext;
use tidings_core::ListKinds;

use crate::era;
use crate::path::Core;
use crate::transport::Call;

/// One request while it is answered.
pub struct Exchange {
    core: Arc<Core>,
    request: RequestContext<RoleServer>,
    level: Option<LoggingLevel>,
}

/// Why the client did not answer a question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client refused, is gone, or speaks a revision in which a server does not ask: there the
    /// answer to the request says what is needed.
    #[error("the client did not answer")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The client answered something else.
    #[error("the client's answer does not fit the question")]
    Unfitting,
}

impl Exchange {
    pub(crate) fn new(
        core: Arc<Core>,
        request: RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
    ) -> Self {
        Self { core, request, level }
    }

    /// Says that a read of this URI may return something else now.
    pub fn notify_updated(&self, uri: &str) {
        self.core.notify_updated(uri);
    }

    /// As [`Self::notify_updated`], for every watched URI that begins with the text before a trailing `*`.
    pub fn notify_matching(&self, pattern: &str) {
        self.core.notify_matching(pattern);
    }

    /// Says that lists may have moved.
    pub fn lists_changed(&self, kinds: ListKinds) {
        self.core.lists_changed(kinds);
    }

    /// The client's name and version, if it says.
    #[must_use]
    pub fn client(&self) -> Option<Implementation> {
        self.request.client_info()
    }

    /// What the client says it can do.
    #[must_use]
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.request.client_capabilities().unwrap_or_default()
    }

    /// Whether the client speaks a revision in which a server does not ask: it answers that input
    /// is required, and the client asks again with it.
    #[must_use]
    pub fn asks_by_answer(&self) -> bool {
        self.request.protocol_version().is_some_and(|version| era::is_modern(version.as_str()))
    }

    /// Waits until the client gives the request up.
    pub async fn cancelled(&self) {
        self.request.ct.cancelled().await;
    }

    /// Ends the connection on which the client waits for the answer, where that is a stream it can
    /// come back to; the work goes on. For work that takes longer than a connection should.
    pub fn release_stream(&self) {
        if let Some(call) = self.request.extensions.get::<Arc<Call>>() {
            call.release();
        }
    }

    /// Tells the client how far the work is, if it asked to be told. It is delivered before the
    /// answer.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.request.meta.get_progress_token() else { return };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = total;
        progress.message = message.map(str::to_owned);
        drop(self.request.peer.notify_progress(progress).await);
    }

    /// Sends the client a log message, if it wants messages of this level.
    pub async fn log(&self, level: LoggingLevel, data: serde_json::Value) {
        let wanted = if self.asks_by_answer() { self.request.meta.log_level() } else { self.level };
        let silent = match wanted {
            Some(wanted) => (level as u8) < (wanted as u8),
            // A legacy client that never set a level gets everything; a modern one that does not
            // ask gets nothing.
            None => self.asks_by_answer(),
        };
        if !silent {
            let message = LoggingMessageNotificationParam::new(level, data);
            drop(self.request.peer.notify_logging_message(message).await);
        }
    }

    /// Asks the client's model.
    ///
    /// # Errors
    ///
    /// The client did not answer.
    pub async fn sample(
        &self,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, AskError> {
        match self
            .ask(ServerRequest::CreateMessageRequest(CreateMessageRequest::new(params)))
            .await?
        {
            ClientResult::CreateMessageResult(result) => Ok(*result),
            _ => Err(AskError::Unfitting),
        }
    }

    /// Asks the client's user.
    ///
    /// # Errors
    ///
    /// The client did not answer.
    pub async fn elicit(&self, params: ElicitRequestParams) -> Result<ElicitResult, AskError> {
        match self.ask(ServerRequest::ElicitRequest(ElicitRequest::new(params))).await? {
            ClientResult::ElicitResult(result) => Ok(result),
            _ => Err(AskError::Unfitting),
        }
    }

    /// Asks the client for its roots.
    ///
    /// # Errors
    ///
    /// The client did not answer.
    pub async fn roots(&self) -> Result<ListRootsResult, AskError> {
        match self.ask(ServerRequest::ListRootsRequest(ListRootsRequest::default())).await? {
            ClientResult::ListRootsResult(result) => Ok(result),
            _ => Err(AskError::Unfitting),
        }
    }

    async fn ask(&self, request: ServerRequest) -> Result<ClientResult, AskError> {
        let answer = self.request.peer.send_request(request).await;
        answer.map_err(|error| AskError::Client(Box::new(error)))
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Exchange").field("id", &self.request.id).finish_non_exhaustive()
    }
}
