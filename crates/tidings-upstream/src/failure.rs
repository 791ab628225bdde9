//! Why an upstream has no answer, in words that name it and keep its secrets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tidings_mirror::{RelayError, RequestError, Target, TokenSource};
use tidings_server::{AnswerError, Raw};

use crate::config::Config;

/// Shorter texts are no secrets worth hiding, and hiding them would spoil every message.
const SECRET: usize = 8;
/// So many tokens of the past are remembered: a server may repeat one that was just renewed.
const TOKENS: usize = 8;
/// The member of an error's `data` that names the upstream, in errors of a gateway itself.
const UPSTREAM: &str = "upstream";

/// Words about one upstream.
#[derive(Clone)]
pub(crate) struct Failures {
    name: Arc<str>,
    /// Texts that no message may have.
    secrets: Arc<[String]>,
    /// The same, tokens that were used, the newest last.
    tokens: Arc<Mutex<Vec<String>>>,
}

impl Failures {
    pub(crate) fn new(config: &Config) -> Self {
        let mut secrets: Vec<String> = match &config.target {
            Target::Http(http) => {
                let headers = http.headers.iter().map(|(_, value)| value.reveal());
                headers
                    .flat_map(|value| [value, value.trim_start_matches("Bearer ")])
                    .map(str::to_owned)
                    .collect()
            }
            Target::Command(command) => {
                command.environment.values().map(|value| value.reveal().to_owned()).collect()
            }
            _ => Vec::new(),
        };
        secrets.retain(|secret| secret.len() >= SECRET);
        let (name, tokens) = (config.name.as_str().into(), Arc::default());
        Self { name, secrets: secrets.into(), tokens }
    }

    /// The same target, whose tokens are secrets from their first use.
    pub(crate) fn guarded(&self, mut target: Target) -> Target {
        if let Target::Http(http) = &mut target
            && let Some(source) = http.token.take()
        {
            let failures = self.clone();
            http.token = Some(TokenSource::new(move || {
                let (source, failures) = (source.clone(), failures.clone());
                async move {
                    let token = source.token().await;
                    if let Some(token) = &token {
                        failures.learn(token.reveal());
                    }
                    token
                }
            }));
        }
        target
    }

    fn learn(&self, token: &str) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if token.len() < SECRET || tokens.iter().any(|known| known == token) {
            return;
        }
        if tokens.len() >= TOKENS {
            tokens.remove(0);
        }
        tokens.push(token.to_owned());
    }

    /// A text without secrets.
    pub(crate) fn harmless(&self, text: &str) -> String {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = self.secrets.iter().chain(tokens.iter());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }

    /// There is no connection.
    pub(crate) fn down(&self, reason: &str) -> AnswerError {
        self.unavailable(&format!("the server `{}` is not available: {reason}", self.name))
    }

    /// It did not come up in time.
    pub(crate) fn starting(&self, waited: Duration) -> AnswerError {
        let (name, waited) = (&self.name, waited.as_secs_f32());
        self.unavailable(&format!("the server `{name}` is still starting after {waited} s"))
    }

    /// It said nothing for too long.
    pub(crate) fn silent(&self, waited: Duration) -> AnswerError {
        let (name, waited) = (&self.name, waited.as_secs_f32());
        self.unavailable(&format!("the server `{name}` did not answer within {waited} s"))
    }

    /// It took too long in all.
    pub(crate) fn too_long(&self, most: Duration) -> AnswerError {
        let (name, most) = (&self.name, most.as_secs_f32());
        self.unavailable(&format!("the server `{name}` did not finish within {most} s"))
    }

    /// A request came back to where it began.
    pub(crate) fn ring(&self) -> AnswerError {
        self.error(
            -32600,
            &format!(
                "the request came back through `{}`: servers are upstreams of each other",
                self.name
            ),
        )
    }

    /// Something that is not offered, and why.
    pub(crate) fn refused(&self, why: &str) -> AnswerError {
        self.error(-32602, why)
    }

    /// A task in place of a result.
    pub(crate) fn task(&self) -> AnswerError {
        self.unavailable(&format!(
            "the server `{}` began a task, which nobody asked for and which cannot be relayed",
            self.name
        ))
    }

    /// A result that is not JSON.
    pub(crate) fn unreadable(&self, error: &dyn std::error::Error) -> AnswerError {
        self.unavailable(&format!(
            "the answer of the server `{}` cannot be relayed: {error}",
            self.name
        ))
    }

    /// A request that failed. The server's own error is relayed as it was sent.
    pub(crate) fn of(&self, failed: &RelayError) -> AnswerError {
        if let Some(raw) = failed.raw.as_deref().and_then(|raw| Raw::parse(self.harmless(raw)).ok())
        {
            return AnswerError::Raw(raw);
        }
        let name = &self.name;
        match &failed.error {
            RequestError::Refused(error) => {
                let text = serde_json::to_string(error).unwrap_or_default();
                let raw = Raw::parse(self.harmless(&text));
                raw.map_or_else(|error| self.unreadable(&error), AnswerError::Raw)
            }
            RequestError::NotConnected(reason) => self.down(reason),
            RequestError::Lost(reason) => self.unavailable(&format!(
                "the server `{name}` was lost before it answered, and may have done what was asked: {reason}"
            )),
            other => self.unavailable(&format!("the server `{name}`: {other}")),
        }
    }

    fn unavailable(&self, text: &str) -> AnswerError {
        self.error(-32603, text)
    }

    fn error(&self, code: i32, text: &str) -> AnswerError {
        let message = self.harmless(text);
        let error = json!({ "code": code, "message": message, "data": { UPSTREAM: &*self.name } });
        let raw = Raw::parse(error.to_string());
        raw.map_or_else(|_| AnswerError::Failed(message), AnswerError::Raw)
    }
}

/// Whether an error was made by a gateway, here or behind the server, and not by the server that was
/// asked.
pub(crate) fn is_of_gateway<T>(error: &Raw<T>) -> bool {
    let data = error.get("data").and_then(|data| Raw::<()>::parse(data).ok());
    data.is_some_and(|data| data.get(UPSTREAM).is_some())
}

#[cfg(test)]
mod tests {
    use tidings_mirror::{CommandTarget, HttpTarget, Secret};

    use super::*;
    use crate::config::Name;
    use crate::watch::Sighting;

    fn failures(target: impl Into<Target>) -> Failures {
        Failures::new(&Config::new(Name::parse("git").unwrap(), target))
    }

    #[test]
    fn secrets_are_in_no_message() {
        let target = HttpTarget::new("http://127.0.0.1:1/mcp")
            .header("authorization", Secret::new("Bearer hunter2hunter2"));
        let words = failures(target).down("401 for hunter2hunter2").to_string();
        assert_eq!(words, "the server `git` is not available: 401 for …");
        let target = CommandTarget::new("x", Vec::new()).env("KEY", Secret::new("hunter2hunter2"));
        let raw = r#"{"code":-32000,"message":"bad key hunter2hunter2","data":{"b":1,"a":2}}"#;
        let failed = RelayError::from(RequestError::Unexpected);
        let mut failed = failed;
        failed.raw = Some(raw.into());
        let AnswerError::Raw(told) = failures(target).of(&failed) else { panic!("a raw error") };
        assert_eq!(told.as_str(), raw.replace("hunter2hunter2", "…"));
    }

    #[tokio::test]
    async fn tokens_that_were_used_are_in_no_message() {
        let mut target = HttpTarget::new("http://127.0.0.1:1/mcp");
        let numbers = Arc::new(Mutex::new(0));
        target.token = Some(TokenSource::new(move || {
            let mut number = numbers.lock().unwrap();
            *number += 1;
            std::future::ready(Some(Secret::new(format!("hunter-hunter-{number}"))))
        }));
        let failures = failures(target.clone());
        let guarded = failures.guarded(target.into());
        let Target::Http(http) = &guarded else { panic!("it is as before") };
        for _ in 0..2 {
            http.token.as_ref().unwrap().token().await;
        }
        let words = failures.harmless("hunter-hunter-1 hunter-hunter-2 hunter-hunter-3");
        assert_eq!(words, "… … hunter-hunter-3");
    }

    #[test]
    fn only_the_server_says_that_there_is_no_resource() {
        let failures = failures("http://127.0.0.1:1/mcp");
        let given_up = failures.refused("the request was cancelled");
        assert!(Sighting::of(&Err(given_up)).is_none());
        for data in ["null", "[]", r#"{"uri":"note://1"}"#] {
            let said = format!(r#"{{"code":-32602,"message":"not found","data":{data}}}"#);
            let mut failed = RelayError::from(RequestError::Unexpected);
            failed.raw = Some(said.into());
            assert!(Sighting::of(&Err(failures.of(&failed))).is_some(), "{data}");
        }
    }

    #[test]
    fn a_loss_says_that_the_request_may_have_been_carried_out() {
        let lost = RequestError::Lost("the pipe closed".into()).into();
        let words = failures("http://127.0.0.1:1/mcp").of(&lost).to_string();
        assert!(words.contains("`git`") && words.contains("may have done"), "{words}");
    }
}
