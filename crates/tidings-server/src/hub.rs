//! The hub: the cheap-to-clone handle to add sources, announce changes, and shut down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidings_core::Change;
use tokio::sync::broadcast;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::config::Config;
use crate::edit::EditError;
use crate::labels::{LabelError, Labels};
use crate::pipeline::{Event, Pipeline};
use crate::shelf::Shelf;
use crate::source::Source;
use crate::viewers::{GrantError, Word};

/// Time for a source to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// One catalog of any number of sources, and its subscribers.
///
/// Cloning is cheap, and all clones are one hub. It must be created within a tokio runtime. Its
/// tasks end with [`Hub::shutdown`] or when the last clone is dropped.
#[derive(Clone)]
pub struct Hub {
    owner: Arc<Owner>,
}

/// Owns the tasks. They know the core and not the owner, so dropping the last hub ends them.
struct Owner {
    pipeline: Arc<Pipeline>,
    state: Mutex<State>,
}

struct State {
    tasks: JoinSet<()>,
    sources: HashMap<u64, (CancellationToken, AbortHandle)>,
}

/// Why a source was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The hub has a source of that name.
    #[error("a source named `{0}` is part of this hub already")]
    Name(String),
    /// An item of the source was refused.
    #[error("the source `{name}` was not added")]
    Start {
        /// The source.
        name: String,
        /// The cause.
        #[source]
        error: EditError,
    },
}

impl Hub {
    /// A hub without sources.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::with_config(Config::new(name, version))
    }

    /// A hub with this configuration, without sources.
    #[must_use]
    pub fn with_config(config: Config) -> Self {
        let pipeline = Pipeline::new(config);
        let mut tasks = JoinSet::new();
        tasks.spawn(pipeline.clone().announce());
        let state = Mutex::new(State { tasks, sources: HashMap::new() });
        Self { owner: Arc::new(Owner { pipeline, state }) }
    }

    /// Adds a source whose items answer with functions, and returns its shelf.
    ///
    /// # Errors
    ///
    /// The name is taken.
    pub fn source(&self, name: &str) -> Result<Shelf, AddError> {
        let pipeline = &self.owner.pipeline;
        let (id, _) = pipeline.catalog.join(name).ok_or_else(|| AddError::Name(name.to_owned()))?;
        info!(source = name, "source added");
        Ok(Shelf::new(pipeline.clone(), id))
    }

    /// Adds a source, which is built with its shelf and starts at once. Items are offered as soon
    /// as they are on the shelf.
    ///
    /// # Errors
    ///
    /// The name is taken, or one of its first items is refused; then nothing of it stays.
    pub async fn add<S: Source>(
        &self,
        name: &str,
        build: impl FnOnce(Shelf) -> Result<S, EditError>,
    ) -> Result<(), AddError> {
        let pipeline = &self.owner.pipeline;
        let (id, member) =
            pipeline.catalog.join(name).ok_or_else(|| AddError::Name(name.to_owned()))?;
        // Cancel-safe: a cancelled start removes the source with all its items.
        let mut joining = Joining { pipeline, id: Some(id) };
        let failed = |error| AddError::Start { name: name.to_owned(), error };
        let source = build(Shelf::new(pipeline.clone(), id)).map_err(failed)?;
        member.attach(Arc::new(source));
        member.source().start().await.map_err(failed)?;
        if pipeline.catalog.member_id(name) != Some(id) {
            return Err(failed(EditError::Removed));
        }
        joining.id = None;
        pipeline.introduce(&member);
        let cancel = pipeline.stopped.child_token();
        let run = {
            let cancel = cancel.clone();
            async move { member.source().run(cancel).await }
        };
        let task = self.own(run);
        self.lock().sources.insert(id, (cancel, task));
        info!(source = name, "source added");
        Ok(())
    }

    /// Removes a source with all its items; false if there is none of that name.
    pub fn remove(&self, name: &str) -> bool {
        let pipeline = &self.owner.pipeline;
        let Some(id) = pipeline.catalog.member_id(name) else { return false };
        let running = self.lock().sources.remove(&id);
        if let Some((cancel, task)) = running {
            cancel.cancel();
            self.own(async move {
                tokio::time::sleep(GRACE).await;
                task.abort();
            });
        }
        let touched = pipeline.catalog.leave(id);
        pipeline.dismiss(name);
        pipeline.touch(&touched);
        info!(source = name, "source removed");
        true
    }

    /// Announces that something may have changed: a URI, a [`Change`], a list. Clients are notified
    /// if what they would read differs.
    ///
    /// # Errors
    ///
    /// A text that is not a URI.
    pub fn changed<C: TryInto<Change>>(&self, change: C) -> Result<(), C::Error> {
        self.owner.pipeline.change(change.try_into()?);
        Ok(())
    }

    /// Gives labels, such as `"role:admin"`, to the person of this name: to every session and request
    /// whose identity has it, now and later, until they are withdrawn. Their views change at once,
    /// and they are notified of the differences. The last grant or withdrawal of a label counts.
    ///
    /// # Errors
    ///
    /// An invalid label, or too many.
    pub fn grant<L>(&self, person: &str, labels: L) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        let labels = labels.try_into().map_err(Into::into)?;
        self.owner.pipeline.say_of(person, (&labels, Word::Grant))
    }

    /// Takes labels from the person of this name, also those that its identity or a session has.
    ///
    /// # Errors
    ///
    /// As [`Self::grant`].
    pub fn withdraw<L>(&self, person: &str, labels: L) -> Result<(), GrantError>
    where
        L: TryInto<Labels>,
        L::Error: Into<LabelError>,
    {
        let labels = labels.try_into().map_err(Into::into)?;
        self.owner.pipeline.say_of(person, (&labels, Word::Withdraw))
    }

    /// The events of the hub, for people who watch it. A receiver that falls behind misses events.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.owner.pipeline.events.subscribe()
    }

    /// The metrics in the format of Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.owner.pipeline.metrics_text()
    }

    /// Ends every listener cleanly and every source; transports that serve this hub end too.
    pub async fn shutdown(&self) {
        let pipeline = &self.owner.pipeline;
        pipeline.stopped.cancel();
        pipeline.subscriptions.close_all();
        let mut tasks = std::mem::take(&mut self.lock().tasks);
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tasks.shutdown().await;
        }
    }

    /// Runs a task that ends with the hub. The task must not hold the hub.
    pub(crate) fn own(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut state = self.lock();
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(task)
    }

    pub(crate) fn pipeline(&self) -> &Arc<Pipeline> {
        &self.owner.pipeline
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.owner.state.lock().expect("no code panics while it holds the hub's tasks")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.pipeline.stopped.cancel();
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("name", &self.owner.pipeline.config.name)
            .finish_non_exhaustive()
    }
}

struct Joining<'a> {
    pipeline: &'a Pipeline,
    id: Option<u64>,
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let touched = self.pipeline.catalog.leave(id);
            self.pipeline.touch(&touched);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rmcp::model::{Implementation, ProtocolVersion, ResourceTemplate};
    use tidings_core::ResourceUri;

    use super::*;
    use crate::answer::{AnswerError, Contents};
    use crate::context::Context;
    use crate::pipeline::{Events, Listener, Outcome};
    use crate::source::{Health, HealthState};

    /// Remembers what it is told of watchers.
    #[derive(Clone, Default)]
    struct Poller(Arc<Mutex<Vec<String>>>);

    impl Poller {
        fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
            shelf.add(ResourceTemplate::new("poll://{name}", "polled"))?;
            Ok(self)
        }

        fn heard(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl Source for Poller {
        async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
            Ok(Contents::text(uri, "same"))
        }
        fn wants_watchers(&self) -> bool {
            true
        }
        fn watched(&self, uri: &ResourceUri) {
            self.0.lock().unwrap().push(format!("+{uri}"));
        }
        fn unwatched(&self, uri: &ResourceUri) {
            self.0.lock().unwrap().push(format!("-{uri}"));
        }
        fn health(&self) -> Health {
            Health::degraded("the other side is slow")
        }
    }

    fn listener(hub: &Hub, version: &ProtocolVersion) -> Listener {
        let client = Implementation::new("tester", "2");
        let listener = hub.pipeline().legacy_listener(version, &client, Events::Plain, None);
        listener.greet(hub.pipeline().config.versions.lists_for(version.as_str()));
        listener
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_learns_of_the_first_watcher_and_of_the_end_of_the_last() {
        let (hub, poller) = (Hub::new("test", "1"), Poller::default());
        hub.add("poller", |shelf| poller.clone().on(&shelf)).await.unwrap();
        let uri = ResourceUri::parse("poll://a").unwrap();
        let [one, two] = [(), ()].map(|()| listener(&hub, &ProtocolVersion::LATEST));
        one.subscribe(&uri).await.unwrap();
        two.subscribe(&uri).await.unwrap();
        assert_eq!(poller.heard(), ["+poll://a"]);
        one.unsubscribe(&uri);
        assert_eq!(poller.heard(), [""; 0]);
        drop(two);
        assert_eq!(poller.heard(), ["-poll://a"]);
        one.subscribe(&uri).await.unwrap();
        assert_eq!(poller.heard(), ["+poll://a"]);
        // Another source of that name takes over what is watched.
        assert!(hub.remove("poller"));
        let later = Poller::default();
        hub.add("poller", |shelf| later.clone().on(&shelf)).await.unwrap();
        assert_eq!(later.heard(), ["+poll://a"]);
        drop(one);
        assert_eq!((poller.heard(), later.heard()), (vec![], vec!["-poll://a".to_owned()]));
    }

    /// Answers for all addresses of a scheme, and lists none.
    struct Claimant(&'static str);

    impl Source for Claimant {
        fn claims(&self, uri: &ResourceUri) -> bool {
            uri.scheme() == self.0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_nobody_lists_goes_to_the_first_source_that_claims_it() {
        let hub = Hub::new("test", "1");
        hub.add("one", |_| Ok(Claimant("x"))).await.unwrap();
        hub.add("two", |_| Ok(Claimant("poll"))).await.unwrap();
        hub.add("poller", |shelf| Poller::default().on(&shelf)).await.unwrap();
        let owner = |text: &str| {
            let route = hub.pipeline().catalog.owner(&ResourceUri::parse(text).unwrap());
            route.ok().map(|route| route.answerer.member.name.clone())
        };
        assert_eq!(owner("x://a").as_deref(), Some("one"));
        assert_eq!(owner("poll://a").as_deref(), Some("poller"), "a template wins");
        assert_eq!(owner("y://a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watched_resource_that_another_source_lists_is_watched_there() {
        let (hub, poller) = (Hub::new("test", "1"), Poller::default());
        hub.add("poller", |shelf| poller.clone().on(&shelf)).await.unwrap();
        let uri = ResourceUri::parse("poll://a").unwrap();
        let one = listener(&hub, &ProtocolVersion::LATEST);
        one.subscribe(&uri).await.unwrap();
        let later = Poller::default();
        hub.add("later", |shelf| {
            shelf.add(rmcp::model::Resource::new("poll://a", "a"))?;
            Ok(later.clone())
        })
        .await
        .unwrap();
        assert_eq!(poller.heard(), ["+poll://a", "-poll://a"]);
        assert_eq!(later.heard(), ["+poll://a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_into_the_hub_shows_who_listens_to_what() {
        let hub = Hub::new("test", "1");
        hub.add("poller", |shelf| Poller::default().on(&shelf)).await.unwrap();
        let listener = listener(&hub, &ProtocolVersion::LATEST);
        listener.subscribe(&ResourceUri::parse("poll://a").unwrap()).await.unwrap();
        hub.changed("poll://a").unwrap();
        let seen = hub.inspect();
        let [source] = &seen.sources[..] else { panic!("{seen:?}") };
        assert_eq!((source.items, source.health.state), (1, HealthState::Degraded));
        let [one] = &seen.listeners[..] else { panic!("{seen:?}") };
        assert_eq!((one.client.as_deref(), one.is_modern), (Some("tester 2"), false));
        assert_eq!((one.lists.len(), one.uris.len(), one.waiting, one.told), (3, 1, 3, 0));
        let [watched] = &seen.watched[..] else { panic!("{seen:?}") };
        assert_eq!((watched.listeners, watched.changes), (1, 1));
        drop(listener);
        assert!(hub.inspect().listeners.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_events_say_what_became_of_every_change() {
        let hub = Hub::new("test", "1");
        hub.add("poller", |shelf| Poller::default().on(&shelf)).await.unwrap();
        let mut events = hub.events();
        let old = listener(&hub, &ProtocolVersion::V_2025_03_26);
        let new = listener(&hub, &ProtocolVersion::LATEST);
        new.subscribe(&ResourceUri::parse("poll://a").unwrap()).await.unwrap();
        hub.changed("poll://nobody").unwrap();
        hub.changed("poll://a").unwrap();
        hub.changed("poll://a").unwrap();
        let shelf = hub.source("tools").unwrap();
        shelf.tool("one", "One", || ()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(old);
        let mut heard = Vec::new();
        while let Ok(event) = events.try_recv() {
            heard.push(event);
        }
        let change = |what: &str, outcome| Event::Change { what: what.to_owned(), outcome };
        for expected in [
            change("poll://nobody", Outcome::NotFollowed),
            change("poll://a", Outcome::Merged),
            change("poll://a", Outcome::Equal),
            change("tools", Outcome::Withheld(1)),
            change("tools", Outcome::Announced(1)),
            Event::ListenerCame { id: 1, client: Some("tester 2".to_owned()) },
            Event::ListenerLeft { id: 1 },
        ] {
            assert!(heard.contains(&expected), "{expected:?} is not in {heard:#?}");
        }
    }
}
