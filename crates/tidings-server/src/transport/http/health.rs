//! `/livez` and `/readyz`: whether the process works, and whether it can take requests.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::App;

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
        ("sessions", verdict(!app.sessions.has_room(), "there are as many as may be")),
        ("listeners", verdict(!app.has_listen_place(), "there are as many as may be")),
        ("memory", verdict(app.budget.is_spent(), "the budget for requests under way is used up")),
    ];
    checks.extend(app.config.checks.iter().map(|check| (check.name, (check.run)())));
    respond(&checks)
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
