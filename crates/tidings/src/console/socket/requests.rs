//! Requests of a command to a session: answered by the session's mirror, which stays connected.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidings_mirror::events::{ConnectionState, RequestTag};
use tidings_mirror::{Era, List, Mirror, Relay, RequestError, RequestOptions, Watch, odd};
use tokio::sync::mpsc;

use crate::console::acts::CallWish;
use crate::console::calls::Callable;
use crate::console::server::Server;

/// Who asks, in the timeline.
const CLI: &str = "cli";
/// The command has a timeout of its own, and cancels the request.
const PATIENCE: Duration = Duration::from_hours(24);
/// The revision between a command and the console for a modern server.
const REVISION: &str = "2025-11-25";

/// An answer to a command.
pub(super) enum SessionReply {
    Value(Arc<Value>),
    /// JSON as the server sent it.
    Text(Arc<str>),
    /// The resource is watched for the command as long as this lives.
    Watching(Watch),
}

/// An error as the protocol writes it.
pub(super) type ErrorReply = Value;

/// A request of a command.
pub(super) struct CommandRequest {
    pub(super) method: String,
    pub(super) params: Value,
}

/// The session as one command uses it.
#[derive(Clone)]
pub(super) struct RelayedSession {
    pub(super) server: Arc<Server>,
}

impl RelayedSession {
    /// The mirror, with what the command said about its request.
    fn mirror(&self, params: &Value) -> Mirror {
        self.server.mirror.with(options(params))
    }

    /// Begins a call, which has a tag for its progress. Other requests have none.
    pub(super) fn call(
        &self,
        request: &CommandRequest,
    ) -> Option<(
        Option<RequestTag>,
        impl Future<Output = Result<SessionReply, ErrorReply>> + Send + use<>,
    )> {
        let kind = match request.method.as_str() {
            "tools/call" => Callable::Tool,
            "prompts/get" => Callable::Prompt,
            _ => return None,
        };
        let params = &request.params;
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
        let options = options(params);
        let (begun, work) = self.server.call(CallWish { kind, name, arguments, options });
        Some((
            begun.tag,
            async move { work.await.map(SessionReply::Value).map_err(|it| error(&it)) },
        ))
    }

    /// Answers any other request. `is_watched` says whether the command watches the resource it
    /// reads: then the content that led to its notice is current.
    pub(super) async fn answer(
        self,
        request: CommandRequest,
        is_watched: bool,
    ) -> Result<SessionReply, ErrorReply> {
        let CommandRequest { method, mut params } = request;
        let server = &self.server;
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        let answered = match method.as_str() {
            "initialize" => return self.identity(),
            "ping" => match server.mirror.ping().await {
                Ok(_) | Err(RequestError::NotOffered(_)) => Ok(Value::Object(Map::new())),
                Err(error) => Err(error),
            },
            "resources/read" => {
                let mirror = self.mirror(&params);
                let read = if is_watched {
                    mirror.cached_or_read(&uri).await
                } else {
                    mirror.read_resource(&uri).await
                };
                read.map(|content| content.raw())
            }
            "resources/subscribe" => {
                let watch = server.mirror.watch(&uri).await;
                let failed = |it: tidings_mirror::SubscribeError| refusal(-32602, &it.to_string());
                return watch.map(SessionReply::Watching).map_err(failed);
            }
            "completion/complete" => return self.complete(params).await,
            "logging/setLevel" => {
                let level = serde_json::from_value(params["level"].take());
                let level = level.map_err(|it| refusal(-32602, &it.to_string()))?;
                server.mirror.set_log_level(level).await.map(|()| json!({}))
            }
            _ => match list_of(&method) {
                Some(list) => return self.list(list),
                None => return Err(refusal(-32601, &format!("`{method}` is not known"))),
            },
        };
        answered.map(|it| SessionReply::Value(Arc::new(it))).map_err(|it| error(&it))
    }

    /// The identity of the server.
    fn identity(&self) -> Result<SessionReply, ErrorReply> {
        let mirror = &self.server.mirror;
        let Some(server) = mirror.server() else {
            let why = format!("not connected: {}", mirror.connection());
            return Err(refusal(-32603, &why));
        };
        let mut capabilities = serde_json::to_value(&server.capabilities).unwrap_or_default();
        if let Some(resources) = capabilities.get_mut("resources") {
            resources["subscribe"] = mirror.supports_subscriptions().into();
        }
        let version = match server.era {
            Era::Legacy => server.version.as_str(),
            _ => REVISION,
        };
        let mut identity = json!({ "protocolVersion": version, "capabilities": capabilities });
        let unnamed = || json!({ "name": self.server.name, "version": "" });
        let known = server.identity.as_ref().and_then(|it| serde_json::to_value(it).ok());
        identity["serverInfo"] = known.unwrap_or_else(unnamed);
        if let Some(instructions) = &server.instructions {
            identity["instructions"] = instructions.as_str().into();
        }
        Ok(SessionReply::Value(Arc::new(identity)))
    }

    /// A list as it is, with the items that violate the protocol. Nothing is asked of the server.
    fn list(&self, list: List) -> Result<SessionReply, ErrorReply> {
        let mirror = &self.server.mirror;
        if mirror.connection() != ConnectionState::Ready {
            return Err(refusal(-32603, &format!("not connected: {}", mirror.connection())));
        }
        if !mirror.has_list(list) {
            return Err(refusal(-32601, &format!("the server offers no {list}")));
        }
        if let Some(failed) = mirror.list_error(list) {
            return Err(error(&failed));
        }
        let (name, mut items) = match list {
            List::Tools => ("tools", mirror.tools().iter().map(|it| it.raw()).collect()),
            List::Resources => {
                ("resources", mirror.resources().iter().map(|it| it.raw()).collect())
            }
            List::Templates => {
                ("resourceTemplates", mirror.templates().iter().map(|it| it.raw()).collect())
            }
            List::Prompts => ("prompts", mirror.prompts().iter().map(|it| it.raw()).collect()),
        };
        odd::put_back(&mut items, &mirror.odd(list));
        Ok(SessionReply::Value(Arc::new(json!({ name: items }))))
    }

    async fn complete(&self, params: Value) -> Result<SessionReply, ErrorReply> {
        let mirror = self.mirror(&params);
        let params = serde_json::from_value(params);
        let params = params.map_err(|it| refusal(-32602, &it.to_string()))?;
        // Nobody hears of progress here.
        let (hears, _) = mpsc::channel(1);
        let answered = mirror.relay_for_nobody(Relay::Complete(params), hears).await;
        answered.map(SessionReply::Text).map_err(|failed| {
            let sent = failed.raw.and_then(|raw| serde_json::from_str(&raw).ok());
            sent.unwrap_or_else(|| error(&failed.error))
        })
    }
}

/// The command's own `_meta`, without what is about its connection.
fn options(params: &Value) -> RequestOptions {
    let given = params["_meta"].as_object().cloned().unwrap_or_default();
    let own = given.into_iter().filter(|(key, _)| key != "progressToken");
    let options = RequestOptions::new().by(CLI).timeout(PATIENCE).unlisted_templates();
    own.fold(options, |options, (key, value)| options.meta(key, value))
}

fn list_of(method: &str) -> Option<List> {
    Some(match method {
        "tools/list" => List::Tools,
        "resources/list" => List::Resources,
        "resources/templates/list" => List::Templates,
        "prompts/list" => List::Prompts,
        _ => return None,
    })
}

fn error(error: &RequestError) -> ErrorReply {
    let refused = error.refusal().and_then(|it| serde_json::to_value(it).ok());
    refused.unwrap_or_else(|| refusal(-32603, &error.to_string()))
}

fn refusal(code: i32, message: &str) -> ErrorReply {
    json!({ "code": code, "message": message })
}
