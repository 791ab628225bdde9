//! The link between the lines of a stdio connection and the protocol library.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions as _,
    GetMeta, JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::io::AsyncRead;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::input::{Input, InputLine};
use super::output::{LineWriter, UNREAD};
use crate::era;
use crate::handler::{Beside, Connection};
use crate::pipeline::sleep_until;
use crate::transport::beside;
use crate::transport::intake::{self, Fault};

/// The time for requests under way when the input ends or the server stops; then they are cancelled.
pub(super) const DRAIN: Duration = Duration::from_secs(10);

/// A parsed line, or its error.
type Parsed = Result<ClientJsonRpcMessage, Fault>;

/// Carries messages between the byte streams and the protocol library.
pub(super) struct Link<R> {
    input: Input<R>,
    writer: LineWriter,
    connection: Arc<Connection>,
    /// Ends the library's service, and with it the requests under way.
    ending: CancellationToken,
    /// The server stops: nothing more is read, as at the end of the input.
    stop: CancellationToken,
    /// Whether the client has begun; before that, the library accepts only requests.
    begun: bool,
    /// Cancel-safe: a line being parsed stays here when `receive` is dropped. Order: nothing is read
    /// meanwhile, so that no message overtakes it.
    parsing: Option<BoxFuture<'static, Parsed>>,
    /// Cancel-safe: listen requests being begun stay here when `receive` is dropped. Each returns
    /// the message for the library.
    pending: FuturesUnordered<BoxFuture<'static, Option<ClientJsonRpcMessage>>>,
    /// The unanswered requests except listen requests, and their data that bypasses the library.
    under_way: HashMap<RequestId, Beside>,
    /// After the end of the input: the deadline of the requests under way.
    deadline: Option<Instant>,
}

impl<R: AsyncRead + Send + Unpin> Link<R> {
    pub(super) fn new(
        input: R,
        writer: LineWriter,
        connection: Arc<Connection>,
        ending: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        Self {
            input: Input::new(input),
            writer,
            connection,
            ending,
            stop,
            begun: false,
            parsing: None,
            pending: FuturesUnordered::new(),
            under_way: HashMap::new(),
            deadline: None,
        }
    }

    /// Takes the next input; returns the message that the library gets at once.
    fn read(&mut self, line: InputLine) -> Option<ClientJsonRpcMessage> {
        match line {
            InputLine::Whole(line) if line.trim_ascii().is_empty() => None,
            InputLine::Whole(line) => {
                // Most lines are short, and read when this is first polled.
                let mut parsing: BoxFuture<'static, Parsed> = Box::pin(parse(line));
                if let Some(parsed) = (&mut parsing).now_or_never() {
                    return self.take(parsed);
                }
                self.parsing = Some(parsing);
                None
            }
            InputLine::Refused(id, error) => {
                self.writer.refuse(id, error);
                None
            }
            InputLine::End => {
                self.deadline = Some(Instant::now() + DRAIN);
                None
            }
        }
    }

    /// The message of a line that the library gets at once; `None` if it gets nothing or must wait.
    fn take(&mut self, parsed: Parsed) -> Option<ClientJsonRpcMessage> {
        let mut message = match parsed {
            Ok(message) => message,
            Err(fault) => {
                self.writer.refuse(fault.id, fault.error);
                return None;
            }
        };
        match &mut message {
            JsonRpcMessage::Request(request) if !self.begun && comes_early(&request.request) => {
                let details = "begin with an `initialize` request";
                let data = Some(json!({ "details": details }));
                let error = ErrorData::invalid_request("Not initialized", data);
                self.writer.refuse(Some(request.id.clone()), error);
                return None;
            }
            JsonRpcMessage::Request(request) => {
                let modern = request.request.get_meta().protocol_version();
                if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_))
                    && modern.is_some_and(|version| era::is_modern(version.as_str()))
                {
                    let (connection, writer) = (self.connection.clone(), self.writer.clone());
                    self.pending.push(Box::pin(begin_listen(connection, writer, message)));
                    return None;
                }
                // Of two requests with one id the library answers one; they share the bypassed data.
                let beside = self.under_way.entry(request.id.clone()).or_default();
                request.request.extensions_mut().insert(beside.clone());
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ClientNotification::CancelledNotification(cancelled) => {
                    if let Some(id) = &cancelled.params.request_id {
                        self.connection.end_listen(id);
                        // The library drops the answer of a request that was cancelled.
                        self.under_way.remove(id);
                    }
                }
                // Here, not in a task of the library: the input may end with this line, and its
                // notices must still be sent.
                ClientNotification::InitializedNotification(_) => self.connection.greet(),
                _ => {}
            },
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        self.admit(message)
    }

    /// The message for the library. Before the client has begun, the library accepts only requests,
    /// and ends the connection on anything else.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        if let JsonRpcMessage::Request(request) = &message {
            self.begun |= begins(&request.request);
            return Some(message);
        }
        self.begun.then_some(message)
    }

    /// Whether all requests before the end of the input are answered.
    fn is_drained(&self) -> bool {
        self.parsing.is_none() && self.pending.is_empty() && self.under_way.is_empty()
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for Link<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let beside = answered.and_then(|id| {
            self.connection.end_listen(&id);
            self.under_way.remove(&id)
        });
        let mut line = Beside::write_with(beside.as_ref(), &item);
        line.push(b'\n');
        // Order: lines are sent in the order of these calls, whichever future is polled first.
        self.writer.send(line)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Cancel-safe: the library drops this whenever it has something to send.
        loop {
            if self.deadline.is_some() && self.is_drained() {
                break;
            }
            let reads = self.deadline.is_none()
                && self.parsing.is_none()
                && self.pending.len() < 2 * UNREAD;
            let message = tokio::select! {
                Some(message) = self.pending.next(), if !self.pending.is_empty() => {
                    message.and_then(|message| self.admit(message))
                }
                parsed = parsed(&mut self.parsing) => {
                    self.parsing = None;
                    self.take(parsed)
                }
                line = next_line(&mut self.input, &self.writer), if reads => self.read(line),
                () = self.stop.cancelled(), if self.deadline.is_none() => self.read(InputLine::End),
                () = sleep_until(self.deadline) => {
                    debug!("requests took too long after the end of the input");
                    self.ending.cancel();
                    break;
                }
            };
            if message.is_some() {
                return message;
            }
        }
        // The library continues until this returns, so listen requests get their last notices.
        self.connection.close();
        self.connection.listens_ended().await;
        None
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // The output belongs to another future, which writes the waiting lines.
        Ok(())
    }
}

/// The next line, once the client has read most of its answers.
async fn next_line<R: AsyncRead + Unpin>(input: &mut Input<R>, writer: &LineWriter) -> InputLine {
    writer.answers_are_few().await;
    input.next().await
}

/// Parses a message; a large one beside the runtime.
async fn parse(line: Vec<u8>) -> Parsed {
    let length = line.len();
    let reading = async move {
        let line = Bytes::from(line);
        let mut received = intake::read(&line, None)?;
        received.keep(&line);
        Ok(received.whole())
    };
    beside::run(length, reading).await
}

/// The line being parsed, if there is one.
async fn parsed(parsing: &mut Option<BoxFuture<'static, Parsed>>) -> Parsed {
    match parsing {
        Some(parsing) => parsing.await,
        None => std::future::pending().await,
    }
}

/// Begins a listen request, so that its listener exists before the library acknowledges it.
async fn begin_listen(
    connection: Arc<Connection>,
    writer: LineWriter,
    mut message: ClientJsonRpcMessage,
) -> Option<ClientJsonRpcMessage> {
    if let JsonRpcMessage::Request(request) = &mut message {
        let client = request.request.get_meta().client_info();
        if let ClientRequest::SubscriptionsListenRequest(listen) = &mut request.request {
            let filter = &mut listen.params.notifications;
            let begun = connection.begin_listen(&request.id, filter, client.as_ref()).await;
            if let Err(error) = begun {
                writer.refuse(Some(request.id.clone()), error);
                return None;
            }
        }
    }
    // A request that was cancelled meanwhile is dropped.
    let wanted = match &message {
        JsonRpcMessage::Request(request) => connection.listens(&request.id),
        _ => true,
    };
    wanted.then_some(message)
}

/// Whether a request needs a handshake before it: it lacks the metadata of a modern request.
fn comes_early(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_)
        | ClientRequest::DiscoverRequest(_)
        | ClientRequest::PingRequest(_) => false,
        request => !request.get_meta().contains_key(era::VERSION_KEY),
    }
}

/// Whether a request begins the conversation: a handshake, or a request with the metadata of a
/// modern one. A discovery does not.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::NO_INITIALIZE).is_empty()
                && meta.protocol_version().is_some_and(|version| era::is_known(version.as_str()))
        }
    }
}
