//! What the page asks: the state, rows, items, versions, and windows of values.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::ConsolePage;
use crate::console::archive::Snapshot;
use crate::console::{self, Filter, PAGE, Server, Wanted, tree};
use crate::hosts::{Kind, Surroundings};
use crate::target;

/// The longest that a viewer may wait for a change.
const WAIT: u64 = 25;

/// Why there is no answer, as a person reads it.
pub(super) struct Refused(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

type JsonAnswer = Result<Json<Value>, Refused>;
type QueryWords = Query<HashMap<String, String>>;

pub(super) fn missing(what: &str) -> Refused {
    Refused(StatusCode::NOT_FOUND, format!("there is no such {what}"))
}

pub(super) fn find(page: &ConsolePage, id: u64) -> Result<Arc<Server>, Refused> {
    page.console.server(id).ok_or_else(|| missing("server"))
}

/// The same for what a saved session cannot do.
pub(super) fn live(page: &ConsolePage, id: u64) -> Result<Arc<Server>, Refused> {
    let server = find(page, id)?;
    if server.archive.is_some() {
        let words = "this is a saved session: there is no server to ask";
        return Err(Refused(StatusCode::CONFLICT, words.to_owned()));
    }
    Ok(server)
}

/// The whole session as a file, without secrets.
pub(super) async fn session(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
) -> Result<impl IntoResponse, Refused> {
    let snapshot = Snapshot::of(&*find(&page, id)?);
    let written = tokio::task::spawn_blocking(move || snapshot.written()).await;
    let failed = |_| Refused(StatusCode::INTERNAL_SERVER_ERROR, "it was not written".to_owned());
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], written.map_err(failed)?))
}

/// The things that changed since a cursor.
pub(super) async fn state(
    State(page): State<ConsolePage>,
    axum::Extension(cancel): axum::Extension<CancellationToken>,
    Query(words): Query<Vec<(String, String)>>,
) -> Json<Value> {
    let mut view = Wanted::default();
    let mut wait = 0;
    for (name, value) in words {
        match name.as_str() {
            "since" => view.since = value.parse().unwrap_or(0),
            "see" => view.see.push(value),
            "also" => view.also.push(value),
            "wait" => wait = value.parse().unwrap_or(0).min(WAIT),
            _ => {}
        }
    }
    tokio::select! {
        state = page.console.state(&view, Duration::from_secs(wait)) => Json(state),
        // A viewer that waits must not hold up the end.
        () = cancel.cancelled() => Json(json!({ "rev": view.since, "things": {}, "gone": [] })),
    }
}

/// The table of keys.
pub(super) async fn keys() -> Json<Value> {
    Json(serde_json::to_value(&console::keys::KEYS[..]).unwrap_or_default())
}

/// The servers, parts and items that fit a few letters.
pub(super) async fn find_places(
    State(page): State<ConsolePage>,
    Query(words): QueryWords,
) -> Json<Value> {
    let text = words.get("q").map(String::as_str).unwrap_or_default();
    Json(json!({ "places": page.console.find(text) }))
}

/// The names in the `mcp.json` files, without commands, headers and environment.
pub(super) async fn known(State(page): State<ConsolePage>) -> JsonAnswer {
    let Some(places) = &page.places else {
        return Ok(Json(json!({ "servers": [], "problems": [], "closed": true })));
    };
    let found = target::known(places, &Surroundings::new());
    let found = found.map_err(|error| Refused(StatusCode::BAD_REQUEST, format!("{error:#}")))?;
    let servers = found.entries.iter().map(|entry| {
        let over = match &entry.kind {
            Kind::Http { .. } => "HTTP",
            Kind::Command { .. } => "stdio",
        };
        json!({ "name": entry.name, "file": entry.file, "over": over })
    });
    let (servers, offers) = (servers.collect::<Vec<_>>(), page.console.offers());
    Ok(Json(json!({ "servers": servers, "problems": found.problems, "offers": offers })))
}

/// Older rows of a timeline.
pub(super) async fn log(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Query(words): QueryWords,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let filter = words.get("filter").map(String::as_str).unwrap_or_default();
    let filter = Filter::parse(filter).map_err(|it| Refused(StatusCode::BAD_REQUEST, it))?;
    let before = number(&words, "before").unwrap_or(u64::MAX);
    let rows = server.facts().log.before(&filter, before, PAGE);
    Ok(Json(json!({ "rows": rows })))
}

/// The lanes of a timeline between two times.
pub(super) async fn lanes(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Query(words): QueryWords,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let time = |name: &str| words.get(name).and_then(|it| it.parse::<f64>().ok());
    let (Some(from), Some(to)) = (time("from"), time("to")) else {
        let words = "`from` and `to` are times in milliseconds".to_owned();
        return Err(Refused(StatusCode::BAD_REQUEST, words));
    };
    Ok(Json(server.facts().log.lanes(from, to, SystemTime::now())))
}

/// The steps to a connection, and the one that failed.
pub(super) async fn doctor(State(page): State<ConsolePage>, Path(id): Path<u64>) -> JsonAnswer {
    let server = live(&page, id)?;
    Ok(Json(console::doctor::examine(&server).await.json()))
}

/// One row with its messages, and what it caused.
pub(super) async fn row(
    State(page): State<ConsolePage>,
    Path((id, number)): Path<(u64, u64)>,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let facts = server.facts();
    let row = facts.log.row(number).ok_or_else(|| missing("row"))?;
    let mut json = row.json();
    json["cause"] =
        row.cause.and_then(|it| facts.log.row(it)).map_or(Value::Null, console::Row::json);
    let caused = facts.log.rows().filter(|other| other.cause == Some(number)).take(50);
    json["effects"] = caused.map(console::Row::json).collect();
    let describe = |message: &Option<Arc<tidings_mirror::Message>>| {
        message.as_ref().map(|it| json!({ "bytes": it.length, "cut": it.is_cut() }))
    };
    json["message"] = describe(&row.message).unwrap_or_default();
    json["answer"] = describe(&row.answer).unwrap_or_default();
    Ok(Json(json))
}

/// An item with its form.
pub(super) async fn item(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Query(words): QueryWords,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let list =
        words.get("list").and_then(|name| console::list(name)).ok_or_else(|| missing("list"))?;
    let key = words.get("key").map(String::as_str).unwrap_or_default();
    server.item(list, key).map(Json).ok_or_else(|| missing("item"))
}

/// A version of a resource: its text, or how it differs from another.
pub(super) async fn version(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Query(words): QueryWords,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let uri = words.get("uri").map(String::as_str).unwrap_or_default();
    let facts = server.facts();
    let history = facts.versions.of(uri).ok_or_else(|| missing("resource"))?;
    let version = number(&words, "n").unwrap_or(0);
    let answer = match number(&words, "from") {
        Some(from) => history.difference(from, version).map(|it| json!({ "diff": it })),
        None => history.content(version),
    };
    answer.map(Json).ok_or_else(|| missing("version"))
}

/// The result of a call.
pub(super) async fn result(
    State(page): State<ConsolePage>,
    Path((id, number)): Path<(u64, u64)>,
) -> JsonAnswer {
    find(&page, id)?.result(number).map(Json).ok_or_else(|| missing("call"))
}

/// A window of a value, or the places in it where a word is found.
pub(super) async fn value(
    State(page): State<ConsolePage>,
    Path(id): Path<u64>,
    Query(words): QueryWords,
) -> JsonAnswer {
    let server = find(&page, id)?;
    let of = words.get("of").map(String::as_str).unwrap_or_default();
    let value = server.value(of).ok_or_else(|| missing("value"))?;
    if let Some(word) = words.get("find") {
        return Ok(Json(json!({ "found": tree::find(&value, word) })));
    }
    let at = words.get("at").map(String::as_str).unwrap_or_default();
    let from = number(&words, "from").unwrap_or(0);
    let count = number(&words, "count").unwrap_or(u64::MAX);
    let places = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let window = tree::window(&value, at, places(from), places(count));
    let window = window.ok_or_else(|| missing("place in the value"))?;
    Ok(Json(serde_json::to_value(window).unwrap_or_default()))
}

fn number(words: &HashMap<String, String>, name: &str) -> Option<u64> {
    words.get(name)?.parse().ok()
}
