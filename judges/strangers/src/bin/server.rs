//! A live server: a resource that changes, typed tools, a template, a prompt, a tool that comes and
//! goes.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use tidings_server::schemars::{self, JsonSchema};
use tidings_server::{Hub, Json};

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to write down.
    text: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Arc::new(Mutex::new(vec!["first".to_owned()]));
    let hub = Hub::new("notes", "1.0");
    let shelf = hub.source("notes")?;
    let stored = notes.clone();
    let all = shelf.resource("notes://all", "All notes", move || stored.lock().unwrap().join("\n"))?;
    let stored = notes.clone();
    let number = move |number: usize| stored.lock().unwrap().get(number).cloned();
    shelf.template("notes://{number}", "One note", number)?;
    let stored = notes.clone();
    let count = shelf.tool("count", "Counts the notes", move || Json(stored.lock().unwrap().len()))?;
    count.disable()?;
    shelf.prompt("sum_up", "Asks for a summary", |note: Note| format!("Sum up: {}", note.text))?;
    shelf.tool("add", "Adds a note", move |note: Note| {
        if note.text.is_empty() {
            return Err("a note needs a text".to_owned());
        }
        notes.lock().unwrap().push(note.text);
        all.changed();
        count.enable().map_err(|error| error.to_string())?;
        Ok("added")
    })?;
    match std::env::args().nth(1) {
        Some(address) => hub.serve_http(address).await?,
        None => hub.serve_stdio().await?,
    }
    Ok(())
}
