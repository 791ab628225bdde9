//! A transport that filters messages that the protocol library cannot handle, and records open
//! requests.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta as _, JsonRpcError, RequestId,
    ServerJsonRpcMessage, ServerNotification, ServerResult, SubscriptionFilter,
};
use rmcp::transport::Transport;
use tokio::time::Instant;

use super::Signal;
use super::choice::not_modern;
use super::wire::Wire;
use crate::spelling::plain;

pub(super) struct Tap<T> {
    inner: T,
    wire: Wire,
    /// The open `server/discover` request, and its deadline.
    probe: Option<(RequestId, Option<Instant>)>,
    /// The time for its answer.
    patience: Option<Duration>,
    /// That request, after its deadline.
    unanswered: Option<RequestId>,
    /// The requested subscriptions of streams that are not acknowledged yet.
    opening: HashMap<RequestId, SubscriptionFilter>,
}

impl<T> Tap<T> {
    pub(super) fn new(inner: T, wire: Wire, patience: Option<Duration>) -> Self {
        let (probe, unanswered, opening) = (None, None, HashMap::new());
        Self { inner, wire, probe, patience, unanswered, opening }
    }

    /// The part of a message that the protocol library needs.
    fn take(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Notification(notification) => {
                self.notice(notification.notification).map(ServerJsonRpcMessage::notification)
            }
            other => self.understood(other),
        }
    }

    /// A server that does not answer `server/discover` in time counts as legacy.
    fn give_up(&mut self) -> Option<ServerJsonRpcMessage> {
        let (id, _) = self.probe.take()?;
        self.unanswered = Some(id.clone());
        Some(not_modern(id, "no answer to server/discover in time".to_owned()))
    }

    /// The library closes a stream with unexpected notices, and one with a slow reader. Notices
    /// were passed on already, so the library gets only the beginning and the end of the stream.
    fn notice(&mut self, mut notice: ServerNotification) -> Option<ServerNotification> {
        let Some(stream) = notice.get_meta().subscription_id() else { return Some(notice) };
        match &mut notice {
            ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged) => {
                let asked = self.opening.remove(&stream)?;
                let accepted = &mut acknowledged.params.notifications;
                *accepted = within(&asked, std::mem::take(accepted));
                Some(notice)
            }
            ServerNotification::CancelledNotification(_) => Some(notice),
            _ => None,
        }
    }

    /// A legacy server may answer an unknown request with an empty result, which means no. An
    /// answer after the server was taken for legacy is too late.
    fn understood(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => &response.id,
            ServerJsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => id,
            _ => return Some(message),
        };
        self.opening.remove(id);
        self.wire.open.ended(id);
        let is_modern = matches!(
            &message,
            ServerJsonRpcMessage::Response(response)
                if matches!(response.result, ServerResult::DiscoverResult(_))
        );
        if self.unanswered.take_if(|unanswered| *unanswered == *id).is_some() {
            if is_modern {
                self.wire.tell(Signal::LateModern);
            }
            return None;
        }
        let is_probe = self.probe.take_if(|(probe, _)| *probe == *id).is_some();
        let is_no = matches!(message, ServerJsonRpcMessage::Response(_)) && !is_modern;
        if is_probe && is_no {
            return Some(not_modern(id.clone(), "no answer to server/discover".to_owned()));
        }
        Some(message)
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &item {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => {
                    let until = self.patience.map(|patience| Instant::now() + patience);
                    self.probe = Some((request.id.clone(), until));
                }
                ClientRequest::SubscriptionsListenRequest(listen) => {
                    let asked = listen.params.notifications.clone();
                    self.opening.insert(request.id.clone(), asked);
                }
                _ => {}
            }
        }
        // Before it is on the wire: a question about it may come at once.
        self.wire.open.sent(&item);
        let request = match &item {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let (sending, open) = (self.inner.send(item), self.wire.open.clone());
        async move {
            let sent = sending.await;
            if let (Err(_), Some(id)) = (&sent, &request) {
                open.ended(id);
            }
            sent
        }
    }

    // Cancel-safe if the inner one is: its message is processed before anything is awaited.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let received = match self.probe {
                Some((_, Some(until))) => {
                    match tokio::time::timeout_at(until, self.inner.receive()).await {
                        Ok(received) => received,
                        Err(_) => return self.give_up(),
                    }
                }
                _ => self.inner.receive().await,
            };
            let Some(message) = received else {
                self.wire.tell(Signal::Ended("the connection was closed".into()));
                return None;
            };
            if let Some(message) = self.take(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// The acknowledged part of the requested subscriptions. More than requested is not an error, and
/// not used.
fn within(asked: &SubscriptionFilter, mut accepted: SubscriptionFilter) -> SubscriptionFilter {
    let both = |accepted: Option<bool>, asked| accepted.filter(|_| asked == Some(true));
    accepted.tools_list_changed = both(accepted.tools_list_changed, asked.tools_list_changed);
    accepted.prompts_list_changed = both(accepted.prompts_list_changed, asked.prompts_list_changed);
    accepted.resources_list_changed =
        both(accepted.resources_list_changed, asked.resources_list_changed);
    // The server may spell a URI differently.
    let uris: HashMap<String, &String> =
        asked.resource_subscriptions.iter().flatten().map(|uri| (plain(uri), uri)).collect();
    accepted.resource_subscriptions = accepted.resource_subscriptions.map(|accepted| {
        let mut taken = HashSet::new();
        let ours = accepted.iter().filter_map(|uri| uris.get(&plain(uri)).copied());
        ours.filter(|uri| taken.insert(*uri)).cloned().collect()
    });
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_in_another_spelling_is_taken_in_ours() {
        let filter = |uris: &[&str]| {
            let mut filter = SubscriptionFilter::new();
            filter.resource_subscriptions =
                Some(uris.iter().map(|uri| (*uri).to_owned()).collect());
            filter
        };
        let accepted = filter(&["https://example.com/", "https://example.com/", "other:x"]);
        let taken = within(&filter(&["https://example.com", "a:b"]), accepted);
        assert_eq!(taken.resource_subscriptions.unwrap(), ["https://example.com"]);
    }
}
