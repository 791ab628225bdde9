//! The HTTP endpoint: its address, its clients, and its limits.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use tidings_server::http::{Check, HttpConfig};
use tokio::net::TcpListener;
use tracing::warn;

use super::access::Access;
use crate::args::{Limits, Serve};
use crate::machine;
use crate::report::{Hint, Usage};

/// The bounds of the budget for requests in progress.
const SMALLEST_BUDGET: u64 = 64 << 20;
const LARGEST_BUDGET: u64 = 1 << 30;
/// With fewer descriptors left, requests that open files may fail.
const FEW_DESCRIPTORS: u64 = 16;

/// Listens, if that is safe.
pub(super) async fn bind(args: &Serve, access: &Access, offers: &str) -> Result<TcpListener> {
    let address = args.http;
    if !address.ip().to_canonical().is_loopback() && !access.needs_token() {
        if !args.allow_anyone {
            let usage = Usage::new(format!(
                "`--http {address}` would let anyone who can reach this machine use {offers}"
            ));
            bail!(usage.hint(
                "give each client a token with `tidings token new NAME` and serve with `--tokens`, \
                 set TIDINGS_TOKEN or `--token-file FILE` to one token for all, or allow it with \
                 `--allow-anyone`"
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
    access: &Access,
    data: Vec<PathBuf>,
) -> HttpConfig {
    let mut config = HttpConfig::default();
    config.hosts.clone_from(&args.allow_host);
    config.origins.clone_from(&args.allow_origin);
    config.tokens = access.tokens().clone();
    config.anonymous = access.admits_anyone();
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
}
