//! `tidings info`: a server's name, versions, capabilities and response time.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tidings_mirror::model::ServerCapabilities;
use tidings_mirror::{Era, List, Server};
use tokio::time::Instant;

use crate::args;
use crate::present::text::{count, harmless, wrapped};
use crate::session::{self, Session};

pub(crate) async fn run(args: &args::Info) -> Result<()> {
    let place = args.connection.only_place(&args.words)?;
    session::once(&args.connection, place, &List::ALL, async |session| info(session).await).await
}

async fn info(session: &Session) -> Result<()> {
    let server = session.mirror.server().context("the server ended")?;
    let latency = latency(session, &server).await.unwrap_or_else(|error| {
        session.output.remark(&format!("warning: {error:#}"));
        None
    });
    let counts = counts(session);
    if session.output.json {
        return session.output.object(&object(&server, &counts, latency));
    }
    for list in List::ALL {
        if let Some(error) = session.mirror.list_error(list) {
            session.output.remark(&format!("warning: the {list} could not be listed: {error}"));
        }
    }
    session.output.raw(&words(session, &server, &counts, latency))
}

/// The time of a ping, or else of a short list; `None` if the server offers neither.
async fn latency(session: &Session, server: &Server) -> Result<Option<Duration>> {
    if server.era == Era::Legacy {
        match session.mirror.ping().await {
            Ok(latency) => return Ok(Some(latency)),
            // Some servers do not answer it.
            Err(error) if error.refusal().is_some() => {}
            Err(error) => return Err(error).context("sending a ping"),
        }
    }
    let capabilities = &server.capabilities;
    let list = if capabilities.prompts.is_some() {
        List::Prompts
    } else if capabilities.tools.is_some() {
        List::Tools
    } else if capabilities.resources.is_some() {
        List::Templates
    } else {
        return Ok(None);
    };
    let started = Instant::now();
    session.mirror.refresh(&[list]).await.with_context(|| format!("listing the {list}"))?;
    Ok(Some(started.elapsed()))
}

fn counts(session: &Session) -> [(List, usize); 4] {
    let mirror = &session.mirror;
    [
        (List::Tools, mirror.tools().len()),
        (List::Resources, mirror.resources().len()),
        (List::Templates, mirror.templates().len()),
        (List::Prompts, mirror.prompts().len()),
    ]
}

fn object(server: &Server, counts: &[(List, usize)], latency: Option<Duration>) -> Value {
    let identity = server.identity.as_ref();
    let counts: serde_json::Map<_, _> =
        counts.iter().map(|(list, count)| (list.to_string(), json!(count))).collect();
    json!({
        "name": identity.map(|identity| &identity.name),
        "title": identity.and_then(|identity| identity.title.as_ref()),
        "version": identity.map(|identity| &identity.version),
        "era": era(server.era),
        "protocol": server.version.as_str(),
        "capabilities": server.capabilities,
        "instructions": server.instructions,
        "counts": counts,
        "latency_ms": latency.map(|latency| latency.as_secs_f64() * 1000.0),
    })
}

fn words(
    session: &Session,
    server: &Server,
    counts: &[(List, usize)],
    latency: Option<Duration>,
) -> String {
    let paint = session.output.paint;
    let mut rows = Vec::new();
    if let Some(identity) = &server.identity {
        let title = identity.title.as_ref().map(|title| format!(" ({title})"));
        let name = format!("{} {}{}", identity.name, identity.version, title.unwrap_or_default());
        rows.push(("server", name));
    }
    rows.push(("protocol", format!("{}, {}", server.version, era(server.era))));
    rows.push(("offers", offers(&server.capabilities, counts)));
    rows.push(("notifies of", tells(&server.capabilities)));
    let more = more(&server.capabilities);
    if !more.is_empty() {
        rows.push(("also", more.join(", ")));
    }
    if let Some(latency) = latency {
        rows.push(("answers in", format!("{:.1} ms", latency.as_secs_f64() * 1000.0)));
    }
    let lines = rows.iter().map(|(label, value)| {
        format!("{}  {}", paint.faint(&format!("{label:10}")), harmless(value))
    });
    let mut lines: Vec<_> = lines.collect();
    if let Some(instructions) = &server.instructions {
        let columns = session.output.width.map_or(usize::MAX, |width| width.clamp(20, 100));
        lines.push(String::new());
        lines.extend(wrapped(&harmless(instructions), columns));
    }
    lines.join("\n")
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        _ => "modern",
    }
}

fn offers(capabilities: &ServerCapabilities, counts: &[(List, usize)]) -> String {
    let offered = |list: List| match list {
        List::Tools => capabilities.tools.is_some(),
        List::Resources | List::Templates => capabilities.resources.is_some(),
        List::Prompts => capabilities.prompts.is_some(),
    };
    let parts = counts.iter().filter(|(list, _)| offered(*list)).map(|(list, number)| {
        let many = list.as_str();
        count(*number, &many[..many.len() - 1], many)
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// The changes it announces.
fn tells(capabilities: &ServerCapabilities) -> String {
    let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
    let resources = capabilities.resources.as_ref();
    let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    let parts = [
        (tools, "new tools"),
        (resources.and_then(|resources| resources.list_changed), "new resources"),
        (prompts, "new prompts"),
        (resources.and_then(|resources| resources.subscribe), "changed contents"),
    ];
    let said: Vec<_> =
        parts.iter().filter(|(told, _)| *told == Some(true)).map(|(_, what)| *what).collect();
    if said.is_empty() { "no changes".to_owned() } else { said.join(", ") }
}

fn more(capabilities: &ServerCapabilities) -> Vec<String> {
    let mut more = Vec::new();
    if capabilities.completions.is_some() {
        more.push("completion".to_owned());
    }
    if capabilities.logging.is_some() {
        more.push("logging".to_owned());
    }
    more.extend(capabilities.extensions.iter().flat_map(|extensions| extensions.keys().cloned()));
    let experimental = capabilities.experimental.iter().flat_map(|experiments| experiments.keys());
    more.extend(experimental.map(|name| format!("{name} (experimental)")));
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_said_in_words() {
        let capabilities: ServerCapabilities = serde_json::from_value(json!({
            "tools": { "listChanged": true }, "resources": { "subscribe": true },
            "completions": {}, "extensions": { "example/x": {} },
        }))
        .unwrap();
        let counts =
            [(List::Tools, 1), (List::Resources, 5), (List::Templates, 0), (List::Prompts, 0)];
        assert_eq!(offers(&capabilities, &counts), "1 tool, 5 resources, 0 templates");
        assert_eq!(tells(&capabilities), "new tools, changed contents");
        assert_eq!(more(&capabilities), ["completion", "example/x"]);
        assert_eq!(tells(&ServerCapabilities::default()), "no changes");
    }
}
