//! A small space station: a template that lists the docked modules, a log that grows by itself, and a
//! tool that is offered to commanders alone, and only while a port is free. The tool `login` makes a
//! session a commander's.
//!
//! `cargo run --example station -- --http 127.0.0.1:8000`, or `--stdio`.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use tidings_server::model::{Resource, ResourceTemplate, Tool};
use tidings_server::schemars::JsonSchema;
use tidings_server::{Context, EditError, Handle, Hub, Json, Offer, Shelf, Source};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

const PORTS: usize = 3;

#[derive(Default)]
struct State {
    docked: Vec<String>,
    log: Vec<String>,
    /// A module docked by the tool.
    wake: Arc<Notify>,
}

#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "tidings_server::schemars")]
struct Dock {
    /// The module to dock.
    module: String,
}

#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "tidings_server::schemars")]
struct Login {
    /// The code of the day: the number of ports.
    code: usize,
}

/// The label of those who may dock modules.
const COMMANDER: &str = "role:commander";

/// The station, and its handles.
struct Station {
    state: Arc<Mutex<State>>,
    shelf: Shelf,
    log: Handle<Resource>,
    modules: Handle<ResourceTemplate>,
    dock: Handle<Tool>,
}

impl Station {
    /// Adds the station to its shelf.
    fn new(shelf: Shelf) -> Result<Self, EditError> {
        let state = Arc::<Mutex<State>>::default();
        let shown = state.clone();
        let log = shelf.resource("station://log", "log", move || lock(&shown).log.join("\n"))?;
        let shown = state.clone();
        let module = move |name: String| {
            let port = lock(&shown).docked.iter().position(|docked| *docked == name)?;
            Some(Json(json!({ "module": name, "port": port + 1 })))
        };
        let modules = shelf.template("station://module/{name}", "module", module)?;
        let asked = state.clone();
        let dock = move |dock: Dock| {
            let mut state = lock(&asked);
            if state.docked.len() == PORTS || state.docked.contains(&dock.module) {
                return Err(format!("{} is here already, or no port is free", dock.module));
            }
            state.log.push(format!("{} docked", dock.module));
            state.docked.push(dock.module);
            state.wake.notify_one();
            Ok("docked")
        };
        let dock = Offer::tool("dock_module", "Docks a module at a free port", dock);
        let dock = shelf.add(dock.audience(COMMANDER))?;
        // From now on this session is offered the tools of commanders. It is notified of that, and no
        // other session is.
        let login = |login: Login, context: Context| {
            if login.code != PORTS {
                return Err("that is not the code of the day".to_owned());
            }
            context.grant(COMMANDER).map_err(|error| error.to_string())?;
            Ok("welcome, commander")
        };
        shelf.tool("login", "Makes this session a commander's", login)?;
        let logout = |context: Context| context.withdraw(COMMANDER).map(|()| "goodbye");
        let logout = Offer::tool("logout", "Ends the command of this session", logout);
        shelf.add(logout.audience(COMMANDER))?;
        Ok(Self { state, shelf, log, modules, dock })
    }

    /// Docks a visitor, or undocks the module that has been here longest.
    fn step(&self, visitor: u32) {
        let mut state = lock(&self.state);
        let line = if state.docked.len() < PORTS && !visitor.is_multiple_of(3) {
            state.docked.push(format!("visitor-{visitor}"));
            format!("visitor-{visitor} docked")
        } else if state.docked.is_empty() {
            return;
        } else {
            format!("{} left", state.docked.remove(0))
        };
        state.log.push(line);
    }

    /// Publishes the state: the list and the tool change together, with one notice per list. If
    /// nothing changed, nothing is sent.
    fn show(&self) -> Result<(), EditError> {
        let docked = lock(&self.state).docked.clone();
        let listed = docked
            .iter()
            .map(|name| Resource::new(format!("station://module/{name}"), name.clone()));
        let mut transaction = self.shelf.transaction();
        transaction.expand(&self.modules, listed.collect());
        if docked.len() == PORTS {
            transaction.disable(&self.dock);
        } else {
            transaction.enable(&self.dock);
        }
        transaction.commit()?;
        self.log.changed();
        self.modules.all_changed();
        Ok(())
    }
}

impl Source for Station {
    async fn run(&self, cancel: CancellationToken) {
        let wake = lock(&self.state).wake.clone();
        for visitor in 1.. {
            tokio::select! {
                () = cancel.cancelled() => break,
                () = wake.notified() => {}
                () = tokio::time::sleep(Duration::from_secs(3)) => self.step(visitor),
            }
            if let Err(error) = self.show() {
                eprintln!("cannot update the station: {error}");
            }
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("nothing panics while it holds the station")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hub = Hub::new("station", env!("CARGO_PKG_VERSION"));
    hub.add("station", Station::new).await?;
    match std::env::args().nth(1).as_deref() {
        Some("--http") => hub.serve_http(std::env::args().nth(2).unwrap_or_default()).await?,
        Some("--stdio") => hub.serve_stdio().await?,
        _ => return Err("usage: station --http ADDR | --stdio".into()),
    }
    Ok(())
}
