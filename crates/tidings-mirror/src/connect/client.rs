//! The client that the protocol library runs: its capabilities, and its answers to the server.

// Sampling and roots are deprecated and still asked for.
#![expect(deprecated, reason = "servers of every revision are answered")]

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, InputRequest, ListRootsResult, ProtocolVersion,
    RequestId, RootsCapabilities, SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::Value;

use super::open::Open;
use crate::config::Config;
use crate::handlers::{Asking, During, Handlers, Question};

#[derive(Clone)]
pub(super) struct Client {
    info: ClientConfig,
    handlers: Handlers,
    open: Arc<Open>,
}

impl Client {
    pub(super) fn new(config: &Config, version: ProtocolVersion, open: Arc<Open>) -> Self {
        let handlers = config.handlers.clone();
        let mut capabilities = ClientCapabilities::default();
        let is_declared = |has_handler: bool| has_handler || handlers.declares_all;
        if is_declared(handlers.elicit.is_some()) {
            let both = ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(both);
        }
        capabilities.sampling =
            is_declared(handlers.sample.is_some()).then(SamplingCapability::default);
        capabilities.roots = is_declared(handlers.roots.is_some()).then(RootsCapabilities::default);
        let info =
            ClientConfig::new(capabilities, config.client.clone()).with_protocol_version(version);
        Self { info, handlers, open }
    }

    /// The open requests of this connection.
    pub(super) fn open(&self) -> &Open {
        &self.open
    }

    /// Answers the questions of a modern server that are part of a result.
    pub(super) async fn answer(
        &self,
        key: &str,
        request: InputRequest,
        during: During,
    ) -> Result<Value, ErrorData> {
        let asking = Asking::new(Question::Input(key.into()), Some(during));
        let value = match request {
            InputRequest::CreateMessage(request) => {
                serde_json::to_value(self.sample(request.params, asking).await?)
            }
            InputRequest::Elicitation(request) => {
                serde_json::to_value(self.elicit(request.params, asking).await?)
            }
            InputRequest::ListRoots(_) => serde_json::to_value(self.roots(asking).await?),
            _ => return Err(declined("this client does not support this request")),
        };
        value.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Identifies a question of a legacy server.
    fn asking(&self, id: RequestId) -> Asking {
        let during = self.open.during(&id);
        Asking::new(Question::Request(id), during)
    }

    async fn sample(
        &self,
        params: CreateMessageRequestParams,
        asking: Asking,
    ) -> Result<CreateMessageResult, ErrorData> {
        match &self.handlers.sample {
            Some(handler) => handler(params, asking).await.map_err(failed),
            None => Err(declined("this client does not sample a model")),
        }
    }

    async fn elicit(
        &self,
        params: ElicitRequestParams,
        asking: Asking,
    ) -> Result<ElicitResult, ErrorData> {
        match &self.handlers.elicit {
            Some(handler) => handler(params, asking).await.map_err(failed),
            None => Ok(ElicitResult::new(ElicitationAction::Decline)),
        }
    }

    async fn roots(&self, asking: Asking) -> Result<ListRootsResult, ErrorData> {
        match &self.handlers.roots {
            Some(handler) => handler((), asking).await.map(ListRootsResult::new).map_err(failed),
            None => Err(declined("this client has no roots")),
        }
    }
}

fn failed(reason: String) -> ErrorData {
    ErrorData::internal_error(reason, None)
}

fn declined(reason: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None)
}

impl ClientHandler for Client {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.sample(params, self.asking(context.id)).await
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.elicit(request, self.asking(context.id)).await
    }

    async fn list_roots(
        &self,
        context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.roots(self.asking(context.id)).await
    }

    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }
}
