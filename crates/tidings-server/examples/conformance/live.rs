//! Tools that change the server's items, so that a test can count the notices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::model::{CallToolRequestParams, CallToolResponse, Prompt, Resource, Tool};
use tidings_server::{AnswerError, Contents, EditError, Fingerprint, Handle, ResourceUri, Shelf};

use crate::{bare, say, tool};

const WATCHED: &str = "test://watched-resource";
const TOUCH: &str = "touch_watched";
const ADD: &str = "add_tools";
const REMOVE: &str = "remove_tools";
const EXTRA: &str = "extra_";
const CHANGE_TOOL: &str = "test_trigger_tool_change";
const CHANGE_PROMPT: &str = "test_trigger_prompt_change";
pub(crate) const CHANGING_PROMPT: &str = "test_changing_prompt";
/// The most changes of one call, which does not await in between.
const MOST: u64 = 100_000;
/// A minute: a call should end while its client waits.
const LONGEST_GAP_MS: u64 = 60_000;

/// The state that the tools change.
pub(crate) struct Live {
    /// How often the watched resource changed.
    touched: AtomicU64,
    /// How often a description changed.
    described: AtomicU64,
    stage: Stage,
    /// The tools that `add_tools` added and `remove_tools` has not removed, by number.
    extras: Mutex<BTreeMap<u64, Handle<Tool>>>,
}

struct Stage {
    shelf: Shelf,
    watched: Handle<Resource>,
    tool: Handle<Tool>,
    prompt: Handle<Prompt>,
}

impl Live {
    /// Adds the tools, and the items they change, to the shelf.
    pub(crate) fn new(shelf: Shelf) -> Result<Self, EditError> {
        let watched = Resource::new(WATCHED, "watched-resource")
            .with_description("A text that changes with every call of touch_watched")
            .with_mime_type("text/plain");
        let watched = shelf.add(watched)?;
        let repetition = json!({
            "n": { "type": "integer", "minimum": 0, "maximum": MOST, "description": "How often" },
            "gap_ms": {
                "type": "integer", "minimum": 0, "maximum": LONGEST_GAP_MS,
                "description": "Milliseconds between two of them; none by default",
            },
        });
        shelf.add(tool(
            TOUCH,
            "Changes the watched resource, once by default",
            &repetition,
            &[],
        ))?;
        shelf.add(tool(ADD, "Adds tools one by one, none by default", &repetition, &[]))?;
        shelf.add(bare(REMOVE, "Removes what add_tools added, all at once"))?;
        shelf.add(bare(CHANGE_PROMPT, "Changes the list of prompts"))?;
        let (tool, prompt) = (shelf.add(changing_tool(0))?, shelf.add(changing_prompt(0))?);
        let (touched, described) = (AtomicU64::new(0), AtomicU64::new(0));
        let stage = Stage { shelf, watched, tool, prompt };
        Ok(Self { touched, described, stage, extras: Mutex::default() })
    }

    pub(crate) fn knows(name: &str) -> bool {
        [TOUCH, ADD, REMOVE, CHANGE_TOOL, CHANGE_PROMPT].contains(&name) || name.starts_with(EXTRA)
    }

    pub(crate) fn read(&self, uri: &ResourceUri) -> Option<Contents> {
        let touched = self.touched.load(Ordering::SeqCst);
        (uri.as_ref() == WATCHED).then(|| Contents::text(uri, format!("Changes so far: {touched}")))
    }

    pub(crate) fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let touched = self.touched.load(Ordering::SeqCst);
        (uri.as_ref() == WATCHED).then(|| Fingerprint::of_bytes(&touched.to_le_bytes()))
    }

    pub(crate) async fn call(
        &self,
        request: &CallToolRequestParams,
    ) -> Result<CallToolResponse, AnswerError> {
        let stage = &self.stage;
        match request.name.as_ref() {
            TOUCH => {
                let Repetition { n, gap } = Repetition::of(request, 1)?;
                for number in 1..=n {
                    wait(gap, number).await;
                    self.touched.fetch_add(1, Ordering::SeqCst);
                    stage.watched.changed();
                }
                Ok(say(format!("Changes made: {n}")))
            }
            ADD => {
                let Repetition { n, gap } = Repetition::of(request, 0)?;
                for number in 1..=n {
                    wait(gap, number).await;
                    self.add(stage, number).map_err(failed)?;
                }
                Ok(say(format!("Tools {EXTRA}1 to {EXTRA}{n} are there")))
            }
            REMOVE => self.remove(stage).map_err(failed),
            CHANGE_TOOL => {
                let times = self.described.fetch_add(1, Ordering::SeqCst) + 1;
                stage.tool.update(changing_tool(times)).map_err(failed)?;
                Ok(say("The list of tools has changed."))
            }
            CHANGE_PROMPT => {
                let times = self.described.fetch_add(1, Ordering::SeqCst) + 1;
                stage.prompt.update(changing_prompt(times)).map_err(failed)?;
                Ok(say("The list of prompts has changed."))
            }
            extra => Ok(say(format!("This is {extra}"))),
        }
    }

    fn add(&self, stage: &Stage, number: u64) -> Result<(), EditError> {
        let mut extras = self.extras();
        if let std::collections::btree_map::Entry::Vacant(place) = extras.entry(number) {
            place.insert(stage.shelf.add(bare(&format!("{EXTRA}{number}"), "One more tool"))?);
        }
        Ok(())
    }

    fn remove(&self, stage: &Stage) -> Result<CallToolResponse, EditError> {
        let mut extras = self.extras();
        let mut transaction = stage.shelf.transaction();
        for extra in extras.values() {
            transaction.remove(extra);
        }
        transaction.commit()?;
        let removed = std::mem::take(&mut *extras).len();
        Ok(say(format!("Tools removed: {removed}")))
    }

    fn extras(&self) -> MutexGuard<'_, BTreeMap<u64, Handle<Tool>>> {
        self.extras.lock().expect("no code panics while it holds the extra tools")
    }
}

/// The number of repetitions, and the time between them.
struct Repetition {
    n: u64,
    gap: Duration,
}

impl Repetition {
    fn of(request: &CallToolRequestParams, default: u64) -> Result<Self, AnswerError> {
        let n = number(request, "n", default, MOST)?;
        let gap = Duration::from_millis(number(request, "gap_ms", 0, LONGEST_GAP_MS)?);
        Ok(Self { n, gap })
    }
}

fn number(
    request: &CallToolRequestParams,
    name: &str,
    default: u64,
    most: u64,
) -> Result<u64, AnswerError> {
    let given = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
    let Some(given) = given else { return Ok(default) };
    given.as_u64().filter(|number| *number <= most).ok_or_else(|| {
        let details = format!("it must be a whole number from 0 to {most}");
        AnswerError::invalid(name, Value::to_string(given), details)
    })
}

/// Waits before every change but the first. Without a gap nothing is awaited.
async fn wait(gap: Duration, number: u64) {
    if number > 1 && !gap.is_zero() {
        tokio::time::sleep(gap).await;
    }
}

fn changing_tool(times: u64) -> Tool {
    bare(CHANGE_TOOL, &format!("Changes the list of tools: this is description {times}"))
}

fn changing_prompt(times: u64) -> Prompt {
    let description = format!("Changes with test_trigger_prompt_change: description {times}");
    Prompt::new(CHANGING_PROMPT, Some(description), None)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn failed(error: EditError) -> AnswerError {
    AnswerError::Failed(error.to_string())
}
