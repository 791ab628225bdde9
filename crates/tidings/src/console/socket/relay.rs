//! A session of the console as an MCP server for one command: requests go to the session's mirror,
//! and its changes become notices.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tidings_mirror::events::RequestTag;
use tidings_mirror::{Event, Events, Watch};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::{AbortHandle, JoinSet};

use super::requests::{CommandRequest, ErrorReply, RelayedSession, SessionReply};
use crate::console::server::Server;

/// Requests of one command at once. Further ones are refused.
const REQUESTS: usize = 256;

/// One command and its session.
struct Relayed {
    session: RelayedSession,
    output: OwnedWriteHalf,
    /// The requests under way. Dropping them cancels them at the server.
    answers: JoinSet<(Value, Result<SessionReply, ErrorReply>)>,
    running: HashMap<String, AbortHandle>,
    /// What the command watches. Dropping it ends the watch, unless others watch it too.
    watched: HashMap<String, Watch>,
    /// The progress tokens of the command's calls.
    tokens: HashMap<RequestTag, Value>,
    is_ready: bool,
    wants_log: bool,
}

/// Relays until the command or the session ends.
pub(super) async fn relay(
    server: Arc<Server>,
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
) {
    let mut events = server.mirror.events();
    let mut relayed = Relayed {
        session: RelayedSession { server },
        output,
        answers: JoinSet::new(),
        running: HashMap::new(),
        watched: HashMap::new(),
        tokens: HashMap::new(),
        is_ready: false,
        wants_log: false,
    };
    let mut lines = input.lines();
    loop {
        let is_heard = tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => relayed.take(&line).await,
                _ => break,
            },
            Some(ended) = relayed.answers.join_next() => match ended {
                // Order: the progress of a call is sent before its result.
                Ok((id, reply)) => {
                    relayed.drain(&mut events).await.is_ok()
                        && relayed.answer(&id, reply).await.is_ok()
                }
                // It was cancelled: no answer is wanted.
                Err(_) => true,
            },
            event = events.next() => match event {
                Some(event) => relayed.hear(&event).await.is_ok(),
                None => break,
            },
        };
        if !is_heard {
            break;
        }
    }
}

impl Relayed {
    /// Takes one message of the command. Returns whether it can be answered.
    async fn take(&mut self, line: &str) -> bool {
        let Ok(mut message) = serde_json::from_str::<Value>(line) else { return false };
        let (id, params) = (message["id"].take(), message["params"].take());
        let Some(method) = message["method"].as_str() else { return true };
        if id.is_null() {
            match method {
                "notifications/initialized" => self.is_ready = true,
                "notifications/cancelled" => {
                    if let Some(task) = self.running.remove(&params["requestId"].to_string()) {
                        task.abort();
                    }
                }
                _ => {}
            }
            return true;
        }
        if self.answers.len() >= REQUESTS {
            let busy = json!({ "code": -32603, "message": "too many requests at once" });
            return self.answer(&id, Err(busy)).await.is_ok();
        }
        if method == "resources/unsubscribe" {
            self.watched.remove(params["uri"].as_str().unwrap_or_default());
            return self.answer(&id, Ok(SessionReply::Value(Arc::new(json!({}))))).await.is_ok();
        }
        self.wants_log |= method == "logging/setLevel";
        let request = CommandRequest { method: method.to_owned(), params };
        self.begin(id, request);
        true
    }

    fn begin(&mut self, id: Value, request: CommandRequest) {
        let key = id.to_string();
        let task = if let Some((tag, work)) = self.session.call(&request) {
            let token = request.params.pointer("/_meta/progressToken");
            if let (Some(tag), Some(token)) = (tag, token) {
                self.tokens.insert(tag, token.clone());
            }
            self.answers.spawn(async move { (id, work.await) })
        } else {
            let uri = request.params["uri"].as_str().unwrap_or_default();
            let is_watched = self.watched.contains_key(uri);
            let work = self.session.clone().answer(request, is_watched);
            self.answers.spawn(async move { (id, work.await) })
        };
        self.running.insert(key, task);
    }

    async fn answer(
        &mut self,
        id: &Value,
        reply: Result<SessionReply, ErrorReply>,
    ) -> std::io::Result<()> {
        self.running.remove(&id.to_string());
        if self.running.is_empty() {
            self.tokens.clear();
        }
        let line = match reply {
            Ok(SessionReply::Value(result)) => {
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
            }
            Ok(SessionReply::Text(text)) => {
                // Line ends inside strings are escaped, so all others are white space.
                let text = text.replace(['\n', '\r'], " ");
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{text}}}\n")
            }
            Ok(SessionReply::Watching(watch)) => {
                self.watched.insert(watch.uri().to_owned(), watch);
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")
            }
            Err(error) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n"),
        };
        self.output.write_all(line.as_bytes()).await
    }

    /// Sends what happened so far.
    async fn drain(&mut self, events: &mut Events) -> std::io::Result<()> {
        while let Some(event) = events.try_next() {
            self.hear(&event).await?;
        }
        Ok(())
    }

    /// Sends the notice of an event, if the command wants it.
    async fn hear(&mut self, event: &Event) -> std::io::Result<()> {
        if !self.is_ready {
            return Ok(());
        }
        match event {
            Event::ToolsChanged(change) if change.error.is_none() => {
                self.notify("tools/list_changed", &json!({})).await
            }
            Event::ResourcesChanged(_) | Event::TemplatesChanged(_) => {
                self.notify("resources/list_changed", &json!({})).await
            }
            Event::PromptsChanged(change) if change.error.is_none() => {
                self.notify("prompts/list_changed", &json!({})).await
            }
            Event::ResourceContentChanged { uri, .. } | Event::ResourceGone { uri, .. }
                if self.watched.contains_key(&**uri) =>
            {
                self.notify("resources/updated", &json!({ "uri": uri })).await
            }
            Event::Progress(progress) => {
                let token = progress.request.and_then(|tag| self.tokens.get(&tag)).cloned();
                let Some(token) = token else { return Ok(()) };
                let (done, total, message) = (progress.progress, progress.total, &progress.message);
                let params = json!({ "progressToken": token, "progress": done, "total": total,
                    "message": message });
                self.notify("progress", &without_nulls(params)).await
            }
            Event::Log { level, logger, data } if self.wants_log => {
                let params = json!({ "level": level, "logger": logger, "data": data });
                self.notify("message", &without_nulls(params)).await
            }
            Event::Lagged { .. } => self.notify_all().await,
            _ => Ok(()),
        }
    }

    /// Something was missed: everything may have changed.
    async fn notify_all(&mut self) -> std::io::Result<()> {
        for kind in ["tools", "resources", "prompts"] {
            self.notify(&format!("{kind}/list_changed"), &json!({})).await?;
        }
        let uris: Vec<_> = self.watched.keys().cloned().collect();
        for uri in uris {
            self.notify("resources/updated", &json!({ "uri": uri })).await?;
        }
        Ok(())
    }

    async fn notify(&mut self, method: &str, params: &Value) -> std::io::Result<()> {
        let method = format!("notifications/{method}");
        let notice = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.output.write_all(format!("{notice}\n").as_bytes()).await
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
