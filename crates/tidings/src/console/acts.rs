//! What a viewer can do with a server: read, watch, call, connect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};
use tidings_core::Template;
use tidings_mirror::events::RequestTag;
use tidings_mirror::{List, Reference, RequestError, RequestOptions, SubscribeError};

use crate::console::calls::{CallRecord, Callable, Outcome};
use crate::console::log::{Lane, Way};
use crate::console::server::{SERVERS, Server};
use crate::console::{difference, form, markdown};

/// The result of a call as it was sent.
type CallResult = Result<Arc<Value>, RequestError>;

/// A call to make.
pub(crate) struct CallWish {
    pub(crate) kind: Callable,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) options: RequestOptions,
}

/// A call that began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallStart {
    pub(crate) number: u64,
    /// For its progress, if it is a tool's.
    pub(crate) tag: Option<RequestTag>,
}

/// A call under way. If its work is dropped, it is cancelled.
struct RunningCall {
    server: Arc<Server>,
    number: u64,
    key: String,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.server.facts().calls.abandon(self.number);
        self.server.revisions.touch(&[&self.key, SERVERS]);
    }
}

/// How long after a call its effects are counted.
const AFTER: Duration = Duration::from_millis(500);

impl Server {
    /// Reads a resource again.
    pub(crate) async fn read(&self, uri: &str) -> Result<(), RequestError> {
        self.mirror.read_resource(uri).await.map(drop)
    }

    /// Watches a resource, and reads it.
    pub(crate) async fn watch(&self, uri: &str) -> Result<(), SubscribeError> {
        let watched = match self.mirror.subscribe([uri]).await {
            Ok(()) => self.mirror.cached_or_read(uri).await.map(drop).map_err(Into::into),
            Err(error) => Err(error),
        };
        if let Err(error) = &watched {
            self.facts().versions.refuse(uri, &error.to_string());
        }
        self.revisions.touch(&[&self.keys.watched, &self.keys.resource(uri), SERVERS]);
        watched
    }

    /// Stops watching a resource, and drops its versions.
    pub(crate) async fn unwatch(&self, uri: &str) -> Result<(), RequestError> {
        let ended = self.mirror.unsubscribe([uri]).await;
        if !self.mirror.is_subscribed(uri) {
            self.facts().versions.forget(uri);
        }
        self.revisions.touch(&[&self.keys.watched, &self.keys.resource(uri), SERVERS]);
        ended
    }

    /// An item: its definition, its form, and how its definition changed.
    pub(crate) fn item(&self, list: List, key: &str) -> Option<Value> {
        let facts = self.facts();
        let (raw, before) = facts.lists.raw(list, key)?;
        let changed = before.map(|before| {
            let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
            difference::between(&text(before), &text(&raw))
        });
        let fields = match list {
            List::Tools => raw["inputSchema"].as_object().map(form::fields),
            List::Prompts => {
                let prompt = facts.lists.prompts.find(key);
                prompt.map(|it| form::arguments(it.arguments.as_deref().unwrap_or_default()))
            }
            List::Templates => {
                let template = Template::parse(key).ok();
                template.map(|template| form::variables(template.variables()))
            }
            List::Resources => None,
        };
        let about = raw["description"].as_str().map(markdown::nodes);
        Some(
            json!({ "key": key, "raw": raw, "about": about, "changed": changed, "fields": fields }),
        )
    }

    /// The problems of values, and the command line that sends them.
    pub(crate) fn checked(&self, list: List, key: &str, values: &Map<String, Value>) -> Value {
        let schema = match list {
            List::Tools => {
                self.facts().lists.raw(list, key).map(|(raw, _)| raw["inputSchema"].clone())
            }
            _ => None,
        };
        let given = Value::Object(values.clone());
        let problems = schema.map_or(json!([]), |schema| form::problems(&schema, &given));
        let command = match list {
            List::Tools => "call",
            List::Prompts => "prompt",
            List::Templates | List::Resources => "read",
        };
        json!({ "problems": problems, "command": form::line(&self.place, command, key, values) })
    }

    /// Begins a call. The work makes it, and returns its result as it was sent.
    pub(crate) fn call(
        self: &Arc<Self>,
        wish: CallWish,
    ) -> (CallStart, impl Future<Output = CallResult> + Send + use<>) {
        let CallWish { kind, name, arguments, options } = wish;
        let tag = (kind == Callable::Tool).then(|| self.mirror.tag());
        let by = options.by.clone();
        let number = self.facts().calls.begin(kind, &name, arguments.clone(), (tag, by));
        let key = self.keys.calls_of(&name);
        self.revisions.touch(&[&key]);
        let running = RunningCall { server: self.clone(), number, key };
        let work = async move {
            let mirror = running.server.mirror.with(options);
            let began = Instant::now();
            let result = match (kind, tag) {
                (Callable::Tool, Some(tag)) => {
                    let called = mirror.call_tool_tagged(tag, &name, arguments).await;
                    called.map(|outcome| (outcome.is_success(), outcome.raw()))
                }
                (Callable::Prompt, _) => {
                    let filled = mirror.get_prompt(&name, texts(arguments)).await;
                    filled.map(|content| (true, content.raw()))
                }
                _ => {
                    let read = mirror.read_from_template(&name, texts(arguments)).await;
                    read.map(|content| (true, content.content.raw()))
                }
            };
            let result = result.map(|(is_success, result)| (is_success, Arc::new(result)));
            let outcome = match &result {
                Ok((is_success, result)) => done(*is_success, result.clone(), began.elapsed()),
                Err(error) => Outcome::Failed { why: error.to_string(), took: began.elapsed() },
            };
            running.server.facts().calls.end(running.number, outcome);
            result.map(|(_, result)| result)
        };
        (CallStart { number, tag }, work)
    }

    /// Cancels a call.
    pub(crate) fn cancel(&self, number: u64) -> bool {
        let mut facts = self.facts();
        let is_cancelled = facts.calls.cancel(number);
        let name = facts.calls.run(number).map(|run| run.name.clone());
        drop(facts);
        if let Some(name) = name.filter(|_| is_cancelled) {
            self.revisions.touch(&[&self.keys.calls_of(&name)]);
        }
        is_cancelled
    }

    /// The result of a call, how it differs from the one before, and what it set off.
    pub(crate) fn result(&self, number: u64) -> Option<Value> {
        let facts = self.facts();
        let run = facts.calls.run(number)?;
        let mut json = run.json();
        json["changed"] = serde_json::to_value(facts.calls.changed(number)).unwrap_or_default();
        let after = |row: &&crate::console::log::Row| is_effect(run, row.at);
        let rows: Vec<_> = facts.log.rows().rev().take_while(|row| row.at >= run.at).collect();
        let rows = rows.into_iter().rev().filter(after);
        let is_told = |row: &&crate::console::log::Row| {
            matches!(row.lane, Lane::Notices | Lane::Changes | Lane::Asked)
                || (row.lane == Lane::Reads && row.way == Way::Sent)
        };
        json["effects"] =
            rows.filter(is_told).take(50).map(crate::console::log::Row::json).collect();
        Some(json)
    }

    /// Possible values of a prompt's argument or a template's variable.
    pub(crate) async fn complete(
        &self,
        list: List,
        key: &str,
        (argument, value): (&str, &str),
        given: BTreeMap<String, String>,
    ) -> Result<Value, RequestError> {
        let reference = match list {
            List::Templates => Reference::Template(key.to_owned()),
            _ => Reference::Prompt(key.to_owned()),
        };
        let completion = self.mirror.complete(reference, argument, value, given).await?;
        Ok(json!({ "values": completion.values, "more": completion.has_more }))
    }
}

fn is_effect(run: &CallRecord, at: SystemTime) -> bool {
    let end = run.ended().and_then(|end| end.checked_add(AFTER));
    at >= run.at && end.is_none_or(|end| at <= end)
}

fn done(is_success: bool, result: Arc<Value>, took: Duration) -> Outcome {
    let bytes = result.to_string().len();
    Outcome::Done { is_success, result, bytes, took }
}

/// Arguments of prompts and templates are texts.
fn texts(arguments: Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    arguments.into_iter().map(|(name, value)| (name, text(value))).collect()
}
