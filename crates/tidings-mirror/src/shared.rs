//! What the handle and the driver share: the machine, the connection of the moment, and work to do.

// The level of a log message is deprecated and still sent.
#![expect(deprecated, reason = "servers of every revision are listened to")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rmcp::model::{ServerNotification, SubscriptionFilter};
use serde_json::Value;
use tidings_core::{ListKind, ListKinds};
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc, watch};
use tokio::time::Instant;

use crate::cache::{self, Reader};
use crate::config::{Config, Target, TokenMemory};
use crate::connect::{Link, Listening, Signal, Sink};
use crate::era::Era;
use crate::events::{ConnectionState, Event, Progress, Sender, Warning};
use crate::history::History;
use crate::lists::List;
use crate::machine::{Input, Machine, Offer, Request, Rules};
use crate::pace::Merging;
use crate::request::RequestError;

/// How many replacements of the stream of notices may wait for the driver; it takes each at once.
const LISTENINGS: usize = 16;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) target: Target,
    pub(crate) reader: Reader,
    pub(crate) events: Sender,
    pub(crate) history: Arc<History>,
    machine: Mutex<Machine>,
    link: Mutex<Option<Arc<Link>>>,
    /// The connection before, for what its server said last.
    last_words: Mutex<Option<Arc<Link>>>,
    /// The token used last: content that was private to another one must not be kept.
    pub(crate) token: Arc<TokenMemory>,
    /// Numbers the connections; what an older one says is not heard.
    epoch: AtomicU64,
    /// Requests of the machine that the driver has not begun yet. Bounded by what the machine asks
    /// for: one page for each list, one read for each watched resource.
    work: Mutex<VecDeque<Request>>,
    /// Work came, or the time of the next tick moved.
    pub(crate) awake: Notify,
    /// Moves with every step.
    moved: watch::Sender<u64>,
    /// The connection that ended last, and why.
    pub(crate) ended: watch::Sender<(u64, Arc<str>)>,
    /// Held while the set of watched resources is being changed, so that changes come one by one.
    subscribing: AsyncMutex<()>,
    listenings: mpsc::Sender<(Arc<Link>, Listening)>,
}

impl Shared {
    pub(crate) fn new(
        target: Target,
        config: Config,
    ) -> (Arc<Self>, mpsc::Receiver<(Arc<Link>, Listening)>) {
        let events = Sender::new(config.event_capacity);
        let (reader, writer) = cache::cache(config.cache, events.clone());
        let rules = Rules {
            merging: Merging { quiet: config.quiet, max_wait: config.max_wait },
            max_items: config.max_items,
            resubscribe: config.resubscribe,
        };
        let (listenings, opened) = mpsc::channel(LISTENINGS);
        let shared = Self {
            reader,
            history: Arc::new(History::new(config.history)),
            machine: Mutex::new(Machine::new(rules, writer, events.clone())),
            events,
            link: Mutex::new(None),
            last_words: Mutex::new(None),
            token: Arc::default(),
            epoch: AtomicU64::new(0),
            work: Mutex::default(),
            awake: Notify::new(),
            moved: watch::Sender::new(0),
            ended: watch::Sender::new((0, "never connected".into())),
            subscribing: AsyncMutex::new(()),
            listenings,
            config,
            target,
        };
        (Arc::new(shared), opened)
    }

    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the machine, and hands on what it wants done.
    pub(crate) fn step(&self, input: Input) {
        let requests = self.machine().step(input, Instant::now());
        if !requests.is_empty() {
            self.work.lock().unwrap_or_else(PoisonError::into_inner).extend(requests);
        }
        self.awake.notify_one();
        self.moved.send_modify(|moved| *moved += 1);
    }

    pub(crate) fn take_work(&self) -> VecDeque<Request> {
        std::mem::take(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the state is as wanted.
    pub(crate) async fn wait_for(&self, is_so: impl Fn(&mut Machine) -> bool) {
        let mut moved = self.moved.subscribe();
        loop {
            moved.mark_unchanged();
            if is_so(&mut self.machine()) {
                return;
            }
            // Invariant: the sender is ours, so it is there.
            let _ = moved.changed().await;
        }
    }

    pub(crate) fn link(&self) -> Result<Arc<Link>, RequestError> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.ok_or_else(|| {
            let machine = self.machine();
            let reason: Arc<str> = match machine.connection() {
                ConnectionState::Ready => "it is being closed".into(),
                state => state.to_string().into(),
            };
            RequestError::NotConnected(reason)
        })
    }

    /// The connection is over; its last words are kept.
    pub(crate) fn lose_link(&self) {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(link) = link {
            *self.last_words.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
        }
    }

    /// The last lines a server over stdio wrote on its standard error, this one or the one before.
    pub(crate) fn stderr(&self) -> Vec<Arc<str>> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.or(last).map(|link| link.stderr()).unwrap_or_default()
    }

    pub(crate) fn set_link(&self, link: Option<Arc<Link>>) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// A connection is being made: what an older one says is not heard from here on.
    pub(crate) fn next_epoch(self: &Arc<Self>) -> (u64, Sink) {
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        // Weak: the connection is ours, and must not keep us.
        let shared: Weak<Self> = Arc::downgrade(self);
        let sink: Sink = Arc::new(move |signal| {
            if let Some(shared) = shared.upgrade() {
                shared.signal(epoch, signal);
            }
        });
        (epoch, sink)
    }

    /// The connection is over: what is left of it is not heard any longer.
    pub(crate) fn end_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    fn signal(&self, epoch: u64, signal: Signal) {
        if self.epoch.load(Ordering::SeqCst) != epoch {
            return;
        }
        match signal {
            Signal::Notice(notice) => self.notice(*notice),
            Signal::StreamLost => self.step(Input::StreamLost),
            Signal::StreamBack => self.step(Input::StreamBack),
            Signal::NoStream(reason) => self.no_stream(reason),
            Signal::Ended(reason) => {
                // The first to say so knows why.
                self.ended.send_if_modified(|ended| {
                    let is_news = ended.0 != epoch;
                    if is_news {
                        *ended = (epoch, reason);
                    }
                    is_news
                });
            }
            Signal::Garbage(line) => self.warn(Warning::Garbage { line }),
            Signal::Stderr(line) => self.events.emit(Event::Stderr { line }),
            Signal::Reauthorized => self.step(Input::Reauthorized),
        }
    }

    fn notice(&self, notice: ServerNotification) {
        match notice {
            ServerNotification::ToolListChangedNotification(_) => {
                self.step(Input::ListNotice(ListKind::Tools));
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.step(Input::ListNotice(ListKind::Resources));
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.step(Input::ListNotice(ListKind::Prompts));
            }
            ServerNotification::ResourceUpdatedNotification(notice) => {
                self.step(Input::Updated(notice.params.uri.into()));
            }
            ServerNotification::LoggingMessageNotification(notice) => {
                let params = notice.params;
                let (level, logger) = (params.level, params.logger);
                let data = bounded(params.data);
                self.events.emit(Event::Log { level, logger, data });
            }
            ServerNotification::ProgressNotification(notice) => {
                let params = notice.params;
                let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let request = link.and_then(|link| link.request_of(&params.progress_token));
                let (progress, total, message) = (params.progress, params.total, params.message);
                self.events.emit(Event::Progress(Progress { request, progress, total, message }));
            }
            _ => {}
        }
    }

    fn no_stream(&self, reason: Arc<str>) {
        self.step(Input::NoStream);
        self.warn(Warning::NoStream { reason });
    }

    pub(crate) fn warn(&self, warning: Warning) {
        self.events.emit(Event::Warning(warning));
    }
}

/// Subscriptions, in both eras.
impl Shared {
    /// Opens the stream of notices where the era wants it, and tells the machine what there is.
    ///
    /// # Errors
    ///
    /// If the server is gone again.
    pub(crate) async fn welcome(&self, link: &Arc<Link>) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        let capabilities = &link.server().capabilities;
        let mut announced = ListKinds::EMPTY;
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
            if declared == Some(true) && self.config.list_changed.contains(kind) {
                announced.insert(kind);
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
        self.step(Input::Connected(Offer { lists, announced, is_restored }));
        if let Some(acknowledged) = restored.filter(|_| !watched.is_empty()) {
            let (uris, refused) = (acknowledged.uris, acknowledged.refused);
            self.step(Input::Subscribed { uris, refused });
        }
        Ok(())
    }

    /// Subscribes again to all that is watched now.
    ///
    /// # Errors
    ///
    /// If the server is gone again; what it refuses is told with the set that is left.
    pub(crate) async fn restore(&self, link: &Arc<Link>) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        let uris: Vec<Arc<str>> = self.machine().subscriptions().cloned().collect();
        match self.ask_to_watch(link, uris.clone()).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_loss() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "subscriptions could not be restored");
                self.step(Input::Subscribed { uris: Vec::new(), refused: uris });
                Ok(())
            }
        }
    }

    /// Asks the server to watch more, and tells the machine. Gives what it refused, and why.
    pub(crate) async fn subscribe(
        &self,
        link: &Arc<Link>,
        uris: Vec<Arc<str>>,
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        let _guard = self.subscribing.lock().await;
        self.ask_to_watch(link, uris).await
    }

    /// Called with `subscribing` held.
    async fn ask_to_watch(
        &self,
        link: &Arc<Link>,
        uris: Vec<Arc<str>>,
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        self.step(Input::Subscribing { uris: uris.clone() });
        let result = match link.server().era {
            Era::Legacy => self.watch_each(link, &uris).await,
            Era::Modern => self.watch_all(link, &uris).await,
        };
        if result.is_err() {
            self.step(Input::SubscribeFailed { uris });
        }
        result
    }

    /// One by one, each told as soon as it is answered: what comes after may fail.
    async fn watch_each(
        &self,
        link: &Arc<Link>,
        uris: &[Arc<str>],
    ) -> Result<Vec<(Arc<str>, Arc<str>)>, RequestError> {
        let mut refused: Vec<(Arc<str>, Arc<str>)> = Vec::new();
        for uri in uris {
            match link.subscribe(uri).await {
                Ok(()) => {
                    self.step(Input::Subscribed { uris: vec![uri.clone()], refused: Vec::new() });
                }
                Err(error) if error.refusal().is_some() => {
                    self.step(Input::Subscribed { uris: Vec::new(), refused: vec![uri.clone()] });
                    refused.push((uri.clone(), error.to_string().into()));
                }
                Err(error) => return Err(error),
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
        let accepted = uris.iter().filter(|uri| acknowledged.uris.contains(uri)).cloned().collect();
        let refused = acknowledged.refused.clone();
        self.step(Input::Subscribed { uris: accepted, refused });
        let reason: Arc<str> = "the server left it out".into();
        Ok(acknowledged.refused.into_iter().map(|uri| (uri, reason.clone())).collect())
    }

    pub(crate) async fn unsubscribe(
        &self,
        link: &Arc<Link>,
        uris: Vec<Arc<str>>,
    ) -> Result<(), RequestError> {
        let _guard = self.subscribing.lock().await;
        // Told before it is asked for: if that fails, nothing counts as current that is not.
        self.step(Input::Unsubscribed { uris: uris.clone() });
        match link.server().era {
            Era::Legacy => {
                for uri in &uris {
                    link.unsubscribe(uri).await?;
                }
            }
            Era::Modern => {
                let left: Vec<Arc<str>> = self.machine().subscriptions().cloned().collect();
                self.listen(link, self.announced(), &left).await?;
            }
        }
        Ok(())
    }

    /// Opens the stream again, with all that is watched.
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

    /// Opens a stream of notices beside the present one, which ends when the driver has this one: so
    /// nothing falls between the two.
    async fn listen(
        &self,
        link: &Arc<Link>,
        kinds: ListKinds,
        uris: &[Arc<str>],
    ) -> Result<Acknowledged, RequestError> {
        let wanted = |kind| kinds.contains(kind).then_some(true);
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = wanted(ListKind::Tools);
        filter.prompts_list_changed = wanted(ListKind::Prompts);
        filter.resources_list_changed = wanted(ListKind::Resources);
        if !uris.is_empty() {
            filter.resource_subscriptions = Some(uris.iter().map(ToString::to_string).collect());
        }
        let listening = link.listen(filter).await?;
        let acknowledged = self.acknowledged(&listening, kinds, uris);
        let gone = |_| RequestError::NotConnected("the mirror was closed".into());
        self.listenings.send((link.clone(), listening)).await.map_err(gone)?;
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
        let held: std::collections::HashSet<&str> =
            filter.resource_subscriptions.iter().flatten().map(String::as_str).collect();
        let (uris, refused): (Vec<_>, Vec<_>) =
            uris.iter().cloned().partition(|uri| held.contains(&**uri));
        for uri in &refused {
            self.warn(Warning::Unacknowledged { what: format!("changes of `{uri}`").into() });
        }
        Acknowledged { kinds: accepted, uris, refused }
    }
}

/// What a server logs waits for every receiver of events: a huge one is cut.
fn bounded(data: Value) -> Value {
    const MOST: usize = 64 << 10;
    let text = match &data {
        Value::Null | Value::Bool(_) | Value::Number(_) => return data,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().map(|(place, _)| place).find(|place| *place >= MOST) {
        Some(end) => Value::String(format!("{}…", &text[..end])),
        None => data,
    }
}

/// What a server said it will announce.
struct Acknowledged {
    kinds: ListKinds,
    uris: Vec<Arc<str>>,
    refused: Vec<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_log_message_is_cut_and_others_are_left_alone() {
        let small = serde_json::json!({ "a": [1, 2, 3] });
        assert_eq!(bounded(small.clone()), small);
        let cut = bounded(Value::String("ä".repeat(1 << 20)));
        assert!(cut.as_str().unwrap().len() < 70_000);
    }
}
