//! The values that an item's function may return, and their form for clients.

use std::any::Any;
use std::fmt::Display;

use rmcp::model::{
    CallToolResponse, CallToolResult, CompleteResult, ContentBlock, GetPromptResponse,
    GetPromptResult, JsonObject, PromptMessage, ReadResourceResponse, Role,
};
use rmcp::schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tidings_core::ResourceUri;

use crate::answer::{Answer, AnswerError, Completions, Contents};
use crate::offer::schema;
use crate::raw::Raw;

/// A value that an item's function may return.
///
/// | | a tool | a resource or template | a prompt |
/// |---|---|---|---|
/// | `String`, `&str` | one text | one text | one message of the user |
/// | [`Json<T>`](Json) | structured content and its text, with an output schema | a JSON document | |
/// | `()` | nothing | | |
/// | `Vec<u8>` | | bytes | |
/// | `Option<T>` | | `None` is "not found" | |
/// | [`ContentBlock`], `Vec` of them, [`CallToolResult`] | as it is | | |
/// | [`Contents`] | | as it is | |
/// | [`PromptMessage`], `Vec` of them, [`GetPromptResult`] | | | as it is |
/// | [`Raw`] of a result | as it is | as it is | as it is |
/// | `Result<T, E>` | an error is a result with `isError` | an error is one of the request | likewise |
///
/// The error of a `Result` is any type that implements `Display`. An [`AnswerError`] is always an
/// error of the request.
pub trait Reply: Send + 'static {}

/// A value that a tool may return.
pub trait ToolReply: Reply {
    /// The schema of its structured content, if it has any.
    #[must_use]
    fn output_schema() -> Option<JsonObject> {
        None
    }

    /// The result.
    ///
    /// # Errors
    ///
    /// Why the tool was not run.
    fn into_result(self) -> Result<Answer<CallToolResponse>, AnswerError>;
}

/// A value that a resource or template may return when it is read.
pub trait ReadReply: Reply {
    /// The contents, under the URI that was read.
    ///
    /// # Errors
    ///
    /// The content cannot be returned.
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError>;
}

/// A value that a prompt may return.
pub trait PromptReply: Reply {
    /// The messages.
    ///
    /// # Errors
    ///
    /// The messages cannot be returned.
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError>;
}

/// A value that a completion may return.
pub trait CompletionReply: Reply {
    /// The values.
    ///
    /// # Errors
    ///
    /// The values cannot be returned.
    fn into_completions(self) -> Result<Completions, AnswerError>;
}

/// A value that is serialised as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

macro_rules! replies {
    ($($type:ty),* $(,)?) => {
        $(impl Reply for $type {})*
    };
}

replies!(
    (),
    String,
    &'static str,
    Vec<u8>,
    Vec<String>,
    Completions,
    Contents,
    ContentBlock,
    Vec<ContentBlock>,
    CallToolResult,
    CallToolResponse,
    PromptMessage,
    Vec<PromptMessage>,
    GetPromptResult,
    GetPromptResponse,
    Raw<CallToolResponse>,
    Raw<ReadResourceResponse>,
    Raw<GetPromptResponse>,
    Raw<CompleteResult>,
);

impl<T: Serialize + Send + 'static> Reply for Json<T> {}
impl<T: Reply> Reply for Option<T> {}
impl<T: Reply, E: Display + Send + 'static> Reply for Result<T, E> {}

macro_rules! tool_replies {
    ($($type:ty, $reply:ident => $result:expr;)*) => {
        $(impl ToolReply for $type {
            fn into_result(self) -> Result<Answer<CallToolResponse>, AnswerError> {
                let $reply = self;
                Ok($result.into())
            }
        })*
    };
}

tool_replies! {
    (), _nothing => CallToolResult::success(Vec::new());
    String, text => CallToolResult::success(vec![ContentBlock::text(text)]);
    &'static str, text => CallToolResult::success(vec![ContentBlock::text(text)]);
    ContentBlock, block => CallToolResult::success(vec![block]);
    Vec<ContentBlock>, blocks => CallToolResult::success(blocks);
    CallToolResult, result => result;
    CallToolResponse, response => response;
    Raw<CallToolResponse>, raw => raw;
}

impl<T: Serialize + JsonSchema + Send + 'static> ToolReply for Json<T> {
    fn output_schema() -> Option<JsonObject> {
        schema::of_object::<T>()
    }

    fn into_result(self) -> Result<Answer<CallToolResponse>, AnswerError> {
        let value = value(&self.0)?;
        Ok(if value.is_object() {
            CallToolResult::structured(value).into()
        } else {
            CallToolResult::success(vec![ContentBlock::text(value.to_string())]).into()
        })
    }
}

impl<T: ToolReply, E: Display + Send + 'static> ToolReply for Result<T, E> {
    fn output_schema() -> Option<JsonObject> {
        T::output_schema()
    }

    fn into_result(self) -> Result<Answer<CallToolResponse>, AnswerError> {
        match self {
            Ok(reply) => reply.into_result(),
            Err(error) => match answer_error(&error) {
                Some(error) => Err(error),
                // The model reads the error, so that it can do better.
                None => {
                    Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into())
                }
            },
        }
    }
}

impl ReadReply for String {
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(Contents::text(uri, self))
    }
}

impl ReadReply for &'static str {
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(Contents::text(uri, self))
    }
}

impl ReadReply for Vec<u8> {
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(Contents::bytes(uri, &self))
    }
}

impl ReadReply for Contents {
    fn into_contents(self, _: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(self)
    }
}

impl ReadReply for Raw<ReadResourceResponse> {
    fn into_contents(self, _: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(Contents::raw(self))
    }
}

impl<T: Serialize + Send + 'static> ReadReply for Json<T> {
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        Ok(Contents::json(uri, &value(&self.0)?))
    }
}

impl<T: ReadReply> ReadReply for Option<T> {
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        match self {
            Some(reply) => reply.into_contents(uri),
            None => Err(AnswerError::not_found(uri.as_ref())),
        }
    }
}

impl<T: ReadReply, E: Display + Send + 'static> ReadReply for Result<T, E> {
    fn into_contents(self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        self.map_err(failed)?.into_contents(uri)
    }
}

impl PromptReply for String {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        PromptMessage::new_text(Role::User, self).into_messages()
    }
}

impl PromptReply for &'static str {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        self.to_owned().into_messages()
    }
}

impl PromptReply for PromptMessage {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        vec![self].into_messages()
    }
}

impl PromptReply for Vec<PromptMessage> {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        Ok(GetPromptResult::new(self).into())
    }
}

impl PromptReply for GetPromptResult {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        Ok(self.into())
    }
}

impl PromptReply for GetPromptResponse {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        Ok(self.into())
    }
}

impl PromptReply for Raw<GetPromptResponse> {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        Ok(self.into())
    }
}

impl<T: PromptReply, E: Display + Send + 'static> PromptReply for Result<T, E> {
    fn into_messages(self) -> Result<Answer<GetPromptResponse>, AnswerError> {
        self.map_err(failed)?.into_messages()
    }
}

impl CompletionReply for Vec<String> {
    fn into_completions(self) -> Result<Completions, AnswerError> {
        Ok(self.into())
    }
}

impl CompletionReply for Completions {
    fn into_completions(self) -> Result<Completions, AnswerError> {
        Ok(self)
    }
}

impl CompletionReply for Raw<CompleteResult> {
    fn into_completions(self) -> Result<Completions, AnswerError> {
        Ok(Completions::raw(self))
    }
}

impl<T: CompletionReply, E: Display + Send + 'static> CompletionReply for Result<T, E> {
    fn into_completions(self) -> Result<Completions, AnswerError> {
        self.map_err(failed)?.into_completions()
    }
}

fn value(shown: &impl Serialize) -> Result<Value, AnswerError> {
    serde_json::to_value(shown)
        .map_err(|error| AnswerError::Failed(format!("the answer is not JSON: {error}")))
}

fn failed<E: Display + 'static>(error: E) -> AnswerError {
    answer_error(&error).unwrap_or_else(|| AnswerError::Failed(error.to_string()))
}

/// The error itself, if it is an [`AnswerError`].
fn answer_error<E: 'static>(error: &E) -> Option<AnswerError> {
    (error as &dyn Any).downcast_ref::<AnswerError>().cloned()
}
