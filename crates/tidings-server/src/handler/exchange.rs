//! What a tool or a prompt can do while it answers: announce, report progress, log, ask the client.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequest, ElicitRequestParams, ElicitResult, Implementation,
    ListRootsRequest, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, RequestMetaObject, ServerRequest,
};
use rmcp::service::RequestContext;
use tidings_core::ListKinds;

use crate::era;
use crate::handler::Connection;
use crate::path::Core;
use crate::transport::{Call, Line};

/// One request while it is answered.
pub struct Exchange {
    core: Arc<Core>,
    request: RequestContext<RoleServer>,
    /// What the client holds between requests, if it does.
    connection: Option<Arc<Connection>>,
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
        connection: Option<Arc<Connection>>,
    ) -> Self {
        Self { core, request, connection }
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

    /// What the client said about the request, its `_meta`; in the request itself it is not.
    #[must_use]
    pub fn meta(&self) -> &RequestMetaObject {
        &self.request.meta
    }

    /// How the client calls the progress of this request, if it wants to be told.
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.request.meta.get_progress_token()
    }

    /// A name for whoever asks, to share fairly between clients: the same for all requests of a
    /// connection over stdio or of a session, and of a client that says its name and has no
    /// session. It proves nothing: a client can call itself what it likes.
    #[must_use]
    pub fn caller(&self) -> String {
        if let Some(connection) = &self.connection {
            return format!("connection {:x}", Arc::as_ptr(connection).addr());
        }
        let parts = self.request.extensions.get::<http::request::Parts>();
        let address = parts.and_then(|parts| Line::peer(&parts.extensions));
        let client = self.client().map(|client| format!("{} {}", client.name, client.version));
        match (client, address) {
            (Some(client), Some(address)) => format!("{client} at {address}"),
            (Some(client), None) => client,
            (None, Some(address)) => format!("anonymous at {address}"),
            (None, None) => "anonymous".to_owned(),
        }
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
        let Some(token) = self.progress_token() else { return };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = total;
        progress.message = message.map(str::to_owned);
        drop(self.request.peer.notify_progress(progress).await);
    }

    /// Sends the client a log message, if it wants messages of this level.
    pub async fn log(&self, level: LoggingLevel, data: serde_json::Value) {
        self.log_as(None, level, data).await;
    }

    /// As [`Self::log`], with the name of the part that has something to say.
    pub async fn log_as(&self, logger: Option<&str>, level: LoggingLevel, data: serde_json::Value) {
        let wanted = if self.asks_by_answer() {
            self.request.meta.log_level()
        } else {
            self.connection.as_ref().and_then(|connection| connection.level())
        };
        let silent = match wanted {
            Some(wanted) => (level as u8) < (wanted as u8),
            // A legacy client that never set a level gets everything; a modern one that does not
            // ask gets nothing.
            None => self.asks_by_answer(),
        };
        if !silent {
            let mut message = LoggingMessageNotificationParam::new(level, data);
            message.logger = logger.map(str::to_owned);
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

#[cfg(test)]
mod tests {
    use rmcp::model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Tool,
    };
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::http::{self, HttpConfig};
    use crate::{AnswerError, Config, EditError, Hub, Shelf, Source, stdio};

    /// A tool that answers who asked, and what it said of its request.
    struct Mirror;

    impl Source for Mirror {
        async fn start(&self, shelf: &Shelf) -> Result<(), EditError> {
            shelf.add(Tool::new("who", "who asks", Arc::default())).map(drop)
        }

        async fn call(
            &self,
            request: CallToolRequestParams,
            exchange: &Exchange,
        ) -> Result<CallToolResponse, AnswerError> {
            assert_eq!(request.meta, None, "it is with the exchange");
            let said = exchange.meta().get("example.org/x").cloned();
            let token = exchange.progress_token().map(|token| token.0.to_string());
            let answer = json!({ "caller": exchange.caller(), "said": said, "token": token });
            Ok(CallToolResult::success(vec![ContentBlock::text(answer.to_string())]).into())
        }
    }

    async fn hub() -> Hub {
        let hub = Hub::new(Config::new("test", "1"));
        hub.add("mirror", Mirror).await.unwrap();
        hub
    }

    fn call(id: u32) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "who",
            "_meta": {
                "progressToken": 7,
                "example.org/x": "y",
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "2" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }})
    }

    fn text(answer: &Value) -> Value {
        let text = answer["result"]["content"][0]["text"].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap()
    }

    #[tokio::test]
    async fn a_caller_is_the_same_for_all_requests_of_a_connection_and_no_other() {
        let hub = hub().await;
        let mut callers = Vec::new();
        let (mut serving, mut open) = (JoinSet::new(), Vec::new());
        for _ in 0..2 {
            let (near, far) = tokio::io::duplex(1 << 16);
            let (serves, (input, output)) = (hub.clone(), tokio::io::split(far));
            serving.spawn(async move {
                stdio::serve(&serves, input, output, CancellationToken::new()).await.unwrap();
            });
            let mut stream = BufReader::new(near);
            for id in [1, 2] {
                stream.write_all(format!("{}\n", call(id)).as_bytes()).await.unwrap();
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                let answer = text(&serde_json::from_str(&line).unwrap());
                assert_eq!((&answer["said"], &answer["token"]), (&json!("y"), &json!("7")));
                callers.push(answer["caller"].clone());
            }
            open.push(stream);
        }
        assert_eq!(callers[0], callers[1]);
        assert_eq!(callers[2], callers[3]);
        assert_ne!(callers[0], callers[2]);
    }

    #[tokio::test]
    async fn a_caller_without_a_session_is_its_name_and_where_it_is() {
        let hub = hub().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let config = HttpConfig::default();
            http::serve(&hub, listener, config, CancellationToken::new()).await.unwrap();
        });
        let body = call(1).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: who\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (start, end) = (answer.find("{\"").unwrap(), answer.rfind('}').unwrap());
        let answer = text(&serde_json::from_str(&answer[start..=end]).unwrap());
        assert_eq!(answer["caller"], "tester 2 at 127.0.0.1");
    }
}
