//! Data that bypasses the protocol library: heavy arguments of a request, and answers with raw
//! JSON.

use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::model::{Extensions, JsonObject, JsonRpcMessage, ServerJsonRpcMessage};

/// An extension of each request, shared by its transport and the handler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    arguments: Option<JsonObject>,
    answer: Option<RawMessage>,
}

/// A whole message with raw JSON. The library gets a stand-in of the same kind, which it validates
/// like any answer. The request alone determines which message replaces which stand-in: no text is
/// searched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawMessage {
    pub(crate) part: Part,
    pub(crate) message: Vec<u8>,
}

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Result,
    Error,
}

impl Beside {
    /// The bypassed data of the request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        let parts = || extensions.get::<http::request::Parts>();
        extensions.get().or_else(|| parts()?.extensions.get())
    }

    pub(crate) fn put_arguments(&self, arguments: JsonObject) {
        self.lock().arguments = Some(arguments);
    }

    /// The arguments of a heavy call, unless they were taken.
    pub(crate) fn take_arguments(&self) -> Option<JsonObject> {
        self.lock().arguments.take()
    }

    pub(crate) fn put_answer(&self, answer: RawMessage) {
        self.lock().answer = Some(answer);
    }

    /// Whether an answer replaces the stand-in.
    pub(crate) fn has_answer(&self) -> bool {
        self.lock().answer.is_some()
    }

    /// The message that replaces the library's answer, if there is one. If the library refused the
    /// stand-in, its answer stays.
    pub(crate) fn take_answer(&self, part: Part) -> Option<Vec<u8>> {
        let mut held = self.lock();
        let answer = held.answer.take_if(|answer| answer.part == part)?;
        Some(answer.message)
    }

    /// A message of the library as bytes, or its replacement.
    pub(crate) fn write_with(beside: Option<&Self>, message: &ServerJsonRpcMessage) -> Vec<u8> {
        let part = match message {
            JsonRpcMessage::Response(_) => Some(Part::Result),
            JsonRpcMessage::Error(_) => Some(Part::Error),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let written = part.and_then(|part| beside?.take_answer(part));
        written.unwrap_or_else(|| serde_json::to_vec(message).expect("a message is plain JSON"))
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().expect("no code panics while it holds what is beside a request")
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ErrorData, RequestId, ServerResult};

    use super::*;

    #[test]
    fn an_answer_takes_the_place_of_a_stand_in_of_its_part_once() {
        let result = ServerResult::CallToolResult(CallToolResult::default());
        let result = ServerJsonRpcMessage::response(result, RequestId::Number(1));
        let error = ErrorData::internal_error("refused", None);
        let error = ServerJsonRpcMessage::error(error, Some(RequestId::Number(1)));
        let plain = |message| Beside::write_with(None, message);
        let beside = Beside::default();
        let write = |message| Beside::write_with(Some(&beside), message);
        assert_eq!(write(&result), plain(&result));
        beside.put_answer(RawMessage { part: Part::Result, message: b"raw".to_vec() });
        // The library refused the stand-in.
        assert_eq!(write(&error), plain(&error));
        assert!(beside.has_answer());
        assert_eq!(write(&result), b"raw");
        assert_eq!(write(&result), plain(&result));
    }
}
