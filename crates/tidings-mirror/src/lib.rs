//! An MCP client that keeps one server's lists, contents and results current.
//!
//! A [`Mirror`] connects to one server of either protocol era, over stdio or Streamable HTTP, and
//! loads its lists. From then on it follows the server: a notice loads the changed list or
//! resource, and a difference becomes an [`Event`]. Contents are kept in a [`cache`], which is
//! current for watched resources. If the connection is lost, the mirror reconnects, loads
//! everything again, and reports exactly what changed meanwhile.
//!
//! The examples use a server in memory that `notes()` starts. Instead, give a URL, a
//! [`CommandTarget`] or the entry of a server in an `mcp.json`: see [`Target`].
//!
//! # Follow a resource
//!
//! [`Mirror::watch`] is a stream of contents: the current one, then one for each change, also after
//! a reconnect.
//!
//! ```
//! use tidings_mirror::Mirror;
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/notes.in"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mirror = Mirror::connect(notes()).await?;
//! let mut all = mirror.watch("notes://all").await?;
//! let now = all.next().await.ok_or("it ended")?;
//! assert_eq!(now.content?.text(), "milk");
//!
//! mirror.call_tool("add", [("text", "bread")]).await?;
//! let changed = all.next().await.ok_or("it ended")?;
//! assert_eq!(changed.content?.text(), "milk, bread");
//! # Ok(())
//! # }
//! ```
//!
//! # Lists, calls and events
//!
//! The lists are loaded already, and the latest contents are in the [`cache`]. Every change is an
//! [`Event`].
//!
//! ```
//! use tidings_mirror::{Config, Event, Mirror};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/notes.in"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::new("example", "1.0");
//! let (mirror, mut events) = Mirror::connect_with_events(notes(), config).await?;
//! assert_eq!(mirror.tools()[0].name, "add");
//! assert_eq!(mirror.resources()[0].uri, "notes://all");
//!
//! let outcome = mirror.call_tool("add", [("text", "bread")]).await?;
//! assert_eq!(outcome.text(), "added");
//! assert_eq!(outcome.raw()["content"][0]["type"], "text"); // as the server sent it
//!
//! while let Some(event) = events.next().await {
//!     if let Event::ToolResultChanged { name, .. } = event {
//!         assert_eq!(&*name, "add");
//!         break;
//!     }
//! }
//! assert!(mirror.cache().tool_result("add").is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # A handle before there is a server
//!
//! [`Mirror::supervise`] returns at once and keeps trying. The state of the connection can be read
//! at any time, and so can the standard error of a program that does not start.
//!
//! ```
//! use tidings_mirror::events::ConnectionState;
//! use tidings_mirror::{Config, Mirror};
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/notes.in"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mirror, _events) = Mirror::supervise(notes(), Config::default());
//! assert_eq!(mirror.connection(), ConnectionState::Connecting);
//! assert!(mirror.tools().is_empty());
//!
//! mirror.ready().await?;
//! assert_eq!(mirror.connection(), ConnectionState::Ready);
//! assert_eq!(mirror.tools().len(), 1);
//! mirror.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! The state has one writer, a pure state machine without network or clock. A driver carries out
//! its requests and reports the results to it.

mod backoff;
pub mod cache;
mod config;
mod connect;
mod driver;
mod engine;
mod era;
pub mod events;
mod groups;
mod handlers;
mod hearing;
mod history;
mod item;
mod lists;
mod machine;
mod mirror;
pub mod odd;
mod options;
mod pace;
mod relay;
mod request;
mod rounds;
mod schema;
mod secret;
mod spelling;
mod subscribing;
mod target;
mod watchers;
mod written;

pub use rmcp::model;
pub use tidings_core::{Diff, ListKind, ListKinds};

pub use crate::backoff::Backoff;
pub use crate::config::{CacheLimits, Config, Protocol};
pub use crate::connect::ConnectError;
pub use crate::era::Era;
pub use crate::events::{Event, Events};
pub use crate::handlers::{Answer, Asking, During, Handlers, Question};
pub use crate::history::{ClosedBy, Direction, Fact, Happened, Message, Record};
pub use crate::item::Item;
pub use crate::lists::List;
pub use crate::mirror::{Completion, Mirror, Reference, Server, SubscribeError, Watch};
pub use crate::odd::Odd;
pub use crate::options::{NO_ARGUMENTS, RequestOptions};
pub use crate::relay::{Heard, Relay, RelayError};
pub use crate::request::RequestError;
pub use crate::rounds::{Answers, Once, Round};
pub use crate::secret::{Secret, TokenSource};
pub use crate::target::{CommandTarget, HttpTarget, StreamsTarget, Target, TargetError};
pub use crate::watchers::{Gone, Update};
