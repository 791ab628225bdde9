//! Protocol requests to hub calls, and back; no decisions.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

mod beside;
mod connection;
mod refusal;
mod verbatim;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    CompletionInfo, CustomRequest, CustomResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, Prompt, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceTemplate, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tidings_core::ResourceUri;

use crate::answer::{Answer, AnswerError, Completion, CompletionOf, Completions};
use crate::catalog::{Kind, Listing, Missing, Stored};
use crate::context::{Client, Context};
use crate::era;
use crate::labels::Labels;
use crate::member::Answerer;
use crate::near::near;
use crate::pipeline::{Pipeline, SubscribeError};
use crate::viewers::Viewer;

use verbatim::RawAnswerSlot;

pub(crate) use beside::{Beside, Part};
pub(crate) use connection::{Connection, FrameWriter, accept_filter};

/// Time for a source to finish a cancelled request.
const LAST_CHANCE: Duration = Duration::from_millis(900);

/// Answers the requests of one client: of a stdio connection, of one legacy session, or of a single
/// modern request over HTTP.
#[derive(Clone)]
pub(crate) struct Handler {
    pipeline: Arc<Pipeline>,
    /// The client's state between requests; `None` for a modern request over HTTP.
    connection: Option<Arc<Connection>>,
    /// Who the client is; nothing if it is anybody.
    viewer: Option<Arc<Viewer>>,
}

impl Handler {
    /// For a client without state.
    pub(crate) fn stateless(pipeline: Arc<Pipeline>, viewer: Option<Arc<Viewer>>) -> Self {
        Self { pipeline, connection: None, viewer }
    }

    /// For a client whose subscriptions belong to a connection.
    pub(crate) fn of(pipeline: Arc<Pipeline>, connection: Arc<Connection>) -> Self {
        let viewer = Some(connection.viewer().clone());
        Self { pipeline, connection: Some(connection), viewer }
    }

    /// The client's labels.
    fn labels(&self) -> Labels {
        self.viewer.as_ref().map(|viewer| viewer.labels()).unwrap_or_default()
    }

    fn listing(&self, kind: Kind) -> Arc<Listing> {
        self.pipeline.catalog.listing(kind, &self.labels())
    }

    fn find(&self, kind: Kind, name: &str) -> Result<Answerer, ErrorData> {
        let found = self.pipeline.catalog.find(kind, name, &self.labels());
        let found = found.map_err(|missing| {
            let listing = self.listing(kind);
            let near = near(name, listing.names());
            refusal::missing_name(kind.word(), name, missing, &near)
        });
        Ok(found?.0)
    }

    fn parse_uri(uri: &str) -> Result<ResourceUri, ErrorData> {
        ResourceUri::parse(uri).map_err(|error| refusal::malformed_uri(uri, &error))
    }

    /// The error for a URI that is not offered: that of its source, if one recognises it.
    fn missing(&self, uri: &ResourceUri, missing: Missing, slot: &RawAnswerSlot) -> ErrorData {
        let refused = match missing {
            Missing::Unknown => self.pipeline.catalog.refuse(uri),
            Missing::Disabled => None,
        };
        match refused {
            Some(error) => slot.refuse("uri", uri.as_ref(), error),
            None => refusal::missing_uri(uri, missing),
        }
    }

    fn connection(&self) -> Result<&Arc<Connection>, ErrorData> {
        self.connection
            .as_ref()
            .ok_or_else(|| ErrorData::invalid_request("subscribing needs a session", None))
    }

    fn context(&self, request: RequestContext<RoleServer>) -> Context {
        let client = self.connection.clone().map(|connection| connection as Arc<dyn Client>);
        Context::new(self.pipeline.clone(), request, client, self.viewer.clone())
    }
}

/// A list that is the same for everyone is public, and others are private. None has a cache time:
/// clients subscribe to learn of changes.
macro_rules! list {
    (
        $self:ident, $request:ident, $context:ident,
        $kind:ident => $result:ident { $items:ident }, $stored:pat => $item:expr
    ) => {{
        let listing = $self.listing(Kind::$kind);
        let cursor = $request.and_then(|request| request.cursor);
        let page = listing
            .page(cursor.as_deref(), $self.pipeline.config.page_size)
            .map_err(|error| refusal::cursor(cursor.as_deref(), error))?;
        let mut result = $result { next_cursor: page.next, ..$result::default() };
        if is_modern(&$context) {
            let has_views = $self.pipeline.catalog.has_views(Kind::$kind);
            let scope = if has_views { CacheScope::Private } else { CacheScope::Public };
            result = result.with_ttl_ms(0).with_cache_scope(scope);
        } else {
            result.result_type = None;
        }
        if page.items.iter().any(|item| item.raw().is_some()) {
            RawAnswerSlot::of(&$context).keep(|id| verbatim::list(id, &result, page.items))?;
            return Ok(result);
        }
        let items = page.items.iter().filter_map(|item| match item {
            $stored => Some($item),
            _ => None,
        });
        result.$items = items.collect();
        Ok(result)
    }};
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let config = &self.pipeline.config;
        let lists = config.versions.lists_for(ProtocolVersion::LATEST.as_str());
        let mut info = InitializeResult::new(era::capabilities(lists));
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info.server_info = Implementation::new(config.name.clone(), config.version.clone());
        info.server_info.title.clone_from(&config.title);
        info.server_info.description.clone_from(&config.description);
        info.server_info.icons.clone_from(&config.icons);
        info.server_info.website_url.clone_from(&config.website_url);
        let mut instructions: Vec<_> = config.instructions.clone().into_iter().collect();
        instructions.extend(self.pipeline.catalog.instructions());
        info.instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut answer = self.negotiate_initialize(&request)?;
        let lists = self.pipeline.config.versions.lists_for(answer.protocol_version.as_str());
        answer.capabilities = era::capabilities(lists);
        let mut peer = request;
        peer.protocol_version = answer.protocol_version.clone();
        if let Some(connection) = &self.connection {
            connection.open(&peer)?;
        }
        context.peer.set_peer_info(peer);
        Ok(answer)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        list!(self, request, context, Tool => ListToolsResult { tools },
            Stored::Tool(tool) => Tool::clone(tool))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        list!(self, request, context, Prompt => ListPromptsResult { prompts },
            Stored::Prompt(prompt) => Prompt::clone(prompt))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        list!(self, request, context, Resource => ListResourcesResult { resources },
            Stored::Resource(resource) => Resource::clone(resource))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        list!(self, request, context,
            Template => ListResourceTemplatesResult { resource_templates },
            Stored::Template(template, _) => ResourceTemplate::clone(template))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.pipeline.catalog.tool(name, &self.labels()).map(|tool| Tool::clone(&tool))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(arguments) = Beside::of(&context.extensions).and_then(Beside::take_arguments) {
            request.arguments = Some(arguments);
        }
        let name = request.name.clone();
        let answerer = self.find(Kind::Tool, &name)?;
        let slot = RawAnswerSlot::of(&context);
        let context = self.context(context);
        let answer = unless_cancelled(&slot, answerer.call(request, &context)).await?;
        match answer.map_err(|error| slot.refuse("name", &name, error))? {
            Answer::Typed(response) => Ok(response),
            Answer::Raw(raw) => slot.keep_result(&raw, None),
        }
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name.clone();
        let answerer = self.find(Kind::Prompt, &name)?;
        let slot = RawAnswerSlot::of(&context);
        let context = self.context(context);
        let answer = unless_cancelled(&slot, answerer.prompt(request, &context)).await?;
        match answer.map_err(|error| slot.refuse("name", &name, error))? {
            Answer::Typed(response) => Ok(response),
            Answer::Raw(raw) => slot.keep_result(&raw, None),
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = Self::parse_uri(&request.uri)?;
        let slot = RawAnswerSlot::of(&context);
        let route = self.pipeline.catalog.route(&uri, &self.labels());
        let route = route.map_err(|missing| self.missing(&uri, missing, &slot))?;
        let absent = || slot.refuse("uri", uri.as_ref(), AnswerError::not_found(uri.as_ref()));
        if route.is_withheld {
            return Err(absent());
        }
        let mut context = self.context(context);
        context.answer(request.input_responses, request.request_state);
        let reading = route.answerer.read(&uri, &route.variables, &context);
        let contents = unless_cancelled(&slot, reading).await?.map_err(|error| match error {
            // Where something is hidden, everything absent is refused in the same words.
            error if error.is_missing() && self.pipeline.catalog.has_views(Kind::Resource) => {
                absent()
            }
            error => slot.refuse("uri", uri.as_ref(), error),
        })?;
        let is_everyones = route.audience.is_empty();
        let scope = if is_everyones { contents.scope } else { CacheScope::Private };
        if let Some(raw) = &contents.raw {
            return slot.keep_result(raw, Some((contents.fresh_for, scope)));
        }
        let mut result = ReadResourceResult::new(contents.parts);
        if slot.is_modern {
            let fresh_for = u64::try_from(contents.fresh_for.as_millis()).unwrap_or(u64::MAX);
            result = result.with_ttl_ms(fresh_for).with_cache_scope(scope);
        }
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (kind, key, of) = match request.r#ref {
            Reference::Prompt(prompt) => {
                (Kind::Prompt, prompt.name.clone(), CompletionOf::Prompt(prompt.name))
            }
            Reference::Resource(template) => {
                (Kind::Template, template.uri.clone(), CompletionOf::Template(template.uri))
            }
            _ => return Err(refusal::method("completion/complete")),
        };
        let answerer = self.find(kind, &key)?;
        let mut completion = Completion::new(of, request.argument.name, request.argument.value);
        let known = request.context.and_then(|context| context.arguments).unwrap_or_default();
        completion.known.extend(known);
        let slot = RawAnswerSlot::of(&context);
        let context = self.context(context);
        let completions = unless_cancelled(&slot, answerer.complete(completion, &context))
            .await?
            .map_err(|error| slot.refuse("ref", &key, error))?;
        let Completions { mut values, total, has_more, raw } = completions;
        if let Some(raw) = &raw {
            return slot.keep_result(raw, None);
        }
        let total = total.or_else(|| u32::try_from(values.len()).ok());
        let is_cut = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        let mut info = CompletionInfo::new(values)
            .map_err(|details| ErrorData::internal_error(details, None))?;
        info.total = total;
        info.has_more = Some(has_more || is_cut);
        Ok(CompleteResult::new(info))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(refusal::modern_method("logging/setLevel"));
        }
        if let Some(connection) = &self.connection {
            connection.set_level(request.level);
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let uri = Self::parse_uri(&request.uri)?;
        let connection = self.connection()?;
        let slot = RawAnswerSlot::of(&context);
        connection.subscribe(&uri).await.map_err(|error| match error {
            SubscribeError::Unknown => self.missing(&uri, Missing::Unknown, &slot),
            SubscribeError::Unreadable(error) => slot.refuse("uri", uri.as_ref(), error),
            error => refusal::subscribe(&uri, error),
        })
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Ok(uri) = ResourceUri::parse(&request.uri) {
            self.connection()?.unsubscribe(&uri);
        }
        Ok(())
    }

    /// The transports reduce the filter of a listen request before it comes here, so that its
    /// listener exists before the acknowledgement.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // Over HTTP the transport takes the acknowledgement and continues with its own stream, so
        // that an idle listener holds no service.
        if let Some(connection) = &self.connection {
            let id = context.sink().id().clone();
            tokio::select! {
                () = context.cancelled() => connection.end_listen(&id),
                () = connection.deliver(&id) => {}
            }
        }
        Ok(())
    }

    /// An unknown method, or invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let name = &request.method;
        Err(if is_modern(&context) { refusal::modern_method(name) } else { refusal::method(name) })
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| era::is_modern(version.as_str()))
}

/// Runs a source's work until the request is cancelled. After that the source has a moment to
/// finish; then its work is dropped.
async fn unless_cancelled<T>(
    slot: &RawAnswerSlot,
    answering: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    let given_up = async {
        slot.cancelled.cancelled().await;
        tokio::time::sleep(LAST_CHANCE).await;
    };
    tokio::select! {
        biased;
        answer = answering => Ok(answer),
        () = given_up => Err(ErrorData::internal_error("Cancelled", None)),
    }
}
