//! [`Mirror`]: the cheap-to-clone handle.

// The level of a log message is deprecated and still sent.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rmcp::model::{
    ArgumentInfo, Implementation, JsonObject, LoggingLevel, Prompt, ProtocolVersion, Resource,
    ResourceTemplate, ServerCapabilities, Tool,
};
use tidings_core::Template;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cache::{PromptContent, Reader, ResourceContent, TemplateContent, ToolOutcome};
use crate::config::{Config, Target};
use crate::connect::ConnectError;
use crate::driver::{self, Driver};
use crate::era::Era;
use crate::events::{ConnectionState, Events, Items, RequestTag, Warning};
use crate::history::Message;
use crate::lists::List;
use crate::machine::{Input, Machine};
use crate::request::RequestError;
use crate::schema;
use crate::shared::Shared;

/// Keeps one server's lists, contents and results current.
///
/// Cloning is cheap and every clone is the same mirror; when the last one is dropped the connection
/// is cut. [`close`](Self::close) ends it politely.
#[derive(Clone)]
pub struct Mirror {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    tags: AtomicU64,
    cancel: CancellationToken,
    /// The driver. Dropping it with the last handle cuts the connection.
    tasks: Mutex<JoinSet<()>>,
}

/// Who the server is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Server {
    /// Its name, title and version, if it tells.
    pub identity: Option<Implementation>,
    /// The protocol revision that was agreed on.
    pub version: ProtocolVersion,
    /// The era of that revision.
    pub era: Era,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
}

/// What a completion is for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reference {
    /// An argument of the prompt of this name.
    Prompt(String),
    /// A variable of this URI template.
    Template(String),
}

/// What may be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many there are in all, if the server tells.
    pub total: Option<u32>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// Why resources are not watched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The server does not say that it can.
    #[error("the server does not offer subscriptions to resources")]
    NotOffered,
    /// The server does not watch these; the others are watched.
    #[error("the server will not announce {}", named(.refused))]
    Refused {
        /// Which, and why.
        refused: Vec<(Arc<str>, Arc<str>)>,
    },
    /// The server could not be asked.
    #[error(transparent)]
    Request(#[from] RequestError),
}

fn named(refused: &[(Arc<str>, Arc<str>)]) -> String {
    let each: Vec<_> = refused.iter().map(|(uri, why)| format!("`{uri}` ({why})")).collect();
    each.join(", ")
}

impl Mirror {
    /// Connects, and loads the lists.
    ///
    /// A list that cannot be loaded is no failure here: see [`list_error`](Self::list_error).
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or started, or speaks no protocol that we do.
    pub async fn connect(target: Target, config: Config) -> Result<Self, ConnectError> {
        Self::connect_with_events(target, config).await.map(|(mirror, _)| mirror)
    }

    /// Connects as [`connect`](Self::connect) does, and gives the events from the very first on.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect).
    pub async fn connect_with_events(
        target: Target,
        config: Config,
    ) -> Result<(Self, Events), ConnectError> {
        let (shared, listenings) = Shared::new(target, config);
        let events = shared.events.receiver();
        let first = Driver::connect(&shared).await?;
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Driver::new(shared.clone(), listenings).run(first, cancel.clone()));
        shared.wait_for(Machine::is_settled).await;
        if shared.machine().losses() > 0 {
            // What was lost before it was ever whole is not there to be kept.
            let stderr = shared.stderr();
            return Err(match &shared.target {
                Target::Command(_) => ConnectError::Died { status: None, stderr, garbage: None },
                _ => ConnectError::Transport(
                    "the connection ended before the lists were loaded".to_owned(),
                ),
            });
        }
        let (tags, tasks) = (AtomicU64::new(0), Mutex::new(tasks));
        let inner = Inner { shared, tags, cancel, tasks };
        Ok((Self { inner: Arc::new(inner) }, events))
    }

    /// Ends the connection: the session is deleted, a child process ends with all its children, and
    /// lists, contents and subscriptions are cleared.
    pub async fn close(&self) {
        self.inner.cancel.cancel();
        let mut tasks = {
            let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        let is_first = !tasks.is_empty();
        while tasks.join_next().await.is_some() {}
        let shared = &self.inner.shared;
        let is_closed =
            |machine: &mut Machine| matches!(machine.connection(), ConnectionState::Closed { .. });
        if is_first && !is_closed(&mut shared.machine()) {
            // The driver failed: what it would have cleared is cleared all the same.
            shared.step(Input::Gone { keep: false });
            let reason = "the mirror failed".into();
            shared.step(Input::State(ConnectionState::Closed { reason }));
        }
        shared.wait_for(is_closed).await;
    }
}

/// What is known without asking.
impl Mirror {
    /// Who the server is; nobody, while there is no connection.
    #[must_use]
    pub fn server(&self) -> Option<Arc<Server>> {
        self.inner.shared.link().ok().map(|link| link.server().clone())
    }

    /// Where the connection is.
    #[must_use]
    pub fn connection(&self) -> ConnectionState {
        self.inner.shared.machine().connection().clone()
    }

    /// The tools, in the order of the server.
    #[must_use]
    pub fn tools(&self) -> Items<Tool> {
        self.inner.shared.machine().lists().tools.items().clone()
    }

    /// The resources, in the order of the server.
    #[must_use]
    pub fn resources(&self) -> Items<Resource> {
        self.inner.shared.machine().lists().resources.items().clone()
    }

    /// The resource templates, in the order of the server.
    #[must_use]
    pub fn templates(&self) -> Items<ResourceTemplate> {
        self.inner.shared.machine().lists().templates.items().clone()
    }

    /// The prompts, in the order of the server.
    #[must_use]
    pub fn prompts(&self) -> Items<Prompt> {
        self.inner.shared.machine().lists().prompts.items().clone()
    }

    /// Why a list may not be what the server has now: it could not be loaded.
    #[must_use]
    pub fn list_error(&self, list: List) -> Option<RequestError> {
        self.inner.shared.machine().list_error(list)
    }

    /// What happens from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.shared.events.receiver()
    }

    /// What was read.
    #[must_use]
    pub fn cache(&self) -> &Reader {
        &self.inner.shared.reader
    }

    /// The last messages both ways, oldest first; as many as
    /// [`Config::history`](crate::Config::history) says.
    #[must_use]
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.inner.shared.history.messages()
    }

    /// The last lines a server over stdio wrote on its standard error, also after it ended.
    #[must_use]
    pub fn stderr(&self) -> Vec<Arc<str>> {
        self.inner.shared.stderr()
    }

    /// Whether the server says that resources can be watched.
    #[must_use]
    pub fn supports_subscriptions(&self) -> bool {
        self.server().is_some_and(|server| {
            let resources = server.capabilities.resources.as_ref();
            resources.is_some_and(|resources| resources.subscribe == Some(true))
        })
    }

    /// The resources that are watched, in order.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<Arc<str>> {
        self.inner.shared.machine().subscriptions().cloned().collect()
    }

    /// Whether a resource is watched.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.inner.shared.machine().is_subscribed(uri)
    }
}

/// What asks the server. Each of these may be dropped before it is done: the server is told then.
impl Mirror {
    /// Loads lists again, and waits for them.
    ///
    /// # Errors
    ///
    /// The first of them that could not be loaded.
    pub async fn refresh(&self, lists: &[List]) -> Result<(), RequestError> {
        let shared = &self.inner.shared;
        shared.link()?;
        let mut waited = Vec::new();
        for &list in lists.iter().filter(|list| shared.machine().offers(**list)) {
            waited.push((list, shared.machine().next_listing(list)));
            shared.step(Input::Reload(list));
        }
        shared
            .wait_for(|machine| {
                waited.iter().all(|(list, number)| {
                    machine.is_loaded(*list, *number) || !machine.offers(*list)
                })
            })
            .await;
        shared.link()?;
        lists.iter().find_map(|list| self.list_error(*list)).map_or(Ok(()), Err)
    }

    /// Reads a resource; always asks the server.
    ///
    /// # Errors
    ///
    /// If the server does not give it.
    pub async fn read_resource(&self, uri: &str) -> Result<Arc<ResourceContent>, RequestError> {
        let shared = &self.inner.shared;
        let link = shared.link()?;
        let ticket = shared.machine().ticket();
        let key: Arc<str> = uri.into();
        match link.read(uri).await {
            Ok(result) => {
                let content = Arc::new(driver::content(result));
                shared.step(Input::Read { uri: key, ticket, content: content.clone() });
                Ok(content)
            }
            Err(error) => {
                shared.step(Input::ReadFailed { uri: key });
                Err(error)
            }
        }
    }

    /// A resource as it was read before, if it is sure to be fresh: it is watched and no notice came,
    /// or the server said how long it stays fresh. Else it is read.
    ///
    /// # Errors
    ///
    /// Those of [`read_resource`](Self::read_resource).
    pub async fn cached_or_read(&self, uri: &str) -> Result<Arc<ResourceContent>, RequestError> {
        let fresh = self.inner.shared.machine().cache().fresh(uri, Instant::now());
        match fresh {
            Some(content) => Ok(content),
            None => self.read_resource(uri).await,
        }
    }

    /// Fills in a template and reads what it names; always asks the server.
    ///
    /// # Errors
    ///
    /// If it is no template, or the server does not give what it names.
    pub async fn read_from_template(
        &self,
        template: &str,
        values: BTreeMap<String, String>,
    ) -> Result<Arc<TemplateContent>, RequestError> {
        let shared = &self.inner.shared;
        let parsed = Template::parse(template).map_err(|error| {
            RequestError::Invalid(format!("`{template}` is not a URI template: {error}"))
        })?;
        let uri: Arc<str> = parsed.expand(&values).into();
        let link = shared.link()?;
        let ticket = shared.machine().ticket();
        let content = driver::content(link.read(&uri).await?);
        let content = Arc::new(TemplateContent { uri, values, content });
        let template = template.into();
        shared.step(Input::TemplateRead { template, ticket, content: content.clone() });
        Ok(content)
    }

    /// Fills in a prompt; always asks the server.
    ///
    /// # Errors
    ///
    /// If the server does not give it.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Arc<PromptContent>, RequestError> {
        let shared = &self.inner.shared;
        let link = shared.link()?;
        let ticket = shared.machine().ticket();
        let given = arguments.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let result = link.prompt(name, given.collect()).await?;
        let content = Arc::new(PromptContent { arguments, result, read_at: SystemTime::now() });
        shared.step(Input::Prompted { name: name.into(), ticket, content: content.clone() });
        Ok(content)
    }

    /// Calls a tool. A tool that failed and says so has a result: see [`ToolOutcome::is_success`].
    ///
    /// # Errors
    ///
    /// If there is no result at all.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: JsonObject,
    ) -> Result<Arc<ToolOutcome>, RequestError> {
        self.call_tool_tagged(self.tag(), name, arguments).await
    }

    /// A tag for a call, by which its progress can be told from that of others.
    #[must_use]
    pub fn tag(&self) -> RequestTag {
        RequestTag(self.inner.tags.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a tool, with a tag that its progress events will carry.
    ///
    /// # Errors
    ///
    /// Those of [`call_tool`](Self::call_tool).
    pub async fn call_tool_tagged(
        &self,
        tag: RequestTag,
        name: &str,
        arguments: JsonObject,
    ) -> Result<Arc<ToolOutcome>, RequestError> {
        let shared = &self.inner.shared;
        let link = shared.link()?;
        let ticket = shared.machine().ticket();
        let tool = self.tools().iter().find(|tool| tool.name == name).cloned();
        let key: Arc<str> = name.into();
        let warn = |problem: Option<String>| {
            if let Some(problem) = problem {
                shared.warn(Warning::Schema { tool: key.clone(), problem: problem.into() });
            }
        };
        warn(tool.as_ref().and_then(|tool| schema::arguments(tool, &arguments)));
        let (called_at, began) = (SystemTime::now(), Instant::now());
        let answer = link.call(name, arguments.clone(), tag).await;
        if let (Some(tool), Ok(result)) = (&tool, &answer) {
            warn(schema::result(tool, result));
        }
        let (result, error) = match answer {
            Ok(result) => (Ok(result), None),
            Err(error) => (Err(error.to_string().into()), Some(error)),
        };
        let outcome = Arc::new(ToolOutcome { arguments, result, called_at, took: began.elapsed() });
        shared.step(Input::Called { name: key, ticket, outcome: outcome.clone() });
        error.map_or(Ok(outcome), Err)
    }

    /// What an argument of a prompt or a variable of a template may be. `context` holds what is
    /// already filled in.
    ///
    /// # Errors
    ///
    /// If the server does not tell.
    pub async fn complete(
        &self,
        reference: Reference,
        argument: &str,
        value: &str,
        context: BTreeMap<String, String>,
    ) -> Result<Completion, RequestError> {
        let link = self.inner.shared.link()?;
        let reference = match reference {
            Reference::Prompt(name) => rmcp::model::Reference::for_prompt(name),
            Reference::Template(template) => rmcp::model::Reference::for_resource(template),
        };
        let argument = ArgumentInfo::new(argument, value);
        let info = link.complete(reference, argument, context).await?;
        let has_more = info.has_more.unwrap_or(false);
        Ok(Completion { values: info.values, total: info.total, has_more })
    }

    /// Watches resources: changes of them become events, and what is cached of them is kept current.
    ///
    /// # Errors
    ///
    /// If the server does not offer it, or refuses some; the others are watched then.
    pub async fn subscribe(&self, uris: &[&str]) -> Result<(), SubscribeError> {
        let shared = &self.inner.shared;
        let link = shared.link()?;
        if !self.supports_subscriptions() {
            return Err(SubscribeError::NotOffered);
        }
        let uris = uris.iter().map(|uri| Arc::from(*uri)).collect();
        let refused = shared.subscribe(&link, uris).await?;
        if refused.is_empty() { Ok(()) } else { Err(SubscribeError::Refused { refused }) }
    }

    /// Does not watch these any longer.
    ///
    /// # Errors
    ///
    /// If the server could not be told.
    pub async fn unsubscribe(&self, uris: &[&str]) -> Result<(), RequestError> {
        let shared = &self.inner.shared;
        let link = shared.link()?;
        let watched =
            uris.iter().filter(|uri| self.is_subscribed(uri)).map(|uri| Arc::from(*uri)).collect();
        shared.unsubscribe(&link, watched).await
    }

    /// How long the server takes to answer. The modern era has no ping.
    ///
    /// # Errors
    ///
    /// If it does not answer, or is a modern one.
    pub async fn ping(&self) -> Result<Duration, RequestError> {
        let link = self.inner.shared.link()?;
        if link.server().era == Era::Modern {
            return Err(RequestError::NotOffered("pings in this era of the protocol"));
        }
        let began = Instant::now();
        link.ping().await?;
        Ok(began.elapsed())
    }

    /// From which level on the server is to log.
    ///
    /// # Errors
    ///
    /// If it does not offer logging, or refuses.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), RequestError> {
        let link = self.inner.shared.link()?;
        if link.server().capabilities.logging.is_none() {
            return Err(RequestError::NotOffered("logging"));
        }
        link.set_log_level(level).await
    }
}
