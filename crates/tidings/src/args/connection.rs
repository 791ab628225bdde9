//! Options of every client command: which server, and how to connect to it.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidings_mirror::Protocol;

use crate::args::protocol;
use crate::report::Usage;

/// The server, and how to connect to it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    #[command(flatten)]
    pub(crate) places: Places,
    /// Add a header to every HTTP request; may be repeated. `NAME:@FILE` reads the value from a
    /// file. `${VARIABLE}` in a value is replaced from the environment.
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) header: Vec<Header>,
    /// Set an environment variable for a server that is a program; may be repeated. `NAME` alone
    /// passes on its current value; if it is not set, the command fails.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Read a bearer token from this file, again for each connection. Without this option,
    /// `TIDINGS_TOKEN` is used if set.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Protocol to speak: auto, legacy, modern, or a revision such as 2025-06-18.
    #[arg(long, default_value = "auto", value_parser = protocol::parse)]
    pub(crate) protocol: Protocol,
    /// Time to wait for a connection or an answer, such as `30s` or `500ms` [default: 30s to
    /// connect, 60s to answer].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// The server as a program and its arguments, instead of TARGET.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Where server names are looked up.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Places {
    /// Look up server names in this mcp.json instead of those of well-known hosts.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_file: Option<PathBuf>,
}

/// The server as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    /// A URL, or a name from an mcp.json.
    Named(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

impl Place {
    /// A command line that applies `words` to this server, ready to paste into a shell.
    pub(crate) fn line(&self, command: &str, words: &[String]) -> String {
        let quoted = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>();
        let mut line = vec!["tidings".to_owned(), command.to_owned()];
        match self {
            Self::Named(name) => {
                line.extend(quoted(std::slice::from_ref(name)));
                line.extend(quoted(words));
            }
            Self::Command(program) => {
                line.extend(quoted(words));
                line.push("--".to_owned());
                line.extend(quoted(program));
            }
        }
        line.join(" ")
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => formatter.write_str(name),
            Self::Command(program) => formatter.write_str(&program.join(" ")),
        }
    }
}

impl Connection {
    /// The defaults, without headers and tokens.
    pub(crate) fn plain(places: Places) -> Self {
        Self {
            places,
            header: Vec::new(),
            env: Vec::new(),
            token_file: None,
            protocol: Protocol::Auto,
            timeout: None,
            json: false,
            command: Vec::new(),
        }
    }

    /// Splits the server from the words that follow it.
    pub(crate) fn place<'a>(&self, words: &'a [String]) -> Result<(Place, &'a [String]), Usage> {
        if !self.command.is_empty() {
            return Ok((Place::Command(self.command.clone()), words));
        }
        let Some((first, rest)) = words.split_first() else {
            return Err(Usage::new("TARGET is missing")
                .hint("give a URL, a name that `tidings servers` lists, or a program after `--`"));
        };
        Ok((Place::Named(first.clone()), rest))
    }

    /// Takes the server, and refuses further words.
    pub(crate) fn only_place(&self, words: &[String]) -> Result<Place, Usage> {
        let (place, rest) = self.place(words)?;
        match rest.first() {
            None => Ok(place),
            Some(word) => Err(self.unexpected(word)),
        }
    }

    /// The error for a word that has no meaning here.
    pub(crate) fn unexpected(&self, word: &str) -> Usage {
        let usage = Usage::new(format!("`{word}` was not expected"));
        if self.command.is_empty() {
            usage
        } else {
            usage.hint("the program after `--` is the server, so there is no TARGET before it")
        }
    }
}

/// A header for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: HeaderValue,
}

/// The origin of a header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderValue {
    Text(String),
    File(PathBuf),
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or("write it as NAME:VALUE or NAME:@FILE")?;
        let value = value.trim();
        let value = match value.strip_prefix('@') {
            Some(file) => HeaderValue::File(file.into()),
            None => HeaderValue::Text(value.to_owned()),
        };
        Ok(Self { name: name.trim().to_owned(), value })
    }
}

/// Parses `NAME=VALUE`, or `NAME` with its current value.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let text = named(text)?;
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    match std::env::var(&text) {
        Ok(value) => Ok((text, value)),
        Err(_) => Err(format!("`{text}` is not set in the environment: write it as NAME=VALUE")),
    }
}

/// Parses a variable given as `NAME` or `NAME=VALUE`.
pub(crate) fn named(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    let is_name = !name.is_empty() && !text.contains('\0') && !name.contains(char::is_whitespace);
    if is_name { Ok(text.to_owned()) } else { Err("write it as NAME or NAME=VALUE".to_owned()) }
}

/// Parses `500ms`, `30s`, `5m`, `1h`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("write it as 500ms, 30s, 5m or 1h".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "write it as 500ms, 30s, 5m or 1h".to_owned())?;
    let duration = Duration::try_from_secs_f64(number * factor)
        .map_err(|_| "the duration is out of range".to_owned())?;
    if duration.is_zero() {
        return Err("the duration must be longer than 0".to_owned());
    }
    Ok(duration)
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,+%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert!(duration("-1s").is_err() && duration("1e300h").is_err() && duration("s").is_err());
    }

    #[test]
    fn a_header_is_a_text_or_a_file() {
        let header: Header = "X-Key: a:b".parse().unwrap();
        assert_eq!(header.value, HeaderValue::Text("a:b".to_owned()));
        let header: Header = "X-Key:@key.txt".parse().unwrap();
        assert_eq!(header.value, HeaderValue::File("key.txt".into()));
    }

    #[test]
    fn a_line_can_be_pasted_into_a_shell() {
        let named = Place::Named("http://a/mcp?x=1".to_owned());
        assert_eq!(
            named.line("call", &words("say text=it's")),
            r"tidings call 'http://a/mcp?x=1' say 'text=it'\''s'"
        );
        let command = Place::Command(words("node server.js"));
        assert_eq!(command.line("call", &words("say")), "tidings call say -- node server.js");
    }
}
