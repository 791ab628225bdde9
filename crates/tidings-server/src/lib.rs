//! A live MCP server: sources are merged into one catalog, and everyone who listens learns of every
//! real change, once, after it can be read.
//!
//! - [`Source`] is what you write: it puts items on its [`Shelf`] and answers for them.
//! - [`Hub`] merges sources and tells who listens.
//! - [`http::serve`] and [`stdio::serve`] speak to clients of both protocol eras.
//!
//! The way of a change through the crate: `catalog` (readable) → `announcer` (quiet for a moment?)
//! → `path` (fingerprint moved?) → `subscriptions` (who listens?) → `outbox` (what one listener has
//! yet to hear) → `transport` (bytes).

mod announcer;
mod catalog;
mod config;
mod era;
mod handler;
mod hub;
mod member;
mod metrics;
mod notice;
mod outbox;
mod path;
mod source;
mod subscriptions;
mod transport;

pub use announcer::Merging;
pub use catalog::{EditError, Handle, Item, Shelf, Transaction};
pub use config::{Config, Greeting, Limits};
pub use era::VersionRules;
pub use handler::{AskError, Exchange};
pub use hub::{AddError, Hub};
pub use path::Event;
pub use rmcp::model;
pub use source::{AnswerError, Completion, CompletionOf, Contents, Source};
pub use tidings_core::{Fingerprint, ListKind, ListKinds, ResourceUri, Template};
pub use transport::{http, stdio};
