//! Causes of change: a tool call, a command, or edits of a folder; done, repeated and undone.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio::time::Instant;

use super::client::{Answered, Probe};
use super::edits::Edits;
use super::topic::{Topic, list};
use crate::group::Group;
use crate::present::text::{cut, one_line};
use crate::schema::{Field, Fields, Shape};
use crate::values;

/// The longest a command may run.
const EXEC: Duration = Duration::from_mins(1);
/// Stands for a number that grows with each change.
const NUMBER: &str = "{n}";

/// One way to change something.
#[derive(Debug)]
pub(crate) enum Act {
    /// A tool and its arguments as `key=value`.
    Call { tool: String, pairs: Vec<String> },
    /// A tool and arguments that fit its schema.
    Made { tool: String, arguments: Map<String, Value> },
    /// A command for `sh -c`.
    Exec(String),
    /// Files of a folder that we serve.
    Edit(Edits),
    /// A tool that says it is harmless; which one is found when the tools are known.
    Auto,
}

impl Act {
    /// The tool and arguments of `--change`.
    pub(crate) fn call(text: &str) -> Result<Self, String> {
        let mut words = words(text)?.into_iter();
        let tool = words.next().ok_or("give a tool, such as `add_item name=x`")?;
        let pairs: Vec<_> = words.collect();
        values::pairs(&pairs).map_err(|error| error.to_string())?;
        Ok(Self::Call { tool, pairs })
    }

    fn is_growing(&self) -> bool {
        match self {
            Self::Call { pairs, .. } => pairs.iter().any(|pair| pair.contains(NUMBER)),
            Self::Exec(command) => command.contains(NUMBER),
            Self::Edit(_) => true,
            Self::Made { .. } | Self::Auto => false,
        }
    }
}

impl std::fmt::Display for Act {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call { tool, .. } | Self::Made { tool, .. } => {
                write!(formatter, "the tool `{tool}`")
            }
            Self::Exec(command) => write!(formatter, "`{command}`"),
            Self::Edit(_) => formatter.write_str("an edit of the folder"),
            Self::Auto => formatter.write_str("a harmless tool"),
        }
    }
}

/// A change that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
}

/// What makes changes.
#[derive(Debug)]
pub(crate) struct Cause {
    pub(crate) change: Act,
    pub(crate) undo: Option<Act>,
    /// The number of the last change.
    step: AtomicU64,
    /// Whether a change could be made, and why not.
    works: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Cause {
    pub(crate) fn new(change: Act, undo: Option<Act>) -> Self {
        let (step, works) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { change, undo, step, works, failure: Mutex::default() }
    }

    /// Why no change at all could be made, if it was tried.
    pub(crate) fn never_worked(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().filter(|_| !self.works.load(Ordering::Relaxed))
    }

    /// Whether change and undo take turns, so that a state returns.
    pub(crate) fn is_alternating(&self) -> bool {
        self.undo.is_some() && !self.change.is_growing()
    }

    /// Whether a tool must be chosen first.
    pub(crate) fn is_auto(&self) -> bool {
        matches!(self.change, Act::Auto)
    }

    /// Whether a session of the server makes the change.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.change, Act::Call { .. } | Act::Made { .. })
    }

    /// Makes the next change.
    pub(crate) async fn next(&self, client: &Probe) -> Result<Timed, String> {
        let step = self.step.fetch_add(1, Ordering::Relaxed) + 1;
        self.at(client, step, Scope::Everything).await
    }

    /// Makes the next change, and only of contents if it can be separated.
    pub(crate) async fn next_content(&self, client: &Probe) -> Result<Timed, String> {
        let step = self.step.fetch_add(1, Ordering::Relaxed) + 1;
        self.at(client, step, Scope::Content).await
    }

    /// Makes the last change again.
    pub(crate) async fn again(&self, client: &Probe) -> Result<Timed, String> {
        self.at(client, self.step.load(Ordering::Relaxed), Scope::Everything).await
    }

    /// Leaves things as they were, if that can be done.
    pub(crate) async fn restore(&self, client: &Probe) {
        let step = self.step.load(Ordering::Relaxed);
        if let Some(undo) = &self.undo
            && step % 2 == 1
            && self.perform(undo, client, step, Scope::Everything).await.is_ok()
        {
            self.step.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn at(&self, client: &Probe, step: u64, scope: Scope) -> Result<Timed, String> {
        let act = match &self.undo {
            Some(undo) if self.is_alternating() && step.is_multiple_of(2) => undo,
            _ => &self.change,
        };
        match self.perform(act, client, step, scope).await {
            Ok(timed) => {
                self.works.store(true, Ordering::Relaxed);
                Ok(timed)
            }
            Err(why) => {
                let why = format!("{act} failed: {why}");
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert_with(|| why.clone());
                Err(why)
            }
        }
    }

    async fn perform(
        &self,
        act: &Act,
        client: &Probe,
        step: u64,
        scope: Scope,
    ) -> Result<Timed, String> {
        let began = Instant::now();
        let number = step.to_string();
        match act {
            Act::Call { tool, pairs } => {
                let pairs: Vec<_> =
                    pairs.iter().map(|pair| pair.replace(NUMBER, &number)).collect();
                let arguments = typed(client, tool, &pairs).await?;
                call(client, tool, arguments).await?;
            }
            Act::Made { tool, arguments } => call(client, tool, arguments.clone()).await?,
            Act::Exec(command) => exec(&command.replace(NUMBER, &number)).await?,
            Act::Edit(edits) => edits.write(step, scope)?,
            Act::Auto => return Err("no tool was chosen".to_owned()),
        }
        Ok(Timed { began, ended: Instant::now() })
    }
}

/// What an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// The content of one resource, and no list.
    Content,
}

/// Restarts a server behind a URL.
#[derive(Debug)]
pub(crate) enum Restart {
    /// A program is started again by us.
    Program,
    /// A command that restarts it.
    Exec(String),
}

/// Runs a command to its end. If it takes too long, it and its children are killed.
pub(crate) async fn exec(command: &str) -> Result<(), String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let group = Group::of(&child);
    let ended = tokio::time::timeout(EXEC, child.wait()).await;
    let Ok(status) = ended else {
        return Err(format!("it ran for more than {} s", EXEC.as_secs()));
    };
    // A server that it started in the background goes on.
    group.release();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

async fn call(client: &Probe, tool: &str, arguments: Map<String, Value>) -> Result<(), String> {
    let reply = client.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    match reply {
        Answered::Result(result) if result["isError"] == true => {
            Err(cut(&one_line(&result["content"].to_string()), 120).into_owned())
        }
        Answered::Result(result) if result["resultType"] == "input_required" => {
            Err("it asks its client for input, which `tidings check` does not give".to_owned())
        }
        Answered::Result(_) => Ok(()),
        reply => Err(reply.to_string()),
    }
}

/// Arguments with the types of the tool's schema.
async fn typed(client: &Probe, tool: &str, pairs: &[String]) -> Result<Map<String, Value>, String> {
    let guessed = |pair: &String| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key.to_owned(), values::guess(value))
    };
    let schema = client.schema(tool, async || {
        let tools = list(client, &Topic::Tools).await.ok()?;
        let found = tools.items.into_iter().find(|item| item["name"] == tool)?;
        found["inputSchema"].as_object().cloned()
    });
    let Some(schema) = schema.await else { return Ok(pairs.iter().map(guessed).collect()) };
    let words = values::pairs(pairs).map_err(|error| error.to_string())?;
    values::arguments(&Fields::of(&schema), Map::new(), &words).map_err(|error| error.to_string())
}

/// Tools that say they neither destroy nor reach out, with arguments that fit their schema.
pub(crate) fn harmless_acts(tools: &[Value]) -> Vec<Act> {
    let is_harmless = |tool: &&Value| {
        let hints = &tool["annotations"];
        hints["destructiveHint"] == false
            && hints["openWorldHint"] == false
            && hints["readOnlyHint"] != true
    };
    tools
        .iter()
        .filter(is_harmless)
        .filter_map(|tool| {
            let name = tool["name"].as_str()?.to_owned();
            let none = Map::new();
            let schema = tool["inputSchema"].as_object().unwrap_or(&none);
            let fields = Fields::of(schema);
            let mut arguments = Map::new();
            for field in fields.named.iter().filter(|field| field.required) {
                arguments.insert(field.name.clone(), sample(field)?);
            }
            Some(Act::Made { tool: name, arguments })
        })
        .collect()
}

/// A value that a field accepts, if one can be found.
fn sample(field: &Field) -> Option<Value> {
    let given = field.example.clone().or_else(|| field.default.clone());
    let texts = [json!("tidings-check"), json!(1), json!(true), json!([]), json!({})];
    given.or_else(|| match &field.shape {
        Shape::Any => Some(json!("tidings-check")),
        shape => texts.into_iter().find(|value| shape.accepts(value)),
    })
}

/// Splits a text into words. Quotes keep spaces; a value in JSON is taken as it is.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_value = word.as_ref().is_some_and(|word| word.ends_with('='));
        if quote.is_none() && is_value && matches!(letter, '[' | '{') {
            let json = json_at(rest);
            word.get_or_insert_default().push_str(json);
            rest = &rest[json.len()..];
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// The JSON that a text begins with, or its first letter.
fn json_at(text: &str) -> &str {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let is_json = matches!(values.next(), Some(Ok(_)));
    let end = if is_json { values.byte_offset() } else { 1 };
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_spaces() {
        assert_eq!(words("add a='b c' d=\"\" e").unwrap(), ["add", "a=b c", "d=", "e"]);
        let json = r#"[{"a":"b c {n}"}, 2]"#;
        assert_eq!(
            words(&format!("add a={json} b={{n}} c=[d")).unwrap(),
            ["add", &format!("a={json}"), "b={n}", "c=[d"]
        );
        assert!(words("add 'x").is_err());
        assert!(Act::call("").is_err() && Act::call("add x").is_err());
    }

    #[test]
    fn only_tools_that_say_they_are_harmless_are_tried() {
        let schema = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "other": { "type": "string" },
        }});
        let tool = |name: &str, hints: Value| json!({ "name": name, "inputSchema": schema, "annotations": hints });
        let tools = [
            tool("good", json!({ "destructiveHint": false, "openWorldHint": false })),
            tool("silent", json!({})),
            tool("open", json!({ "destructiveHint": false })),
            tool(
                "reads",
                json!({ "destructiveHint": false, "openWorldHint": false, "readOnlyHint": true }),
            ),
        ];
        let acts = harmless_acts(&tools);
        let [Act::Made { tool, arguments }] = acts.as_slice() else { panic!("{acts:?}") };
        assert_eq!((tool.as_str(), arguments.len()), ("good", 1));
        assert_eq!(arguments["name"], "tidings-check");
    }
}
