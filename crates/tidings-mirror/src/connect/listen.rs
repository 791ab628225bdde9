//! The modern stream of notices: one `subscriptions/listen` request, and its end.

use std::sync::Arc;

use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, RoleClient, ServiceError, Subscription, SubscriptionEnd};

/// An open stream of notices. The notices themselves are taken from the wire, in order, and do not
/// pass here.
#[derive(Debug)]
pub(crate) struct Listening {
    subscription: Subscription,
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The server ended it.
    Graceful,
    /// It broke.
    Broken(Arc<str>),
}

impl Listening {
    pub(super) async fn open(
        peer: &Peer<RoleClient>,
        filter: SubscriptionFilter,
    ) -> Result<Self, ServiceError> {
        let subscription = peer.listen(filter).await?;
        Ok(Self { subscription })
    }

    /// The subscriptions the server acknowledged.
    pub(crate) fn acknowledged(&self) -> &SubscriptionFilter {
        self.subscription.acknowledged()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&mut self) -> End {
        loop {
            match self.subscription.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return End::Broken(error.to_string().into()),
            }
        }
        match self.subscription.end() {
            Some(SubscriptionEnd::Graceful(_)) => End::Graceful,
            _ => End::Broken("the stream of notices broke".into()),
        }
    }
}
