//! A session as lines of JSON.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use tidings_mirror::{Direction, List, Message};

use super::{FORMAT, SessionSecrets, VERSION};
use crate::console::calls::Calls;
use crate::console::items::MarkedLists;
use crate::console::log::{Row, millis};
use crate::console::server::{Server, era};
use crate::console::versions::Versions;

/// Everything of one server at one moment. It shares the contents with the server, so it is made at
/// once and written without delaying anyone.
pub(crate) struct Snapshot {
    head: Value,
    items: Vec<(List, Value)>,
    versions: Versions,
    rows: Vec<Row>,
    calls: Calls,
    notes: Vec<(&'static str, f64, String)>,
    stderr: Vec<String>,
    secrets: SessionSecrets,
}

impl Snapshot {
    pub(crate) fn of(server: &Server) -> Self {
        let stderr = server.stderr();
        let facts = server.facts();
        let identity = facts.identity.as_ref();
        let head = json!({
            FORMAT: VERSION, "saved": millis(SystemTime::now()), "name": server.name,
            "place": server.place, "over": server.over,
            "product": identity.and_then(|it| it.identity.as_ref()),
            "revision": identity.map(|it| it.version.as_str()),
            "era": identity.map(|it| era(it.era)),
            "capabilities": identity.map(|it| &it.capabilities),
            "instructions": identity.and_then(|it| it.instructions.as_ref()),
            "missed": facts.log.missed(),
        });
        let warnings = facts.warnings.iter().map(|(at, text)| ("warning", *at, text.clone()));
        let losses = facts.losses.iter().map(|(at, why)| ("loss", *at, why.to_string()));
        let notes = warnings.chain(losses).map(|(kind, at, text)| (kind, millis(at), text));
        Self {
            head,
            items: items(&facts.lists),
            versions: facts.versions.clone(),
            rows: facts.log.rows().cloned().collect(),
            calls: facts.calls.clone(),
            notes: notes.collect(),
            stderr,
            secrets: facts.secrets.clone(),
        }
    }

    /// The file.
    pub(crate) fn written(&self) -> Vec<u8> {
        let mut lines = Lines { text: Vec::new(), count: 0, secrets: &self.secrets };
        lines.add(&self.head);
        for (list, item) in &self.items {
            lines.add(&json!({ "item": item, "list": list.as_str() }));
        }
        for line in self.versions.saved() {
            lines.add(&line);
        }
        for row in &self.rows {
            lines.add(&written(row, &self.secrets));
        }
        for line in self.calls.saved() {
            lines.add(&line);
        }
        for (kind, at, text) in &self.notes {
            lines.add(&json!({ "note": kind, "at": at, "text": text }));
        }
        for line in &self.stderr {
            lines.add(&json!({ "stderr": line }));
        }
        let end = json!({ "end": lines.count + 1 });
        lines.add(&end);
        lines.text
    }
}

struct Lines<'a> {
    text: Vec<u8>,
    count: usize,
    secrets: &'a SessionSecrets,
}

impl Lines<'_> {
    fn add(&mut self, line: &Value) {
        // Writing to memory cannot fail.
        drop(serde_json::to_writer(&mut self.text, &self.secrets.value(line)));
        self.text.push(b'\n');
        self.count += 1;
    }
}

fn items(lists: &MarkedLists) -> Vec<(List, Value)> {
    let all = |list| lists.all(list).into_iter().map(move |item| (list, item));
    List::ALL.into_iter().flat_map(all).collect()
}

/// A row with its messages, as far as they are whole.
fn written(row: &Row, secrets: &SessionSecrets) -> Value {
    let mut json = row.json();
    let message = |message: &Arc<Message>| {
        let is_sent = message.direction == Direction::Sent;
        let mut json =
            json!({ "at": millis(message.at), "sent": is_sent, "bytes": message.length });
        match message.json() {
            Some(body) => json["body"] = secrets.value(&body),
            None => json["cut"] = true.into(),
        }
        json
    };
    json["row"] = json["n"].take();
    if let Some(it) = &row.message {
        json["message"] = message(it);
    }
    if let Some(it) = &row.answer {
        json["answer"] = message(it);
    }
    json
}
