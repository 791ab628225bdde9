//! `tidings upstream`: look after the upstream servers of a running server.

use anyhow::{Result, anyhow, bail};
use serde_json::Value;

use crate::args::{Upstream, UpstreamCommand};
use crate::command::control::{Request, ask};
use crate::present::Output;
use crate::present::diff::unified;
use crate::present::table::Table;
use crate::present::text::harmless;
use crate::report::Usage;
use crate::values::nearest;

pub(crate) async fn run(args: &Upstream) -> Result<()> {
    let output = Output::new(args.json);
    let request = match &args.command {
        UpstreamCommand::Ls | UpstreamCommand::Health => Request::List,
        UpstreamCommand::Restart { name } => Request::Restart(name.clone()),
        UpstreamCommand::Approve { name } => Request::Approve(name.clone()),
    };
    let answer = ask(args.server, &request).await?;
    if let Some(error) = answer["error"].as_str() {
        return Err(refused(error, &request, &answer).into());
    }
    match &args.command {
        UpstreamCommand::Ls => list(&answer, &output),
        UpstreamCommand::Health => health(&answer, &output),
        UpstreamCommand::Restart { name } => restarted(name, &answer, &output),
        UpstreamCommand::Approve { .. } if !args.json => approved(&answer, &output),
        UpstreamCommand::Approve { .. } => output.object(&answer),
    }
}

fn refused(error: &str, request: &Request, answer: &Value) -> Usage {
    let known: Vec<_> =
        answer["known"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let usage = Usage::new(error);
    let (Request::Restart(name) | Request::Approve(name)) = request else { return usage };
    match nearest(name, &known) {
        Some(near) => usage.hint(format!("did you mean `{near}`?")),
        None => usage.hint(format!("known upstreams: {}", known.join(", "))),
    }
}

/// Prints how an upstream is after its restart.
fn restarted(name: &str, answer: &Value, output: &Output) -> Result<()> {
    let upstream = &answer["upstream"];
    if output.json {
        output.object(upstream)?;
    }
    if upstream["state"] == "connecting" {
        return output.raw(&format!("restarting {name}; `tidings upstream health` says how it is"));
    }
    if upstream["state"] != "ready" {
        let reason = word(upstream, "reason");
        let usage = anyhow!("`{name}` is {} after the restart: {reason}", word(upstream, "state"));
        return Err(usage);
    }
    if output.json { Ok(()) } else { output.raw(&format!("restarted {name}")) }
}

fn upstreams(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["upstreams"].as_array().into_iter().flatten()
}

fn list(answer: &Value, output: &Output) -> Result<()> {
    if output.json {
        return upstreams(answer).try_for_each(|upstream| output.object(upstream));
    }
    let mut table = Table::new(["NAME", "STATE", "TOOLS", "PROMPTS", "RESOURCES", "SERVER"]);
    for upstream in upstreams(answer) {
        let server = [word(upstream, "server"), word(upstream, "version")];
        table.row([
            word(upstream, "name"),
            word(upstream, "state"),
            word(upstream, "tools"),
            word(upstream, "prompts"),
            word(upstream, "resources"),
            server.join(" ").trim().to_owned(),
        ]);
    }
    output.raw(&table.render(output.width, output.paint))
}

/// The member of an object, as text.
fn word(object: &Value, key: &str) -> String {
    match &object[key] {
        Value::Null => String::new(),
        Value::String(text) => harmless(text),
        other => other.to_string(),
    }
}

fn health(answer: &Value, output: &Output) -> Result<()> {
    for upstream in upstreams(answer) {
        if output.json {
            output.object(upstream)?;
            continue;
        }
        output.raw(&format!("{}: {}", word(upstream, "name"), word(upstream, "state")))?;
        let facts = [
            ("reason", word(upstream, "reason")),
            ("to do", remedy(&word(upstream, "failure")).unwrap_or_default().to_owned()),
            ("next try", milliseconds(upstream, "next_try_ms")),
            ("server", word(upstream, "server")),
            ("protocol", word(upstream, "version")),
            (
                "requests",
                format!(
                    "{}, {} without a result",
                    word(upstream, "requests"),
                    word(upstream, "failed")
                ),
            ),
            ("last answer", milliseconds(upstream, "latency_ms")),
            (
                "watched",
                format!(
                    "{}; to find changes, {} reads and {} lists",
                    word(upstream, "watched"),
                    word(upstream, "looks"),
                    word(upstream, "list_looks")
                ),
            ),
            (
                "connections",
                format!(
                    "{}, {} could not be made",
                    word(upstream, "connections"),
                    word(upstream, "failed_connections")
                ),
            ),
        ];
        for (key, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            output.raw(&format!("  {key:<12} {value}"))?;
        }
        for key in ["problems", "volatile", "held"] {
            for value in upstream[key].as_array().into_iter().flatten() {
                let text = value.as_str().map_or_else(|| word(value, "name"), harmless);
                output.raw(&format!("  {key:<12} {text}"))?;
            }
        }
    }
    let down: Vec<_> = upstreams(answer)
        .filter(|upstream| ["lost", "down"].contains(&word(upstream, "state").as_str()))
        .map(|upstream| word(upstream, "name"))
        .collect();
    if down.is_empty() {
        return Ok(());
    }
    bail!(anyhow!("not available: {}", down.join(", ")))
}

/// What an operator can do about a failure.
pub(crate) fn remedy(failure: &str) -> Option<&'static str> {
    match failure {
        "unauthorized" => Some(
            "sign in anew: write a token to the file that `token_file` names, which is read again \
             by itself, or change `headers`",
        ),
        "forbidden" => Some("use a token with more rights"),
        _ => None,
    }
}

fn milliseconds(object: &Value, key: &str) -> String {
    match object[key].as_f64() {
        Some(time) if time >= 1000.0 => format!("{:.1} s", time / 1000.0),
        Some(time) => format!("{time:.1} ms"),
        None => String::new(),
    }
}

/// Prints what was approved: the difference of each changed definition, and new ones whole.
fn approved(answer: &Value, output: &Output) -> Result<()> {
    let approved: Vec<_> = answer["approved"].as_array().into_iter().flatten().collect();
    for held in &approved {
        let pretty = |key: &str| -> String {
            let text = held[key].as_str().unwrap_or_default();
            let value = serde_json::from_str::<Value>(text);
            value.map_or_else(|_| text.to_owned(), |value| format!("{value:#}"))
        };
        let what = if held["before"].is_null() { "new" } else { "changed" };
        output.raw(&format!("{what}: {} in {}", word(held, "name"), word(held, "list")))?;
        output.raw(&unified(&pretty("before"), &pretty("now"), output.paint))?;
    }
    match approved.len() {
        0 => output.raw("nothing waits for an approval"),
        1 => output.raw("approved 1 definition"),
        number => output.raw(&format!("approved {number} definitions")),
    }
}
