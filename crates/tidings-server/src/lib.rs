//! A library for live MCP servers: sources put items into one catalog, and every subscribed client
//! is notified of every real change, once, after it can be read.
//!
//! # A resource that changes
//!
//! A [`Hub`] has sources, and a source has a [`Shelf`] with its items. A function answers for each
//! item, and its [`Handle`] reports changes.
//!
//! ```no_run
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::sync::Arc;
//! use tidings_server::Hub;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let count = Arc::new(AtomicU64::new(0));
//!     let hub = Hub::new("counter", "1.0");
//!     let shelf = hub.source("counter")?;
//!     let shown = count.clone();
//!     let counter = shelf.resource("counter://now", "The count", move || {
//!         shown.load(Ordering::SeqCst).to_string()
//!     })?;
//!     shelf.tool("count", "Counts one more", move || {
//!         count.fetch_add(1, Ordering::SeqCst);
//!         counter.changed();
//!         "counted"
//!     })?;
//!     hub.serve_http("127.0.0.1:8000").await?;
//!     Ok(())
//! }
//! ```
//!
//! # Typed tools and a template
//!
//! Arguments and variables are your own types. The schema is derived, a mismatch is an error that
//! names the field, and an `Err` is a result the model can read.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use serde::{Deserialize, Serialize};
//! use tidings_server::schemars::JsonSchema;
//! use tidings_server::{Hub, Json};
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[schemars(crate = "tidings_server::schemars")]
//! struct Add {
//!     /// The text of the note.
//!     text: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! #[schemars(crate = "tidings_server::schemars")]
//! struct Added {
//!     number: usize,
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let notes = Arc::new(Mutex::new(Vec::<String>::new()));
//! let hub = Hub::new("notes", "1.0");
//! let shelf = hub.source("notes")?;
//! let stored = notes.clone();
//! let note = shelf.template("notes://{number}", "A note", move |number: usize| {
//!     stored.lock().expect("no note panics").get(number).cloned()
//! })?;
//! shelf.tool("add", "Adds a note", move |add: Add| {
//!     if add.text.is_empty() {
//!         return Err("a note needs a text");
//!     }
//!     let mut notes = notes.lock().expect("no note panics");
//!     notes.push(add.text);
//!     note.all_changed();
//!     Ok(Json(Added { number: notes.len() - 1 }))
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Items for some clients
//!
//! An item with an audience is offered to clients with one of its labels. To all others it does not
//! exist. A client has labels from its token ([`http::Tokens`]) or its connection
//! ([`stdio::serve_as`]), and gets and loses labels while it is connected. It is then notified of what
//! changed for it, and nobody else is.
//!
//! ```
//! use tidings_server::{Context, Hub, Offer};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let hub = Hub::new("press", "1.0");
//! let shelf = hub.source("press")?;
//! shelf.add(Offer::tool("stop", "Stops the press", || "stopped").audience("role:editor"))?;
//! shelf.tool("login", "Makes this session an editor's", |context: Context| {
//!     context.grant("role:editor").map(|()| "welcome")
//! })?;
//! // Later, for every session of that person:
//! hub.withdraw("ada", "role:editor")?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Relaying another server
//!
//! The types of [`model`] have the fields that the protocol library knows. A source that relays the
//! items, results and errors of another server uses [`Raw`] JSON instead, which loses nothing.
//!
//! # A hub inside an axum program
//!
//! [`http::router`] has the routes of a hub, to merge into yours. [`http::serve`] and
//! [`stdio::serve`] are the explicit forms of [`Hub::serve_http`] and [`Hub::serve_stdio`], with
//! your own listener, streams and cancellation.
//!
//! ```no_run
//! use axum::{Router, routing::get};
//! use tidings_server::{Hub, http};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let hub = Hub::new("site", "1.0");
//!     hub.source("site")?.resource("site://motd", "Message of the day", || "hello")?;
//!     let site = Router::new().route("/", get(|| async { "a site" }));
//!     let site = site.merge(http::router(&hub, http::HttpConfig::default()));
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
//!     axum::serve(listener, site).await?;
//!     Ok(())
//! }
//! ```
//!
//! # Inside
//!
//! The path of a change: `catalog` (readable) → `windows` (quiet for a moment?) → `pipeline`
//! (fingerprint changed?) → `subscriptions` (who subscribed?) → `outbox` (unsent notices of one
//! listener) → `transport` (bytes).

mod about;
mod answer;
mod answers;
mod catalog;
mod config;
mod context;
mod edit;
mod era;
mod figure;
mod handler;
mod hub;
mod identity;
mod inspect;
mod labels;
mod member;
mod method;
mod metrics;
mod near;
mod notice;
mod offer;
mod outbox;
mod pipeline;
mod raw;
mod sent;
mod shelf;
mod source;
mod subscriptions;
mod tokens;
mod transport;
mod viewers;
mod weight;
mod windows;

pub use about::{ListenerInfo, Transport, WatchedInfo};
pub use answer::{Answer, AnswerError, Completion, CompletionOf, Completions, Contents};
pub use catalog::Item;
pub use config::{Config, Greeting, Limits};
pub use context::{AskError, Context, ReadInput, Session};
pub use edit::EditError;
pub use era::VersionRules;
pub use figure::Figure;
pub use hub::{AddError, Hub};
pub use identity::{Identity, IdentityLimits};
pub use inspect::{Inspection, SourceInfo};
pub use labels::{LabelError, Labels};
pub use offer::{
    CompletionReply, Function, Json, NoInput, Offer, PromptReply, ReadReply, Reply, ToolReply,
};
pub use pipeline::{Event, Outcome};
pub use raw::{Raw, RawError};
pub use rmcp::{model, schemars};
pub use shelf::{Handle, Shelf, Transaction};
pub use source::{Health, HealthState, Source};
pub use tidings_core::{
    Change, Fingerprint, ListKind, ListKinds, Pace, ResourceUri, Template, UriError,
};
pub use transport::{http, stdio};
pub use viewers::GrantError;
pub use windows::Merging;
