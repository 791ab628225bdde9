//! Inputs and requests of the machine.

use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::{ListKind, ListKinds};

use crate::cache::{PromptContent, ResourceContent, TemplateContent, ToolOutcome};
use crate::events::ConnectionState;
use crate::lists::{List, Page};
use crate::request::RequestError;

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Input {
    /// The state of the connection changed. [`Input::Connected`] and [`Input::Gone`] follow if the
    /// server came or went.
    State(ConnectionState),
    /// A server answered the handshake; these are its offers.
    Connected(Offer),
    /// The server is gone.
    Gone {
        /// Whether it will be retried, so that the state is kept for comparison.
        keep: bool,
    },
    /// The stream of notices broke: notices may be missed from now on.
    StreamLost,
    /// The stream of notices is open again.
    StreamBack,
    /// There is no stream of notices.
    NoStream,
    /// The server announced a changed list, in the message of this number.
    ListNotice(ListKind, Option<u64>),
    /// The server announced a changed resource, in the message of this number.
    Updated(Arc<str>, Option<u64>),
    /// The server sent a notification with this unknown method.
    Unknown(Arc<str>),
    /// The user wants a list loaded again.
    Reload(List),
    /// An answer to [`Request::Page`].
    Page { ticket: u64, answer: PageAnswer },
    /// An answer to [`Request::Read`].
    Reread { uri: Arc<str>, ticket: u64, answer: Result<ResourceContent, RequestError> },
    /// A user's read was answered.
    Read { uri: Arc<str>, ticket: u64, content: Arc<ResourceContent> },
    /// A user's read failed.
    ReadFailed { uri: Arc<str> },
    /// A user's read of a template was answered.
    TemplateRead { template: Arc<str>, ticket: u64, content: Arc<TemplateContent> },
    /// A user's prompt was answered.
    Prompted { name: Arc<str>, ticket: u64, content: Arc<PromptContent> },
    /// A user's call ended.
    Called { name: Arc<str>, ticket: u64, outcome: Arc<ToolOutcome> },
    /// The server is being asked to watch these: a notice may come before its answer.
    Subscribing { uris: Vec<Arc<str>> },
    /// The server did not answer for these, so they are not expected any more.
    SubscribingEnded { uris: Vec<Arc<str>> },
    /// The server watches these from now on, and not those.
    Subscribed { uris: Vec<Arc<str>>, refused: Vec<Arc<str>> },
    /// The server no longer watches these.
    Unsubscribed { uris: Vec<Arc<str>> },
    /// The authorisation changed.
    Reauthorized,
    /// Time passed.
    Tick,
}

/// A server's offers, as far as this mirror needs them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// The lists to load.
    pub(crate) lists: Vec<List>,
    /// The kinds whose changes will be announced.
    pub(crate) announced: ListKinds,
    /// The kinds that are announced although they are not followed: a legacy server cannot be asked
    /// not to.
    pub(crate) unfollowed: ListKinds,
    /// Whether the resources watched before are watched already.
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

/// A request of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Request a page of a list.
    Page { list: List, ticket: u64, cursor: Option<String> },
    /// Read a watched resource again.
    Read { uri: Arc<str>, ticket: u64 },
    /// Subscribe to all watched resources again.
    Restore,
    /// Subscribe to a resource again that the server refused to watch.
    Watch { uri: Arc<str> },
}
