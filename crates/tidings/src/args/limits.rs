//! The limits that an operator changes, on the command line or in `tidings.toml`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::workspace::{grace, size};

/// Limits for clients. `docs/limits.md` lists all limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Limits")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Largest request body [default: 4MiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    #[serde(deserialize_with = "size_text")]
    pub(crate) body_limit: Option<u64>,
    /// Memory for all requests and answers in progress [default: a quarter of the memory available
    /// to the process, between 64MiB and 1GiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    #[serde(deserialize_with = "size_text")]
    pub(crate) memory: Option<u64>,
    /// Open connections [default: 32768, or fewer if the limit of open files is lower].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) connections: Option<usize>,
    /// Open legacy sessions [default: 10000].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) sessions: Option<usize>,
    /// Open modern listen requests [default: 20000].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) listeners: Option<usize>,
    /// Resources that one session or listen request may watch [default: 1000].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) subscriptions: Option<usize>,
    /// Time for requests in progress to finish when the server stops [default: 10s].
    #[arg(long, value_name = "DURATION", value_parser = grace)]
    #[serde(deserialize_with = "duration_text")]
    pub(crate) drain: Option<Duration>,
}

impl Limits {
    /// These limits, with unset ones taken from `other`.
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

pub(super) fn number(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("give a whole number greater than 0".to_owned()),
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
