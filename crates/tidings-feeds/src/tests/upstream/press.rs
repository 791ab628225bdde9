//! A server of feeds for tests: each address answers what it was last told to, and every request
//! is written down.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use reqwest::header::HeaderMap;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// One request that came.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) path: String,
    headers: HeaderMap,
}

impl Hit {
    /// A header as it came; nothing if it did not.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// What an address answers.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    end: End,
}

/// How the body of an answer ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Whole,
    /// The connection is closed before the end.
    CutOff,
    /// Nothing more comes.
    Never,
}

impl Answer {
    pub(super) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), end: End::Whole }
    }

    pub(super) fn document(body: impl Into<Bytes>) -> Self {
        Self::new(200, body)
    }

    pub(super) fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, "elsewhere").with("location", location)
    }

    /// A header. Where it is a validator, whoever sends it back letter for letter is answered 304.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn cut_off(mut self) -> Self {
        self.end = End::CutOff;
        self
    }

    pub(super) fn never_ending(mut self) -> Self {
        self.end = End::Never;
        self
    }

    fn is_known_to(&self, hit: &Hit) -> bool {
        let value = |name: &str| self.headers.iter().find(|it| it.0 == name).map(|it| &it.1);
        match (value("etag"), value("last-modified")) {
            (Some(etag), _) => hit.header("if-none-match") == etag,
            (None, Some(modified)) => hit.header("if-modified-since") == modified,
            (None, None) => false,
        }
    }

    fn play(&self, hit: &Hit) -> Response {
        let is_known = self.is_known_to(hit);
        let mut response = Response::builder().status(if is_known { 304 } else { self.status });
        for (name, value) in &self.headers {
            response = response.header(*name, value);
        }
        let begin = stream::iter([Ok(self.body.clone())]);
        let body = match self.end {
            _ if is_known => Body::empty(),
            End::Whole => Body::from(self.body.clone()),
            End::CutOff => {
                // What came before is on its way when the connection ends.
                let broken = stream::once(async {
                    tokio::task::yield_now().await;
                    Err(std::io::Error::other("cut off"))
                });
                Body::from_stream(begin.chain(broken))
            }
            End::Never => {
                Body::from_stream(begin.chain(stream::pending::<std::io::Result<Bytes>>()))
            }
        };
        response.body(body).unwrap()
    }
}

/// The server; it ends when this is dropped.
pub(super) struct Press {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    hits: Vec<Hit>,
}

impl Press {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let seen = state.clone();
        let answer = async move |request: Request| {
            let hit =
                Hit { path: request.uri().path().to_owned(), headers: request.headers().clone() };
            let mut state = seen.lock().unwrap();
            state.hits.push(hit.clone());
            match state.answers.get(&hit.path) {
                Some(answer) => answer.play(&hit),
                None => Answer::new(404, "").play(&hit),
            }
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            axum::serve(listener, Router::new().fallback(answer)).await.unwrap();
        });
        Self { address, state, _tasks: tasks }
    }

    /// What an address answers from now on.
    pub(super) fn print(&self, path: &str, answer: Answer) {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// The requests since the last time this was asked.
    pub(super) fn take_hits(&self) -> Vec<Hit> {
        std::mem::take(&mut self.state.lock().unwrap().hits)
    }
}
