//! A whole live server in forty lines: one number, one tool that changes it, every client current.
//!
//! `cargo run --example counter -- --http 127.0.0.1:8000`, or `--stdio`.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tidings_server::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use tidings_server::model::{ContentBlock, Resource, Tool};
use tidings_server::{AnswerError, Config, Contents, EditError, Exchange, Fingerprint};
use tidings_server::{Hub, Merging, ResourceUri, Shelf, Source, http, stdio};
use tokio_util::sync::CancellationToken;

const COUNTER: &str = "bench://counter";

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Source for Counter {
    async fn start(&self, shelf: &Shelf) -> Result<(), EditError> {
        let schema = json!({ "type": "object", "properties": {
            "uri": { "type": "string", "description": "what to announce; the counter by default" },
            "n": { "type": "integer", "minimum": 1, "description": "how often; once by default" },
        }});
        let Value::Object(schema) = schema else { return Ok(()) };
        shelf.add(Resource::new(COUNTER, "counter"))?;
        shelf.add(Tool::new("bump", "Changes the counter n times", schema))?;
        Ok(())
    }

    async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(Contents::text(uri, self.0.load(Ordering::SeqCst).to_string()))
    }

    fn version(&self, _uri: &ResourceUri) -> Option<Fingerprint> {
        Some(Fingerprint::of_bytes(&self.0.load(Ordering::SeqCst).to_le_bytes()))
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        exchange: &Exchange,
    ) -> Result<CallToolResponse, AnswerError> {
        let arguments = request.arguments.unwrap_or_default();
        let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or(COUNTER);
        for _ in 0..arguments.get("n").and_then(Value::as_u64).unwrap_or(1) {
            self.0.fetch_add(1, Ordering::SeqCst);
            exchange.notify_updated(uri);
            tokio::task::yield_now().await;
        }
        let now = self.0.load(Ordering::SeqCst).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(now)]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::new("counter", env!("CARGO_PKG_VERSION"));
    config.merging = Merging::off();
    let hub = Hub::new(config);
    hub.add("counter", Counter::default()).await?;
    let cancel = CancellationToken::new();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--http", address] => {
            let listener = tokio::net::TcpListener::bind(address).await?;
            eprintln!("listening on {}", http::endpoint(listener.local_addr()?));
            http::serve(&hub, listener, http::HttpConfig::default(), cancel).await?;
        }
        ["--stdio"] => stdio::serve(&hub, tokio::io::stdin(), tokio::io::stdout(), cancel).await?,
        _ => return Err("usage: counter --http ADDR | --stdio".into()),
    }
    Ok(())
}
