//! The HTTP endpoint: its address, its clients, and its limits.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tidings_server::http::{Check, HttpConfig, Token, Tokens};
use tokio::net::TcpListener;
use tracing::warn;

use crate::args::{Limits, Serve};
use crate::machine;
use crate::report::{Hint, Usage};

/// The bounds of the budget for requests in progress.
const SMALLEST_BUDGET: u64 = 64 << 20;
const LARGEST_BUDGET: u64 = 1 << 30;
/// With fewer descriptors left, requests that open files may fail.
const FEW_DESCRIPTORS: u64 = 16;

/// Listens, if that is safe.
pub(super) async fn bind(args: &Serve, tokens: &Tokens, offers: &str) -> Result<TcpListener> {
    let address = args.http;
    if !address.ip().to_canonical().is_loopback() && !tokens.are_needed() {
        if !args.allow_anyone {
            let usage = Usage::new(format!(
                "`--http {address}` would let anyone who can reach this machine use {offers}"
            ));
            bail!(usage.hint(
                "set TIDINGS_TOKEN or `--token-file FILE` to a token that clients must send \
                 (`openssl rand -hex 32` creates one), or allow it with `--allow-anyone`"
            ));
        }
        warn!(%address, "no token is required: anyone who can reach this machine may use {offers}");
    }
    TcpListener::bind(address).await.with_context(|| format!("listening on {address}")).context(
        Hint(format!(
            "is another program listening there? `--http {}:0` uses any free port",
            address.ip()
        )),
    )
}

/// The limits of the server. `data` are the directories of sources with durable state.
pub(super) fn config(
    args: &Serve,
    limits: &Limits,
    tokens: Tokens,
    data: Vec<PathBuf>,
) -> HttpConfig {
    let mut config = HttpConfig::default();
    config.hosts.clone_from(&args.allow_host);
    config.origins.clone_from(&args.allow_origin);
    config.tokens = tokens;
    config.access_log = args.access_log;
    if let Some(limit) = limits.body_limit {
        config.body_limit = bytes(limit);
    }
    config.budget = bytes(limits.memory.unwrap_or_else(|| budget(machine::memory())));
    let descriptors = machine::raise_file_limit();
    let wanted = limits.connections.unwrap_or(config.connections);
    config.connections = match descriptors.map(machine::connections_within) {
        Some(possible) if possible < wanted => {
            if limits.connections.is_some() {
                warn!(
                    wanted,
                    possible, "fewer connections than configured: raise the limit of open files"
                );
            }
            possible
        }
        _ => wanted,
    };
    config.sessions = limits.sessions.unwrap_or(config.sessions);
    config.listeners = limits.listeners.unwrap_or(config.listeners);
    config.drain = limits.drain.unwrap_or(config.drain);
    config.checks.push(Check::new("descriptors", || match machine::free_descriptors() {
        Some(left) if left < FEW_DESCRIPTORS => Err("too few are free".to_owned()),
        _ => Ok(()),
    }));
    if !data.is_empty() {
        let check = move || data.iter().try_for_each(|directory| machine::has_space(directory));
        config.checks.push(Check::new("disk", check));
    }
    config
}

fn budget(memory: Option<u64>) -> u64 {
    memory.map_or(SMALLEST_BUDGET, |memory| memory / 4).clamp(SMALLEST_BUDGET, LARGEST_BUDGET)
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// The current token of the file or the environment.
pub(super) fn token(args: &Serve) -> Result<Option<Token>> {
    let text = match &args.token_file {
        Some(file) => {
            if let Some(mode) = others_may_read(file) {
                warn!(
                    file = %file.display(), mode = %format!("{mode:o}"),
                    "other users can read the token: run `chmod 600` on its file"
                );
            }
            Some(
                std::fs::read_to_string(file)
                    .with_context(|| format!("reading the token from {}", file.display()))?,
            )
        }
        None => std::env::var("TIDINGS_TOKEN").ok(),
    };
    text.map(|text| Token::new(&text).context("reading the token")).transpose()
}

/// The mode of a file that others than its owner can read.
fn others_may_read(file: &Path) -> Option<u32> {
    let mode = std::fs::metadata(file).ok()?.permissions().mode() & 0o777;
    (mode & 0o044 != 0).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_quarter_of_the_memory_within_bounds() {
        assert_eq!(budget(None), 64 << 20);
        assert_eq!(budget(Some(128 << 20)), 64 << 20);
        assert_eq!(budget(Some(1 << 30)), 256 << 20);
        assert_eq!(budget(Some(64 << 30)), 1 << 30);
    }

    #[test]
    fn a_file_of_others_is_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let set = |mode| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o600);
        assert_eq!(others_may_read(file.path()), None);
        set(0o640);
        assert_eq!(others_may_read(file.path()), Some(0o640));
    }
}
