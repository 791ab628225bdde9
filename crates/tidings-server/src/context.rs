//! The context of one request: its client, progress, log messages, cancellation, and questions to
//! the client.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Weak};

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequest, ElicitRequestParams, ElicitResult, Implementation,
    InputResponses, JsonObject, ListRootsRequest, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, RequestMetaObject,
    ServerRequest,
};
use rmcp::service::RequestContext;
use tidings_core::Change;

use crate::era;
use crate::identity::Identity;
use crate::labels::{LabelError, Labels};
use crate::raw::Raw;
use crate::sent::SentCall;
use crate::tokens::Admitted;
use crate::viewers::{GrantError, Scope, Viewer, Word};

/// The request being answered, and its client.
///
/// Cloning is cheap, and all clones are one request. The hub itself reads resources to compare
/// them: such a read has no client, needs no progress and is never cancelled.
#[derive(Clone)]
pub struct Context {
    announcer: Arc<dyn Announce>,
    request: Option<Arc<OpenRequest>>,
    input: Option<Arc<ReadInput>>,
}

/// A client's answers to the questions that a read asked. Those of a call or a prompt are in its
/// parameters.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReadInput {
    /// The answers by the keys of their questions.
    pub responses: Option<InputResponses>,
    /// The state that was given with the questions.
    pub state: Option<String>,
}

/// A client's connection or session, which ends.
#[derive(Clone)]
pub struct Session(Weak<dyn Client>);

impl Session {
    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Session").field("is_over", &self.is_over()).finish()
    }
}

/// A request of a client.
struct OpenRequest {
    request: RequestContext<RoleServer>,
    /// The client's state between requests, if it has any.
    client: Option<Arc<dyn Client>>,
    /// Who the client is; nothing if it is anybody.
    viewer: Option<Arc<Viewer>>,
}

/// Announces changes: a trait object, because a request knows nothing else of the hub.
pub(crate) trait Announce: Send + Sync {
    fn announce(&self, change: Change);

    /// Grants labels to a client or its person, or withdraws them.
    fn say(&self, viewer: &Viewer, scope: Scope, words: (&Labels, Word)) -> Result<(), GrantError>;
}

/// The client's state between requests, as far as a request needs it: a trait object, because a
/// request knows no connection.
pub(crate) trait Client: Send + Sync {
    /// The requested log level.
    fn level(&self) -> Option<LoggingLevel>;
}

/// The address of a request, as an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(pub(crate) IpAddr);

/// Ends the connection that waits for the answer, as an extension of the request; only if the
/// client can reconnect to it.
#[derive(Clone)]
pub(crate) struct Release(pub(crate) Arc<dyn Fn() + Send + Sync>);

/// Begins the stream of the answer, as an extension of the request; only if the client can reconnect
/// to it.
#[derive(Clone)]
pub(crate) struct Begin(pub(crate) Arc<dyn Fn() + Send + Sync>);

/// Why the client did not answer a question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client refused, is gone, or speaks a revision without questions: there, the answer to
    /// the request asks for the input.
    #[error("the client did not answer")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer is invalid.
    #[error("the client's answer does not fit the question")]
    Unfitting,
}

impl Context {
    /// A request of a client.
    pub(crate) fn new(
        announcer: Arc<dyn Announce>,
        request: RequestContext<RoleServer>,
        client: Option<Arc<dyn Client>>,
        viewer: Option<Arc<Viewer>>,
    ) -> Self {
        let request = OpenRequest { request, client, viewer };
        Self { announcer, request: Some(Arc::new(request)), input: None }
    }

    /// The client answers questions of an earlier round.
    pub(crate) fn answer(&mut self, responses: Option<InputResponses>, state: Option<String>) {
        let is_answered = responses.is_some() || state.is_some();
        self.input = is_answered.then(|| Arc::new(ReadInput { responses, state }));
    }

    /// A read of the hub itself.
    pub(crate) fn of_hub(announcer: Arc<dyn Announce>) -> Self {
        Self { announcer, request: None, input: None }
    }

    /// Announces that something may have changed: a URI, a [`Change`], a list. Clients are notified
    /// if what they would read differs.
    ///
    /// # Errors
    ///
    /// A text that is not a URI.
    pub fn changed<C: TryInto<Change>>(&self, change: C) -> Result<(), C::Error> {
        self.announcer.announce(change.try_into()?);
        Ok(())
    }

    /// Who asks, with the labels it has now. Unlike [`Self::client`], it is proved: by a token, or
    /// by the configuration of the connection. The hub itself, when it reads a resource to compare
    /// it, is anonymous.
    #[must_use]
    pub fn who(&self) -> Identity {
        let viewer = self.asked().and_then(|asked| asked.viewer.as_ref());
        viewer.map(|viewer| viewer.who()).unwrap_or_default()
    }

    /// Gives this session labels, such as `"role:admin"`, until they are withdrawn or it ends. What
    /// it sees changes at once, and it is notified of the lists and resources that changed for it.
    ///
    /// # Errors
    ///
    /// An invalid label, too many, or no session: modern clients have none over HTTP.
    pub fn grant<L>(&self, labels: L) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        self.say(Scope::Session, labels, Word::Grant)
    }

    /// Takes labels from this session, also those that its identity has.
    ///
    /// # Errors
    ///
    /// As [`Self::grant`].
    pub fn withdraw<L>(&self, labels: L) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        self.say(Scope::Session, labels, Word::Withdraw)
    }

    /// Gives labels to all sessions and requests of the asking person, as [`Hub::grant`] does.
    ///
    /// [`Hub::grant`]: crate::Hub::grant
    ///
    /// # Errors
    ///
    /// An invalid label, too many, or a client without a name.
    pub fn grant_everywhere<L>(&self, labels: L) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        self.say(Scope::Person, labels, Word::Grant)
    }

    /// Withdraws labels from all sessions and requests of the asking person.
    ///
    /// # Errors
    ///
    /// As [`Self::grant_everywhere`].
    pub fn withdraw_everywhere<L>(&self, labels: L) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        self.say(Scope::Person, labels, Word::Withdraw)
    }

    fn say<L>(&self, scope: Scope, labels: L, word: Word) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        let labels = labels.try_into().map_err(Into::into)?;
        let viewer = self.asked().and_then(|asked| asked.viewer.as_ref());
        let missing = match scope {
            Scope::Session => GrantError::NoSession,
            Scope::Person => GrantError::NoName,
        };
        self.announcer.say(viewer.ok_or(missing)?, scope, (&labels, word))
    }

    /// The client's name and version, if stated.
    #[must_use]
    pub fn client(&self) -> Option<Implementation> {
        self.asked()?.request.client_info()
    }

    /// The client's capabilities.
    #[must_use]
    pub fn client_capabilities(&self) -> ClientCapabilities {
        let said = self.asked().and_then(|asked| asked.request.client_capabilities());
        said.unwrap_or_default()
    }

    /// The request's `_meta`, which is not repeated in its parameters. That of a read of the hub is
    /// empty.
    #[must_use]
    pub fn meta(&self) -> &RequestMetaObject {
        static NONE: LazyLock<RequestMetaObject> = LazyLock::new(RequestMetaObject::default);
        self.asked().map_or(&NONE, |asked| &asked.request.meta)
    }

    /// The client's progress token, if it wants progress.
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.meta().get_progress_token()
    }

    /// Identifies the client, to share fairly between clients: the same for all requests of a stdio
    /// connection, of a session, and of a named client without a session. Clients with different
    /// tokens are never the same caller, and neither are clients with a token and without. Apart from
    /// that it proves nothing: a client can choose any name.
    #[must_use]
    pub fn caller(&self) -> String {
        let Some(asked) = self.asked() else { return "hub".to_owned() };
        if let Some(client) = &asked.client {
            return format!("connection {:x}", Arc::as_ptr(client).addr());
        }
        let parts = asked.request.extensions.get::<http::request::Parts>();
        let address = parts.and_then(|parts| parts.extensions.get::<Address>());
        let client = self.client().map(|client| format!("{} {}", client.name, client.version));
        let client = client.unwrap_or_else(|| "anonymous".to_owned());
        let token = parts.and_then(|parts| Admitted::of(&parts.extensions).token);
        // Both begin with a word of ours, because a client can choose any name.
        let client = match token {
            Some(token) => format!("token {token} {client}"),
            None => format!("client {client}"),
        };
        match address {
            Some(Address(address)) => format!("{client} at {address}"),
            None => client,
        }
    }

    /// The client's connection or session; `None` for a modern client over HTTP, which has none, and
    /// for the hub.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        let client = self.asked()?.client.as_ref()?;
        Some(Session(Arc::downgrade(client)))
    }

    /// The client's answers, if it reads once more because a read asked for input.
    #[must_use]
    pub fn input(&self) -> Option<&ReadInput> {
        self.input.as_deref()
    }

    /// Whether the hub itself asks, to compare.
    #[must_use]
    pub fn is_of_hub(&self) -> bool {
        self.request.is_none()
    }

    /// Whether the client speaks a revision without questions from the server: the result asks for
    /// input, and the client repeats the request with it.
    #[must_use]
    pub fn asks_by_answer(&self) -> bool {
        let version = self.asked().and_then(|asked| asked.request.protocol_version());
        version.is_some_and(|version| era::is_modern(version.as_str()))
    }

    /// Waits until the client cancels the request.
    pub async fn cancelled(&self) {
        match self.asked() {
            Some(asked) => asked.request.ct.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the connection that waits for the answer, if the client can reconnect to its stream;
    /// the work continues. For work that takes longer than a connection should.
    pub fn release_stream(&self) {
        let release = self.asked().and_then(|asked| asked.request.extensions.get::<Release>());
        if let Some(Release(release)) = release {
            release();
        }
    }

    /// Begins the stream of the answer, if the client can reconnect to it. A client that loses its
    /// connection before the answer begins cannot come back, so its request is cancelled; from here
    /// on the work continues, and the answer is kept for a while. For work whose effects matter.
    pub fn begin_stream(&self) {
        let begin = self.asked().and_then(|asked| asked.request.extensions.get::<Begin>());
        if let Some(Begin(begin)) = begin {
            begin();
        }
    }

    /// Reports progress to the client, if it wants it. The notice is delivered before the answer.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let (Some(asked), Some(token)) = (self.asked(), self.progress_token()) else { return };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = total;
        progress.message = message.map(str::to_owned);
        drop(asked.request.peer.notify_progress(progress).await);
    }

    /// The arguments of a call as the client sent them: keys in its order, and numbers with all their
    /// digits. `None` if the request is no call, has no arguments, or is longer than 256 KiB.
    #[must_use]
    pub fn raw_arguments(&self) -> Option<Raw<JsonObject>> {
        let sent = SentCall::of(&self.asked()?.request.extensions)?;
        Raw::parse(sent.arguments()?).ok()
    }

    /// The lowest level of the log messages that the client asked for, if it asked: a modern client
    /// with this request, any other once. One that did not ask gets no message if it is modern, and
    /// every message if it is not.
    #[must_use]
    pub fn log_level(&self) -> Option<LoggingLevel> {
        let asked = self.asked()?;
        if self.asks_by_answer() {
            return asked.request.meta.log_level();
        }
        asked.client.as_ref()?.level()
    }

    /// Sends the client a log message, if it wants messages of this level.
    pub async fn log(&self, level: LoggingLevel, data: serde_json::Value) {
        self.log_as(None, level, data).await;
    }

    /// Sends a log message as [`Self::log`] does, with the name of the part that logs.
    pub async fn log_as(&self, logger: Option<&str>, level: LoggingLevel, data: serde_json::Value) {
        let Some(asked) = self.asked() else { return };
        let silent = match self.log_level() {
            Some(wanted) => (level as u8) < (wanted as u8),
            // A legacy client that never set a level gets everything; a modern one gets nothing
            // unless it asks.
            None => self.asks_by_answer(),
        };
        if !silent {
            let mut message = LoggingMessageNotificationParam::new(level, data);
            message.logger = logger.map(str::to_owned);
            drop(asked.request.peer.notify_logging_message(message).await);
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
        let Some(asked) = self.asked() else {
            return Err(AskError::Client("the hub asked, and no client did".into()));
        };
        let answer = asked.request.peer.send_request(request).await;
        answer.map_err(|error| AskError::Client(Box::new(error)))
    }

    fn asked(&self) -> Option<&OpenRequest> {
        self.request.as_deref()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.asked().map(|asked| &asked.request.id);
        formatter.debug_struct("Context").field("id", &id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::task::JoinSet;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::http::{self, HttpConfig};
    use crate::{Hub, stdio};

    /// A hub with a tool that answers who asked, and what it said of its request.
    fn hub() -> Hub {
        let hub = Hub::new("test", "1");
        let who = |context: Context| {
            let said = context.meta().get("example.org/x").cloned();
            let token = context.progress_token().map(|token| token.0.to_string());
            json!({ "caller": context.caller(), "said": said, "token": token }).to_string()
        };
        hub.source("mirror").unwrap().tool("who", "Says who asks", who).unwrap();
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
        let hub = hub();
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

    /// The caller of a request without a session, with this header or none.
    async fn caller_at(address: SocketAddr, authorization: &str) -> String {
        let body = call(1).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{authorization}\
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
        answer["caller"].as_str().unwrap().to_owned()
    }

    /// Serves until the set is dropped.
    async fn serve(config: HttpConfig) -> (SocketAddr, JoinSet<()>) {
        let hub = hub();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            http::serve(&hub, listener, config, CancellationToken::new()).await.unwrap();
        });
        (address, serving)
    }

    #[tokio::test]
    async fn a_caller_without_a_session_is_its_name_and_where_it_is() {
        let (address, _serving) = serve(HttpConfig::default()).await;
        assert_eq!(caller_at(address, "").await, "client tester 2 at 127.0.0.1");
    }

    #[tokio::test]
    async fn clients_with_different_tokens_are_different_callers() {
        let secrets = ["0123456789abcdef", "fedcba9876543210"];
        let entry = |secret| {
            let hash = http::TokenHash::of(&http::Token::new(secret).unwrap());
            http::TokenEntry::new(hash, Identity::new("ada", Labels::NONE))
        };
        let mut config = HttpConfig::default();
        config.tokens.replace(secrets.map(entry).into());
        config.anonymous = true;
        let (address, _serving) = serve(config).await;
        let known = secrets.map(|secret| format!("authorization: Bearer {secret}\r\n"));
        let ours = caller_at(address, &known[0]).await;
        assert_eq!(caller_at(address, &known[0]).await, ours);
        let theirs = caller_at(address, &known[1]).await;
        let anybody = caller_at(address, "").await;
        assert!(
            ours != theirs && ours != anybody && theirs != anybody,
            "{ours} {theirs} {anybody}"
        );
    }
}
