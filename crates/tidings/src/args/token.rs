//! `tidings token` as clap types.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use tidings_store::date::Moment;

use super::connection::duration;
use super::limits::number;
use crate::tokens::name;

const EXAMPLE: &str = "\
Examples:
  tidings token new ada --label role:admin --expires 30d
  tidings token ls

`tidings serve --demo --tokens` then serves ada. Save the secret that was printed to a file, and ask
the server with `tidings tools http://127.0.0.1:8484/mcp --token-file FILE`.";

/// Manage the tokens of clients: who may use a server, and what it sees.
///
/// A token has a name, labels, and a secret that clients send. `tidings serve --tokens` serves only
/// clients with a valid token. It follows the file: new, edited and removed tokens count at once.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLE)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    New(TokenNew),
    Ls(TokenLs),
    Rm(TokenRm),
}

/// Where the tokens are, and the format of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenPlace {
    /// File of the tokens [default: `tidings/tokens.toml` below `XDG_DATA_HOME` or
    /// `~/.local/share`].
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Create a token and print its secret, once: only its hash is stored.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  tidings token new ada --label role:admin --expires 30d > ada.token"
)]
pub(crate) struct TokenNew {
    /// Name of the client, for logs and metrics: letters, digits and `-`, `_`, `.`, `@`.
    #[arg(value_parser = name)]
    pub(crate) name: String,
    /// Give the client a label such as `role:admin`; may be repeated. Items for an audience are
    /// visible to clients with one of its labels.
    #[arg(long = "label", value_name = "LABEL", value_parser = label)]
    pub(crate) labels: Vec<String>,
    /// When the token expires: after `12h`, `30d` or `8w`, or on a date such as `2027-01-31`
    /// [default: never].
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    pub(crate) expires: Option<Expiry>,
    /// Connections that the token may have [default: half of the server's, or all if it is the only
    /// token].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) connections: Option<usize>,
    /// Open legacy sessions that the token may have [default: as many as the server allows].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) sessions: Option<usize>,
    /// Open modern listen requests that the token may have [default: as many as the server allows].
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub(crate) listeners: Option<usize>,
    #[command(flatten)]
    pub(crate) place: TokenPlace,
}

/// List the tokens with their labels and expiry.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings token ls")]
pub(crate) struct TokenLs {
    #[command(flatten)]
    pub(crate) place: TokenPlace,
}

/// Remove tokens. A running server ends their streams and sessions at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings token rm ada")]
pub(crate) struct TokenRm {
    /// Names of tokens.
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: TokenPlace,
}

/// What is added to round up to a second.
const LAST_OF_SECOND: Duration = Duration::from_millis(999);

/// When a token expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    After(Duration),
    On(Moment),
}

impl Expiry {
    pub(crate) fn moment(self, now: Moment) -> Moment {
        match self {
            // Dates are stored to the second. A token does not expire early.
            Self::After(duration) => now.after(duration + LAST_OF_SECOND).to_second(),
            Self::On(moment) => moment,
        }
    }
}

pub(super) fn label(text: &str) -> Result<String, String> {
    tidings_server::Labels::new([text]).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Parses `30d`, `8w`, a shorter duration, or a date.
fn expiry(text: &str) -> Result<Expiry, String> {
    let wrong = || "write it as 12h, 30d, 8w or 2027-01-31".to_owned();
    if text.len() >= 10 && text.contains('-') {
        return Moment::parse(text).map(Expiry::On).ok_or_else(wrong);
    }
    let days = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((number, "d")) => number.parse::<u32>().map_err(|_| wrong())?,
        Some((number, "w")) => {
            number.parse::<u32>().ok().and_then(|weeks| weeks.checked_mul(7)).ok_or_else(wrong)?
        }
        _ => return duration(text).map(Expiry::After).map_err(|_| wrong()),
    };
    if days == 0 { Err(wrong()) } else { Ok(Expiry::After(Duration::from_hours(24) * days)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_duration_or_a_date() {
        let day = Duration::from_hours(24);
        assert_eq!(expiry("30d"), Ok(Expiry::After(30 * day)));
        assert_eq!(expiry("8w"), Ok(Expiry::After(56 * day)));
        assert_eq!(expiry("12h"), Ok(Expiry::After(day / 2)));
        let date = Moment::parse("2027-01-31").unwrap();
        assert_eq!(expiry("2027-01-31"), Ok(Expiry::On(date)));
        assert_eq!(expiry("2027-01-31T00:00:00Z"), Ok(Expiry::On(date)));
        let now = Moment::from_millis(1500);
        let soon = Expiry::After(Duration::from_millis(500)).moment(now);
        assert_eq!(soon, Moment::from_millis(2000));
        assert_eq!(Expiry::After(Duration::from_millis(501)).moment(now).millis(), 3000);
        for wrong in ["", "d", "0d", "-1d", "soon", "2027-02-31", "99999999999w", "ö", "1y"] {
            assert!(expiry(wrong).is_err(), "{wrong}");
        }
    }
}
