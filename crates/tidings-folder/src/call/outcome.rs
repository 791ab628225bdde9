//! Results of tool calls, from a program's output and exit.

use std::time::Duration;

use jsonschema::Validator;
use serde_json::{Value, json};
use tidings_server::model::{CallToolResult, ContentBlock, ResultType};

use crate::offer::ToolScript;
use crate::script::{Ending, Reason, Run};

/// How many invalid values are listed.
const FAULTS: usize = 10;
/// How much of each reason is shown: it repeats the value.
const FAULT: usize = 300;
/// How much of the end of the output is shown if a tool fails without an error message.
const SHOWN: usize = 4 << 10;

/// A result that reports an error.
pub(super) fn error(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Why the arguments are invalid, if they are.
pub(super) fn refusal(script: &ToolScript, arguments: &Value) -> Option<String> {
    let faults = faults(&script.input, arguments, "arguments");
    (!faults.is_empty()).then(|| {
        let name = &script.tool.name;
        format!("`{name}` was not run, its arguments are invalid:\n{}", faults.join("\n"))
    })
}

/// The result of a run.
pub(super) fn result(script: &ToolScript, run: Run, output_limit: usize) -> CallToolResult {
    let name = &script.tool.name;
    match run.ending {
        Ending::Code(0) => success(script, run.output),
        Ending::Code(code) => failure(script, &run, &format!("failed with exit code {code}")),
        Ending::Signal(number) => {
            failure(script, &run, &format!("was ended by {}", signal(number)))
        }
        Ending::TimedOut(reason) => late(script, reason, &run.errors),
        Ending::TooMuchOutput => error(format!(
            "`{name}` printed more than {output_limit} bytes and was stopped; ask it for less"
        )),
    }
}

fn success(script: &ToolScript, output: Vec<u8>) -> CallToolResult {
    let name = &script.tool.name;
    let text = match String::from_utf8(output) {
        Ok(text) => text,
        Err(wrong) => {
            let at = wrong.utf8_error().valid_up_to();
            return error(format!("`{name}` printed invalid UTF-8 at byte {at}"));
        }
    };
    if let Some(result) = call_result(&text) {
        return checked(script, result);
    }
    let Some(schema) = &script.output else {
        let text = text.strip_suffix('\n').map(str::to_owned).unwrap_or(text);
        return CallToolResult::success(vec![ContentBlock::text(text)]);
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => {
            let faults = faults(schema, &value, "output");
            if faults.is_empty() {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text.trim())]);
                result.structured_content = Some(value);
                return result;
            }
            unfitting(script, &faults.join("\n"))
        }
        Ok(_) => unfitting(script, "output: not a JSON object"),
        Err(wrong) => unfitting(script, &format!("output: not JSON: {wrong}")),
    }
}

/// A result that the tool printed itself, if every part of it is valid. If it printed several, the
/// first counts: its author meant to end there.
fn call_result(text: &str) -> Option<CallToolResult> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let printed = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let printed: Vec<_> = printed.collect::<Result<_, _>>().ok()?;
    let is_result = |value: &Value| value.get("content").is_some_and(Value::is_array);
    if !printed.iter().all(is_result) {
        return None;
    }
    let value = printed.into_iter().next()?;
    value.get("content").filter(|content| content.is_array())?;
    let mut result: CallToolResult = serde_json::from_value(value).ok()?;
    result.result_type = Some(ResultType::COMPLETE);
    Some(result)
}

fn checked(script: &ToolScript, result: CallToolResult) -> CallToolResult {
    let Some(schema) = script.output.as_ref().filter(|_| result.is_error != Some(true)) else {
        return result;
    };
    let Some(value) = &result.structured_content else {
        return unfitting(script, "structuredContent: missing");
    };
    let faults = faults(schema, value, "structuredContent");
    if faults.is_empty() { result } else { unfitting(script, &faults.join("\n")) }
}

fn unfitting(script: &ToolScript, faults: &str) -> CallToolResult {
    let name = &script.tool.name;
    error(format!("`{name}` ran, but its result is not what its output schema promises:\n{faults}"))
}

fn failure(script: &ToolScript, run: &Run, how: &str) -> CallToolResult {
    if let Some(mut result) = std::str::from_utf8(&run.output).ok().and_then(call_result) {
        result.is_error = Some(true);
        return result;
    }
    let shown = &run.output[run.output.len().saturating_sub(SHOWN)..];
    let output = String::from_utf8_lossy(shown);
    let words = if run.errors.is_empty() { output.trim() } else { &run.errors };
    error(with_words(format!("`{}` {how}", script.tool.name), words))
}

fn late(script: &ToolScript, reason: Reason, errors: &str) -> CallToolResult {
    let (name, patience) = (&script.tool.name, script.patience);
    let (limit, what) = match reason {
        Reason::Fixed => (patience.limit, "took longer than"),
        Reason::Idle => (patience.limit, "was idle, without a sign of life, for"),
        Reason::MaxExceeded => (patience.at_most, "took, signs of life or not, longer than"),
    };
    let (time, word) = (seconds(limit), reason.word());
    let text = format!("`{name}` timed out: it {what} {time} s and was stopped ({word})");
    let mut text = with_words(text, errors);
    if let Some(hint) = &script.hint {
        text = format!("{text}\n{hint}");
    }
    let mut result = error(text);
    if script.output.is_none() {
        let timeout = json!({ "type": "timeout", "reason": word, "seconds": time });
        result.structured_content = Some(json!({ "error": timeout }));
    }
    result
}

fn with_words(text: String, words: &str) -> String {
    if words.is_empty() { text } else { format!("{text}:\n{words}") }
}

/// Seconds, as a whole number if possible.
fn seconds(time: Duration) -> serde_json::Number {
    if time.subsec_nanos() == 0 {
        return time.as_secs().into();
    }
    serde_json::Number::from_f64(time.as_secs_f64()).unwrap_or_else(|| time.as_secs().into())
}

/// The name of a signal whose number is the same on all supported systems.
fn signal(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    format!("{name} (signal {number})")
}

/// The invalid parts of a value, each as `path: reason`.
fn faults(schema: &Validator, value: &Value, whole: &str) -> Vec<String> {
    if schema.is_valid(value) {
        return Vec::new();
    }
    let mut errors = schema.iter_errors(value).map(|fault| {
        let mut line = format!("{whole}{}: {fault}", fault.instance_path());
        if line.len() > FAULT {
            line.truncate(line.floor_char_boundary(FAULT));
            line.push('…');
        }
        line
    });
    let mut faults: Vec<_> = errors.by_ref().take(FAULTS).collect();
    let others = errors.count();
    if others > 0 {
        faults.push(format!("and {others} more"));
    }
    faults
}
