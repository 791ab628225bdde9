//! Completions from a program: its output is the list of suggestions.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidings_server::{AnswerError, Completion, CompletionOf};

use crate::offer::{Patience, Program};
use crate::script::{self, Ending};
use crate::workshop::Workshop;

/// Time limit of a completion: a person is waiting.
const LIMIT: Duration = Duration::from_secs(5);
/// The most suggestions the protocol allows.
const PROPOSALS: &str = "100";
/// The caller name under which completions queue.
const CALLER: &str = "completions";
/// Longer requests are passed on standard input only.
const VARIABLE: usize = 64 << 10;

/// Asks a program for suggestions.
///
/// # Errors
///
/// The program could not be run, or failed.
pub(crate) async fn complete(
    workshop: &Workshop,
    program: &Program,
    name: &str,
    completion: &Completion,
) -> Result<Vec<String>, AnswerError> {
    let turn = workshop.queue.enter(CALLER).await;
    let _permit = turn.map_err(|full| AnswerError::Unavailable(full.to_string()))?;
    let mut job = workshop.job(program, &workshop.root, Patience::fixed(LIMIT));
    let question = question(completion).to_string();
    let in_variable = if question.len() <= VARIABLE { question.as_str() } else { "" };
    for (variable, value) in [
        ("MCP_COMPLETION_NAME", name),
        ("MCP_COMPLETION_ARGS_JSON", in_variable),
        ("MCP_COMPLETION_LIMIT", PROPOSALS),
        ("MCP_COMPLETION_OFFSET", "0"),
    ] {
        job.environment.push((variable.into(), value.into()));
    }
    job.input = question.into_bytes();
    let run = script::run(job, |_| std::future::ready(()))
        .await
        .map_err(|error| AnswerError::Failed(error.within(&workshop.root).to_string()))?;
    let failed = |how: String| {
        let said = run.errors.lines().next_back().unwrap_or_default();
        AnswerError::Failed(format!("the completion `{name}` {how}: {said}"))
    };
    match run.ending {
        Ending::Code(0) => Ok(proposals(&String::from_utf8_lossy(&run.output))),
        Ending::Code(code) => Err(failed(format!("failed with exit code {code}"))),
        Ending::Signal(signal) => Err(failed(format!("was ended by signal {signal}"))),
        Ending::TimedOut(_) => Err(failed(format!("took longer than {} s", LIMIT.as_secs()))),
        Ending::TooMuchOutput => Err(failed("printed too much".to_owned())),
    }
}

/// The request as JSON: the typed value, its argument and what it belongs to. Known arguments are
/// added under their own names, unless a name is taken already.
fn question(completion: &Completion) -> Value {
    let of = match &completion.of {
        CompletionOf::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
        CompletionOf::Template(uri) => json!({ "type": "ref/resource", "uri": uri }),
        _ => Value::Null,
    };
    let mut question: Map<String, Value> = completion
        .known
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    for (name, value) in [
        ("query", json!(completion.value)),
        ("prefix", json!(completion.value)),
        ("argument", json!({ "name": completion.argument, "value": completion.value })),
        ("ref", of),
        ("context", json!({ "arguments": completion.known })),
    ] {
        question.insert(name.to_owned(), value);
    }
    Value::Object(question)
}

/// A JSON array of texts, an object that contains one, or plain lines.
fn proposals(output: &str) -> Vec<String> {
    let texts =
        |values: &Vec<Value>| values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match serde_json::from_str(output) {
        Ok(Value::Array(values)) => return texts(&values),
        Ok(Value::Object(answer)) => {
            let values = answer.get("suggestions").or_else(|| answer.get("values"));
            return values.and_then(Value::as_array).map(texts).unwrap_or_default();
        }
        // A single word may be valid JSON by chance: a number, or `true`.
        Ok(_) | Err(_) => {}
    }
    output.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_come_in_three_shapes() {
        for output in [
            r#"["a b","c"]"#,
            r#"{"suggestions":["a b","c"],"hasMore":false}"#,
            r#"{"values":["a b",1,"c"]}"#,
            "a b\n\n  c\n",
        ] {
            assert_eq!(proposals(output), ["a b", "c"], "{output}");
        }
        assert_eq!(proposals("12\n"), ["12"]);
        assert_eq!(proposals("{}"), Vec::<String>::new());
        assert_eq!(proposals(""), Vec::<String>::new());
    }
}
