//! `/livez` and `/readyz`: whether the process works, and whether it can take requests.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{App, Check};

/// How long a verdict is cached.
const FRESH: Duration = Duration::from_secs(1);
/// The timeout of the checks.
const LONGEST: Duration = Duration::from_secs(1);

/// Whether the process works: a supervisor restarts one that does not.
pub(super) async fn live(State(app): State<Arc<App>>) -> Response {
    respond(&[("hub", verdict(app.pipeline.stopped.is_cancelled(), "the hub is shut down"))])
}

/// Whether requests should come here: a balancer sends them elsewhere if not.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Response {
    let mut checks = vec![
        ("hub", verdict(app.pipeline.stopped.is_cancelled(), "the hub is shut down")),
        ("serving", verdict(app.closing.is_cancelled(), "the server is stopping")),
        ("connections", verdict(app.gate.is_full(), "as many are open as may be")),
        (
            "sessions",
            verdict(!app.sessions.has_place(), "there are as many as may be, and none is idle"),
        ),
        ("listeners", verdict(!app.has_listen_place(), "there are as many as may be")),
        ("memory", verdict(app.budget.is_spent(), "the budget for requests under way is used up")),
    ];
    checks.extend(app.checked.verdicts(&app.config.checks).await);
    respond(&checks)
}

/// The verdicts of the operator's checks. Checks may read files, and anybody may ask for them, so
/// they run at most once a second.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    last: Arc<Mutex<Option<Made>>>,
}

type Verdict = (&'static str, Result<(), String>);
/// A verdict and its time.
type Made = (Instant, Vec<Verdict>);

impl Checked {
    /// The checks run on one thread that may wait, because a full or remote disk can make them slow.
    /// Requests meanwhile wait without a thread.
    async fn verdicts(&self, checks: &[Check]) -> Vec<Verdict> {
        let making = async {
            let mut last = self.last.clone().lock_owned().await;
            if let Some((made, verdicts)) = &*last
                && made.elapsed() < FRESH
            {
                return verdicts.clone();
            }
            let checks = checks.to_vec();
            let made = tokio::task::spawn_blocking(move || {
                let made: Vec<_> = checks.iter().map(|check| (check.name, (check.run)())).collect();
                *last = Some((Instant::now(), made.clone()));
                made
            });
            made.await.unwrap_or_else(|_| vec![("checks", Err("a check failed".to_owned()))])
        };
        let late = |_| vec![("checks", Err("they take too long".to_owned()))];
        tokio::time::timeout(LONGEST, making).await.unwrap_or_else(late)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_check_that_hangs_fails_and_takes_one_thread_only() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (released, runs) = (std::sync::Mutex::new(released), Arc::new(AtomicUsize::new(0)));
        let counted = runs.clone();
        let hangs = Check::new("disk", move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = released.lock().unwrap().recv();
            Ok(())
        });
        let (checked, checks) = (Checked::default(), [hangs]);
        let asked = (0..20).map(|_| checked.verdicts(&checks));
        for verdicts in futures_util::future::join_all(asked).await {
            assert_eq!(verdicts, [("checks", Err("they take too long".to_owned()))]);
        }
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        // Once it has ended, its verdict counts.
        drop(release);
        assert_eq!(checked.verdicts(&checks).await, [("disk", Ok(()))]);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}
