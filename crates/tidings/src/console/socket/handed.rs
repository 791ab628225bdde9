//! Servers that a terminal gives to the console: resolved where they were named, and opened where
//! the console runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use tidings_mirror::{
    Backoff, CommandTarget, Config, HttpTarget, Protocol, Secret, Target, TokenSource,
};

use crate::args::{Connection, Place, Places, protocol};
use crate::console::archive::ENDING;
use crate::console::state::KeptServer;
use crate::hosts::Surroundings;
use crate::{session, target};

/// A server with all that its connection needs. It may hold secrets, so it is only sent over the
/// socket, and never printed.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct HandedServer {
    pub(crate) place: Place,
    way: ServerWay,
    /// The file that names the server, or the folder of a program.
    path: Option<PathBuf>,
    protocol: String,
    timeout: Option<Duration>,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum ServerWay {
    Http {
        url: String,
        headers: Vec<(String, String)>,
        token: Option<BearerOrigin>,
    },
    Command {
        program: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
        folder: Option<PathBuf>,
    },
    /// A saved session.
    File(PathBuf),
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum BearerOrigin {
    Text(String),
    /// Read again for each connection.
    File(PathBuf),
}

impl HandedServer {
    /// Resolves a server here, with the options of the connection.
    ///
    /// # Errors
    ///
    /// If it cannot be resolved: see [`target::resolve`].
    pub(crate) fn of(place: Place, connection: &Connection) -> Result<Self> {
        if let Some(file) = saved(&place) {
            let file = std::path::absolute(file).context("finding the saved session")?;
            let (way, protocol) = (ServerWay::File(file), protocol::text(&Protocol::Auto));
            return Ok(Self { place, way, path: None, protocol, timeout: None });
        }
        let way = match target::resolve(&place, connection)? {
            Target::Http(http) => {
                let reveal =
                    |(name, value): &(String, Secret)| (name.clone(), value.reveal().to_owned());
                let headers = http.headers.iter().map(reveal).collect();
                let token = http.token.as_ref().map(|_| token(connection)).transpose()?.flatten();
                ServerWay::Http { url: http.url, headers, token }
            }
            Target::Command(command) => {
                let reveal =
                    |(name, value): (&String, &Secret)| (name.clone(), value.reveal().to_owned());
                let environment = command.environment.iter().map(reveal).collect();
                let (program, arguments) = (command.program, command.arguments);
                ServerWay::Command { program, arguments, environment, folder: command.folder }
            }
            _ => anyhow::bail!("`{place}` cannot be opened"),
        };
        let path = match &place {
            Place::Named(name) if target::is_url(name) => None,
            Place::Named(name) => {
                let file = target::lookup(name, &connection.places, &Surroundings::new())?.file;
                Some(std::path::absolute(file).context("finding the file of the server")?)
            }
            Place::Command(_) => std::env::current_dir().ok(),
        };
        let (protocol, timeout) = (protocol::text(&connection.protocol), connection.timeout);
        Ok(Self { place, way, path, protocol, timeout })
    }

    /// A server without options: a URL to which no token of the environment is sent, or a name.
    ///
    /// # Errors
    ///
    /// If the name cannot be resolved.
    pub(crate) fn plain(place: Place, places: &Places) -> Result<Self> {
        match &place {
            Place::Named(url) if target::is_url(url) => {
                let way = ServerWay::Http { url: url.clone(), headers: Vec::new(), token: None };
                let protocol = protocol::text(&Protocol::Auto);
                Ok(Self { place, way, path: None, protocol, timeout: None })
            }
            _ => Self::of(place, &Connection::plain(places.clone())),
        }
    }

    /// How it comes back when the console starts again, if it may. `shown` is its place without
    /// secrets.
    pub(crate) fn kept(&self, shown: &Place) -> Option<KeptServer> {
        match self.way {
            ServerWay::File(_) => None,
            _ => KeptServer::of(&self.place, shown, self.path.clone()),
        }
    }

    /// The same for a console in another process: a program runs in the folder and the environment
    /// of this one, as if it was started here.
    #[must_use]
    pub(crate) fn started_here(mut self) -> Self {
        if let ServerWay::Command { environment, folder, .. } = &mut self.way {
            for (name, value) in std::env::vars_os() {
                if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
                    environment.entry(name).or_insert(value);
                }
            }
            let here = std::env::current_dir().ok();
            *folder = match (here, folder.take()) {
                (Some(here), Some(folder)) => Some(here.join(folder)),
                (here, folder) => folder.or(here),
            };
        }
        self
    }

    /// Whether it is a URL without anything that is secret or special.
    pub(crate) fn is_plain(&self) -> bool {
        match &self.way {
            ServerWay::Http { headers, token, .. } => headers.is_empty() && token.is_none(),
            ServerWay::Command { .. } | ServerWay::File(_) => false,
        }
    }

    /// The bearer token, if it is a fixed one or can be read now.
    pub(crate) fn token(&self) -> Option<String> {
        match &self.way {
            ServerWay::Http { token: Some(BearerOrigin::Text(text)), .. } => Some(text.clone()),
            ServerWay::Http { token: Some(BearerOrigin::File(file)), .. } => {
                Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
            }
            _ => None,
        }
    }

    /// The target, or the file of a saved session.
    pub(crate) fn target(&self) -> Result<Target, PathBuf> {
        Ok(match self.way.clone() {
            ServerWay::File(file) => return Err(file),
            ServerWay::Http { url, headers, token } => {
                let mut http = HttpTarget::new(url);
                let secret = |(name, value): (String, String)| (name, Secret::new(value));
                http.headers = headers.into_iter().map(secret).collect();
                http.token = token.map(|token| match token {
                    BearerOrigin::Text(text) => TokenSource::fixed(Secret::new(text)),
                    BearerOrigin::File(file) => target::token_in(file),
                });
                Target::Http(http)
            }
            ServerWay::Command { program, arguments, environment, folder } => {
                let mut command = CommandTarget::new(program, arguments);
                let secret = |(name, value): (String, String)| (name, Secret::new(value));
                command.environment = environment.into_iter().map(secret).collect();
                command.folder = folder;
                Target::Command(command)
            }
        })
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = session::defaults();
        config.protocol = protocol::parse(&self.protocol).unwrap_or(Protocol::Auto);
        if let Some(timeout) = self.timeout {
            (config.connect_timeout, config.request_timeout) = (timeout, timeout);
        }
        config.reconnect = Some(Backoff::default());
        config
    }
}

/// The file of a saved session that a place names.
fn saved(place: &Place) -> Option<&Path> {
    match place {
        Place::Named(name) if name.ends_with(ENDING) && !target::is_url(name) => {
            Some(Path::new(name))
        }
        _ => None,
    }
}

/// The origin of the bearer token of these options.
fn token(connection: &Connection) -> Result<Option<BearerOrigin>> {
    if let Some(file) = &connection.token_file {
        let file = std::path::absolute(file).context("finding the token file")?;
        return Ok(Some(BearerOrigin::File(file)));
    }
    Ok(target::token_of_environment().map(BearerOrigin::Text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn connection(words: &str) -> Connection {
        let words = ["tidings", "info"].into_iter().chain(words.split_whitespace());
        let args = crate::args::Args::try_parse_from(words).unwrap();
        let crate::args::Command::Info(info) = args.command else { panic!("it is info") };
        info.connection
    }

    fn handed(place: Place, words: &str) -> HandedServer {
        let handed = HandedServer::of(place, &connection(words)).unwrap().started_here();
        serde_json::from_str(&serde_json::to_string(&handed).unwrap()).unwrap()
    }

    #[test]
    fn a_url_arrives_with_its_headers_and_options() {
        let place = Place::Named("http://h/mcp".to_owned());
        let words = "http://h/mcp --header x-key:hunter2 --protocol legacy --timeout 7s";
        let handed = handed(place.clone(), words);
        assert_eq!(handed.place, place);
        let Target::Http(http) = handed.target().unwrap() else { panic!("it is a URL") };
        assert_eq!((http.headers[0].1.reveal(), http.token.is_some()), ("hunter2", false));
        let config = handed.config();
        assert_eq!(config.protocol, Protocol::Legacy);
        assert_eq!(config.request_timeout, Duration::from_secs(7));
        assert!(!handed.is_plain());
    }

    #[test]
    fn a_program_runs_as_if_it_was_started_here() {
        let words = ["server", "--flag"].map(str::to_owned).to_vec();
        let handed = handed(Place::Command(words), "--env KEY=1 -- server --flag");
        let Target::Command(command) = handed.target().unwrap() else { panic!("it is a program") };
        assert_eq!(
            (command.program.as_str(), &*command.arguments),
            ("server", &["--flag".into()][..])
        );
        assert_eq!(command.environment["KEY"].reveal(), "1");
        assert_eq!(command.environment["PATH"].reveal(), std::env::var("PATH").unwrap());
        assert_eq!(command.folder, std::env::current_dir().ok());
    }
}
