//! An MCP client that keeps one server's lists, contents and results current.
//!
//! A [`Mirror`] connects to one server of either protocol era, over stdio or Streamable HTTP, loads
//! its lists, and follows the server from there on: a notice loads what changed, what differs becomes
//! an [`Event`], and what does not differ is silence. What was read is kept in a [`cache`], which is
//! current for watched resources. After a lost connection the mirror can come back by itself, list
//! and read again, and say exactly what differs.
//!
//! ```no_run
//! use tidings_mirror::{Config, Event, HttpTarget, Mirror, Target};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let target = Target::Http(HttpTarget::new("http://127.0.0.1:8484/mcp"));
//! let mirror = Mirror::connect(target, Config::new("example", "1.0")).await?;
//! let mut events = mirror.events();
//! mirror.read_resource("station://log").await?;
//! mirror.subscribe(&["station://log"]).await?;
//! while let Some(event) = events.next().await {
//!     if let Event::ResourceContentChanged { uri, content, .. } = event {
//!         println!("{uri} is now {:?}", content.contents);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The state has one writer, a pure state machine that knows no network and no clock; a driver
//! carries out what it wants and tells it what came of it.

mod backoff;
pub mod cache;
mod config;
mod connect;
mod driver;
mod era;
pub mod events;
mod handlers;
mod history;
mod lists;
mod machine;
mod mirror;
mod pace;
mod request;
mod schema;
mod shared;

pub use rmcp::model;
pub use tidings_core::{Diff, ListKind, ListKinds};

pub use crate::backoff::Backoff;
pub use crate::config::{
    CacheLimits, CommandTarget, Config, HttpTarget, Protocol, Secret, StreamsTarget, Target,
    TokenSource,
};
pub use crate::connect::ConnectError;
pub use crate::era::Era;
pub use crate::events::{Event, Events};
pub use crate::handlers::{Answer, Handlers};
pub use crate::history::{Direction, Message};
pub use crate::lists::List;
pub use crate::mirror::{Completion, Mirror, Reference, Server, SubscribeError};
pub use crate::request::RequestError;
