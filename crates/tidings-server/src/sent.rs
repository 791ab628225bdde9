//! Messages as clients sent them: where the parameters are, before anything is built.

use std::ops::Range;

use bytes::Bytes;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, Extensions, GetExtensions as _, JsonRpcMessage,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Longer messages are not kept while they are answered.
const MOST: usize = 256 << 10;

/// The bytes of a call, an extension of its request.
#[derive(Clone, Debug)]
pub(crate) struct SentCall(Bytes);

impl SentCall {
    /// Keeps the bytes of a call with it.
    pub(crate) fn keep(message: &mut ClientJsonRpcMessage, bytes: &Bytes) {
        if let JsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::CallToolRequest(_))
            && bytes.len() <= MOST
        {
            request.request.extensions_mut().insert(Self(bytes.clone()));
        }
    }

    /// The call of a request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        let parts = || extensions.get::<http::request::Parts>();
        extensions.get().or_else(|| parts()?.extensions.get())
    }

    /// The text of its arguments.
    pub(crate) fn arguments(&self) -> Option<&str> {
        std::str::from_utf8(&self.0[arguments_of(&self.0)?]).ok()
    }
}

/// The outline of a message, without its contents.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The parameters that are parsed one by one.
#[derive(Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) cursor: Option<&'a RawValue>,
}

/// The method of a message as JSON, and its parameters.
pub(crate) fn params_of(bytes: &[u8]) -> Option<(&str, Params<'_>)> {
    let outline: Outline<'_> = serde_json::from_slice(bytes).ok()?;
    let params = serde_json::from_str(outline.params?.get()).ok()?;
    Some((outline.method?.get(), params))
}

/// The range of a tool call's arguments.
pub(crate) fn arguments_of(bytes: &[u8]) -> Option<Range<usize>> {
    let (method, params) = params_of(bytes)?;
    let arguments = params.arguments.filter(|_| method == r#""tools/call""#)?.get();
    // A borrowed text is a part of the bytes.
    let start = arguments.as_ptr().addr() - bytes.as_ptr().addr();
    Some(start..start + arguments.len())
}
