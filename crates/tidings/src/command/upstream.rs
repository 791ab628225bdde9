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
        UpstreamCommand::Restart { name } if !args.json => output.raw(&format!("restarted {name}")),
        UpstreamCommand::Approve { .. } if !args.json => approved(&answer, &output),
        _ => output.object(&answer),
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
            ("next try", milliseconds(upstream, "next_try_ms")),
            ("server", word(upstream, "server")),
            ("protocol", word(upstream, "version")),
            (
                "requests",
                format!("{}, {} failed", word(upstream, "requests"), word(upstream, "failed")),
            ),
            ("last answer", milliseconds(upstream, "latency_ms")),
            (
                "watched",
                format!(
                    "{}, {} reads to find changes",
                    word(upstream, "watched"),
                    word(upstream, "looks")
                ),
            ),
            ("connections", word(upstream, "connections")),
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

fn milliseconds(object: &Value, key: &str) -> String {
    object[key].as_f64().map(|time| format!("{time:.1} ms")).unwrap_or_default()
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
