//! The way to a server: a URL, a program, or pipes in memory. Each client opens it for itself.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use tidings_mirror::{CommandTarget, HttpTarget, Target};
use tokio::task::JoinSet;

use super::client::http::{Endpoint, Http};
use super::client::log::Log;
use super::client::pipe::{self, FromServer, Pipe, Program, ToServer};
use super::client::{Manners, Meter, Route};
use super::verdict::Trace;

/// Makes a new pair of pipes to the same server.
pub(crate) type Pipes = Arc<dyn Fn() -> (FromServer, ToServer) + Send + Sync>;

/// Where the server is.
#[derive(Clone)]
pub(crate) enum Site {
    Http { target: HttpTarget, headers: HeaderMap },
    Program(CommandTarget),
    Pipes(Pipes),
}

/// The way to the server, and what all clients share.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) place: Site,
    pub(crate) meter: Arc<Meter>,
    pub(crate) trace: Trace,
    /// Time to wait for an answer.
    pub(crate) timeout: Duration,
}

impl Site {
    /// The place of a target. The token is asked for once.
    pub(crate) async fn new(target: Target) -> Result<Self, String> {
        match target {
            Target::Http(target) => {
                let mut headers = HeaderMap::new();
                for (name, value) in &target.headers {
                    let parsed = HeaderName::try_from(name.as_str())
                        .ok()
                        .zip(HeaderValue::try_from(value.reveal()).ok());
                    let (name, value) = parsed.ok_or_else(|| format!("`{name}` is no header"))?;
                    headers.append(name, value);
                }
                if let Some(source) = &target.token
                    && let Some(token) = source.token().await
                {
                    headers.insert(AUTHORIZATION, bearer(token.reveal())?);
                }
                Ok(Self::Http { target, headers })
            }
            Target::Command(target) => Ok(Self::Program(target)),
            _ => Err("this server cannot be opened twice".to_owned()),
        }
    }

    /// Whether several clients meet the same server.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Self::Program(_))
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self, Self::Http { .. })
    }

    /// The same place with another bearer token.
    pub(crate) fn with_token(&self, token: &str) -> Result<Self, String> {
        let mut place = self.clone();
        if let Self::Http { headers, .. } = &mut place {
            headers.insert(AUTHORIZATION, bearer(token)?);
        }
        Ok(place)
    }
}

fn bearer(token: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| "the token is not a header's value".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

impl Door {
    /// Opens it for one client. What reads for the client runs in its tasks.
    pub(crate) fn open(
        &self,
        log: &Arc<Log>,
        tasks: &mut JoinSet<()>,
        manners: Manners,
    ) -> Result<Route, String> {
        let (input, pipe) = match &self.place {
            Site::Http { target, headers } => {
                let url = reqwest::Url::parse(&target.url).map_err(|error| error.to_string())?;
                // A client of its own for each: connections are not shared.
                let client = target.client().map_err(|error| error.to_string())?;
                let endpoint = Endpoint { client, url, headers: headers.clone() };
                return Ok(Route::Http(Arc::new(Http::new(endpoint, manners))));
            }
            Site::Program(target) => {
                let started = Program::start(target)?;
                tasks.spawn(started.words.follow(started.stderr));
                (started.input, Pipe::new(started.output, Some(started.program)))
            }
            Site::Pipes(pipes) => {
                let (input, output) = pipes();
                (input, Pipe::new(output, None))
            }
        };
        tasks.spawn(pipe::follow(input, log.clone(), pipe.writer(), manners));
        Ok(Route::Pipe(Box::new(pipe)))
    }
}
