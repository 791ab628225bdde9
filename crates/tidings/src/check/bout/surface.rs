//! `http.*`, `proc.*` and `listen.no-session`: the edges of the transport.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::json;
use tidings_mirror::Era;
use tokio::time::Instant;

use super::Bout;
use crate::check::client::log::{Arrival, NOT_A_MESSAGE, What};
use crate::check::client::{LEGACY, MODERN, Probe};
use crate::check::verdict::Findings;
use crate::present::text::{cut, one_line};

/// How long a server may take to exit, unless it took longer to start.
const EXIT: Duration = Duration::from_secs(2);

pub(super) async fn run(bout: &mut Bout<'_>) {
    origin(bout).await;
    if bout.era != Era::Legacy {
        no_session(bout).await;
    }
}

async fn origin(bout: &mut Bout<'_>) {
    let id = "http.origin";
    bout.findings.begin();
    let Some(http) = bout.client.http() else {
        bout.findings.not_offered(id, bout.era, "a pipe has no origins");
        return;
    };
    let mut headers = http.endpoint.headers.clone();
    let (version, method) =
        if bout.era == Era::Legacy { (LEGACY, "initialize") } else { (MODERN, "server/discover") };
    headers.insert("origin", HeaderValue::from_static("https://tidings-check.invalid"));
    let message = if bout.era == Era::Legacy {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {
            "protocolVersion": version, "capabilities": {},
            "clientInfo": { "name": "tidings-check", "version": "1" },
        }})
    } else {
        headers.insert("mcp-protocol-version", HeaderValue::from_static(MODERN));
        headers.insert("mcp-method", HeaderValue::from_static("server/discover"));
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }}})
    };
    match http.status(Method::POST, headers, Some(&message)).await {
        Ok(403) => bout.findings.pass(id, bout.era, "403"),
        Ok(answer) => {
            let said = format!("a request of `https://tidings-check.invalid` got HTTP {answer}");
            bout.findings.fail(id, bout.era, said);
        }
        Err(why) => bout.findings.not_tried(id, bout.era, why),
    }
}

async fn no_session(bout: &mut Bout<'_>) {
    let id = "listen.no-session";
    bout.findings.begin();
    let Some(http) = bout.client.http() else {
        bout.findings.not_offered(id, bout.era, "a pipe has no sessions");
        return;
    };
    let mut failure = bout
        .client
        .has_session()
        .then(|| "an answer to a modern request has an `Mcp-Session-Id`".to_owned());
    let mut headers = http.endpoint.headers.clone();
    headers.insert("mcp-protocol-version", HeaderValue::from_static(MODERN));
    for method in [Method::GET, Method::DELETE] {
        let answer = http.status(method.clone(), headers.clone(), None).await;
        if let Ok(answer) = answer
            && answer != 405
        {
            failure = Some(format!("a modern {method} got HTTP {answer}, not 405"));
        }
    }
    bout.findings.judge(id, bout.era, failure, "no session; GET and DELETE get 405");
}

/// `proc.*`, with the end of the client.
pub(super) async fn farewell(mut client: Probe, era: Era, findings: &mut Findings) {
    let heard = client.log.since(0);
    findings.begin();
    let most = EXIT.max(client.started_in);
    let Some(pipe) = client.pipe() else {
        for id in ["proc.eof-exit", "proc.stdout-clean"] {
            findings.not_offered(id, era, "the server is behind a URL");
        }
        client.end().await;
        return;
    };
    pipe.close().await;
    let ended = if let Some(program) = pipe.program() {
        // On a busy machine, what starts slowly ends slowly.
        program.ends_within(most).await
    } else {
        let is_end = |heard: &Arrival| matches!(heard.what, What::Ended(_));
        let end = client.log.wait(0, Instant::now() + EXIT, is_end).await;
        end.map(drop).ok_or_else(|| "its output stays open after its input is closed".to_owned())
    };
    findings.judge("proc.eof-exit", era, ended.err(), "it ended with its input");
    let garbage = heard.iter().find_map(|heard| match &heard.what {
        What::Garbage(line) => Some(format!(
            "standard output has a line that is not a message: {}",
            cut(&one_line(line), 80)
        )),
        _ => None,
    });
    findings.judge("proc.stdout-clean", era, garbage, "nothing but messages");
    findings.show("proc.stdout-clean", era, client.evidence(NOT_A_MESSAGE));
    client.end().await;
}
