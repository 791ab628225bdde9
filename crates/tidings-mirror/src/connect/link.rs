//! An open connection: requests and their answers.

// Logging levels are deprecated and still asked for.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ArgumentInfo, CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientNotification, ClientRequest, CompleteRequest,
    CompleteRequestParams, CompletionContext, CompletionInfo, GetPromptRequest,
    GetPromptRequestParams, GetPromptResult, InputRequiredResult, InputResponses, JsonObject,
    ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    LoggingLevel, PaginatedRequestParams, PingRequest, ProgressNotificationParam, ProgressToken,
    Prompt, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult, Reference,
    RequestId, RequestMetaObject, Resource, ResourceTemplate, ServerResult, SetLevelRequest,
    SetLevelRequestParams, SubscribeRequest, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequest, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinSet;

use super::agent::innermost;
use super::arguments::GivenArguments;
use super::client::Client;
use super::http::{HttpClient, HttpError};
use super::mend::take_odd;
use super::open::Open;
use super::raw::Raw;
use super::{ConnectError, Listening, ProcessParts, skim};
use crate::config::Config;
use crate::era::{self, Era};
use crate::events::RequestTag;
use crate::handlers::During;
use crate::lists::Page;
use crate::mirror::Server;
use crate::odd::Odd;
use crate::options::RequestOptions;
use crate::relay::{Heard, Relay, RelayError};
use crate::request::RequestError;
use crate::rounds::{Drive, Once, Round};

/// How often a server may ask for input before it answers one request.
const MAX_ROUNDS: usize = 10;
/// Cancellations that may wait to be sent. Others are dropped, since late answers are ignored.
const CANCELLATIONS: usize = 64;
/// Time for a server to acknowledge its subscriptions.
const LISTENING: Duration = Duration::from_secs(10);
/// Time to close the connection.
const FAREWELL: Duration = Duration::from_secs(3);

/// The server's questions, and the state it wants back with the answers.
type Inputs = (Option<InputResponses>, Option<String>);

/// A result.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) result: T,
    /// Its blocks that violate the protocol.
    pub(crate) odd: Vec<Odd>,
    /// The result as the server sent it, if it has more than the typed fields and was requested.
    pub(crate) raw: Option<Arc<str>>,
}

/// Which form of an answer is needed.
#[derive(Clone, Copy)]
enum Form {
    /// Also as the server sent it.
    AsSent,
    /// The typed fields.
    Understood,
}

/// An open connection.
pub(crate) struct Link {
    peer: Peer<RoleClient>,
    client: Client,
    server: Arc<Server>,
    timeout: Duration,
    /// Whether items keep the text that was sent.
    as_sent: bool,
    cancellations: mpsc::Sender<RequestId>,
    /// The requested log level, which is part of each modern request.
    log_level: Mutex<Option<LoggingLevel>>,
    http: Option<HttpClient>,
    parts: AsyncMutex<Parts>,
}

/// The parts that end with the connection.
struct Parts {
    running: Option<RunningService<RoleClient, Client>>,
    process: Option<super::Process>,
    tasks: JoinSet<()>,
}

/// A request in progress. Dropping it cancels it at the server.
struct Pending<'a> {
    link: &'a Link,
    id: Option<RequestId>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // Nobody waits for the answer, so the server can stop working on it.
            let _ = self.link.cancellations.try_send(id);
        }
    }
}

impl Link {
    pub(super) fn new(
        running: RunningService<RoleClient, Client>,
        config: &Config,
        http: Option<HttpClient>,
        process: Option<ProcessParts>,
    ) -> Result<Self, ConnectError> {
        let peer = running.peer().clone();
        let info = peer
            .peer_info()
            .ok_or_else(|| ConnectError::NotMcp("it does not state its capabilities".to_owned()))?;
        let server = Server {
            identity: info.server_info.clone(),
            version: info.protocol_version.clone(),
            era: era::era(&info.protocol_version),
            capabilities: info.capabilities.clone(),
            instructions: info.instructions.clone(),
        };
        let (process, mut tasks) = match process {
            Some((process, tasks)) => (Some(process), tasks),
            None => (None, JoinSet::new()),
        };
        let (cancellations, cancelled) = mpsc::channel(CANCELLATIONS);
        tasks.spawn(cancel(peer.clone(), cancelled));
        let client = running.service().clone();
        Ok(Self {
            peer,
            client,
            server: Arc::new(server),
            timeout: config.request_timeout,
            as_sent: config.as_sent,
            cancellations,
            log_level: Mutex::default(),
            http,
            parts: AsyncMutex::new(Parts { running: Some(running), process, tasks }),
        })
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The tag of the request that reports progress.
    pub(crate) fn request_of(&self, token: &ProgressToken) -> Option<RequestTag> {
        self.client.open().tag(token)
    }

    /// Passes progress on to its relayed request; `false` if it belongs to none.
    pub(crate) fn progressed(&self, params: &ProgressNotificationParam) -> bool {
        self.client.open().progressed(params)
    }

    /// Sends a request of somebody else, for one round. Returns the answer as it was sent. Without a
    /// tag no question belongs to it.
    pub(crate) async fn relay(
        &self,
        request: Relay,
        tag: Option<RequestTag>,
        hears: mpsc::Sender<Heard>,
        options: &RequestOptions,
    ) -> Result<Arc<str>, RelayError> {
        let mut request = request.into_request();
        let raw = Raw::ask(&mut request);
        if let Some(tag) = tag {
            let method = request.method().into();
            Open::mark(&mut request, During::Relay { method, tag });
        }
        Open::mark_hears(&mut request, hears);
        GivenArguments::mark(&mut request, options);
        match self.ask_with(request, options).await {
            // The text is missing only if the server spelt the request's id differently.
            Ok(result) => raw.take().map_or_else(|| written(&result), Ok),
            Err(error) => Err(RelayError { raw: raw.take_error(), error }),
        }
    }

    /// Closes the connection: deletes the session, ends the child and its children.
    pub(crate) async fn close(&self) {
        let mut parts = self.parts.lock().await;
        if let Some(mut running) = parts.running.take() {
            let _ = running.close_with_timeout(FAREWELL).await;
        }
        if let Some(process) = parts.process.take() {
            process.end().await;
        }
        parts.tasks.shutdown().await;
    }

    pub(crate) async fn tools(&self, cursor: Option<String>) -> Result<Page<Tool>, RequestError> {
        let request = ListToolsRequest { params: page(cursor), ..ListToolsRequest::default() };
        let mut request = ClientRequest::ListToolsRequest(request);
        let raw = Raw::ask(&mut request);
        match self.ask(request).await? {
            ServerResult::ListToolsResult(mut result) => {
                let odd = take_odd(&mut result.meta);
                Ok(Page {
                    items: raw.items("tools", result.tools, &odd, self.as_sent),
                    odd,
                    next: result.next_cursor,
                })
            }
            _ => Err(RequestError::Unexpected),
        }
    }

    pub(crate) async fn resources(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<Resource>, RequestError> {
        let request =
            ListResourcesRequest { params: page(cursor), ..ListResourcesRequest::default() };
        let mut request = ClientRequest::ListResourcesRequest(request);
        let raw = Raw::ask(&mut request);
        match self.ask(request).await? {
            ServerResult::ListResourcesResult(mut result) => {
                let odd = take_odd(&mut result.meta);
                Ok(Page {
                    items: raw.items("resources", result.resources, &odd, self.as_sent),
                    odd,
                    next: result.next_cursor,
                })
            }
            _ => Err(RequestError::Unexpected),
        }
    }

    pub(crate) async fn templates(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<ResourceTemplate>, RequestError> {
        let request = ListResourceTemplatesRequest {
            params: page(cursor),
            ..ListResourceTemplatesRequest::default()
        };
        let mut request = ClientRequest::ListResourceTemplatesRequest(request);
        let raw = Raw::ask(&mut request);
        match self.ask(request).await? {
            ServerResult::ListResourceTemplatesResult(mut result) => {
                let odd = take_odd(&mut result.meta);
                Ok(Page {
                    items: raw.items(
                        "resourceTemplates",
                        result.resource_templates,
                        &odd,
                        self.as_sent,
                    ),
                    odd,
                    next: result.next_cursor,
                })
            }
            _ => Err(RequestError::Unexpected),
        }
    }

    pub(crate) async fn prompts(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<Prompt>, RequestError> {
        let request = ListPromptsRequest { params: page(cursor), ..ListPromptsRequest::default() };
        let mut request = ClientRequest::ListPromptsRequest(request);
        let raw = Raw::ask(&mut request);
        match self.ask(request).await? {
            ServerResult::ListPromptsResult(mut result) => {
                let odd = take_odd(&mut result.meta);
                Ok(Page {
                    items: raw.items("prompts", result.prompts, &odd, self.as_sent),
                    odd,
                    next: result.next_cursor,
                })
            }
            _ => Err(RequestError::Unexpected),
        }
    }

    /// Reads a resource for the machine.
    pub(crate) async fn reread(
        &self,
        uri: &str,
    ) -> Result<Taken<ReadResourceResult>, RequestError> {
        let options = RequestOptions::default();
        let read = self.read_as(uri, &options, Form::Understood, Drive::Handlers).await?;
        read.done().ok_or(RequestError::Unexpected)
    }

    pub(crate) async fn read(
        &self,
        uri: &str,
        options: &RequestOptions,
        drive: Drive,
    ) -> Result<Once<Taken<ReadResourceResult>>, RequestError> {
        self.read_as(uri, options, Form::AsSent, drive).await
    }

    async fn read_as(
        &self,
        uri: &str,
        options: &RequestOptions,
        form: Form,
        drive: Drive,
    ) -> Result<Once<Taken<ReadResourceResult>>, RequestError> {
        let params = ReadResourceRequestParams::new(uri);
        let request = |(responses, state): Inputs| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        let during = During::Read { uri: uri.into() };
        match self.rounds(request, during, options, form, drive).await? {
            (ServerResult::ReadResourceResult(mut result), raw) => {
                let odd = take_odd(&mut result.meta);
                let raw = raw.beyond(&result);
                Ok(Once::Done(Taken { result, odd, raw }))
            }
            (ServerResult::InputRequiredResult(asked), _) => Ok(Once::Asked(Round::new(asked))),
            _ => Err(RequestError::Unexpected),
        }
    }

    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: JsonObject,
        options: &RequestOptions,
        drive: Drive,
    ) -> Result<Once<Taken<GetPromptResult>>, RequestError> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        let request = |(responses, state): Inputs| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        let during = During::Prompt { name: name.into() };
        match self.rounds(request, during, options, Form::AsSent, drive).await? {
            (ServerResult::GetPromptResult(mut result), raw) => {
                let odd = take_odd(&mut result.meta);
                let raw = raw.beyond(&result);
                Ok(Once::Done(Taken { result, odd, raw }))
            }
            (ServerResult::InputRequiredResult(asked), _) => Ok(Once::Asked(Round::new(asked))),
            _ => Err(RequestError::Unexpected),
        }
    }

    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        tag: RequestTag,
        options: &RequestOptions,
        drive: Drive,
    ) -> Result<Once<Taken<CallToolResult>>, RequestError> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let request = |(responses, state): Inputs| {
            let mut params = params.clone();
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let during = During::Call { tool: name.into(), tag };
        match self.rounds(request, during, options, Form::AsSent, drive).await? {
            (ServerResult::CallToolResult(mut result), raw) => {
                let odd = take_odd(&mut result.meta);
                let raw = raw.beyond(&result);
                Ok(Once::Done(Taken { result, odd, raw }))
            }
            (ServerResult::InputRequiredResult(asked), _) => Ok(Once::Asked(Round::new(asked))),
            // The tool ran, so its result is kept as it came.
            (other, raw) => {
                let raw = raw.take();
                let sent = raw.as_deref().and_then(|sent| serde_json::from_str(sent).ok());
                let item = sent.or_else(|| serde_json::to_value(other).ok()).unwrap_or_default();
                let odd = vec![Odd::new(0, "not a valid tool result", item)];
                let result = CallToolResult::success(Vec::new());
                Ok(Once::Done(Taken { result, odd, raw }))
            }
        }
    }

    /// Sends a request, and again with answers to the server's questions, until there is a result.
    /// If the caller answers itself, the questions are returned.
    async fn rounds(
        &self,
        request: impl Fn(Inputs) -> ClientRequest + Send,
        during: During,
        options: &RequestOptions,
        form: Form,
        drive: Drive,
    ) -> Result<(ServerResult, Raw), RequestError> {
        let (mut inputs, is_driven) = match drive {
            Drive::Handlers => ((None, None), true),
            Drive::Caller(answers) => (answers.into_parts(), false),
        };
        for _ in 0..MAX_ROUNDS {
            let mut request = request(inputs);
            let raw = match form {
                Form::AsSent => Raw::ask(&mut request),
                Form::Understood => Raw::default(),
            };
            Open::mark(&mut request, during.clone());
            match self.ask_with(request, options).await? {
                ServerResult::InputRequiredResult(result) if is_driven => {
                    inputs = self.answer(result, &during).await?;
                }
                other => return Ok((other, raw)),
            }
        }
        Err(RequestError::TooManyRounds)
    }

    pub(crate) async fn complete(
        &self,
        reference: Reference,
        argument: ArgumentInfo,
        context: BTreeMap<String, String>,
        options: &RequestOptions,
    ) -> Result<CompletionInfo, RequestError> {
        let mut params = CompleteRequestParams::new(reference, argument);
        if !context.is_empty() {
            params = params
                .with_context(CompletionContext::with_arguments(context.into_iter().collect()));
        }
        let request = CompleteRequest::new(params);
        match self.ask_with(ClientRequest::CompleteRequest(request), options).await? {
            ServerResult::CompleteResult(result) => Ok(result.completion),
            _ => Err(RequestError::Unexpected),
        }
    }

    pub(crate) async fn ping(&self) -> Result<(), RequestError> {
        self.ask(ClientRequest::PingRequest(PingRequest::default())).await.map(drop)
    }

    pub(crate) async fn set_log_level(&self, level: LoggingLevel) -> Result<(), RequestError> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        if self.server.era == Era::Modern {
            return Ok(());
        }
        let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
        self.ask(ClientRequest::SetLevelRequest(request)).await.map(drop)
    }

    /// The level that was asked for on this connection.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the stream of a legacy session, which notices need.
    ///
    /// # Errors
    ///
    /// If the server has none.
    pub(crate) async fn open_stream(&self) -> Result<(), RequestError> {
        let Some(http) = &self.http else { return Ok(()) };
        let _ = tokio::time::timeout(super::STREAM_OPENING, http.want_stream()).await;
        if http.has_no_stream() {
            return Err(RequestError::NotOffered("a stream for notices"));
        }
        Ok(())
    }

    pub(crate) async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
        self.ask(ClientRequest::SubscribeRequest(request)).await.map(drop)
    }

    pub(crate) async fn unsubscribe(&self, uri: &str) -> Result<(), RequestError> {
        let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri));
        self.ask(ClientRequest::UnsubscribeRequest(request)).await.map(drop)
    }

    pub(crate) async fn listen(
        &self,
        filter: SubscriptionFilter,
    ) -> Result<Listening, RequestError> {
        let (opening, most) = (Listening::open(&self.peer, filter), self.timeout.min(LISTENING));
        match tokio::time::timeout(most, opening).await {
            Ok(listening) => listening.map_err(|error| failure(error, most)),
            Err(_) => Err(RequestError::Timeout(most)),
        }
    }

    async fn ask(&self, request: ClientRequest) -> Result<ServerResult, RequestError> {
        self.ask_with(request, &RequestOptions::default()).await
    }

    /// Sends a request and waits for its answer. If the caller stops waiting, the request is
    /// cancelled.
    async fn ask_with(
        &self,
        mut request: ClientRequest,
        wanted: &RequestOptions,
    ) -> Result<ServerResult, RequestError> {
        crate::history::Author::mark(&mut request, wanted);
        let timeout = wanted.timeout.unwrap_or(self.timeout);
        let mut options = PeerRequestOptions::with_timeout(timeout);
        if matches!(request, ClientRequest::CallToolRequest(_)) {
            // Progress extends the timeout of a call, but of nothing else.
            options = options.reset_timeout_on_progress();
        }
        let mut meta = RequestMetaObject::from(wanted.meta.clone());
        if let Some(level) = self.log_level().filter(|_| self.server.era == Era::Modern) {
            meta.set_log_level(level);
        }
        if !meta.is_empty() {
            options = options.with_meta(meta);
        }
        // A server that does not read counts as one that does not answer.
        let sending = self.peer.send_request_with_option(request, options);
        let handle = match tokio::time::timeout(timeout, sending).await {
            Ok(sent) => sent.map_err(|error| failure(error, timeout))?,
            Err(_) => return Err(RequestError::Timeout(timeout)),
        };
        let mut pending = Pending { link: self, id: Some(handle.id.clone()) };
        let answer = handle.await_response().await;
        pending.id = None;
        answer.map_err(|error| failure(error, timeout))
    }

    /// Answers a question that the server asks before it continues.
    async fn answer(
        &self,
        result: InputRequiredResult,
        during: &During,
    ) -> Result<Inputs, RequestError> {
        let mut responses = InputResponses::new();
        for (key, request) in result.input_requests.unwrap_or_default() {
            let answer = self.client.answer(&key, request, during.clone()).await;
            let answer =
                answer.map_err(|error| RequestError::Input(error.message.as_ref().into()))?;
            responses.insert(key, answer);
        }
        Ok(((!responses.is_empty()).then_some(responses), result.request_state))
    }
}

fn written(result: &ServerResult) -> Result<Arc<str>, RelayError> {
    let text = serde_json::to_string(result);
    text.map(Arc::from).map_err(|_| RelayError { error: RequestError::Unexpected, raw: None })
}

fn page(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}

async fn cancel(peer: Peer<RoleClient>, mut cancelled: mpsc::Receiver<RequestId>) {
    while let Some(id) = cancelled.recv().await {
        let reason = Some("the client no longer waits for the answer".to_owned());
        let params = CancelledNotificationParam::new(Some(id), reason);
        let notification =
            ClientNotification::CancelledNotification(CancelledNotification::new(params));
        if peer.send_notification(notification).await.is_err() {
            return;
        }
    }
}

fn failure(error: ServiceError, timeout: Duration) -> RequestError {
    match error {
        ServiceError::McpError(error) => match skim::limit(&error) {
            Some(most) => RequestError::TooLarge(most),
            None => RequestError::Refused(error),
        },
        ServiceError::TransportClosed => RequestError::Lost("the connection was closed".into()),
        ServiceError::Cancelled { reason } => RequestError::Lost(
            reason.unwrap_or_else(|| "the request was cancelled".to_owned()).into(),
        ),
        ServiceError::Timeout { .. } => RequestError::Timeout(timeout),
        ServiceError::UnexpectedResponse => RequestError::Unexpected,
        ServiceError::TransportSend(error) => {
            let http = error.error.downcast_ref::<StreamableHttpError<HttpError>>();
            match http {
                Some(StreamableHttpError::Client(HttpError::Unreachable(reason))) => {
                    return RequestError::Unreachable(reason.as_str().into());
                }
                Some(StreamableHttpError::Client(HttpError::TooLarge(most))) => {
                    return RequestError::TooLarge(*most);
                }
                _ => {}
            }
            // The library's own text comes first and adds nothing.
            let text = innermost(error.error.as_ref());
            RequestError::Transport(text.strip_prefix("Client error: ").unwrap_or(&text).into())
        }
        other => RequestError::Transport(other.to_string().into()),
    }
}
