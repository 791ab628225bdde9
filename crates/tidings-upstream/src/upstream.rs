//! [`Upstream`]: the source, and the handle to it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_core::{Fingerprint, ResourceUri};
use tidings_mirror::Mirror;
use tidings_mirror::events::ConnectionState;
use tidings_mirror::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
};
use tidings_server::{
    AddError, Answer, AnswerError, Completion, Completions, Contents, Context, Figure, Health, Hub,
    Shelf, Source,
};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, PollRule};
use crate::house::{House, reason};
use crate::links::{self, Links};
use crate::names;
use crate::neighbours::ClaimRank;
use crate::pin::Pins;
use crate::publish::{Publisher, Routes, Stock};
use crate::questions::park::Parking;
use crate::questions::{Questions, handlers};
use crate::rooms::Rooms;
use crate::status::{Counts, Failure, Held, State, Status};
use crate::turns::Turns;
use crate::watch::schedule::Mode;
use crate::watch::{Sighting, Watching};

/// Another MCP server behind a hub: a source, and a handle to it.
///
/// Cloning is cheap, and all clones are one upstream. It connects when the hub runs it, and ends with
/// the hub or when the hub removes it.
#[derive(Clone)]
pub struct Upstream {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shelf: Shelf,
    config: Mutex<Arc<Config>>,
    pub(crate) place: ClaimRank,
    pub(crate) house: House,
    /// Connections of single clients, if they have any.
    pub(crate) rooms: Option<Rooms>,
    pub(crate) questions: Questions,
    pub(crate) parking: Parking,
    pins: Option<Pins>,
    offered: Mutex<Offered>,
    watching: Mutex<Watching>,
    links: Mutex<Links>,
    pub(crate) turns: Turns,
    pub(crate) counts: Counts,
    /// Numbers the requests.
    tags: AtomicU64,
    /// There is something to do: a resource is watched or not any more, or must be looked at.
    pub(crate) wake: Notify,
    /// Whether the last request was refused because it was not authorised.
    pub(crate) is_unauthorized: AtomicBool,
    /// Whether a call ended that may have changed the lists.
    pub(crate) is_touched: AtomicBool,
    /// Whether the first try to offer something is over.
    is_settled: watch::Sender<bool>,
}

/// What is offered now.
#[derive(Default)]
struct Offered {
    stock: Arc<Stock>,
    routes: Arc<Routes>,
    /// Whether nothing is listed because the server is down.
    is_withdrawn: bool,
}

impl Upstream {
    /// An upstream with its place on a shelf: see [`Hub::add`]. It is connected to when the hub
    /// runs it.
    #[must_use]
    pub fn new(shelf: Shelf, config: Config) -> Self {
        let inner = Arc::new_cyclic(|inner| {
            let house = House::new(&config, handlers(inner));
            let failures = house.failures().clone();
            let rooms = config.isolate.then(|| Rooms::new(&config, handlers(inner), failures));
            Inner {
                shelf,
                place: config.neighbours.join(config.rank),
                house,
                rooms,
                questions: Questions::default(),
                parking: Parking::default(),
                pins: config.pin.as_deref().map(Pins::open),
                offered: Mutex::default(),
                watching: Mutex::default(),
                links: Mutex::default(),
                turns: Turns::default(),
                counts: Counts::default(),
                tags: AtomicU64::new(0),
                wake: Notify::new(),
                is_unauthorized: AtomicBool::new(false),
                is_touched: AtomicBool::new(false),
                is_settled: watch::Sender::new(false),
                config: Mutex::new(Arc::new(config)),
            }
        });
        Self { inner }
    }

    /// Adds an upstream to a hub, under its name. It need not be reachable.
    ///
    /// # Errors
    ///
    /// The hub has a source of that name.
    pub async fn join(hub: &Hub, config: Config) -> Result<Self, AddError> {
        let (name, mut made) = (config.name.clone(), None);
        hub.add(name.as_str(), |shelf| {
            let upstream = Self::new(shelf, config);
            made = Some(upstream.clone());
            Ok(upstream)
        })
        .await?;
        Ok(made.expect("the hub built the source that it added"))
    }

    /// How it is. It does not wait.
    #[must_use]
    pub fn status(&self) -> Status {
        self.inner.status()
    }

    /// Waits for the first outcome: its lists are offered, its server could not be reached, or it
    /// waits for its first use. A server that never answers takes as long as its timeouts, so callers
    /// set a limit.
    pub async fn settled(&self) {
        let mut is_settled = self.inner.is_settled.subscribe();
        // The sender lives as long as this handle.
        let _ = is_settled.wait_for(|is_settled| *is_settled).await;
    }

    /// Connects anew: a program is ended and started again. What it offers stays listed, and what
    /// differs afterwards is announced.
    pub async fn restart(&self) {
        let Some(mirror) = self.inner.house.start() else { return };
        // Streams cannot be opened again, and there is nothing else that could fail.
        let _ = mirror.reconnect_now().await;
        // Whether it can be used is known soon after, and to be read in its status.
        let _ = self.inner.house.ready().await;
    }

    /// Approves all definitions that wait: see [`Config::pin`]. Returns those that did.
    #[expect(clippy::must_use_candidate, reason = "approving is the purpose")]
    pub fn approve(&self) -> Vec<Held> {
        let Some(pins) = &self.inner.pins else { return Vec::new() };
        let stock = self.inner.offered().stock.clone();
        let held = pins.held(&stock);
        pins.approve(&stock);
        self.inner.publish();
        held
    }

    /// Applies another configuration to names, selections, polls, the grace time and the longest time
    /// of a call, without a restart. Changes of the target, the name, the pins, the start, isolation
    /// and other timeouts need a new upstream.
    pub fn adjust(&self, config: Config) {
        {
            let mut now = self.inner.config.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = Config::clone(&now);
            next.prefix = config.prefix;
            next.tools = config.tools;
            next.prompts = config.prompts;
            next.resources = config.resources;
            next.poll = config.poll;
            next.grace = config.grace;
            next.roots = config.roots;
            next.timeouts.most = config.timeouts.most;
            *now = Arc::new(next);
        }
        self.inner.publish();
        self.inner.change_modes();
    }
}

impl Inner {
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn tag(&self) -> u64 {
        self.tags.fetch_add(1, Ordering::Relaxed)
    }

    fn offered(&self) -> MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn routes(&self) -> Arc<Routes> {
        self.offered().routes.clone()
    }

    pub(crate) fn stock(&self) -> Arc<Stock> {
        self.offered().stock.clone()
    }

    /// The first try to offer something is over.
    pub(crate) fn settle(&self) {
        self.is_settled.send_if_modified(|is_settled| !std::mem::replace(is_settled, true));
    }

    /// The server's lists are these now.
    pub(crate) fn restock(&self, stock: Stock) {
        if let Some(pins) = self.pins.as_ref().filter(|_| stock.has_definitions()) {
            pins.begin(&stock);
        }
        let was_withdrawn = {
            let mut offered = self.offered();
            offered.stock = Arc::new(stock);
            std::mem::take(&mut offered.is_withdrawn)
        };
        self.publish();
        if was_withdrawn {
            // Meanwhile clients read that there is nothing, whether or not they were told so.
            let watched: Vec<_> = self.watching().addresses().cloned().collect();
            for address in &watched {
                self.shelf.changed_meanwhile(address);
            }
        }
    }

    /// The server is down for too long: nothing of it is listed.
    pub(crate) fn withdraw(&self) {
        self.offered().is_withdrawn = true;
        self.publish();
    }

    /// Brings the shelf up to date.
    pub(crate) fn publish(&self) {
        let config = self.config();
        // Held while publishing, so that the last stock is the one that is offered.
        let mut offered = self.offered();
        let nothing = Stock::default();
        let stock = if offered.is_withdrawn { &nothing } else { &*offered.stock };
        let publisher = Publisher {
            shelf: &self.shelf,
            config: &config,
            place: self.place,
            pins: self.pins.as_ref(),
            keeps_claims: offered.is_withdrawn,
        };
        match publisher.publish(stock, &offered.routes) {
            Ok(mut routes) => {
                // Servers repeat what they were sent, also in errors and names.
                for problem in &mut routes.problems {
                    *problem = self.house.failures().harmless(problem);
                }
                for problem in &routes.problems {
                    if !offered.routes.problems.contains(problem) {
                        tracing::warn!(source = %config.name, problem, "an upstream's list");
                    }
                }
                offered.routes = Arc::new(routes);
            }
            Err(error) => tracing::debug!(source = %config.name, %error, "nothing is offered"),
        }
    }

    /// The upstream's own URI of an address here.
    pub(crate) fn original(&self, address: &str) -> Arc<str> {
        let config = self.config();
        names::within(&config.name, address).map_or_else(|| address.into(), Into::into)
    }

    /// The address here of a URI that the upstream gave in a result, if it is another.
    pub(crate) fn address_of_link(&self, uri: &str) -> Option<String> {
        let config = self.config();
        if !config.resources.has(uri) {
            return None;
        }
        let parsed = ResourceUri::parse(uri).ok()?;
        // What another upstream gave first stays its own.
        if config.neighbours.link(self.place, uri)
            && let Some(forgotten) = self.links().remember(uri)
        {
            config.neighbours.unlink(self.place, &forgotten);
        }
        (!self.shelf.answers_for(&parsed)).then(|| names::address(&config.name, uri))
    }

    /// Contents as they are read at this address.
    pub(crate) fn at_address(
        &self,
        contents: &Contents,
        uri: &str,
        address: &ResourceUri,
    ) -> Contents {
        let mut contents = contents.clone();
        if uri != address.as_ref() {
            let name = self.config().name.clone();
            contents.raw = contents
                .raw
                .map(|raw| links::in_contents(raw, |uri| Some(names::address(&name, uri))));
        }
        contents
    }

    fn status(&self) -> Status {
        let config = self.config();
        let (stock, routes, is_withdrawn) = {
            let offered = self.offered();
            (offered.stock.clone(), offered.routes.clone(), offered.is_withdrawn)
        };
        let mirror = self.house.mirror();
        let connection = mirror.as_ref().map(Mirror::connection);
        let state = match &connection {
            None => State::Waiting,
            Some(ConnectionState::Ready) => State::Ready,
            Some(ConnectionState::Connecting) => State::Connecting,
            Some(_) if is_withdrawn || routes.is_empty() => State::Down,
            Some(_) => State::Lost,
        };
        let next_try = match &connection {
            Some(ConnectionState::Retrying { after, .. }) => Some(*after),
            _ => None,
        };
        let pinned = self.pins.as_ref().and_then(Pins::problem);
        let is_down = matches!(state, State::Lost | State::Down);
        let mut reason = connection.filter(|_| is_down).map(|state| reason(&state).to_string());
        let mut failure = reason.as_deref().map(Failure::of);
        if state == State::Ready && self.is_unauthorized.load(Ordering::Relaxed) {
            failure = Some(Failure::Unauthorized);
            reason = Some("it refused a request: it requires authorisation (401)".to_owned());
        }
        let server = mirror.and_then(|mirror| mirror.server());
        let identity = server.as_ref().and_then(|server| server.identity.clone());
        let watching = self.watching();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let latency = load(&self.counts.latency);
        Status {
            name: config.name.to_string(),
            state,
            reason: reason.or(pinned).map(|reason| self.house.failures().harmless(&reason)),
            failure,
            next_try,
            server: identity.map(|it| format!("{} {}", it.name, it.version)),
            version: server.map(|server| server.version.to_string()),
            tools: routes.tools.len(),
            prompts: routes.prompts.len(),
            resources: routes.resources,
            templates: routes.templates.len(),
            watched: watching.len(),
            volatile: watching.schedule.volatile().map(ToString::to_string).collect(),
            requests: load(&self.counts.requests),
            failed: load(&self.counts.failed),
            looks: load(&self.counts.looks),
            list_looks: load(&self.counts.list_looks),
            latency: (latency > 0).then(|| Duration::from_micros(latency)),
            answering: Duration::from_micros(load(&self.counts.answering)),
            connections: load(&self.counts.connections),
            failed_connections: load(&self.counts.failed_connections),
            problems: routes.problems.clone(),
            held: self.pins.as_ref().map(|pins| pins.held(&stock)).unwrap_or_default(),
            one_at_a_time: self.turns.is_single(),
        }
    }

    /// How changes of a resource are found before the server was asked to announce them.
    pub(crate) fn polled(&self, uri: &str) -> Mode {
        Mode::Polled(self.config().poll.of(uri))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let config = self.config();
        config.neighbours.leave(self.place);
    }
}

impl Source for Upstream {
    async fn run(&self, cancel: CancellationToken) {
        self.inner.clone().run(cancel).await;
    }

    async fn read(&self, uri: &ResourceUri, context: &Context) -> Result<Contents, AnswerError> {
        self.inner.read(uri, context).await
    }

    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        let original = self.inner.original(uri.as_ref());
        let config = self.inner.config();
        let is_pushed = || self.inner.house.mirror().is_some_and(|it| it.supports_subscriptions());
        if config.poll.of(&original) == PollRule::Never && !is_pushed() {
            let words = format!("`{}` neither announces changes nor may be polled", config.name);
            return Some(AnswerError::invalid("uri", uri.as_ref(), words));
        }
        None
    }

    fn claims(&self, uri: &ResourceUri) -> bool {
        let config = self.inner.config();
        let original = names::within(&config.name, uri.as_ref());
        let is_ours = original.is_some() || self.inner.links().has(uri.as_ref());
        is_ours && config.resources.has(original.as_deref().unwrap_or(uri.as_ref()))
    }

    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let original = self.inner.original(uri.as_ref());
        let known = self.inner.watching().known(&original).cloned()?;
        match &known {
            Sighting::Content(contents) if *original != *uri.as_ref() => {
                Some(self.inner.at_address(contents, &original, uri).fingerprint())
            }
            known => Some(known.fingerprint()),
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        self.inner.call(request, context).await
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        self.inner.prompt(request, context).await
    }

    async fn complete(
        &self,
        completion: Completion,
        context: &Context,
    ) -> Result<Completions, AnswerError> {
        self.inner.complete(completion, context).await
    }

    fn wants_watchers(&self) -> bool {
        true
    }

    fn watched(&self, uri: &ResourceUri) {
        let original = self.inner.original(uri.as_ref());
        let mode = self.inner.polled(&original);
        self.inner.watching().watch(&original, uri, mode, Instant::now());
        self.inner.wake.notify_one();
    }

    fn unwatched(&self, uri: &ResourceUri) {
        let original = self.inner.original(uri.as_ref());
        self.inner.watching().unwatch(&original, uri);
        self.inner.wake.notify_one();
    }

    fn health(&self) -> Health {
        let status = self.inner.status();
        let reason = status.reason.clone().unwrap_or_else(|| "its lists have problems".to_owned());
        let health = match status.state {
            State::Lost | State::Down => Health::failing(reason),
            State::Connecting => Health::degraded("it is being connected to"),
            _ if status.reason.is_some() || !status.problems.is_empty() => Health::degraded(reason),
            _ => Health::default(),
        };
        match status.next_try {
            Some(time) => health.again_in(time),
            None => health,
        }
    }

    fn figures(&self) -> Vec<Figure> {
        self.inner.status().figures()
    }
}
