//! A transport that shows what passes: notices in the order of the wire, and every message to the
//! log for people who debug.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::Transport;

use super::{Signal, Sink};
use crate::history::History;

pub(super) struct Tap<T> {
    inner: T,
    sink: Sink,
    history: Arc<History>,
    /// The question whether the server is modern, while it is open.
    probe: Option<RequestId>,
}

impl<T> Tap<T> {
    pub(super) fn new(inner: T, sink: Sink, history: Arc<History>) -> Self {
        Self { inner, sink, history, probe: None }
    }

    /// A legacy server may answer what it does not know with an empty result. That is a no.
    fn understood(&mut self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        let ServerJsonRpcMessage::Response(response) = &message else { return message };
        if self.probe.as_ref() != Some(&response.id) {
            return message;
        }
        self.probe = None;
        if matches!(response.result, ServerResult::DiscoverResult(_)) {
            return message;
        }
        let error =
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to server/discover", None);
        ServerJsonRpcMessage::error(error, Some(response.id.clone()))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &item
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            self.probe = Some(request.id.clone());
        }
        self.history.sent(&item);
        self.inner.send(item)
    }

    // Cancel-safe if the inner one is: nothing is awaited after it.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let Some(message) = self.inner.receive().await else {
            (self.sink)(Signal::Ended("the connection was closed".into()));
            return None;
        };
        self.history.received(&message);
        if let ServerJsonRpcMessage::Notification(notification) = &message {
            (self.sink)(Signal::Notice(Box::new(notification.notification.clone())));
        }
        Some(self.understood(message))
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
