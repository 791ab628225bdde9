//! A client's HTTP requests, as they are: statuses and headers are seen, nothing is retried.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::task::{AbortHandle, JoinSet};

use super::asked::Manners;
use super::log::{Log, Via, What};

/// The longest body or event that is read.
const BODY: usize = 32 << 20;
/// Time for the first line of an answer.
const HEAD: Duration = Duration::from_secs(30);

/// Where requests go, and what they carry.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) client: reqwest::Client,
    pub(crate) url: reqwest::Url,
    pub(crate) headers: HeaderMap,
}

/// The HTTP side of one client.
#[derive(Debug)]
pub(crate) struct Http {
    pub(crate) endpoint: Endpoint,
    manners: Manners,
    /// Set by the answer to `initialize`.
    pub(crate) session: OnceLock<String>,
    /// Set when the revision is agreed on.
    pub(crate) version: OnceLock<String>,
    /// The headers of answers that had a session id.
    pub(crate) sessions_seen: Mutex<usize>,
    /// Answers under way, by id.
    pub(crate) under_way: Mutex<HashMap<String, AbortHandle>>,
}

impl Http {
    pub(crate) fn new(endpoint: Endpoint, manners: Manners) -> Self {
        Self {
            endpoint,
            manners,
            session: OnceLock::new(),
            version: OnceLock::new(),
            sessions_seen: Mutex::default(),
            under_way: Mutex::default(),
        }
    }

    /// The headers of every request of this client.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = self.endpoint.headers.clone();
        for (name, value) in
            [("mcp-session-id", self.session.get()), ("mcp-protocol-version", self.version.get())]
        {
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    /// The same with what a modern request says of itself.
    pub(crate) fn modern_headers(&self, message: &Value) -> HeaderMap {
        let mut headers = self.headers();
        let method = message["method"].as_str().unwrap_or_default();
        let name = message["params"].get("name").or_else(|| message["params"].get("uri"));
        let name = name
            .and_then(Value::as_str)
            .filter(|_| matches!(method, "tools/call" | "prompts/get" | "resources/read"));
        for (header, value) in [("mcp-method", Some(method)), ("mcp-name", name)] {
            let Some(value) = value else { continue };
            let plain = value.trim() == value
                && !value.starts_with("=?")
                && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            let written = if plain {
                value.to_owned()
            } else {
                format!("=?base64?{}?=", BASE64_STANDARD.encode(value))
            };
            if let Ok(value) = HeaderValue::try_from(written) {
                headers.insert(HeaderName::from_static(header), value);
            }
        }
        headers
    }

    /// The status of one request, apart from the client's log.
    pub(crate) async fn status(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<&Value>,
    ) -> Result<u16, String> {
        self.send(method, headers, body).await.map(|response| response.status().as_u16())
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<&Value>,
    ) -> Result<Response, String> {
        let accept = if method == Method::POST {
            "application/json, text/event-stream"
        } else {
            "text/event-stream"
        };
        let mut request = self
            .endpoint
            .client
            .request(method, self.endpoint.url.clone())
            .headers(headers)
            .header("accept", accept);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        match tokio::time::timeout(HEAD, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(innermost(&error)),
            Err(_) => Err(format!("no answer within {} s", HEAD.as_secs())),
        }
    }

    /// Notes what an answer says of sessions.
    pub(crate) fn note(&self, response: &Response) {
        if let Some(session) = response.headers().get("mcp-session-id") {
            *self.sessions_seen.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            if let Ok(session) = session.to_str() {
                let _ = self.session.set(session.to_owned());
            }
        }
    }

    /// Reads an answer into the log, to its end. Requests of the server are answered meanwhile.
    pub(crate) async fn read(
        self: &Arc<Self>,
        mut response: Response,
        is_stream: bool,
        log: &Log,
        via: &Via,
    ) {
        let status = response.status();
        let mut body = Vec::new();
        let mut replies = JoinSet::new();
        let why = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break format!("HTTP {}", status.as_u16()),
                Err(error) => break innermost(&error),
            }
            if body.len() > BODY {
                break format!("more than {} MiB", BODY >> 20);
            }
            if is_stream {
                for event in events(&mut body) {
                    self.push(log, via, &event, &mut replies);
                }
            }
        };
        if is_stream {
            // The last event need not be terminated.
            body.extend_from_slice(b"\n\n");
            for event in events(&mut body) {
                self.push(log, via, &event, &mut replies);
            }
        } else if !body.is_empty() {
            self.push(log, via, &String::from_utf8_lossy(&body), &mut replies);
        }
        log.push(via.clone(), What::Ended(why));
        replies.join_all().await;
    }

    fn push(self: &Arc<Self>, log: &Log, via: &Via, text: &str, replies: &mut JoinSet<()>) {
        let message = match serde_json::from_str::<Value>(text) {
            Ok(message) if message.is_object() => message,
            _ => {
                log.push(via.clone(), What::Garbage(text.chars().take(200).collect()));
                return;
            }
        };
        let reply = self.manners.reply(&message);
        log.push(via.clone(), What::Message(message));
        let Some(reply) = reply else { return };
        log.replied(&reply);
        let http = self.clone();
        // Beside the stream: a server may send more on it before it takes the answer.
        replies.spawn(async move {
            // A server that is gone misses it.
            drop(http.send(Method::POST, http.headers(), Some(&reply)).await);
        });
        while replies.try_join_next().is_some() {}
    }
}

/// Only the last cause: those before it contain the URL, which may be secret.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

pub(crate) fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Takes the data of the complete events.
fn events(body: &mut Vec<u8>) -> Vec<String> {
    let mut found = Vec::new();
    let mut begin = 0;
    let mut data = String::new();
    let mut taken = 0;
    while let Some(end) = body[begin..].iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&body[begin..begin + end]);
        let line = line.trim_end_matches('\r');
        begin += end + 1;
        if line.is_empty() {
            if !data.is_empty() {
                found.push(std::mem::take(&mut data));
            }
            taken = begin;
        } else if let Some(part) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data += part.strip_prefix(' ').unwrap_or(part);
        }
    }
    body.drain(..taken);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_whole() {
        let mut body = b": hi\r\nid: 1\r\ndata: a\r\ndata: b\r\n\r\ndata:c\n\nda".to_vec();
        assert_eq!(events(&mut body), ["a\nb", "c"]);
        assert_eq!(body, b"da");
        body.extend_from_slice(b"ta: d\n");
        assert!(events(&mut body).is_empty());
        body.push(b'\n');
        assert_eq!(events(&mut body), ["d"]);
    }
}
