//! A space station in small: a template that lists who is docked, a tool that is offered only while
//! a port is free, and a log that grows by itself.
//!
//! `cargo run --example station -- --http 127.0.0.1:8000`, or `--stdio`.

use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Resource,
    ResourceTemplate, Tool,
};
use tidings_server::{
    AnswerError, Config, Contents, EditError, Exchange, Handle, Hub, ResourceUri, Shelf, Source,
    http, stdio,
};
use tokio_util::sync::CancellationToken;

const PORTS: usize = 3;
const LOG: &str = "station://log";

#[derive(Default)]
struct Station {
    state: Mutex<State>,
    shelf: OnceLock<Shelf>,
    items: OnceLock<(Handle<ResourceTemplate>, Handle<Tool>)>,
}

#[derive(Default)]
struct State {
    docked: Vec<String>,
    log: Vec<String>,
}

impl Station {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the station")
    }

    /// Docks a module, or lets the one that is longest here go.
    fn change(&self, shelf: &Shelf, module: Option<String>) -> Result<(), EditError> {
        let (listed, full) = {
            let mut state = self.lock();
            let line = match module {
                Some(module) if state.docked.len() < PORTS && !state.docked.contains(&module) => {
                    state.docked.push(module.clone());
                    format!("{module} docked")
                }
                _ if state.docked.is_empty() => return Ok(()),
                _ => format!("{} left", state.docked.remove(0)),
            };
            state.log.push(line);
            let listed = state
                .docked
                .iter()
                .map(|name| Resource::new(format!("station://module/{name}"), name.clone()));
            (listed.collect(), state.docked.len() == PORTS)
        };
        if let Some((modules, dock)) = self.items.get() {
            // The list and the tool change together: one notice for each list, if any.
            let mut transaction = shelf.transaction();
            transaction.expand(modules, listed);
            if full {
                transaction.disable(dock);
            } else {
                transaction.enable(dock);
            }
            transaction.commit()?;
        }
        // Who watches hears of it only if what they would read is different now.
        shelf.notify_updated(LOG);
        shelf.notify_matching("station://module/*");
        Ok(())
    }
}

impl Source for Station {
    async fn start(&self, shelf: &Shelf) -> Result<(), EditError> {
        shelf.add(Resource::new(LOG, "log").with_title("Station log"))?;
        let modules = shelf.add(ResourceTemplate::new("station://module/{name}", "module"))?;
        let schema = json!({ "type": "object", "properties": { "module": { "type": "string" } },
            "required": ["module"] });
        let Value::Object(schema) = schema else { return Ok(()) };
        let dock = shelf.add(Tool::new("dock_module", "Docks a module at a free port", schema))?;
        drop((self.shelf.set(shelf.clone()), self.items.set((modules, dock))));
        Ok(())
    }

    async fn run(&self, shelf: Shelf, cancel: CancellationToken) {
        for visitor in 1.. {
            tokio::select! {
                () = cancel.cancelled() => break,
                () = tokio::time::sleep(Duration::from_secs(3)) => {
                    let module = (visitor % 3 != 0).then(|| format!("visitor-{visitor}"));
                    if let Err(error) = self.change(&shelf, module) {
                        eprintln!("the station could not change: {error}");
                    }
                }
            }
        }
    }

    async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        let state = self.lock();
        if uri.as_ref() == LOG {
            return Ok(Contents::text(uri, state.log.join("\n")));
        }
        let name = uri.as_ref().strip_prefix("station://module/").unwrap_or_default();
        let port = state.docked.iter().position(|docked| docked == name);
        let port = port.ok_or_else(|| AnswerError::not_found(uri.as_ref()))?;
        Ok(Contents::json(uri, &json!({ "module": name, "port": port + 1 })))
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        _exchange: &Exchange,
    ) -> Result<CallToolResponse, AnswerError> {
        let arguments = request.arguments.unwrap_or_default();
        let module = arguments.get("module").and_then(Value::as_str);
        let module = module.ok_or_else(|| AnswerError::invalid("module", "", "give a name"))?;
        let free = {
            let state = self.lock();
            state.docked.len() < PORTS && !state.docked.iter().any(|docked| docked == module)
        };
        if !free {
            let text = format!("{module} is here already, or no port is free");
            return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
        }
        let shelf = self.shelf.get().ok_or_else(|| AnswerError::Failed("not started".into()))?;
        self.change(shelf, Some(module.to_owned()))
            .map_err(|error| AnswerError::Failed(error.to_string()))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("{module} docked"))]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::new(Config::new("station", env!("CARGO_PKG_VERSION")));
    hub.add("station", Station::default()).await?;
    let cancel = CancellationToken::new();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--http", address] => {
            let listener = tokio::net::TcpListener::bind(address).await?;
            eprintln!("listening on {}", http::endpoint(listener.local_addr()?));
            http::serve(&hub, listener, http::HttpConfig::default(), cancel).await?;
        }
        ["--stdio"] => stdio::serve(&hub, tokio::io::stdin(), tokio::io::stdout(), cancel).await?,
        _ => return Err("usage: station --http ADDR | --stdio".into()),
    }
    Ok(())
}
