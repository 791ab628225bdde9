//! `/livez` and `/readyz`: whether the process works, and whether it can take requests.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use tokio::time::Instant;

use super::{App, Check};

/// How long a verdict holds.
const FRESH: Duration = Duration::from_secs(1);

/// Whether the process works: a supervisor restarts one that does not.
pub(super) async fn live(State(app): State<Arc<App>>) -> Response {
    respond(&[("hub", verdict(app.core.stopped.is_cancelled(), "the hub is shut down"))])
}

/// Whether requests should come here: a balancer sends them elsewhere if not.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Response {
    let mut checks = vec![
        ("hub", verdict(app.core.stopped.is_cancelled(), "the hub is shut down")),
        ("serving", verdict(app.closing.is_cancelled(), "the server is stopping")),
        ("connections", verdict(app.gate.is_full(), "as many are open as may be")),
        (
            "sessions",
            verdict(!app.sessions.has_place(), "there are as many as may be, and none is idle"),
        ),
        ("listeners", verdict(!app.has_listen_place(), "there are as many as may be")),
        ("memory", verdict(app.budget.is_spent(), "the budget for requests under way is used up")),
    ];
    // They read files, which a full or a remote disk can make slow.
    let made = tokio::task::spawn_blocking(move || app.checked.verdicts(&app.config.checks)).await;
    checks.extend(made.unwrap_or_else(|_| vec![("checks", Err("a check failed".to_owned()))]));
    respond(&checks)
}

/// The verdicts of the operator's checks. They may read files, and anybody may ask, so they are made
/// once a second at most.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    last: Mutex<Option<(Instant, Vec<Verdict>)>>,
}

type Verdict = (&'static str, Result<(), String>);

impl Checked {
    fn verdicts(&self, checks: &[Check]) -> Vec<Verdict> {
        let mut last = self.last.lock().expect("no code panics while it holds the verdicts");
        match &*last {
            Some((made, verdicts)) if made.elapsed() < FRESH => verdicts.clone(),
            _ => {
                let made: Vec<_> = checks.iter().map(|check| (check.name, (check.run)())).collect();
                *last = Some((Instant::now(), made.clone()));
                made
            }
        }
    }
}

fn verdict(fails: bool, why: &str) -> Result<(), String> {
    if fails { Err(why.to_owned()) } else { Ok(()) }
}

fn respond(checks: &[(&str, Result<(), String>)]) -> Response {
    let mut text = String::new();
    for (name, verdict) in checks {
        let line = match verdict {
            Ok(()) => writeln!(text, "ok    {name}"),
            Err(why) => writeln!(text, "fail  {name}: {why}"),
        };
        line.expect("writing to a string cannot fail");
    }
    let mut response = Response::new(Body::from(text));
    if checks.iter().any(|(_, verdict)| verdict.is_err()) {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
