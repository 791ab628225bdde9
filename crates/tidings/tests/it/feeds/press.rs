//! A server of feeds for the program: it answers as a test says, now, later or never, and counts.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::HeaderMap;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::support::demo::within;

/// One request.
pub(super) struct Hit<'a> {
    /// How many came before it, to any address.
    pub(super) number: usize,
    pub(super) headers: &'a HeaderMap,
}

/// The server; it ends when this is dropped.
pub(super) struct Press {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    /// How many requests came for each address.
    counts: Mutex<HashMap<String, usize>>,
    more: Notify,
}

impl Press {
    /// Answers what `play` says; nothing at all, for ever, if it says nothing.
    pub(super) async fn start(
        play: impl Fn(&Hit<'_>) -> Option<Response> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let counted = seen.clone();
        let answer = async move |request: Request| {
            let number = {
                let mut counts = counted.counts.lock().unwrap();
                let number = counts.values().sum();
                *counts.entry(request.uri().path().to_owned()).or_default() += 1;
                number
            };
            counted.more.notify_one();
            match play(&Hit { number, headers: request.headers() }) {
                Some(response) => response,
                None => std::future::pending().await,
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            axum::serve(listener, Router::new().fallback(answer)).await.unwrap();
        });
        Self { address, seen, _tasks: tasks }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often an address was asked for.
    pub(super) fn count(&self, path: &str) -> usize {
        self.seen.counts.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    /// How many requests there were.
    pub(super) fn total(&self) -> usize {
        self.seen.counts.lock().unwrap().values().sum()
    }

    /// Waits until so many requests came.
    pub(super) async fn until(&self, total: usize) {
        let coming = async {
            while self.total() < total {
                self.seen.more.notified().await;
            }
        };
        within(coming).await;
    }
}

/// A document, with this as its validator, or nothing for who has it already.
pub(super) fn document(hit: &Hit<'_>, etag: &str, body: String) -> Response {
    let is_known = hit.headers.get("if-none-match").is_some_and(|it| it == etag);
    let response = Response::builder().header("etag", etag);
    if is_known {
        return response.status(304).body(Body::empty()).unwrap();
    }
    response.body(Body::from(body)).unwrap()
}
