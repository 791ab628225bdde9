//! Requests of clients, relayed to the upstream and back as raw JSON.

// The level of log messages, sampling and roots are deprecated and still relayed.
#![expect(deprecated, reason = "servers and clients of every revision are relayed")]

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::Value;
use tidings_core::ResourceUri;
use tidings_mirror::model::{
    ArgumentInfo, CacheScope, CallToolRequestParams, CallToolResponse, ClientCapabilities,
    CompleteRequestParams, CompletionContext, GetPromptRequestParams, GetPromptResponse,
    JsonObject, LoggingLevel, ReadResourceRequestParams, ReadResourceResponse, Reference,
};
use tidings_mirror::{Era, Mirror, Relay};
use tidings_server::{
    Answer, AnswerError, Completion, CompletionOf, Completions, Contents, Context, Raw,
};
use tokio::time::{Duration, Instant};

use crate::exchange::{Listener, Outgoing};
use crate::links;
use crate::upstream::Inner;
use crate::watch::Sighting;
use crate::watch::schedule::Look;

/// The gateways that a request came through, in its `_meta`.
const HOPS: &str = "io.github.tidings-mcp/hops";
/// Entries of `_meta` that are about one connection begin with this.
const RESERVED: &str = "io.modelcontextprotocol/";
/// The level of log messages that a client wants during one request.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// What the client of one request can be asked.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// A call that takes longer goes on if its client loses the connection meanwhile and can come back: it
/// may have had its effect.
const PROMPT: Duration = Duration::from_millis(40);
/// How long a server may take to set its log level before a request is sent anyway.
const PATIENCE: Duration = Duration::from_secs(2);

impl Inner {
    pub(crate) async fn call(
        self: &Arc<Self>,
        mut request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let route = self.routes().tools.get(&*request.name).cloned();
        let route = route.ok_or_else(|| AnswerError::not_found(&*request.name))?;
        request.name = route.original.to_string().into();
        let answer = self.ask(Relay::Call(request), context).await;
        if !route.is_read_only {
            // Also after a failure: it may have done a part.
            self.touched();
        }
        let result = self.parsed(&answer?)?;
        Ok(links::in_call(result, |uri| self.address_of_link(uri)).into())
    }

    pub(crate) async fn prompt(
        self: &Arc<Self>,
        mut request: GetPromptRequestParams,
        context: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        let original = self.routes().prompts.get(&request.name).cloned();
        let original = original.ok_or_else(|| AnswerError::not_found(&request.name))?;
        request.name = original.to_string();
        let result = self.parsed(&self.ask(Relay::Prompt(request), context).await?)?;
        Ok(links::in_prompt(result, |uri| self.address_of_link(uri)).into())
    }

    pub(crate) async fn complete(
        self: &Arc<Self>,
        completion: Completion,
        context: &Context,
    ) -> Result<Completions, AnswerError> {
        let routes = self.routes();
        let reference = match &completion.of {
            CompletionOf::Prompt(name) => {
                routes.prompts.get(name).map(|original| Reference::for_prompt(&**original))
            }
            CompletionOf::Template(text) => {
                routes.templates.get(text).map(|original| Reference::for_resource(&**original))
            }
            _ => None,
        };
        let reference = reference.ok_or_else(|| AnswerError::not_found(&completion.argument))?;
        let argument = ArgumentInfo::new(completion.argument, completion.value);
        let mut params = CompleteRequestParams::new(reference, argument);
        if !completion.known.is_empty() {
            let known = completion.known.into_iter().collect();
            params = params.with_context(CompletionContext::with_arguments(known));
        }
        let result = self.ask(Relay::Complete(params), context).await?;
        Ok(Completions::raw(self.parsed(&result)?))
    }

    pub(crate) async fn read(
        self: &Arc<Self>,
        address: &ResourceUri,
        context: &Context,
    ) -> Result<Contents, AnswerError> {
        let uri = self.original(address.as_ref());
        if !self.config().resources.has(&uri) {
            return Err(AnswerError::not_found(address.as_ref()));
        }
        // Who brings answers to questions wants the read that asked.
        let is_answering = context.input().is_some();
        let known = self.watching().current(&uri, Instant::now());
        if let Some((seen, age)) = known.filter(|_| !is_answering) {
            return match seen {
                Sighting::Content(contents) => {
                    let mut contents = self.at_address(&contents, &uri, address);
                    contents.fresh_for = contents.fresh_for.saturating_sub(age);
                    Ok(contents)
                }
                Sighting::Absent(error) => Err(error),
            };
        }
        let outcome = self.look(&uri, context).await;
        match outcome {
            Ok(contents) => Ok(self.at_address(&contents, &uri, address)),
            // The hub compares: that there is nothing is known by one name.
            Err(_) if context.is_of_hub() && Sighting::of(&outcome).is_some() => {
                Err(AnswerError::not_found(address.as_ref()))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads a resource at the server, and compares it if it is watched.
    pub(crate) async fn look(
        self: &Arc<Self>,
        uri: &Arc<str>,
        context: &Context,
    ) -> Result<Arc<Contents>, AnswerError> {
        let ticket = self.watching().ticket();
        let mut params = ReadResourceRequestParams::new(&**uri);
        if let Some(input) = context.input() {
            params.input_responses.clone_from(&input.responses);
            params.request_state.clone_from(&input.state);
        }
        let answer = self.ask(Relay::Read(params), context).await;
        let outcome = answer.and_then(|text| self.contents(&text));
        self.observe(uri, ticket, &outcome, context.is_of_hub());
        outcome
    }

    /// A read ended: its watchers are notified if the content differs. Of what a client read they are
    /// notified in any case, because it may be as before again when the hub compares.
    pub(crate) fn observe(
        &self,
        uri: &Arc<str>,
        ticket: u64,
        outcome: &Result<Arc<Contents>, AnswerError>,
        is_ours: bool,
    ) -> crate::watch::Observed {
        // A question is not the content.
        let is_question = |contents: &Arc<Contents>| {
            let raw = contents.raw.as_ref();
            raw.is_some_and(|raw| raw.get("resultType") == Some(r#""input_required""#))
        };
        let seen = match outcome {
            Ok(contents) if is_question(contents) => None,
            outcome => Sighting::of(outcome),
        };
        let observed = self.watching().observe(uri, ticket, seen, Instant::now());
        for address in &observed.moved {
            if is_ours || observed.look != Look::Changed {
                let Ok(()) = self.shelf.changed(address.clone());
            } else {
                self.shelf.changed_meanwhile(address);
            }
        }
        observed
    }

    /// Relays a request for a client, and what is said meanwhile.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        request: Relay,
        context: &Context,
    ) -> Result<Arc<str>, AnswerError> {
        let failures = self.house.failures();
        let meta = self.meta(context).ok_or_else(|| failures.ring())?;
        let most = self.config().timeouts.most;
        let arguments = context.raw_arguments().map(|arguments| arguments.to_string().into());
        let outgoing = Outgoing { request, meta, arguments };
        let promptly = async {
            tokio::time::sleep(PROMPT).await;
            context.begin_stream();
            std::future::pending::<Infallible>().await
        };
        let answer = tokio::select! {
            answer = self.ask_in_turn(outgoing, context) => answer?,
            never = promptly => match never {},
            () = tokio::time::sleep(most) => return Err(failures.too_long(most)),
            // The request is dropped, and so cancelled at the server.
            () = context.cancelled() => return Err(failures.refused("the request was cancelled")),
        };
        if is_task(&answer) { Err(failures.task()) } else { Ok(answer) }
    }

    async fn ask_in_turn(
        self: &Arc<Self>,
        mut outgoing: Outgoing,
        context: &Context,
    ) -> Result<Arc<str>, AnswerError> {
        // A call that waits has its turn already.
        if let Some(call) = self.come_back(&mut outgoing.request, context) {
            return self.follow(call?, context).await;
        }
        let turn = self.turns.take(&context.caller()).await;
        let is_private = matches!(outgoing.request, Relay::Call(_) | Relay::Prompt(_));
        let guest = match self.rooms.as_ref().filter(|_| is_private) {
            Some(rooms) => Some(rooms.enter(context).await?),
            None => None,
        };
        let mirror = match &guest {
            Some(guest) => guest.mirror.clone(),
            None => self.house.ready().await?,
        };
        introduce(&mut outgoing.meta, &mirror, context).await;
        if context.asks_by_answer() {
            return self.ask_by_answer(mirror, outgoing, (turn, guest), context).await;
        }
        self.ask_meanwhile(&mirror, outgoing, context).await
    }

    /// Reads a resource for nobody but its watchers.
    pub(crate) async fn read_alone(&self, uri: &str) -> Result<Arc<Contents>, AnswerError> {
        let mirror = self.house.ready().await?;
        let mut meta = with_hop(JsonObject::new(), self.config().neighbours.gateway());
        if is_modern(&mirror) {
            meta.insert(CAPABILITIES.to_owned(), Value::Object(JsonObject::new()));
        }
        let request = Relay::Read(ReadResourceRequestParams::new(uri));
        let outgoing = Outgoing { request, meta, arguments: None };
        let text = self.exchange(&mirror, &outgoing, self.tag(), Listener::Nobody).await?;
        self.contents(&text)
    }

    /// The `_meta` of a relayed request: what the client said, without what is about its connection.
    /// `None` if the request came through here before.
    fn meta(&self, context: &Context) -> Option<JsonObject> {
        let said = serde_json::to_value(context.meta()).unwrap_or_default();
        let Value::Object(mut meta) = said else { return Some(JsonObject::new()) };
        meta.retain(|key, _| !key.starts_with(RESERVED) && key != "progressToken");
        let config = self.config();
        let gateway = config.neighbours.gateway();
        let hops = meta.get(HOPS).and_then(Value::as_array);
        let is_ring = hops.is_some_and(|hops| hops.iter().any(|hop| hop == gateway));
        (!is_ring).then(|| with_hop(meta, gateway))
    }

    pub(crate) fn parsed<T>(&self, text: &str) -> Result<Raw<T>, AnswerError> {
        Raw::parse(text).map_err(|error| self.house.failures().unreadable(&error))
    }

    /// The result of a read.
    fn contents(&self, text: &str) -> Result<Arc<Contents>, AnswerError> {
        let raw: Raw<ReadResourceResponse> = self.parsed(text)?;
        let fresh_for = raw.get("ttlMs").and_then(|text| text.parse().ok()).unwrap_or_default();
        let is_public = raw.get("cacheScope") == Some(r#""public""#);
        let mut contents = Contents::raw(raw);
        contents.fresh_for = Duration::from_millis(fresh_for);
        contents.scope = if is_public { CacheScope::Public } else { CacheScope::Private };
        Ok(Arc::new(contents))
    }
}

/// The same `_meta` with one more hop.
fn with_hop(mut meta: JsonObject, gateway: &str) -> JsonObject {
    let mut hops = match meta.remove(HOPS) {
        Some(Value::Array(hops)) => hops,
        _ => Vec::new(),
    };
    hops.push(gateway.into());
    meta.insert(HOPS.to_owned(), Value::Array(hops));
    meta
}

fn is_modern(mirror: &Mirror) -> bool {
    mirror.server().is_some_and(|server| server.era == Era::Modern)
}

/// Tells a server what the client of a request can be asked and what it wants to hear: a modern one
/// with the request, any other beforehand. What a legacy server may ask is declared once for all
/// clients, so that the server does not change with them.
async fn introduce(meta: &mut JsonObject, mirror: &Mirror, context: &Context) {
    let level = context.log_level();
    if !is_modern(mirror) {
        // Less than most servers send is not asked for: other clients want that.
        if let Some(level) = level.filter(|level| *level as u8 <= LoggingLevel::Info as u8) {
            let _ = tokio::time::timeout(PATIENCE, mirror.lower_log_level(level)).await;
        }
        return;
    }
    // A legacy client that did not ask hears what most servers send.
    let is_legacy = !context.asks_by_answer() && !context.is_of_hub();
    let level = level.or_else(|| is_legacy.then_some(LoggingLevel::Info));
    if let Some(level) = level.and_then(|level| serde_json::to_value(level).ok()) {
        meta.insert(LOG_LEVEL.to_owned(), level);
    }
    // What can be passed on: answers to other questions would not find their way.
    let client = context.client_capabilities();
    let mut can = ClientCapabilities::default();
    (can.elicitation, can.sampling, can.roots) =
        (client.elicitation, client.sampling, client.roots);
    meta.insert(CAPABILITIES.to_owned(), serde_json::to_value(can).unwrap_or_default());
}

/// Whether a result is a task of 2025-11-25 or of the tasks extension. No client is offered tasks.
fn is_task(text: &str) -> bool {
    // Most results do not have the word.
    if !text.contains("task") {
        return false;
    }
    let Ok(result) = Raw::<()>::parse(text) else { return false };
    let is_legacy_task = result.get("task").is_some() && result.get("content").is_none();
    is_legacy_task || result.get("resultType") == Some(r#""task""#)
}
