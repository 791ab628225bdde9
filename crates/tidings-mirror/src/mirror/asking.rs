//! Requests: reads, prompts, calls, completions, and reloading lists.

// The level of a log message is deprecated and still sent.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use rmcp::model::{ArgumentInfo, JsonObject, LoggingLevel};
use serde_json::Value;
use tidings_core::Template;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Mirror;
use crate::cache::{self, PromptContent, ResourceContent, TemplateContent, ToolOutcome};
use crate::connect::Taken;
use crate::driver;
use crate::era::Era;
use crate::events::{RequestTag, Warning};
use crate::lists::List;
use crate::machine::Input;
use crate::relay::{Heard, Relay, RelayError};
use crate::request::RequestError;
use crate::rounds::{Answers, Drive, Once};
use crate::schema;

/// The subject of a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reference {
    /// An argument of the prompt of this name.
    Prompt(String),
    /// A variable of this URI template.
    Template(String),
}

/// Possible values of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first.
    pub values: Vec<String>,
    /// Their total number, if the server states it.
    pub total: Option<u32>,
    /// Whether there are more.
    pub has_more: bool,
}

/// Requests to the server. Dropping one before it is done cancels it.
impl Mirror {
    /// Loads lists again, and waits for them.
    ///
    /// # Errors
    ///
    /// The first that could not be loaded.
    pub async fn refresh(&self, lists: &[List]) -> Result<(), RequestError> {
        let engine = &self.inner.engine;
        engine.link()?;
        let mut waited = Vec::new();
        for &list in lists.iter().filter(|list| engine.machine().offers(**list)) {
            waited.push((list, engine.machine().next_listing(list)));
            engine.step(Input::Reload(list));
        }
        engine
            .wait_for(|machine| {
                waited.iter().all(|(list, number)| {
                    machine.is_loaded(*list, *number) || !machine.offers(*list)
                })
            })
            .await;
        engine.link()?;
        lists.iter().find_map(|list| self.list_error(*list)).map_or(Ok(()), Err)
    }

    /// Reads a resource from the server.
    ///
    /// # Errors
    ///
    /// If the server does not return it.
    pub async fn read_resource(&self, uri: &str) -> Result<Arc<ResourceContent>, RequestError> {
        self.read(uri, Drive::Handlers).await?.done().ok_or(RequestError::Unexpected)
    }

    /// Reads a resource for one round: see [`call_tool_once`](Self::call_tool_once).
    ///
    /// # Errors
    ///
    /// If the server neither returns it nor asks a question.
    pub async fn read_resource_once(
        &self,
        uri: &str,
        answers: Answers,
    ) -> Result<Once<Arc<ResourceContent>>, RequestError> {
        self.read(uri, Drive::Caller(answers)).await
    }

    async fn read(
        &self,
        uri: &str,
        drive: Drive,
    ) -> Result<Once<Arc<ResourceContent>>, RequestError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        let ticket = engine.machine().ticket();
        let key: Arc<str> = uri.into();
        match link.read(uri, &self.options, drive).await {
            Ok(read) => Ok(read.map(|result| {
                let content = Arc::new(driver::content(result));
                engine.step(Input::Read { uri: key, ticket, content: content.clone() });
                content
            })),
            Err(error) => {
                engine.step(Input::ReadFailed { uri: key });
                Err(error)
            }
        }
    }

    /// The cached content of a resource, if it is fresh: it is watched and no notice came, or it is
    /// within the freshness time of the server. Otherwise it is read.
    ///
    /// # Errors
    ///
    /// Those of [`read_resource`](Self::read_resource).
    pub async fn cached_or_read(&self, uri: &str) -> Result<Arc<ResourceContent>, RequestError> {
        let fresh = self.inner.engine.machine().cache().fresh(uri, Instant::now());
        match fresh {
            Some(content) => Ok(content),
            None => self.read_resource(uri).await,
        }
    }

    /// Fills in a template and reads the resource from the server.
    ///
    /// # Errors
    ///
    /// If it is not a template, or the server does not return the resource. Also if the server does
    /// not list the template, unless
    /// [`unlisted_templates`](crate::RequestOptions::unlisted_templates) allows it or this mirror
    /// keeps no list of templates.
    pub async fn read_from_template<K: Into<String>, V: Into<String>>(
        &self,
        template: &str,
        values: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Arc<TemplateContent>, RequestError> {
        let engine = &self.inner.engine;
        let values = cache::texts(values);
        let parsed = Template::parse(template).map_err(|error| {
            RequestError::Invalid(format!("`{template}` is not a URI template: {error}"))
        })?;
        let uri: Arc<str> = parsed.expand(&values).into();
        let link = engine.link()?;
        let listed = self.templates().iter().find(|item| item.uri_template == template).cloned();
        let is_known = engine.machine().offers(List::Templates);
        if listed.is_none() && is_known && !self.options.unlisted_templates {
            return Err(RequestError::Unlisted(template.to_owned()));
        }
        let ticket = engine.machine().ticket();
        let read = link.read(&uri, &self.options, Drive::Handlers).await?;
        let content = driver::content(read.done().ok_or(RequestError::Unexpected)?);
        let name = listed.map(|item| item.name.as_str().into());
        let content = Arc::new(TemplateContent { name, uri, values, content });
        let template = template.into();
        engine.step(Input::TemplateRead { template, ticket, content: content.clone() });
        Ok(content)
    }

    /// Fills in a prompt at the server.
    ///
    /// # Errors
    ///
    /// If the server does not return it.
    pub async fn get_prompt<K: Into<String>, V: Into<String>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Arc<PromptContent>, RequestError> {
        let filled = self.prompt(name, cache::texts(arguments), Drive::Handlers).await?;
        filled.done().ok_or(RequestError::Unexpected)
    }

    /// Fills in a prompt for one round: see [`call_tool_once`](Self::call_tool_once).
    ///
    /// # Errors
    ///
    /// If the server neither returns it nor asks a question.
    pub async fn get_prompt_once<K: Into<String>, V: Into<String>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
        answers: Answers,
    ) -> Result<Once<Arc<PromptContent>>, RequestError> {
        self.prompt(name, cache::texts(arguments), Drive::Caller(answers)).await
    }

    async fn prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
        drive: Drive,
    ) -> Result<Once<Arc<PromptContent>>, RequestError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        let ticket = engine.machine().ticket();
        let given = arguments.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        let filled = link.prompt(name, given.collect(), &self.options, drive).await?;
        Ok(filled.map(|Taken { result, odd, raw }| {
            let content = PromptContent { odd, raw, ..PromptContent::new(arguments, result) };
            let content = Arc::new(content);
            engine.step(Input::Prompted { name: name.into(), ticket, content: content.clone() });
            content
        }))
    }

    /// Calls a tool. A tool that reports a failure has a result: see [`ToolOutcome::is_success`].
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub async fn call_tool<K: Into<String>, V: Into<Value>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Arc<ToolOutcome>, RequestError> {
        self.call_tool_tagged(self.tag(), name, arguments).await
    }

    /// A tag for a call, which identifies its progress events.
    #[must_use]
    pub fn tag(&self) -> RequestTag {
        RequestTag(self.inner.tags.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a tool, with a tag that its progress events will carry.
    ///
    /// # Errors
    ///
    /// Those of [`call_tool`](Self::call_tool).
    pub async fn call_tool_tagged<K: Into<String>, V: Into<Value>>(
        &self,
        tag: RequestTag,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Arc<ToolOutcome>, RequestError> {
        let called = self.call(tag, name, cache::values(arguments), Drive::Handlers).await?;
        called.done().ok_or(RequestError::Unexpected)
    }

    /// Calls a tool for one round. If a modern server asks questions first, they are returned and
    /// no handler is called. Call again with the answers.
    ///
    /// A server asks only for declared capabilities: see
    /// [`Handlers::declare_all`](crate::Handlers::declare_all). A legacy server uses handlers in
    /// any case, and so returns its result in the first round.
    ///
    /// ```no_run
    /// # use tidings_mirror::{Answers, Mirror, Once, RequestError};
    /// # async fn example(mirror: Mirror) -> Result<(), RequestError> {
    /// let mut answers = Answers::none();
    /// let outcome = loop {
    ///     match mirror.call_tool_once("deploy", [("to", "prod")], answers).await? {
    ///         Once::Done(outcome) => break outcome,
    ///         Once::Asked(round) => {
    ///             answers = round.answers();
    ///             for key in round.questions.keys() {
    ///                 answers = answers.with(key, serde_json::json!({ "action": "decline" }));
    ///             }
    ///         }
    ///     }
    /// };
    /// # let _ = outcome;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is neither a result nor a question.
    pub async fn call_tool_once<K: Into<String>, V: Into<Value>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
        answers: Answers,
    ) -> Result<Once<Arc<ToolOutcome>>, RequestError> {
        self.call(self.tag(), name, cache::values(arguments), Drive::Caller(answers)).await
    }

    async fn call(
        &self,
        tag: RequestTag,
        name: &str,
        arguments: JsonObject,
        drive: Drive,
    ) -> Result<Once<Arc<ToolOutcome>>, RequestError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        let ticket = engine.machine().ticket();
        let tool = self.tools().iter().find(|tool| tool.name == name).cloned();
        let key: Arc<str> = name.into();
        let warn = |problem: Option<String>| {
            if let Some(problem) = problem {
                engine.warn(Warning::Schema { tool: key.clone(), problem: problem.into() });
            }
        };
        warn(tool.as_ref().and_then(|tool| schema::arguments(tool, &arguments)));
        let (called_at, began) = (SystemTime::now(), Instant::now());
        let answer = match link.call(name, arguments.clone(), tag, &self.options, drive).await {
            Ok(Once::Asked(round)) => return Ok(Once::Asked(round)),
            Ok(Once::Done(taken)) => Ok(taken),
            Err(error) => Err(error),
        };
        if let (Some(tool), Ok(taken)) = (&tool, &answer) {
            warn(schema::result(tool, &taken.result));
        }
        let (result, odd, raw, error) = match answer {
            Ok(Taken { result, odd, raw }) => (Ok(result), odd, raw, None),
            Err(error) => (Err(error.to_string().into()), Vec::new(), None, Some(error)),
        };
        let took = began.elapsed();
        let outcome = Arc::new(ToolOutcome { arguments, result, odd, raw, called_at, took });
        engine.step(Input::Called { name: key, ticket, outcome: outcome.clone() });
        error.map_or(Ok(Once::Done(outcome)), Err)
    }

    /// Relays a request of somebody else, for one round, and returns its result as the server sent
    /// it. Nothing is cached, compared with a schema or announced as an event.
    ///
    /// A question of a modern server is such a result, with `resultType` `input_required`. Questions
    /// of a legacy server go to the handlers, with this tag in
    /// [`During::Relay`](crate::During::Relay). Progress and log messages go to `hears`, before the
    /// result is returned; those that find no room there are dropped.
    ///
    /// ```no_run
    /// # use tidings_mirror::model::CallToolRequestParams;
    /// # use tidings_mirror::{Mirror, Relay, RelayError};
    /// # async fn example(mirror: Mirror) -> Result<(), RelayError> {
    /// let (hears, mut heard) = tokio::sync::mpsc::channel(64);
    /// let call = Relay::Call(CallToolRequestParams::new("scan"));
    /// let result = mirror.relay(call, mirror.tag(), hears).await?;
    /// while let Ok(heard) = heard.try_recv() {
    ///     println!("{heard:?}");
    /// }
    /// println!("{result}"); // {"content":[…
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub async fn relay(
        &self,
        request: Relay,
        tag: RequestTag,
        hears: mpsc::Sender<Heard>,
    ) -> Result<Arc<str>, RelayError> {
        let link = self.inner.engine.link()?;
        link.relay(request, Some(tag), hears, &self.options).await
    }

    /// The same for a request that nobody can be asked about: a question that comes meanwhile is
    /// taken to belong to another request, if one is open.
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub async fn relay_for_nobody(
        &self,
        request: Relay,
        hears: mpsc::Sender<Heard>,
    ) -> Result<Arc<str>, RelayError> {
        let link = self.inner.engine.link()?;
        link.relay(request, None, hears, &self.options).await
    }

    /// Possible values of a prompt argument or template variable. `context` has the known values.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub async fn complete<K: Into<String>, V: Into<String>>(
        &self,
        reference: Reference,
        argument: &str,
        value: &str,
        context: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Completion, RequestError> {
        let link = self.inner.engine.link()?;
        let reference = match reference {
            Reference::Prompt(name) => rmcp::model::Reference::for_prompt(name),
            Reference::Template(template) => rmcp::model::Reference::for_resource(template),
        };
        let argument = ArgumentInfo::new(argument, value);
        let context = cache::texts(context);
        let info = link.complete(reference, argument, context, &self.options).await?;
        let has_more = info.has_more.unwrap_or(false);
        Ok(Completion { values: info.values, total: info.total, has_more })
    }

    /// The response time of the server. The modern era has no ping.
    ///
    /// # Errors
    ///
    /// If it does not answer, or is modern.
    pub async fn ping(&self) -> Result<Duration, RequestError> {
        let link = self.inner.engine.link()?;
        if link.server().era == Era::Modern {
            return Err(RequestError::NotOffered("pings in the modern era"));
        }
        let began = Instant::now();
        link.ping().await?;
        Ok(began.elapsed())
    }

    /// Asks the server for log messages of this level, unless it was asked for those and more since
    /// it was connected to. A modern server is not asked: there each request says what it wants.
    ///
    /// # Errors
    ///
    /// If it does not offer logging, or refuses.
    pub async fn lower_log_level(&self, level: LoggingLevel) -> Result<(), RequestError> {
        let link = self.inner.engine.link()?;
        if link.server().capabilities.logging.is_none() {
            return Err(RequestError::NotOffered("logging"));
        }
        let is_enough = link.log_level().is_some_and(|now| now as u8 <= level as u8);
        if is_enough || link.server().era == Era::Modern {
            return Ok(());
        }
        link.set_log_level(level).await
    }

    /// Sets the server's log level.
    ///
    /// # Errors
    ///
    /// If it does not offer logging, or refuses.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), RequestError> {
        let link = self.inner.engine.link()?;
        if link.server().capabilities.logging.is_none() {
            return Err(RequestError::NotOffered("logging"));
        }
        link.set_log_level(level).await
    }
}
