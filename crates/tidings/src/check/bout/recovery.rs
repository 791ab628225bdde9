//! Restarts: how streams end, and how clients find their way back.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::json;
use tidings_mirror::Era;
use tokio::time::Instant;

use super::Bout;
use crate::check::cause::{Restart, exec};
use crate::check::client::Probe;
use crate::check::client::log::{Arrival, Via, What};
use crate::check::topic::{Following, LISTS, TAG, Topic, list};

/// How long a server may take to stop, and to start again.
const STOP: Duration = Duration::from_secs(5);
const START: Duration = Duration::from_secs(30);
/// The pause between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(100);

pub(super) async fn run(bout: &mut Bout<'_>) {
    bout.findings.begin();
    let stranger = unknown_session(bout).await;
    if let Some(said) = stranger {
        bout.findings.fail("recon.resume", bout.era, said);
    }
    let settings = bout.settings;
    let Some(restart) = &settings.restart else { return };
    let victim = match bout.another().await {
        Ok(victim) => victim,
        Err(why) => {
            bout.findings.not_tried("recon.resume", bout.era, format!("a second client got {why}"));
            return;
        }
    };
    match restart {
        Restart::Program => program(bout, victim).await,
        Restart::Exec(command) => behind_url(bout, victim, command).await,
    }
}

/// What a session id that the server does not know gets, if it is wrong.
async fn unknown_session(bout: &Bout<'_>) -> Option<String> {
    if bout.era != Era::Legacy || !bout.client.has_session() {
        return None;
    }
    let http = bout.client.http()?;
    let mut headers = http.headers();
    headers.insert("mcp-session-id", HeaderValue::from_static("tidings-check-no-such-session"));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let status = http.status(Method::POST, headers, Some(&message)).await.ok()?;
    (status != 404).then(|| format!("an unknown session got HTTP {status}, not 404"))
}

/// A server that we started: it is asked to end, and started again.
async fn program(bout: &mut Bout<'_>, mut victim: Probe) {
    if victim.pipe().is_none_or(|pipe| pipe.program().is_none()) {
        for id in ["recon.resume", "listen.ends-gracefully"] {
            let said = "we did not start this server: give `--restart-exec COMMAND`";
            if id == "recon.resume" || bout.era != Era::Legacy {
                bout.findings.not_tried(id, bout.era, said);
            }
        }
        victim.end().await;
        return;
    }
    let listen = opened(bout, &victim).await;
    if let Some(program) = victim.pipe().and_then(|pipe| pipe.program()) {
        program.terminate();
    }
    graceful(bout, &victim, listen).await;
    victim.end().await;
    recovered(bout).await;
}

/// A server behind a URL: a command restarts it.
async fn behind_url(bout: &mut Bout<'_>, victim: Probe, command: &str) {
    let listen = opened(bout, &victim).await;
    if let Err(why) = exec(command).await {
        let said = format!("`{command}` failed: {why}");
        bout.findings.not_tried("recon.resume", bout.era, said.clone());
        if bout.era != Era::Legacy {
            bout.findings.not_tried("listen.ends-gracefully", bout.era, said);
        }
        victim.end().await;
        return;
    }
    graceful(bout, &victim, listen).await;
    victim.end().await;
    recovered(bout).await;
    // The old session must be refused in a way that tells the client to begin again.
    if let Some(said) = old_session(bout).await {
        bout.findings.fail("recon.resume", bout.era, said);
    }
    replace_client(bout).await;
}

/// What the session from before the restart gets, if it is wrong.
async fn old_session(bout: &Bout<'_>) -> Option<String> {
    if bout.era != Era::Legacy || !bout.client.has_session() {
        return None;
    }
    let http = bout.client.http()?;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = http.status(Method::POST, http.headers(), Some(&message)).await.ok()?;
    let is_right = answer == 404 || answer == 200;
    (!is_right).then(|| format!("the session from before got HTTP {answer}, not 404"))
}

/// The first client of the bout lost its server.
async fn replace_client(bout: &mut Bout<'_>) {
    if let Ok(fresh) = bout.another().await {
        let old = std::mem::replace(&mut bout.client, fresh);
        old.end().await;
    }
}

/// An open listen request, in the modern era.
async fn opened(bout: &Bout<'_>, victim: &Probe) -> Option<serde_json::Value> {
    if bout.era == Era::Legacy {
        return None;
    }
    let topics: Vec<_> =
        LISTS.iter().filter(|topic| topic.is_promised(&bout.client)).cloned().collect();
    if topics.is_empty() {
        return None;
    }
    Following::open(victim, &topics).await.ok()?.listen
}

/// `listen.ends-gracefully`.
async fn graceful(bout: &mut Bout<'_>, victim: &Probe, listen: Option<serde_json::Value>) {
    let id = "listen.ends-gracefully";
    if bout.era == Era::Legacy {
        return;
    }
    let Some(listen) = listen else {
        bout.findings.not_offered(id, bout.era, "nothing can be listened to");
        return;
    };
    let via = Via::Answer(listen.clone());
    let wanted = |heard: &Arrival| match &heard.what {
        What::Message(message) => message.get("id") == Some(&listen),
        What::Ended(_) => heard.via == Via::Pipe || heard.via == via,
        What::Garbage(_) => false,
    };
    let end = victim.log.wait(0, Instant::now() + STOP, wanted).await;
    let said = match end.as_ref().and_then(|(_, heard)| heard.message()) {
        Some(message) if message["result"]["_meta"][TAG] == listen => None,
        Some(_) => Some("the last result of a stream has no `subscriptionId`".to_owned()),
        None if end.is_some() => Some("the stream broke off without a result".to_owned()),
        None => Some(format!("the stream did not end within {} s", STOP.as_secs())),
    };
    bout.findings.judge(id, bout.era, said, "ended with a result");
}

/// `recon.resume`: connects again and lists.
async fn recovered(bout: &mut Bout<'_>) {
    let id = "recon.resume";
    let began = Instant::now();
    let fresh = loop {
        match bout.another().await {
            Ok(fresh) => break fresh,
            Err(why) if began.elapsed() > START => {
                bout.findings.fail(id, bout.era, format!("after the restart: {why}"));
                return;
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    let topic = bout.listed.keys().next().cloned().unwrap_or(Topic::Tools);
    let listed = list(&fresh, &topic).await;
    let took = began.elapsed();
    bout.measures.recovered(took);
    fresh.end().await;
    let said =
        listed.err().map(|reply| format!("after the restart, {} got {reply}", topic.method()));
    bout.findings.judge(id, bout.era, said, format!("back after {} ms", took.as_millis()));
}
