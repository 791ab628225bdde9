//! The functions of one item, as the catalog stores them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{CallToolResponse, GetPromptResponse, JsonObject};
use tidings_core::{Fingerprint, ResourceUri};

use crate::answer::{Answer, AnswerError, Completion, Completions, Contents};
use crate::context::Context;
use crate::source::Boxed;

/// The values of a template's variables.
pub(crate) type Variables = BTreeMap<String, String>;

type Answering<T> = Boxed<'static, Result<T, AnswerError>>;
pub(crate) type Call =
    dyn Fn(JsonObject, Context) -> Answering<Answer<CallToolResponse>> + Send + Sync;
pub(crate) type Fill =
    dyn Fn(JsonObject, Context) -> Answering<Answer<GetPromptResponse>> + Send + Sync;
pub(crate) type Read = dyn Fn(ResourceUri, Variables, Context) -> Answering<Contents> + Send + Sync;
pub(crate) type Complete = dyn Fn(Completion, Context) -> Answering<Completions> + Send + Sync;
pub(crate) type Version = dyn Fn() -> Fingerprint + Send + Sync;

/// The functions of an item. If one is missing, the item's source answers.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    pub(crate) call: Option<Arc<Call>>,
    pub(crate) fill: Option<Arc<Fill>>,
    pub(crate) read: Option<Arc<Read>>,
    pub(crate) version: Option<Arc<Version>>,
    /// By the name of the argument or variable.
    pub(crate) complete: BTreeMap<String, Arc<Complete>>,
}

impl Answers {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { call, fill, read, version, complete } = self;
        call.is_none()
            && fill.is_none()
            && read.is_none()
            && version.is_none()
            && complete.is_empty()
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Answers").finish_non_exhaustive()
    }
}
