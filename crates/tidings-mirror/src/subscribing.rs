//! Subscriptions in both eras: the requested and the acknowledged ones.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use rmcp::model::SubscriptionFilter;
use tidings_core::{ListKind, ListKinds};

use crate::connect::{Link, Listening};
use crate::engine::{Engine, SIDE_BY_SIDE};
use crate::era::Era;
use crate::events::Warning;
use crate::groups::groups;
use crate::lists::List;
use crate::machine::{Input, Offer};
use crate::request::RequestError;
use crate::spelling::plain;
use crate::watchers::Updates;

/// Subscriptions, in both eras.
impl Engine {
    /// Opens the stream of notices if the era needs it, and reports the offers to the machine.
    ///
    /// # Errors
    ///
    /// If the server is gone again.
    pub(crate) async fn welcome(&self, link: &Arc<Link>) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        let capabilities = &link.server().capabilities;
        let (mut announced, mut unfollowed) = (ListKinds::EMPTY, ListKinds::EMPTY);
        let declared = [
            (ListKind::Tools, capabilities.tools.as_ref().and_then(|tools| tools.list_changed)),
            (
                ListKind::Prompts,
                capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed),
            ),
            (
                ListKind::Resources,
                capabilities.resources.as_ref().and_then(|resources| resources.list_changed),
            ),
        ];
        for (kind, declared) in declared {
            if declared != Some(true) {
                continue;
            }
            if self.config.list_changed.contains(kind) {
                announced.insert(kind);
            } else if link.server().era == Era::Legacy {
                unfollowed.insert(kind);
            }
        }
        let offered = |list: &List| match list {
            List::Tools => capabilities.tools.is_some(),
            List::Prompts => capabilities.prompts.is_some(),
            List::Resources | List::Templates => capabilities.resources.is_some(),
        };
        let mut lists: Vec<_> = self.config.lists.iter().copied().filter(offered).collect();
        lists.dedup();
        let watched: Vec<Arc<str>> = self.machine().subscriptions().cloned().collect();
        let mut restored = None;
        if link.server().era == Era::Modern && !(announced.is_empty() && watched.is_empty()) {
            match self.listen(link, announced, &watched).await {
                Ok(acknowledged) => {
                    announced = acknowledged.kinds;
                    restored = Some(acknowledged);
                }
                Err(error) if error.is_loss() => return Err(error),
                Err(error) => {
                    announced = ListKinds::EMPTY;
                    self.no_stream(error.to_string().into());
                }
            }
        }
        let is_restored = restored.is_some();
        self.step(Input::Connected(Offer { lists, announced, unfollowed, is_restored }));
        if let Some(acknowledged) = restored.filter(|_| !watched.is_empty()) {
            let (uris, refused) = (acknowledged.uris, acknowledged.refused);
            self.step(Input::Subscribed { uris, refused });
        }
        Ok(())
    }

    /// Subscribes to all watched resources again.
    ///
    /// # Errors
    ///
    /// If the server is gone again. Refused resources are reported with the remaining set.
    pub(crate) async fn restore(
        &self,
        link: &Arc<Link>,
        mut uris: Vec<Arc<str>>,
    ) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        uris.retain(|uri| self.machine().is_subscribed(uri));
        match self.ask_to_watch(link, uris.clone()).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_loss() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "could not restore subscriptions");
                self.step(Input::Subscribed { uris: Vec::new(), refused: uris });
                Ok(())
            }
        }
    }

    /// Asks the server to watch more, and informs the machine. Returns the refused ones with
    /// reasons.
    pub(crate) async fn subscribe(
        &self,
        link: &Arc<Link>,
        mut uris: Vec<Arc<str>>,
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        let _guard = self.subscribing.lock().await;
        // Asking twice would look as if notices could have been missed.
        let mut seen = HashSet::new();
        uris.retain(|uri| seen.insert(uri.clone()) && !self.machine().is_announced(uri));
        if uris.is_empty() { Ok(Vec::new()) } else { self.ask_to_watch(link, uris).await }
    }

    /// Called with `subscribing` held.
    async fn ask_to_watch(
        &self,
        link: &Arc<Link>,
        uris: Vec<Arc<str>>,
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        self.step(Input::Subscribing { uris: uris.clone() });
        let _asking = PendingSubscriptions { engine: self, uris: &uris };
        match link.server().era {
            Era::Legacy => {
                link.open_stream().await?;
                self.watch_each(link, &uris).await
            }
            Era::Modern => self.watch_all(link, &uris).await,
        }
    }

    /// A few at a time, each reported as soon as it is answered: others may hang or fail.
    async fn watch_each(
        &self,
        link: &Arc<Link>,
        uris: &[Arc<str>],
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        let mut refused: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        let each = uris.iter().cloned().map(|uri| {
            let link = link.clone();
            async move { (link.subscribe(&uri).await, uri) }
        });
        let mut answers = futures_util::stream::iter(each).buffer_unordered(SIDE_BY_SIDE);
        while let Some((answer, uri)) = answers.next().await {
            match answer {
                Ok(()) => self.step(Input::Subscribed { uris: vec![uri], refused: Vec::new() }),
                Err(error) if error.is_loss() => return Err(error),
                Err(error) => {
                    self.step(Input::Subscribed { uris: Vec::new(), refused: vec![uri.clone()] });
                    refused.push((uri, error.to_string().into()));
                }
            }
        }
        Ok(refused)
    }

    async fn watch_all(
        &self,
        link: &Arc<Link>,
        uris: &[Arc<str>],
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        let mut all: Vec<Arc<str>> = self.machine().subscriptions().cloned().collect();
        all.extend(uris.iter().filter(|uri| !self.machine().is_subscribed(uri)).cloned());
        let acknowledged = self.listen(link, self.announced(), &all).await?;
        let held: HashSet<_> = acknowledged.uris.iter().collect();
        let accepted = uris.iter().filter(|uri| held.contains(uri)).cloned().collect();
        let refused = acknowledged.refused.clone();
        self.step(Input::Subscribed { uris: accepted, refused });
        let reason: Arc<str> = "the server did not acknowledge it".into();
        let asked: HashSet<_> = uris.iter().collect();
        let refused = acknowledged.refused.into_iter().filter(|uri| asked.contains(uri));
        Ok(refused.map(|uri| (uri, reason.clone())).collect())
    }

    pub(crate) async fn unsubscribe(
        &self,
        link: &Arc<Link>,
        uris: Vec<Arc<str>>,
    ) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        self.stop(link, uris).await
    }

    /// A watcher follows this resource from now on.
    pub(crate) async fn begin_following(&self, uri: &Arc<str>) -> Updates {
        // Held, so that no subscription ends in between.
        let _guard = self.subscribing.lock().await;
        let is_ours = !self.machine().is_subscribed(uri);
        self.events.watchers.enter(uri, is_ours)
    }

    /// Asks the server to watch followed resources. Returns the refused ones with reasons.
    pub(crate) async fn follow(
        &self,
        link: &Arc<Link>,
        uri: &Arc<str>,
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        let refused = self.subscribe(link, vec![uri.clone()]).await?;
        if refused.is_empty() {
            self.events.watchers.is_watched(uri);
        }
        Ok(refused)
    }

    /// Ends unneeded subscriptions.
    pub(crate) async fn release(&self, link: &Arc<Link>) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        // A subscription whose watcher gave up early may never have been made.
        let mut uris = self.events.watchers.take_unneeded();
        uris.retain(|uri| self.machine().is_subscribed(uri));
        if uris.is_empty() { Ok(()) } else { self.stop(link, uris).await }
    }

    /// Called with `subscribing` held.
    async fn stop(&self, link: &Arc<Link>, uris: Vec<Arc<str>>) -> Result<(), RequestError> {
        // Reported before the request: if that fails, nothing outdated counts as current.
        self.step(Input::Unsubscribed { uris: uris.clone() });
        match link.server().era {
            Era::Legacy => {
                let each = uris.into_iter().map(|uri| {
                    let link = link.clone();
                    async move { link.unsubscribe(&uri).await }
                });
                let answers = futures_util::stream::iter(each).buffer_unordered(SIDE_BY_SIDE);
                let answers: Vec<_> = answers.collect().await;
                return answers.into_iter().collect();
            }
            Era::Modern => {
                let left: Vec<Arc<str>> = self.machine().subscriptions().cloned().collect();
                self.listen(link, self.announced(), &left).await?;
            }
        }
        Ok(())
    }

    /// Reopens the stream, with all watched resources.
    pub(crate) async fn listen_again(&self, link: &Arc<Link>) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        let all: Vec<Arc<str>> = self.machine().subscriptions().cloned().collect();
        let acknowledged = self.listen(link, self.announced(), &all).await?;
        if !acknowledged.refused.is_empty() {
            let refused = acknowledged.refused;
            self.step(Input::Subscribed { uris: Vec::new(), refused });
        }
        Ok(())
    }

    fn announced(&self) -> ListKinds {
        self.machine().announced()
    }

    /// Opens streams of notices beside the current ones, which end when the driver has the new
    /// ones, so no notice is lost. There are several if one cannot hold all subscriptions.
    async fn listen(
        &self,
        link: &Arc<Link>,
        kinds: ListKinds,
        uris: &[Arc<str>],
    ) -> Result<Acknowledged, RequestError> {
        let (mut kinds, mut listenings) = (kinds, Vec::new());
        let mut acknowledged =
            Acknowledged { kinds: ListKinds::EMPTY, uris: Vec::new(), refused: Vec::new() };
        for group in groups(uris) {
            let listening = link.listen(filter(kinds, &group)).await?;
            let more = self.acknowledged(&listening, kinds, &group);
            listenings.push(listening);
            acknowledged.uris.extend(more.uris);
            acknowledged.refused.extend(more.refused);
            // The first stream alone follows the lists.
            if listenings.len() == 1 {
                (acknowledged.kinds, kinds) = (more.kinds, ListKinds::EMPTY);
            }
        }
        let gone = |_| RequestError::NotConnected("the mirror was closed".into());
        self.listenings.send((link.clone(), listenings)).await.map_err(gone)?;
        if !self.machine().has_stream() {
            self.step(Input::StreamBack);
        }
        Ok(acknowledged)
    }

    fn acknowledged(
        &self,
        listening: &Listening,
        kinds: ListKinds,
        uris: &[Arc<str>],
    ) -> Acknowledged {
        let filter = listening.acknowledged();
        let mut accepted = ListKinds::EMPTY;
        let said = [
            (ListKind::Tools, filter.tools_list_changed),
            (ListKind::Prompts, filter.prompts_list_changed),
            (ListKind::Resources, filter.resources_list_changed),
        ];
        for (kind, said) in said {
            if !kinds.contains(kind) {
                continue;
            }
            if said == Some(true) {
                accepted.insert(kind);
            } else {
                self.warn(Warning::Unacknowledged {
                    what: format!("changes of the {kind}").into(),
                });
            }
        }
        // The server may spell a URI differently.
        let held: HashSet<String> =
            filter.resource_subscriptions.iter().flatten().map(|uri| plain(uri)).collect();
        let (uris, refused): (Vec<_>, Vec<_>) =
            uris.iter().cloned().partition(|uri| held.contains(&plain(uri)));
        for uri in &refused {
            self.warn(Warning::Unacknowledged { what: format!("changes of `{uri}`").into() });
        }
        Acknowledged { kinds: accepted, uris, refused }
    }
}

/// Requested subscriptions. If nobody waits for the answer any more, they are not expected.
struct PendingSubscriptions<'a> {
    engine: &'a Engine,
    uris: &'a [Arc<str>],
}

impl Drop for PendingSubscriptions<'_> {
    fn drop(&mut self) {
        self.engine.step(Input::SubscribingEnded { uris: self.uris.to_vec() });
    }
}

/// The subscriptions of one stream of notices.
fn filter(kinds: ListKinds, uris: &[Arc<str>]) -> SubscriptionFilter {
    let wanted = |kind| kinds.contains(kind).then_some(true);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = wanted(ListKind::Tools);
    filter.prompts_list_changed = wanted(ListKind::Prompts);
    filter.resources_list_changed = wanted(ListKind::Resources);
    if !uris.is_empty() {
        filter.resource_subscriptions = Some(uris.iter().map(ToString::to_string).collect());
    }
    filter
}

/// The subscriptions that a server acknowledged.
struct Acknowledged {
    kinds: ListKinds,
    uris: Vec<Arc<str>>,
    refused: Vec<Arc<str>>,
}
