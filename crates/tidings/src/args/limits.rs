//! The limits that an operator changes, on the command line or in `tidings.toml`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::workspace::{grace, size};

/// What a server allows its clients. `docs/limits.md` has all limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Limits")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// The largest request body, as `4MiB` [default: 4MiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    #[serde(deserialize_with = "size_text")]
    pub(crate) body_limit: Option<u64>,
    /// Memory for all requests and answers under way [default: a quarter of what the process may
    /// use, from 64MiB to 1GiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    #[serde(deserialize_with = "size_text")]
    pub(crate) memory: Option<u64>,
    /// Connections open at once [default: 32768, or what the file limit allows].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) connections: Option<usize>,
    /// Legacy sessions open at once [default: 10000].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) sessions: Option<usize>,
    /// Modern listen requests open at once [default: 20000].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) listeners: Option<usize>,
    /// Resources that one session or listen request may watch [default: 1000].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) subscriptions: Option<usize>,
    /// How long requests under way may take when the server stops [default: 10s].
    #[arg(long, value_name = "DURATION", value_parser = grace)]
    #[serde(deserialize_with = "duration_text")]
    pub(crate) drain: Option<Duration>,
}

impl Limits {
    /// These, and those of `other` where these say nothing.
    pub(crate) fn or(self, other: &Self) -> Self {
        Self {
            body_limit: self.body_limit.or(other.body_limit),
            memory: self.memory.or(other.memory),
            connections: self.connections.or(other.connections),
            sessions: self.sessions.or(other.sessions),
            listeners: self.listeners.or(other.listeners),
            subscriptions: self.subscriptions.or(other.subscriptions),
            drain: self.drain.or(other.drain),
        }
    }
}

fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("give a whole number from 1".to_owned()),
    }
}

fn size_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    size(&text).map(Some).map_err(serde::de::Error::custom)
}

fn duration_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    grace(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file: Limits =
            toml::from_str("body_limit = '1MiB'\nsessions = 5\ndrain = '0s'").unwrap();
        let given = Limits { sessions: Some(7), ..Limits::default() };
        let both = given.or(&file);
        assert_eq!((both.body_limit, both.sessions), (Some(1 << 20), Some(7)));
        assert_eq!(both.drain, Some(Duration::ZERO));
        assert!(toml::from_str::<Limits>("body_limit = 'much'").is_err());
        assert!(toml::from_str::<Limits>("colour = 'red'").is_err());
    }
}
