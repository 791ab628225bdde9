//! The demo: a space station that changes by itself, to try Tidings without any setup.

mod state;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceTemplate, Role, Tool, ToolAnnotations,
};
use tidings_server::{
    Answer, AnswerError, Completion, Completions, Contents, Context, EditError, GrantError, Handle,
    Offer, ResourceUri, Shelf, Source,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::demo::state::{Happening, PORTS, State};

const STATUS: &str = "station://status";
const PORT_LIST: &str = "station://ports";
const LOG: &str = "station://log";
const MODULE: &str = "station://module/{name}";
/// The label of those who may clear the ports.
const COMMANDER: &str = "role:commander";

/// The station.
pub(crate) struct Station {
    every: Duration,
    /// Prints each change for the person who runs the demo.
    story: mpsc::Sender<String>,
    state: Mutex<State>,
    items: Items,
}

/// The handles of the station's items.
struct Items {
    shelf: Shelf,
    /// Changed by every event.
    resources: [Handle<Resource>; 3],
    dock: Handle<Tool>,
    undock: Handle<Tool>,
    modules: Handle<ResourceTemplate>,
}

impl Items {
    fn new(shelf: Shelf) -> Result<Self, EditError> {
        let status = shelf.add(
            Resource::new(STATUS, "status")
                .with_title("Station status")
                .with_description("The number of free ports, and the docked modules")
                .with_mime_type("application/json"),
        )?;
        let ports = shelf.add(
            Resource::new(PORT_LIST, "ports")
                .with_title("Docking ports")
                .with_description("The module at each port")
                .with_mime_type("application/json"),
        )?;
        let log = shelf.add(
            Resource::new(LOG, "log")
                .with_title("Station log")
                .with_description("The events of the station, newest last")
                .with_mime_type("text/plain"),
        )?;
        let modules = shelf.add(
            ResourceTemplate::new(MODULE, "module")
                .with_title("Module")
                .with_description("A docked module; the list of resources has those docked now"),
        )?;
        let focus = PromptArgument::new("focus").with_description("A docked module to focus on");
        shelf.add(
            Prompt::new(
                "station_report",
                Some("Asks for a report on the station"),
                Some(vec![focus]),
            )
            .with_title("Station report"),
        )?;
        let dock = shelf.add(tool(
            "dock_module",
            "Docks a module. Offered only while a port is free.",
            "the module that should come",
        ))?;
        let undock = shelf.add(tool("undock_module", "Lets a docked module go.", "the module"))?;
        // No other session is notified of that. A request without a session logs in its person.
        let login = |context: Context| match context.grant(COMMANDER) {
            Err(GrantError::NoSession) => {
                said(context.grant_everywhere(COMMANDER), "welcome, commander")
            }
            done => said(done, "welcome, commander"),
        };
        shelf.add(Offer::tool("login", "Makes this session a commander's.", login))?;
        let logout = |context: Context| match context.withdraw(COMMANDER) {
            Err(GrantError::NoSession) => said(context.withdraw_everywhere(COMMANDER), "goodbye"),
            done => said(done, "goodbye"),
        };
        let logout = Offer::tool("logout", "Makes this session a visitor's again.", logout);
        shelf.add(logout.audience(COMMANDER))?;
        let clear = "Lets every docked module go. Offered to commanders only.";
        let clear = tool_without_arguments("clear_ports", clear);
        shelf.add(Offer::from(clear).audience(COMMANDER))?;
        Ok(Self { shelf, resources: [status, ports, log], dock, undock, modules })
    }
}

impl Station {
    /// Adds a station to its shelf.
    pub(crate) fn new(
        shelf: Shelf,
        every: Duration,
        story: mpsc::Sender<String>,
    ) -> Result<Self, EditError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let state = Mutex::new(State::new(u64::from(now.subsec_nanos())));
        let station = Self { every, story, state, items: Items::new(shelf)? };
        station.edit()?;
        Ok(station)
    }

    /// Publishes an event: lists, switches and contents, as one change.
    fn show(&self, happening: &Happening) {
        drop(self.story.try_send(happening.to_string()));
        if let Err(error) = self.edit() {
            tracing::error!(%error, "cannot update the station");
        }
        let module = match happening {
            Happening::Docked { module, .. }
            | Happening::Left { module, .. }
            | Happening::Sampled { module, .. } => module,
        };
        self.items.resources.iter().for_each(Handle::<Resource>::changed);
        if let Err(error) = self.items.modules.changed([("name", *module)]) {
            tracing::error!(%error, "cannot announce a change");
        }
    }

    fn edit(&self) -> Result<(), EditError> {
        let items = &self.items;
        let (docked, listed) = {
            let state = self.lock();
            let listed = state.docked().map(|module| {
                Resource::new(format!("station://module/{}", module.name), module.name)
                    .with_title(format!("Module {}", module.name))
                    .with_mime_type("application/json")
            });
            (state.docked().count(), listed.collect())
        };
        let mut transaction = items.shelf.transaction();
        transaction.expand(&items.modules, listed);
        if docked < PORTS {
            transaction.enable(&items.dock);
        } else {
            transaction.disable(&items.dock);
        }
        if docked > 0 {
            transaction.enable(&items.undock);
        } else {
            transaction.disable(&items.undock);
        }
        transaction.commit()
    }

    fn clear_ports(&self) -> CallToolResult {
        let docked: Vec<_> = self.lock().docked().map(|module| module.name).collect();
        for module in &docked {
            let happening = self.lock().undock(module);
            if let Some(happening) = happening {
                self.show(&happening);
            }
        }
        let words = format!("{} modules left", docked.len());
        CallToolResult::success(vec![ContentBlock::text(words)])
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the station")
    }
}

impl Source for Station {
    async fn run(&self, cancel: CancellationToken) {
        loop {
            tokio::select! {
                () = cancel.cancelled() => break,
                () = tokio::time::sleep(self.every) => {
                    let happening = self.lock().step();
                    self.show(&happening);
                }
            }
        }
    }

    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        let state = self.lock();
        let ports = || {
            let shown = state.ports().map(|(port, module)| {
                json!({ "port": port, "module": module.map(|module| module.name) })
            });
            Value::Array(shown.collect())
        };
        match uri.as_ref() {
            STATUS => {
                let here: Vec<_> = state.docked().map(|module| module.name).collect();
                let status = json!({ "docked": here, "free_ports": PORTS - here.len() });
                Ok(Contents::json(uri, &status))
            }
            PORT_LIST => Ok(Contents::json(uri, &ports())),
            LOG => Ok(Contents::text(uri, state.log())),
            other => {
                let name = other.strip_prefix("station://module/").unwrap_or(other);
                let (port, module) =
                    state.find(name).ok_or_else(|| AnswerError::not_found(other))?;
                let shown = json!({ "name": module.name, "port": port, "samples": module.samples });
                Ok(Contents::json(uri, &shown))
            }
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        _: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        if request.name == "clear_ports" {
            return Ok(self.clear_ports().into());
        }
        let arguments = request.arguments.unwrap_or_default();
        let Some(module) = arguments.get("module").and_then(Value::as_str) else {
            let given = arguments.get("module").map_or_else(String::new, Value::to_string);
            return Err(AnswerError::invalid("module", given, "give the name of a module"));
        };
        let (done, else_) = {
            let mut state = self.lock();
            let docks = request.name == "dock_module";
            let done = if docks { state.dock(module) } else { state.undock(module) };
            let names: Vec<_> = if docks {
                state.absent().collect()
            } else {
                state.docked().map(|module| module.name).collect()
            };
            (done, names.join(", "))
        };
        let result = match done {
            Some(happening) => {
                self.show(&happening);
                CallToolResult::success(vec![ContentBlock::text(happening.to_string())])
            }
            None => CallToolResult::error(vec![ContentBlock::text(format!(
                "`{module}` cannot do that now; these can: {else_}"
            ))]),
        };
        Ok(result.into())
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        _: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        let arguments = request.arguments.unwrap_or_default();
        let about = match arguments.get("focus").and_then(Value::as_str) {
            Some(module) => format!("the module {module} (station://module/{module})"),
            None => "the whole station (station://status)".to_owned(),
        };
        let text = format!("Read the station's log (station://log) and report on {about}.");
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    async fn complete(
        &self,
        completion: Completion,
        _: &Context,
    ) -> Result<Completions, AnswerError> {
        let state = self.lock();
        let names = state.docked().map(|module| module.name.to_owned());
        let fitting = names.filter(|name| name.starts_with(&completion.value));
        Ok(fitting.collect::<Vec<_>>().into())
    }
}

/// The answer of a tool that changes labels.
fn said(done: Result<(), GrantError>, words: &'static str) -> Result<&'static str, String> {
    let hint = |error| format!("{error}: use a token with the label `{COMMANDER}` instead");
    done.map(|()| words).map_err(hint)
}

fn tool_without_arguments(name: &'static str, description: &'static str) -> Tool {
    let schema = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
    Tool::new(name, description, Arc::new(schema)).with_annotations(ToolAnnotations::new())
}

fn tool(name: &'static str, description: &'static str, argument: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "module": { "type": "string", "description": argument } },
        "required": ["module"],
    });
    let Value::Object(schema) = schema else { return Tool::default() };
    Tool::new(name, description, Arc::new(schema))
        .with_annotations(ToolAnnotations::new().destructive(false))
}
