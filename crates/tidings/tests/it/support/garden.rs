//! A source that does what a test tells it: beds that are planted, tools that come and go.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceTemplate, Role, Tool,
};
use tidings_server::{
    Answer, AnswerError, Change, Completion, Completions, Contents, Context, EditError, GrantError,
    Handle, Offer, ResourceUri, Shelf, Source,
};

/// Beds by their URI, and the tools that were added.
#[derive(Clone, Default)]
pub(crate) struct Garden {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    shelf: Option<Shelf>,
    beds: BTreeMap<String, u64>,
    tools: BTreeMap<String, Handle<Tool>>,
    template: Option<Handle<ResourceTemplate>>,
    gate: Option<Handle<Resource>>,
    shed: Option<Handle<ResourceTemplate>>,
}

impl Garden {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn shelf(&self) -> Shelf {
        self.lock().shelf.clone().unwrap()
    }

    /// Does what a script or a call says: `add n gap`, `remove n`, `water uri n gap`, …
    pub(crate) async fn act(&self, words: &[&str]) {
        let number = |at: usize, or: u64| words.get(at).map_or(or, |word| word.parse().unwrap());
        let pause = async |ms: u64| {
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        };
        match words {
            ["add", ..] => {
                for index in 0..number(1, 1) {
                    let name = format!("extra_{index:03}");
                    let handle = self.shelf().add(tool(&name)).unwrap();
                    self.lock().tools.insert(name, handle);
                    pause(number(2, 0)).await;
                }
            }
            ["remove", ..] => {
                for index in 0..number(1, 1) {
                    let handle = self.lock().tools.remove(&format!("extra_{index:03}")).unwrap();
                    handle.remove().unwrap();
                }
            }
            ["enable", name] => self.handle(name).enable().unwrap(),
            ["disable", name] => self.handle(name).disable().unwrap(),
            ["describe", name, text] => {
                let described = Tool::new((*name).to_owned(), (*text).to_owned(), Map::new());
                self.handle(name).update(described).unwrap();
            }
            ["confine", name, label] => {
                let offer = Offer::from(tool(name)).audience(*label);
                let handle = self.shelf().add(offer).unwrap();
                self.lock().tools.insert((*name).to_owned(), handle);
            }
            ["reserve", label] => {
                let gate = Resource::new("garden://gate", "gate").with_title("The gate");
                let gate = Offer::from(gate);
                let gate = match *label {
                    "everyone" => gate.everyone(),
                    label => gate.audience(label),
                };
                self.lock().gate.as_ref().unwrap().update(gate).unwrap();
            }
            ["shed", label] => {
                let shed = Offer::from(ResourceTemplate::new("garden://shed/{name}", "shed"));
                let shed = self.shelf().add(shed.audience(*label).disabled()).unwrap();
                self.lock().shed = Some(shed);
            }
            ["open-shed"] => self.lock().shed.as_ref().unwrap().enable().unwrap(),
            ["toggle"] => self.toggle().await,
            ["water", uri, ..] => {
                for _ in 0..number(2, 1) {
                    *self.lock().beds.entry((*uri).to_owned()).or_default() += 1;
                    self.shelf().changed(*uri).unwrap();
                    pause(number(3, 0)).await;
                }
            }
            ["set", uri, value] => {
                self.lock().beds.insert((*uri).to_owned(), value.parse().unwrap());
                self.shelf().changed(*uri).unwrap();
            }
            ["touch", uri] => self.shelf().changed(*uri).unwrap(),
            ["touch-all", pattern] => {
                let prefix = pattern.strip_suffix('*').unwrap();
                self.shelf().changed(Change::below(prefix)).unwrap();
            }
            ["clear", uri] => {
                self.lock().beds.remove(*uri);
                self.shelf().changed(*uri).unwrap();
            }
            ["expand", names @ ..] => {
                let bed = |name: &&str| {
                    Resource::new(format!("garden://bed/{name}"), *name).with_title(*name)
                };
                let template = self.lock().template.clone().unwrap();
                template.expand(names.iter().map(bed).collect()).unwrap();
            }
            other => panic!("the garden does not know {other:?}"),
        }
    }

    /// Nine edits in one transaction, with awaits between them.
    async fn toggle(&self) {
        let mut transaction = self.shelf().transaction();
        let handles: Vec<_> = self.lock().tools.values().cloned().collect();
        for handle in handles.iter().take(9) {
            transaction.disable(handle);
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        transaction.commit().unwrap();
    }

    fn handle(&self, name: &str) -> Handle<Tool> {
        self.lock().tools.get(name).unwrap_or_else(|| panic!("no tool {name}")).clone()
    }
}

impl Garden {
    /// Puts the garden on its shelf.
    pub(crate) fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        let template = shelf.add(ResourceTemplate::new("garden://bed/{name}", "bed"))?;
        let gate = shelf.add(Resource::new("garden://gate", "gate").with_title("The gate"))?;
        shelf.add(Prompt::new(
            "plan",
            Some("Plans a bed"),
            Some(vec![PromptArgument::new("bed").with_required(true)]),
        ))?;
        shelf.add(tool("act"))?;
        shelf.add(tool("panic"))?;
        let mut state = self.lock();
        state.shelf = Some(shelf.clone());
        state.template = Some(template);
        state.gate = Some(gate);
        for bed in ["garden://gate", "garden://bed/a", "garden://bed/b"] {
            state.beds.insert(bed.to_owned(), 0);
        }
        drop(state);
        Ok(self)
    }
}

impl Source for Garden {
    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        _: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        let bed = request.arguments.unwrap_or_default()["bed"].to_string();
        let message = PromptMessage::new_text(Role::User, format!("Plan the bed {bed}"));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        let water = self.lock().beds.get(uri.as_ref()).copied();
        let water = water.ok_or_else(|| AnswerError::not_found(uri.as_ref()))?;
        Ok(Contents::json(uri, &json!({ "water": water })))
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        assert_ne!(request.name, "panic", "a tool that panics");
        let arguments = request.arguments.unwrap_or_default();
        let words = arguments.get("words").and_then(Value::as_str).unwrap_or_default();
        match words.split_whitespace().collect::<Vec<_>>()[..] {
            ["slowly"] => context.cancelled().await,
            ["login", label] => grant(context.grant(label))?,
            ["logout", label] => grant(context.withdraw(label))?,
            ["login-everywhere", label] => grant(context.grant_everywhere(label))?,
            ["logout-everywhere", label] => grant(context.withdraw_everywhere(label))?,
            ["progress", count] => {
                let count: u32 = count.parse().unwrap();
                for done in 1..=count {
                    context.progress(f64::from(done), Some(f64::from(count)), None).await;
                }
            }
            ["roots"] => {
                let roots = context.roots().await;
                let roots = roots.map_err(|error| AnswerError::Failed(error.to_string()))?;
                let names = roots.roots.iter().map(|root| root.uri.clone()).collect::<Vec<_>>();
                return Ok(
                    CallToolResult::success(vec![ContentBlock::text(names.join(" "))]).into()
                );
            }
            ref words => self.act(words).await,
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }

    async fn complete(
        &self,
        completion: Completion,
        _: &Context,
    ) -> Result<Completions, AnswerError> {
        let count = if completion.value == "many" { 250 } else { 3 };
        let values = (0..count).map(|index| format!("{}{index}", completion.value));
        Ok(values.collect::<Vec<_>>().into())
    }
}

fn grant(done: Result<(), GrantError>) -> Result<(), AnswerError> {
    done.map_err(|error| AnswerError::Failed(error.to_string()))
}

fn tool(name: &str) -> Tool {
    Tool::new(name.to_owned(), "a tool", Map::new())
}
