//! One client over a pair of byte streams, a message a line; usually standard input and output.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta, JsonRpcError,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::era;
use crate::handler::{Connection, FrameWriter, Handler};
use crate::hub::Hub;
use crate::notice;
use crate::outbox::Next;
use crate::transport::intake;
use crate::transport::overlong::Overlong;

/// The longest line that is read; a longer one is refused and skipped.
const LINE_LIMIT: usize = 16 * 1024 * 1024;

/// How long the answers of requests that are under way may take when the server stops.
const FAREWELL: Duration = Duration::from_secs(5);
/// How many answers may wait for a client that does not read; then no more requests are read.
const UNREAD: usize = 64;

/// Why a connection ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A task of ours failed.
    #[error("serving the connection failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Serves a hub to one client until its input ends, the token is cancelled, or the hub is shut
/// down.
///
/// # Errors
///
/// Serving failed; that the client left is no failure.
pub async fn serve<R, W>(
    hub: &Hub,
    input: R,
    output: W,
    cancel: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let core = hub.core().clone();
    let writer = Writer { output: Arc::new(Mutex::new(Box::new(output))) };
    let connection = Connection::new(core.clone(), Some(Box::new(writer.clone())));
    let transport = LineTransport::new(input, writer.clone(), connection.clone());
    let handler = Handler::of(core.clone(), connection.clone());
    // The service is told to end after the listeners were, so that their last words are heard.
    let ending = CancellationToken::new();
    let service = async {
        match serve_server_with_ct(handler, transport, ending.clone()).await {
            Ok(service) => match service.waiting().await {
                Ok(QuitReason::JoinError(error)) | Err(error) => {
                    Err(ServeError::Failed(Box::new(error)))
                }
                Ok(_) => Ok(()),
            },
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                Ok(())
            }
            Err(error) => Err(ServeError::Failed(Box::new(error))),
        }
    };
    let notices = async {
        let outbox = connection.opened().await;
        let reader = outbox.attach();
        while let Next::Frames(frames) = outbox.next(reader).await {
            if !writer.write(frames).await {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let stop = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = core.stopped.cancelled() => {}
        }
        connection.close();
        connection.listens_ended().await;
        ending.cancel();
        tokio::time::sleep(FAREWELL).await;
    };
    info!("serving stdio");
    let result = tokio::select! {
        result = service => result,
        () = notices => Ok(()),
        () = stop => Ok(()),
    };
    info!("stopped serving stdio");
    result
}

/// Where lines are written: answers by the protocol library, notices by us.
#[derive(Clone)]
struct Writer {
    output: Arc<Mutex<Box<dyn AsyncWrite + Send + Unpin>>>,
}

impl Writer {
    async fn line(&self, line: &[u8]) -> std::io::Result<()> {
        let mut output = self.output.lock().await;
        output.write_all(line).await?;
        output.flush().await
    }

    async fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        let message = JsonRpcError::new(id, error);
        let mut line = serde_json::to_vec(&message).expect("an error is plain JSON");
        line.push(b'\n');
        drop(self.line(&line).await);
    }
}

impl FrameWriter for Writer {
    fn write(&self, frames: Bytes) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let mut lines = Vec::with_capacity(frames.len());
            for event in notice::events(&frames) {
                lines.extend_from_slice(&notice::line(&event));
            }
            self.line(&lines).await.is_ok()
        })
    }
}

/// Carries messages between the byte streams and the protocol library.
struct LineTransport<R> {
    input: BufReader<R>,
    /// Cancel-safe: what was read of a line stays here when `receive` is dropped.
    line: Vec<u8>,
    /// A line that is too long, while it is passed over.
    skipping: Option<Overlong>,
    /// Whether the client has begun; before, the library takes requests only.
    begun: bool,
    writer: Writer,
    connection: Arc<Connection>,
    /// Cancel-safe: what is done about lines beside reading stays here when `receive` is dropped.
    /// Each gives what the library gets of its line.
    pending: FuturesUnordered<BoxFuture<'static, Option<ClientJsonRpcMessage>>>,
    unread: Arc<Unread>,
}

/// Counts the answers that the client has not read.
#[derive(Default)]
struct Unread {
    count: AtomicUsize,
    fewer: Notify,
}

impl Unread {
    /// Counts an answer until what is returned is dropped.
    fn one_more(unread: &Arc<Self>) -> Counted {
        unread.count.fetch_add(1, Ordering::Relaxed);
        Counted { unread: unread.clone() }
    }

    /// Waits until the client has read most of them.
    async fn are_few(&self) {
        while self.count.load(Ordering::Relaxed) >= UNREAD {
            self.fewer.notified().await;
        }
    }
}

/// One answer that was not read.
struct Counted {
    unread: Arc<Unread>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.unread.count.fetch_sub(1, Ordering::Relaxed);
        self.unread.fewer.notify_one();
    }
}

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    fn new(input: R, writer: Writer, connection: Arc<Connection>) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            skipping: None,
            begun: false,
            writer,
            connection,
            pending: FuturesUnordered::new(),
            unread: Arc::default(),
        }
    }

    /// The next line, or nothing at the end of the input. Cancel-safe: what was read of a line
    /// stays in `partial`.
    async fn next_line(
        input: &mut BufReader<R>,
        partial: &mut Vec<u8>,
        skipping: &mut Option<Overlong>,
        unread: &Unread,
    ) -> Option<Result<Vec<u8>, (Option<RequestId>, ErrorData)>> {
        unread.are_few().await;
        loop {
            let available = match input.fill_buf().await {
                Ok([]) => return None,
                Ok(available) => available,
                Err(error) => {
                    debug!(%error, "the input failed");
                    return None;
                }
            };
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |at| at + 1);
            match skipping {
                Some(overlong) => overlong.read(&available[..taken]),
                None => partial.extend_from_slice(&available[..taken]),
            }
            input.consume(taken);
            if partial.len() > LINE_LIMIT {
                skipping.get_or_insert_default().read(&std::mem::take(partial));
            }
            if newline.is_none() {
                continue;
            }
            let Some(overlong) = skipping.take() else {
                return Some(Ok(std::mem::take(partial)));
            };
            let details = format!("a message has at most {LINE_LIMIT} bytes");
            let error =
                ErrorData::invalid_request("Message too long", Some(json!({ "details": details })));
            return Some(Err((overlong.into_id(), error)));
        }
    }

    /// What the library gets of a line at once; nothing if it gets nothing or has to wait.
    fn take(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let message = match intake::parse(line) {
            Ok(message) => message,
            Err(fault) => {
                self.refuse(fault.id, fault.error);
                return None;
            }
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                let modern = request.request.get_meta().protocol_version();
                if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_))
                    && modern.is_some_and(|version| era::is_modern(version.as_str()))
                {
                    let (connection, writer) = (self.connection.clone(), self.writer.clone());
                    self.pending.push(Box::pin(begin_listen(connection, writer, message)));
                    return None;
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.connection.end_listen(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    /// What the library gets of a message that is ready for it: before the client has begun it takes
    /// requests only, and a connection ends that gives it anything else.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        if let JsonRpcMessage::Request(request) = &message {
            self.begun |= begins(&request.request);
            return Some(message);
        }
        self.begun.then_some(message)
    }

    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        let writer = self.writer.clone();
        self.pending.push(Box::pin(async move {
            writer.refuse(id, error).await;
            None
        }));
    }
}

/// Begins a listen request, so that its listener exists before the library acknowledges it.
async fn begin_listen(
    connection: Arc<Connection>,
    writer: Writer,
    mut message: ClientJsonRpcMessage,
) -> Option<ClientJsonRpcMessage> {
    if let JsonRpcMessage::Request(request) = &mut message
        && let ClientRequest::SubscriptionsListenRequest(listen) = &mut request.request
        && let Err(error) =
            connection.begin_listen(&request.id, &mut listen.params.notifications).await
    {
        writer.refuse(Some(request.id.clone()), error).await;
        return None;
    }
    // One that was cancelled while it was begun is not asked for any more.
    let wanted = match &message {
        JsonRpcMessage::Request(request) => connection.listens(&request.id),
        _ => true,
    };
    wanted.then_some(message)
}

/// Whether a request begins the conversation: a handshake, or a request that says all a modern one
/// must. A discovery says no more than that a client is there.
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

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for LineTransport<R> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
        let ended = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        if let Some(id) = ended {
            self.connection.end_listen(&id);
        }
        let (writer, counted) = (self.writer.clone(), Unread::one_more(&self.unread));
        let line = serde_json::to_vec(&item);
        async move {
            let mut line = line?;
            line.push(b'\n');
            let written = writer.line(&line).await;
            drop(counted);
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Cancel-safe: the library drops this whenever it has something to send.
        loop {
            let line = tokio::select! {
                Some(message) = self.pending.next(), if !self.pending.is_empty() => {
                    match message.and_then(|message| self.admit(message)) {
                        Some(message) => return Some(message),
                        None => continue,
                    }
                }
                line = Self::next_line(
                    &mut self.input,
                    &mut self.line,
                    &mut self.skipping,
                    &self.unread,
                ), if self.pending.len() < 2 * UNREAD => line,
            };
            let Some(line) = line else {
                // The library waits for the answers of requests that are under way; listen
                // requests would never have one. It goes on working until this returns.
                self.connection.close();
                self.connection.listens_ended().await;
                return None;
            };
            match line {
                Ok(line) if line.trim_ascii().is_empty() => {}
                Ok(line) => {
                    if let Some(message) = self.take(&line).and_then(|message| self.admit(message))
                    {
                        return Some(message);
                    }
                }
                Err((id, error)) => self.refuse(id, error),
            }
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        // Whoever holds the output waits for a client that does not read; every line is flushed.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::Resource;

    use super::*;
    use crate::{AnswerError, Config, Contents, EditError, ResourceUri, Shelf, Source};

    /// A source whose only resource can be read once that is allowed.
    struct Slow(Arc<Notify>);

    impl Source for Slow {
        async fn start(&self, shelf: &Shelf) -> Result<(), EditError> {
            shelf.add(Resource::new("slow://one", "one")).map(drop)
        }

        async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
            self.0.notified().await;
            Ok(Contents::text(uri, "at last"))
        }
    }

    // The library drops `receive` whenever it has something to send; a listen request that was
    // being prepared then was lost.
    #[tokio::test(start_paused = true)]
    async fn a_listen_request_survives_a_dropped_receive() {
        let hub = Hub::new(Config::new("test", "1"));
        let allowed = Arc::new(Notify::new());
        hub.add("slow", Slow(allowed.clone())).await.unwrap();
        let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
            "notifications": { "resourceSubscriptions": ["slow://one"] },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        let writer = Writer { output: Arc::new(Mutex::new(Box::new(tokio::io::sink()))) };
        let (mut client, input) = tokio::io::duplex(1 << 16);
        client.write_all(format!("{listen}\n").as_bytes()).await.unwrap();
        let connection = Connection::new(hub.core().clone(), None);
        let mut transport = LineTransport::new(input, writer, connection);
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(second, transport.receive()).await.is_err());
        // Other requests are read meanwhile.
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
        client.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
        let id_of = |message: Option<ClientJsonRpcMessage>| match message {
            Some(JsonRpcMessage::Request(request)) => request.id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id_of(transport.receive().await), RequestId::Number(2));
        allowed.notify_one();
        assert_eq!(id_of(transport.receive().await), RequestId::Number(1));
    }
}
