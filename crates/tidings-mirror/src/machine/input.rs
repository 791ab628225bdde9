//! What the machine is told, and what it wants done.

use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::{ListKind, ListKinds};

use crate::cache::{PromptContent, ResourceContent, TemplateContent, ToolOutcome};
use crate::events::ConnectionState;
use crate::lists::{List, Page};
use crate::request::RequestError;

/// What the machine is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// The connection moved. [`Input::Connected`] and [`Input::Gone`] are told besides, where the
    /// server came or went.
    State(ConnectionState),
    /// A server answered the handshake; it offers this.
    Connected(Offer),
    /// The server is gone.
    Gone {
        /// Whether it will be tried again, so that the state is kept for comparing.
        keep: bool,
    },
    /// The stream of notices broke: some may be missed from here on.
    StreamLost,
    /// The stream of notices is there again.
    StreamBack,
    /// There is no stream of notices.
    NoStream,
    /// The server says that a list changed, in the message of this number.
    ListNotice(ListKind, Option<u64>),
    /// The server says that a resource changed, in the message of this number.
    Updated(Arc<str>, Option<u64>),
    /// The server sent a notification of this method, which nobody here knows.
    Unknown(Arc<str>),
    /// Somebody wants a list loaded again.
    Reload(List),
    /// An answer to [`Request::Page`].
    Page { ticket: u64, answer: PageAnswer },
    /// An answer to [`Request::Read`].
    Reread { uri: Arc<str>, ticket: u64, answer: Result<ResourceContent, RequestError> },
    /// Somebody's own read was answered.
    Read { uri: Arc<str>, ticket: u64, content: Arc<ResourceContent> },
    /// Somebody's own read failed.
    ReadFailed { uri: Arc<str> },
    /// Somebody's own read of a template was answered.
    TemplateRead { template: Arc<str>, ticket: u64, content: Arc<TemplateContent> },
    /// Somebody's prompt was answered.
    Prompted { name: Arc<str>, ticket: u64, content: Arc<PromptContent> },
    /// Somebody's call ended.
    Called { name: Arc<str>, ticket: u64, outcome: Arc<ToolOutcome> },
    /// The server is being asked to watch these: a notice may come before its answer is known here.
    Subscribing { uris: Vec<Arc<str>> },
    /// What the server did not answer of these is not expected any longer.
    SubscribingEnded { uris: Vec<Arc<str>> },
    /// The server watches these for us from now on, and not those.
    Subscribed { uris: Vec<Arc<str>>, refused: Vec<Arc<str>> },
    /// The server does not watch these any longer.
    Unsubscribed { uris: Vec<Arc<str>> },
    /// The authorisation is another one now.
    Reauthorized,
    /// Time passed.
    Tick,
}

/// What a server offers, as far as this mirror wants it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// The lists to load.
    pub(crate) lists: Vec<List>,
    /// The kinds whose changes will be announced.
    pub(crate) announced: ListKinds,
    /// The kinds whose changes are announced although nobody here follows them: a legacy server
    /// cannot be told not to.
    pub(crate) unfollowed: ListKinds,
    /// Whether what was watched before is watched already.
    pub(crate) is_restored: bool,
}

/// The answer for one page.
#[derive(Debug)]
pub(crate) enum PageAnswer {
    Tools(Result<Page<Tool>, RequestError>),
    Resources(Result<Page<Resource>, RequestError>),
    Templates(Result<Page<ResourceTemplate>, RequestError>),
    Prompts(Result<Page<Prompt>, RequestError>),
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Ask for a page of a list.
    Page { list: List, ticket: u64, cursor: Option<String> },
    /// Read a watched resource again.
    Read { uri: Arc<str>, ticket: u64 },
    /// Subscribe again to all that is watched.
    Restore,
    /// Subscribe again to one that the server refused to watch.
    Watch { uri: Arc<str> },
}
