//! TARGET on the command line to a server.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use tidings_mirror::{CommandTarget, HttpTarget, Secret, Target, TokenSource};

use crate::args::{Connection, HeaderValue, Place, Places};
use crate::hosts::{Environment, Found, Kind, NamedServer, Surroundings};
use crate::report::Usage;
use crate::values::nearest;

/// Resolves the server, with the options applied to it.
///
/// # Errors
///
/// If a name is unknown, an option does not fit the server, or a file cannot be read.
pub(crate) fn resolve(place: &Place, connection: &Connection) -> Result<Target> {
    let surroundings = Surroundings::new();
    let here = surroundings.here.to_string_lossy().into_owned();
    let variable = |name: &str| std::env::var(name).ok();
    let environment = Environment { variable: &variable, here: &here };
    let target = match place {
        Place::Named(url) if is_url(url) => Target::Http(HttpTarget::new(url)),
        Place::Named(name) if name.starts_with('@') => {
            let words = format!("`{name}` is a session of the console, which has a connection");
            let usage = Usage::new(words);
            return Err(usage.hint("name the server itself: a URL, or a name").into());
        }
        Place::Named(name) => {
            entry_target(&lookup(name, &connection.places, &surroundings)?, &environment)?
        }
        Place::Command(words) => {
            let (program, arguments) =
                words.split_first().context(Usage::new("the command is missing"))?;
            Target::Command(CommandTarget::new(program, arguments.to_vec()))
        }
    };
    with_options(target, connection, &environment)
}

/// The servers that can be named.
pub(crate) fn known(places: &Places, surroundings: &Surroundings) -> Result<Found> {
    match &places.mcp_file {
        Some(file) => surroundings.read(file),
        None => Ok(surroundings.find()),
    }
}

pub(crate) fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

pub(crate) fn lookup(
    name: &str,
    places: &Places,
    surroundings: &Surroundings,
) -> Result<NamedServer> {
    let found = known(places, surroundings)?;
    if let Some(entry) = found.entries.iter().find(|entry| entry.name == name) {
        return Ok(entry.clone());
    }
    let names: Vec<_> = found.entries.iter().map(|entry| entry.name.as_str()).collect();
    let usage = match (found.problems.first(), &places.mcp_file) {
        (Some(problem), _) => Usage::new(format!("no server is named `{name}`, and {problem}")),
        (None, Some(file)) => Usage::new(format!("`{}` has no server `{name}`", file.display())),
        (None, None) => Usage::new(format!("no mcp.json has a server `{name}`")),
    };
    // A host with a port or a path is a URL without its scheme.
    let host = name.split('/').next().unwrap_or_default();
    let hint = if name.contains("://") {
        "a URL starts with http:// or https://".to_owned()
    } else if host.contains(':') || host == "localhost" {
        format!("did you mean `http://{name}`?")
    } else if let Some(near) = nearest(name, &names) {
        format!("did you mean `{near}`?")
    } else if names.is_empty() {
        "give a URL such as http://127.0.0.1:8484/mcp, or a program after `--`".to_owned()
    } else {
        format!("known servers: {}; `tidings servers` lists them", names.join(", "))
    };
    Err(usage.hint(hint).into())
}

/// The server of an entry, with variables filled in.
///
/// # Errors
///
/// If a variable is not set.
pub(crate) fn of_entry(entry: &NamedServer) -> Result<Target> {
    let here = std::env::current_dir().unwrap_or_default();
    let variable = |name: &str| std::env::var(name).ok();
    entry_target(entry, &Environment { variable: &variable, here: &here.to_string_lossy() })
}

fn entry_target(entry: &NamedServer, environment: &Environment<'_>) -> Result<Target> {
    let expanded = |text: &str| environment.expand(text);
    let secret = |text: &str| expanded(text).map(Secret::new);
    let target = || -> Result<Target, Usage> {
        match &entry.kind {
            Kind::Http { url, headers } => {
                let mut target = HttpTarget::new(expanded(url)?);
                for (name, value) in headers {
                    target.headers.push((name.clone(), secret(value)?));
                }
                Ok(Target::Http(target))
            }
            Kind::Command { program, arguments, environment, folder } => {
                let arguments = arguments.iter().map(|argument| expanded(argument));
                let mut target =
                    CommandTarget::new(expanded(program)?, arguments.collect::<Result<_, _>>()?);
                for (name, value) in environment {
                    target.environment.insert(name.clone(), secret(value)?);
                }
                target.folder = folder.as_deref().map(expanded).transpose()?.map(Into::into);
                Ok(Target::Command(target))
            }
        }
    };
    target().map_err(Into::into)
}

fn with_options(
    mut target: Target,
    connection: &Connection,
    environment: &Environment<'_>,
) -> Result<Target> {
    match &mut target {
        Target::Http(target) => {
            if !connection.env.is_empty() {
                return Err(Usage::new("--env applies only to servers that are programs")
                    .hint("use `--header NAME:VALUE` for a server behind a URL")
                    .into());
            }
            for header in &connection.header {
                let value = match &header.value {
                    HeaderValue::Text(text) => environment.expand(text)?,
                    HeaderValue::File(file) => std::fs::read_to_string(file)
                        .with_context(|| format!("reading `{}`", file.display()))?
                        .trim()
                        .to_owned(),
                };
                target.headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&header.name));
                target.headers.push((header.name.clone(), Secret::new(value)));
            }
            let authorised =
                target.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            target.token = token(connection, authorised)?;
        }
        Target::Command(target) => {
            if !connection.header.is_empty() || connection.token_file.is_some() {
                return Err(Usage::new(
                    "--header and --token-file apply only to servers behind a URL",
                )
                .hint("use `--env NAME=VALUE` for a server that is a program")
                .into());
            }
            for (name, value) in &connection.env {
                target.environment.insert(name.clone(), Secret::new(value));
            }
        }
        _ => {}
    }
    Ok(target)
}

/// The origin of the bearer token. An `Authorization` header takes precedence over the environment.
fn token(connection: &Connection, authorised: bool) -> Result<Option<TokenSource>> {
    if let Some(file) = &connection.token_file {
        let reading = || format!("reading the token from `{}`", file.display());
        std::fs::read_to_string(file).with_context(reading)?;
        return Ok(Some(token_in(file.clone())));
    }
    let set = token_of_environment().filter(|_| !authorised);
    Ok(set.map(|token| TokenSource::fixed(Secret::new(token))))
}

/// The token in a file, which is read whenever a token is needed.
pub(crate) fn token_in(file: PathBuf) -> TokenSource {
    TokenSource::new(move || {
        let text = std::fs::read_to_string(&file);
        if let Err(error) = &text {
            let file = file.display();
            tracing::warn!(%file, %error, "a token cannot be read");
        }
        std::future::ready(text.ok().as_deref().and_then(trimmed).map(Secret::new))
    })
}

/// The bearer token of the environment.
pub(crate) fn token_of_environment() -> Option<String> {
    std::env::var("TIDINGS_TOKEN").ok().as_deref().and_then(trimmed)
}

fn trimmed(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_are_urls() {
        assert!(is_url("http://a") && is_url("HTTPS://a/mcp"));
        assert!(!is_url("station://log") && !is_url("http") && !is_url("localhost:80"));
    }

    #[test]
    fn variables_are_replaced_when_a_server_is_used() {
        let variable = |name: &str| (name == "KEY").then(|| "hunter2".to_owned());
        let environment = Environment { variable: &variable, here: "/project" };
        let kind = Kind::Command {
            program: "node".to_owned(),
            arguments: vec!["${workspaceFolder}/s.js".to_owned()],
            environment: [("TOKEN".to_owned(), "${KEY}".to_owned())].into(),
            folder: None,
        };
        let entry = NamedServer {
            name: "a".to_owned(),
            file: "/mcp.json".into(),
            kind,
            is_disabled: false,
        };
        let Target::Command(target) = entry_target(&entry, &environment).unwrap() else {
            panic!("it is a program");
        };
        assert_eq!(target.arguments, ["/project/s.js"]);
        assert_eq!(target.environment["TOKEN"].reveal(), "hunter2");
    }
}
