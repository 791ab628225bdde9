//! Calls of tools, prompts and templates: what was asked, how far it is, and what came of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use tidings_mirror::events::{Progress, RequestTag};
use tokio::task::AbortHandle;

use crate::console::archive::{span, time};
use crate::console::difference;
use crate::console::log::millis;
use crate::console::markdown;
use crate::console::secret::masked;
use crate::console::tree::preview;

/// The results that are kept for each item.
const RESULTS: usize = 20;
/// The results that are kept for all items together.
const ALL: usize = 400;
/// The most bytes of all results together; the newest is kept in any case.
const BYTES: usize = 64 << 20;
/// The most bytes of one text that is sent at once.
const TEXT: usize = 64 << 10;
/// The most blocks that are sent at once.
const BLOCKS: usize = 100;
/// Longer results are not compared with the one before.
const COMPARED: usize = 1 << 20;

/// The kind of an item that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callable {
    Tool,
    Prompt,
    Template,
}

/// The calls of one server, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    runs: VecDeque<CallRecord>,
    last: u64,
    bytes: usize,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) number: u64,
    pub(crate) kind: Callable,
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) at: SystemTime,
    pub(crate) tag: Option<RequestTag>,
    /// Who called, if it was not the page.
    by: Option<Arc<str>>,
    pub(crate) outcome: Outcome,
    progress: Option<Progress>,
    task: Option<AbortHandle>,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Running,
    /// It was answered: whether it succeeded, the result, its size, and how long it took.
    Done {
        is_success: bool,
        result: Arc<Value>,
        bytes: usize,
        took: Duration,
    },
    /// There is no result.
    Failed {
        why: String,
        took: Duration,
    },
    Cancelled,
}

impl Calls {
    /// Adds a call, and returns its number.
    pub(crate) fn begin(
        &mut self,
        kind: Callable,
        name: &str,
        arguments: Map<String, Value>,
        (tag, by): (Option<RequestTag>, Option<Arc<str>>),
    ) -> u64 {
        self.last += 1;
        let (number, at, name) = (self.last, SystemTime::now(), name.to_owned());
        let (outcome, progress, task) = (Outcome::Running, None, None);
        self.runs.push_back(CallRecord {
            number,
            kind,
            name,
            arguments,
            at,
            tag,
            by,
            outcome,
            progress,
            task,
        });
        number
    }

    /// The task of a call, which ends it when it is aborted.
    pub(crate) fn task(&mut self, number: u64, task: AbortHandle) {
        if let Some(run) = self.run_mut(number) {
            run.task = Some(task);
        }
    }

    pub(crate) fn end(&mut self, number: u64, outcome: Outcome) {
        let Some(run) = self.run_mut(number) else { return };
        run.outcome = outcome;
        run.task = None;
        let (kind, name) = (run.kind, run.name.clone());
        self.bytes += self.run(number).map_or(0, CallRecord::bytes);
        let same = |run: &CallRecord| run.kind == kind && run.name == name;
        while self.runs.iter().filter(|run| same(run)).count() > RESULTS {
            let oldest = self.runs.iter().position(same);
            self.forget(oldest.unwrap_or_default());
        }
        while self.runs.len() > ALL || (self.bytes > BYTES && self.runs.len() > 1) {
            self.forget(0);
        }
    }

    fn forget(&mut self, place: usize) {
        if let Some(run) = self.runs.remove(place) {
            self.bytes -= run.bytes();
        }
    }

    /// Cancels a call: its request is dropped, and the server is told.
    pub(crate) fn cancel(&mut self, number: u64) -> bool {
        let Some(run) = self.run_mut(number) else { return false };
        let Some(task) = run.task.take() else { return false };
        task.abort();
        run.outcome = Outcome::Cancelled;
        true
    }

    /// The work of a call was dropped: unless it ended, it is cancelled.
    pub(crate) fn abandon(&mut self, number: u64) {
        if let Some(run) = self.run_mut(number)
            && matches!(run.outcome, Outcome::Running)
        {
            (run.outcome, run.task) = (Outcome::Cancelled, None);
        }
    }

    /// Notes the progress of a call. Returns its name.
    pub(crate) fn progress(&mut self, progress: &Progress) -> Option<String> {
        let tag = progress.request?;
        let run = self.runs.iter_mut().rev().find(|run| run.tag == Some(tag))?;
        run.progress = Some(progress.clone());
        Some(run.name.clone())
    }

    /// All calls, as lines of a file.
    pub(crate) fn saved(&self) -> Vec<Value> {
        let line = |run: &CallRecord| {
            let kind = match run.kind {
                Callable::Tool => "tool",
                Callable::Prompt => "prompt",
                Callable::Template => "template",
            };
            let row = run.row();
            json!({
                "call": run.number, "kind": kind, "name": run.name, "at": millis(run.at),
                "arguments": run.arguments, "state": row["state"], "took": row["took"],
                "why": row["why"], "by": run.by, "result": run.result(),
            })
        };
        self.runs.iter().map(line).collect()
    }

    /// Takes such a line.
    pub(crate) fn restore(&mut self, line: &Value) -> Result<(), String> {
        let number = line["call"].as_u64().filter(|number| *number > self.last);
        let number = number.ok_or_else(|| format!("a call follows call {}", self.last))?;
        let kind = match line["kind"].as_str() {
            Some("prompt") => Callable::Prompt,
            Some("template") => Callable::Template,
            _ => Callable::Tool,
        };
        let took = line["took"].as_f64().and_then(span).unwrap_or_default();
        let result = || Arc::new(line["result"].clone());
        let bytes = line["result"].to_string().len();
        let done = |is_success| Outcome::Done { is_success, result: result(), bytes, took };
        let outcome = match line["state"].as_str() {
            Some("ok") => done(true),
            Some("failed") => done(false),
            Some("error") => {
                let why = line["why"].as_str().unwrap_or_default().to_owned();
                Outcome::Failed { why, took }
            }
            // The session ended before it did.
            _ => Outcome::Cancelled,
        };
        let name = line["name"].as_str().ok_or("the name of the call is missing")?;
        let arguments = line["arguments"].as_object().cloned().unwrap_or_default();
        self.last = number - 1;
        let by = line["by"].as_str().map(Into::into);
        self.begin(kind, name, arguments, (None, by));
        if let Some(run) = self.run_mut(number) {
            run.at = time(line["at"].as_f64().unwrap_or_default());
        }
        self.end(number, outcome);
        Ok(())
    }

    pub(crate) fn run(&self, number: u64) -> Option<&CallRecord> {
        self.runs.iter().find(|run| run.number == number)
    }

    fn run_mut(&mut self, number: u64) -> Option<&mut CallRecord> {
        self.runs.iter_mut().find(|run| run.number == number)
    }

    /// The calls of one item, the newest first.
    pub(crate) fn of(&self, name: &str) -> Value {
        let runs = self.runs.iter().rev().filter(|run| run.name == name);
        json!({ "runs": runs.map(CallRecord::row).collect::<Vec<_>>() })
    }

    /// How the result differs from that of the call before.
    pub(crate) fn changed(&self, number: u64) -> Option<difference::Difference> {
        let run = self.run(number)?;
        let is_before = |other: &&CallRecord| {
            other.number < number && other.name == run.name && other.result().is_some()
        };
        let before = self.runs.iter().rev().find(is_before)?;
        if run.bytes() + before.bytes() > COMPARED {
            return None;
        }
        let text = |run: &CallRecord| serde_json::to_string_pretty(&**run.result()?).ok();
        Some(difference::between(&text(before)?, &text(run)?))
    }
}

impl CallRecord {
    fn bytes(&self) -> usize {
        match &self.outcome {
            Outcome::Done { bytes, .. } => *bytes,
            _ => 0,
        }
    }

    pub(crate) fn result(&self) -> Option<&Arc<Value>> {
        match &self.outcome {
            Outcome::Done { result, .. } => Some(result),
            _ => None,
        }
    }

    /// When it ended, if it did.
    pub(crate) fn ended(&self) -> Option<SystemTime> {
        match &self.outcome {
            Outcome::Done { took, .. } | Outcome::Failed { took, .. } => self.at.checked_add(*took),
            _ => None,
        }
    }

    pub(crate) fn row(&self) -> Value {
        let (state, took, bytes) = match &self.outcome {
            Outcome::Running => ("runs", None, None),
            Outcome::Done { is_success: true, took, bytes, .. } => ("ok", Some(took), Some(bytes)),
            Outcome::Done { took, bytes, .. } => ("failed", Some(took), Some(bytes)),
            Outcome::Failed { took, .. } => ("error", Some(took), None),
            Outcome::Cancelled => ("cancelled", None, None),
        };
        let why = match &self.outcome {
            Outcome::Failed { why, .. } => Some(why),
            _ => None,
        };
        let progress = self
            .progress
            .as_ref()
            .map(|it| json!({ "done": it.progress, "total": it.total, "message": it.message }));
        let given = Value::Object(self.arguments.clone());
        json!({
            "n": self.number, "name": self.name, "at": millis(self.at), "state": state, "why": why,
            "took": took.map(|took| took.as_secs_f64() * 1e3), "bytes": bytes,
            "given": preview(&given), "arguments": masked(&given), "progress": progress,
            "by": self.by,
        })
    }

    /// The result: its blocks as far as they can be shown at once.
    pub(crate) fn json(&self) -> Value {
        let mut json = self.row();
        let Some(result) = self.result() else { return json };
        let blocks = match self.kind {
            Callable::Tool => result["content"].as_array().map(|all| all.iter().collect()),
            Callable::Prompt => result["messages"].as_array().map(|all| all.iter().collect()),
            Callable::Template => result["contents"].as_array().map(|all| all.iter().collect()),
        };
        let blocks: Vec<&Value> = blocks.unwrap_or_default();
        json["total"] = blocks.len().into();
        json["blocks"] = blocks.iter().take(BLOCKS).map(|it| block(it)).collect();
        json["structured"] = result.get("structuredContent").is_some().into();
        json
    }
}

/// A block of content: its kind, its text, and who says it.
fn block(block: &Value) -> Value {
    let inner = block.get("content").filter(|inner| inner.is_object()).unwrap_or(block);
    let resource = inner.get("resource").unwrap_or(inner);
    let text = inner["text"].as_str().or(resource["text"].as_str());
    let short: Option<String> = text.map(|text| text.chars().take(TEXT).collect());
    // What a prompt says is written for a model, and models are written to in Markdown.
    let is_message = !block["role"].is_null() && inner["type"] == "text";
    let is_prose = is_message || markdown::is_markdown(resource["mimeType"].as_str());
    json!({
        "kind": inner["type"].as_str().unwrap_or("resource"),
        "role": block["role"].as_str(),
        "uri": resource["uri"].as_str(),
        "mime": resource["mimeType"].as_str(),
        "nodes": short.as_deref().filter(|_| is_prose).map(markdown::nodes),
        "cut": text.is_some_and(|text| text.len() > TEXT),
        "bytes": text.or(inner["data"].as_str()).or(resource["blob"].as_str()).map(str::len),
        "text": short,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(calls: &mut Calls, name: &str, result: Value) -> u64 {
        let number = calls.begin(Callable::Tool, name, Map::new(), (None, None));
        let (result, bytes, took) = (Arc::new(result), 10, Duration::from_millis(2));
        calls.end(number, Outcome::Done { is_success: true, result, bytes, took });
        number
    }

    #[test]
    fn the_last_results_of_each_tool_are_kept() {
        let mut calls = Calls::default();
        let other = done(&mut calls, "other", json!({}));
        for _ in 0..RESULTS + 5 {
            done(&mut calls, "add", json!({}));
        }
        assert_eq!(calls.of("add")["runs"].as_array().unwrap().len(), RESULTS);
        assert!(calls.run(other).is_some(), "a busy tool does not push out another's results");
        assert_eq!(calls.bytes, 10 * (RESULTS + 1));
    }

    #[test]
    fn a_result_is_compared_with_the_one_before() {
        let mut calls = Calls::default();
        let first = done(&mut calls, "add", json!({ "sum": 3 }));
        let second = done(&mut calls, "add", json!({ "sum": 4 }));
        assert!(calls.changed(first).is_none());
        assert_eq!(calls.changed(second).unwrap().added, 1);
    }

    #[test]
    fn blocks_are_shown_with_their_kind() {
        let text = json!({ "type": "text", "text": "hi" });
        assert_eq!(block(&text)["text"], "hi");
        let said = json!({ "role": "user", "content": text });
        assert_eq!(
            (&block(&said)["role"], &block(&said)["kind"]),
            (&"user".into(), &"text".into())
        );
        let embedded = json!({ "type": "resource", "resource": { "uri": "a:b", "text": "x" } });
        assert_eq!(
            (&block(&embedded)["uri"], &block(&embedded)["text"]),
            (&"a:b".into(), &"x".into())
        );
    }
}
