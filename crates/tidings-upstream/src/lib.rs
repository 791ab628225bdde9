//! A source that puts another MCP server behind a hub, and makes it live.
//!
//! An [`Upstream`] connects to one server of either protocol era, offers what it offers, and relays
//! requests and answers as raw JSON, so that nothing is lost that this library does not know. The
//! clients of the hub are notified of every real change of the server, once, whether it announces
//! changes, announces them wrongly, or never does.
//!
//! ```
//! use tidings_server::Hub;
//! use tidings_upstream::{Config, Name, Upstream};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let hub = Hub::new("gateway", "1.0");
//! let config = Config::new(Name::parse("notes")?, "http://127.0.0.1:8484/mcp");
//! let upstream = Upstream::join(&hub, config).await?;
//! println!("{:?}", upstream.status().state); // it is being connected to; the hub serves already
//! # hub.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Names and addresses
//!
//! Tools and prompts are `NAME__tool` (see [`Prefix`]). URIs are kept: of two upstreams with the same
//! URI, the one of the lower rank has it, and the other lists `name+uri`, which is always accepted as
//! an address.
//!
//! # How changes are found
//!
//! A resource that somebody watches is watched at the server once, or looked at now and then if the
//! server cannot announce changes. A notice of the server is a hint: content and lists are compared,
//! and only a difference is announced.

mod config;
mod exchange;
mod failure;
mod house;
mod links;
mod memory;
mod names;
mod neighbours;
mod pin;
mod publish;
mod questions;
mod relay;
mod rooms;
mod run;
mod status;
mod turns;
mod upstream;
mod watch;

pub use crate::config::{
    Config, Name, NameError, PatternError, Poll, PollRule, Prefix, Selection, Start, Timeouts,
};
pub use crate::neighbours::Neighbours;
pub use crate::status::{Failure, Held, State, Status};
pub use crate::upstream::Upstream;
