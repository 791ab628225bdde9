//! What the page does: adds servers by URL or name, reads, watches, calls, answers.
//!
//! It cannot start a command: a command line comes from a terminal only.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_mirror::List;

use super::ConsolePage;
use super::api::{Refused, find, live, missing};
use crate::args::Place;
use crate::console::cache;
use crate::console::calls::Callable;
use crate::console::socket::HandedServer;
use crate::console::{self, AnswerError};

type JsonAnswer = Result<Json<Value>, Refused>;

fn bad(error: impl std::fmt::Display) -> Refused {
    Refused(StatusCode::BAD_REQUEST, format!("{error:#}"))
}

#[derive(Deserialize)]
pub(super) struct Add {
    target: String,
}

/// Adds a server: a URL, or a name from an `mcp.json`.
pub(super) async fn add(State(page): State<ConsolePage>, Json(add): Json<Add>) -> JsonAnswer {
    let places = page.places.as_deref().ok_or_else(one_hub)?;
    let place = Place::Named(add.target.trim().to_owned());
    // The token of the environment is for the servers of the command line.
    let server = HandedServer::plain(place, places).map_err(bad)?;
    let file = |_| bad("a saved session is opened from a terminal: `tidings open FILE`");
    let target = server.target().map_err(file)?;
    let name = console::short_name(&server.place);
    let id = page.console.add(&name, server.place.clone(), target, server.config());
    let id = id.ok_or_else(|| bad("there are too many servers: remove one first"))?;
    if let Some(added) = page.console.server(id) {
        added.facts().kept = server.kept(&added.place);
    }
    Ok(Json(json!({ "id": id })))
}

/// The page beside an endpoint shows its hub and nothing else.
fn one_hub() -> Refused {
    let words = "this page shows one hub; `tidings open` shows other servers";
    Refused(StatusCode::FORBIDDEN, words.to_owned())
}

pub(super) async fn remove(State(page): State<ConsolePage>, Path(id): Path<u64>) -> JsonAnswer {
    if page.places.is_none() {
        return Err(one_hub());
    }
    if page.console.remove(id).await { Ok(Json(json!({}))) } else { Err(missing("server")) }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Act {
    uri: String,
    list: String,
}

/// One of the acts without a result of their own.
pub(super) async fn act(
    State(page): State<ConsolePage>,
    Path((id, act)): Path<(u64, String)>,
    Json(words): Json<Act>,
) -> JsonAnswer {
    let server = live(&page, id)?;
    match act.as_str() {
        "connect" => server.mirror.reconnect_now().await.map_err(bad)?,
        "disconnect" => server.mirror.disconnect().await,
        "refresh" => match console::list(&words.list) {
            Some(list) => server.mirror.refresh(&[list]).await.map_err(bad)?,
            None => server.mirror.refresh(&List::ALL).await.map_err(bad)?,
        },
        "read" => server.read(&words.uri).await.map_err(bad)?,
        "watch" => server.watch(&words.uri).await.map_err(bad)?,
        "unwatch" => server.unwatch(&words.uri).await.map_err(bad)?,
        _ => return Err(missing("act")),
    }
    Ok(Json(json!({})))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToClear {
    kind: String,
    key: String,
}

/// Clears one entry of a cache, or all.
pub(super) async fn clear(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Json(it): Json<ToClear>,
) -> JsonAnswer {
    let server = live(&page, id)?;
    if cache::clear(server.mirror.cache(), &it.kind, &it.key) {
        Ok(Json(json!({})))
    } else {
        Err(missing("kind of entry"))
    }
}

#[derive(Deserialize)]
pub(super) struct Filled {
    list: String,
    key: String,
    #[serde(default)]
    values: Map<String, Value>,
    /// The values as JSON that a person wrote.
    text: Option<String>,
}

/// Checks what was filled in.
pub(super) async fn form(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Json(filled): Json<Filled>,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let list = console::list(&filled.list).ok_or_else(|| missing("list"))?;
    let values = match &filled.text {
        Some(text) => match serde_json::from_str(text) {
            Ok(values) => values,
            Err(error) => {
                let problem = json!({ "at": "", "text": error.to_string() });
                return Ok(Json(json!({ "problems": [problem], "command": null, "values": null })));
            }
        },
        None => filled.values,
    };
    let mut checked = server.checked(list, &filled.key, &values);
    checked["values"] = values.into();
    Ok(Json(checked))
}

#[derive(Deserialize)]
pub(super) struct ToComplete {
    list: String,
    key: String,
    argument: String,
    value: String,
    #[serde(default)]
    given: BTreeMap<String, String>,
}

pub(super) async fn complete(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Json(it): Json<ToComplete>,
) -> JsonAnswer {
    let server = live(&page, id)?;
    let list = console::list(&it.list).ok_or_else(|| missing("list"))?;
    let asked = (it.argument.as_str(), it.value.as_str());
    server.complete(list, &it.key, asked, it.given).await.map(Json).map_err(bad)
}

/// Begins a call.
pub(super) async fn call(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Json(filled): Json<Filled>,
) -> Result<(StatusCode, Json<Value>), Refused> {
    let server = live(&page, id)?;
    let kind = match console::list(&filled.list) {
        Some(List::Tools) => Callable::Tool,
        Some(List::Prompts) => Callable::Prompt,
        Some(List::Templates) => Callable::Template,
        _ => return Err(missing("list")),
    };
    let number = page.console.call(&server, kind, &filled.key, filled.values);
    Ok((StatusCode::ACCEPTED, Json(json!({ "call": number }))))
}

pub(super) async fn cancel(
    State(page): State<ConsolePage>,
    Path((id, number)): Path<(u64, u64)>,
) -> JsonAnswer {
    let server = find(&page, id)?;
    if server.cancel(number) { Ok(Json(json!({}))) } else { Err(missing("call under way")) }
}

/// Ends a rule for the answers to a server.
pub(super) async fn end_rule(
    State(page): State<ConsolePage>,
    Path((server, kind)): Path<(u64, String)>,
) -> JsonAnswer {
    if page.console.end_rule(server, &kind) { Ok(Json(json!({}))) } else { Err(missing("rule")) }
}

/// Answers a question of a server.
pub(super) async fn answer(
    State(page): State<ConsolePage>,
    Path(number): Path<u64>,
    Json(answer): Json<Value>,
) -> JsonAnswer {
    match page.console.answer(number, &answer) {
        Ok(()) => Ok(Json(json!({}))),
        Err(AnswerError::Unknown) => Err(missing("question")),
        Err(error @ AnswerError::Closed) => Err(Refused(StatusCode::CONFLICT, error.to_string())),
        Err(error) => Err(bad(error)),
    }
}
