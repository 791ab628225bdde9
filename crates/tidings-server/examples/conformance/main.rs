//! The server that the MCP conformance suite and other external tests run against.
//!
//! `cargo run --example conformance -- --http 127.0.0.1:8000`, or `--stdio`. It offers the items
//! that the suite requires. The tools of `live.rs` make changes, so that a test can count the
//! notices.

mod ask;
mod live;
mod plain;
mod prompts;
mod resources;
mod rounds;

use serde_json::{Value, json};
use tidings_server::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use tidings_server::model::{ContentBlock, GetPromptRequestParams, GetPromptResponse};
use tidings_server::model::{JsonObject, Tool};
use tidings_server::{Answer, AnswerError, Contents, Context, EditError, Fingerprint, Hub};
use tidings_server::{ResourceUri, Shelf, Source, http};
use tokio_util::sync::CancellationToken;

use crate::live::Live;
use crate::rounds::Rounds;

/// An image of one red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// The items of the suite.
struct Fixtures {
    live: Live,
    rounds: Rounds,
}

impl Fixtures {
    fn new(shelf: Shelf) -> Result<Self, EditError> {
        plain::offer(&shelf)?;
        ask::offer(&shelf)?;
        rounds::offer(&shelf)?;
        prompts::offer(&shelf)?;
        resources::offer(&shelf)?;
        Ok(Self { live: Live::new(shelf)?, rounds: Rounds::new() })
    }
}

impl Source for Fixtures {
    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        match self.live.read(uri) {
            Some(contents) => Ok(contents),
            None => resources::read(uri),
        }
    }

    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        self.live.version(uri)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let name = request.name.as_ref();
        let response = if Live::knows(name) {
            self.live.call(&request).await
        } else if Rounds::knows(name) {
            self.rounds.call(&request, context)
        } else if ask::knows(name) {
            ask::call(&request, context).await
        } else {
            plain::call(&request, context).await
        };
        Ok(response?.into())
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        Ok(prompts::get(&request, context)?.into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::new("tidings-conformance", env!("CARGO_PKG_VERSION"));
    hub.add("conformance", Fixtures::new).await?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--http", address] => {
            let listener = tokio::net::TcpListener::bind(address).await?;
            eprintln!("listening on {}", http::endpoint(listener.local_addr()?));
            let cancel = CancellationToken::new();
            http::serve(&hub, listener, http::HttpConfig::default(), cancel).await?;
        }
        ["--stdio"] => hub.serve_stdio().await?,
        _ => return Err("usage: conformance --http ADDR | --stdio".into()),
    }
    Ok(())
}

/// A tool with these properties, some of them required.
fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Tool {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Tool::new(name.to_owned(), description.to_owned(), object(schema))
}

/// A tool without arguments.
fn bare(name: &str, description: &str) -> Tool {
    tool(name, description, &json!({}), &[])
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).expect("every schema here is an object")
}

/// A result with one text.
fn say(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// A required text argument.
fn text_argument(arguments: Option<&JsonObject>, name: &str) -> Result<String, AnswerError> {
    match arguments.and_then(|arguments| arguments.get(name)) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(AnswerError::invalid(name, other.to_string(), "it must be a text")),
        None => Err(AnswerError::invalid(name, "", "it is required")),
    }
}
