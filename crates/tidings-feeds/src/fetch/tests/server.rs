//! A feed server for tests: each test says what it answers, and sees what it was asked.

use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use reqwest::header::HeaderMap;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::fetch::resolve::ResolvedAddress;

/// One request that came.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
}

impl Hit {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Put into an answer's extensions: it never comes.
#[derive(Clone)]
pub(crate) struct Never;

/// The server; it ends when this is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    hits: Arc<Mutex<Vec<Hit>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(
        play: impl Fn(&Hit) -> Response + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hits = Arc::new(Mutex::new(Vec::new()));
        let seen = hits.clone();
        let answer = move |request: Request| {
            let mut seen = seen.lock().unwrap();
            let hit =
                Hit { path: request.uri().path().to_owned(), headers: request.headers().clone() };
            seen.push(hit.clone());
            let response = play(&hit);
            async move {
                if response.extensions().get::<Never>().is_some() {
                    pending::<()>().await;
                }
                response
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            axum::serve(listener, Router::new().fallback(answer)).await.unwrap();
        });
        Self { address, hits, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn hits(&self) -> Vec<Hit> {
        self.hits.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.hits().into_iter().map(|hit| hit.path).collect()
    }

    /// This server as the answer of a name server that gives it another address.
    pub(in crate::fetch) fn found_at(&self, address: &str) -> Vec<ResolvedAddress> {
        let address: IpAddr = address.parse().unwrap();
        vec![ResolvedAddress { address, socket: self.address }]
    }
}

/// An answer with headers.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

/// A redirect.
pub(crate) fn redirect(status: u16, location: &str) -> Response {
    answer(status, &[("location", location)], "elsewhere")
}
