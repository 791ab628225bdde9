//! A complete live server in forty lines: one number, and one tool that changes it.
//!
//! `cargo run --example counter -- --http 127.0.0.1:8000`, or `--stdio`.

use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};

use tidings_server::schemars::{self, JsonSchema};
use tidings_server::{Config, Fingerprint, Hub, Merging, Offer};

#[derive(serde::Deserialize, JsonSchema)]
struct Bump {
    /// How many times; default once.
    n: Option<u64>,
}

/// A hub with a counter.
pub(crate) fn hub() -> Result<Hub, Box<dyn std::error::Error>> {
    let mut config = Config::new("counter", env!("CARGO_PKG_VERSION"));
    config.merging = Merging::off();
    let (hub, number) = (Hub::with_config(config), Arc::new(AtomicU64::new(0)));
    let shelf = hub.source("counter")?;
    let (read, version) = (number.clone(), number.clone());
    let counter = Offer::resource("bench://counter", "counter", move || {
        read.load(Ordering::SeqCst).to_string()
    })
    .version(move || Fingerprint::of_bytes(&version.load(Ordering::SeqCst).to_le_bytes()));
    let counter = shelf.add(counter)?;
    shelf.tool("bump", "Changes the counter n times", move |bump: Bump| {
        let (number, counter) = (number.clone(), counter.clone());
        async move {
            for _ in 0..bump.n.unwrap_or(1) {
                number.fetch_add(1, Ordering::SeqCst);
                counter.changed();
                tokio::task::yield_now().await;
            }
            number.load(Ordering::SeqCst).to_string()
        }
    })?;
    Ok(hub)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("--http") => hub()?.serve_http(std::env::args().nth(2).unwrap_or_default()).await?,
        Some("--stdio") => hub()?.serve_stdio().await?,
        _ => return Err("usage: counter --http ADDR | --stdio".into()),
    }
    Ok(())
}
