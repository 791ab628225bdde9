//! The parameters of a run: eras, numbers of listeners, rounds.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// How a client listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// A session, `resources/subscribe` and a GET stream.
    Legacy,
    /// One `subscriptions/listen` request.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

impl FromStr for Era {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            _ => Err(format!("there is no era `{name}`; say `legacy` or `modern`")),
        }
    }
}

/// Everything a person can choose.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) eras: Vec<Era>,
    pub(crate) listeners: Vec<usize>,
    pub(crate) rounds: usize,
    /// The servers that take part; all if none is named.
    pub(crate) servers: Vec<String>,
    /// Whether only the memory of idle listeners is measured.
    pub(crate) idle: bool,
}

impl Plan {
    /// Whether a server takes part.
    pub(crate) fn has(&self, server: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|name| name == server)
    }

    /// Reads the flags; `--era`, `--n` and `--server` may be given several times.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let (mut eras, mut listeners, mut servers) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rounds, mut quick, mut idle) = (None, false, false);
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("`{flag}` needs a value"));
            match *flag {
                "--bench" => {}
                "--quick" => quick = true,
                "--idle" => idle = true,
                "--server" => servers.push((*value()?).to_owned()),
                "--era" => eras.push(value()?.parse()?),
                "--n" => listeners.push(value()?.replace('_', "").parse()?),
                "--rounds" => rounds = Some(value()?.parse()?),
                _ => return Err(format!("`{flag}` is no flag of this benchmark").into()),
            }
        }
        if eras.is_empty() {
            eras = vec![Era::Legacy, Era::Modern];
        }
        if listeners.is_empty() {
            listeners = if quick { vec![100] } else { vec![100, 1_000, 5_000] };
        }
        let rounds = rounds.unwrap_or(if quick { 2 } else { 5 }).max(1);
        Ok(Self { eras, listeners, rounds, servers, idle })
    }
}
