//! The arguments of a relayed call, sent as the text that they were given in: keys keep their order,
//! and numbers all digits.

use std::ops::Range;
use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::options::RequestOptions;

/// The text of the arguments. It travels with the request.
#[derive(Clone)]
pub(super) struct GivenArguments(Arc<str>);

impl GivenArguments {
    /// Records the text for a request, if the options have one.
    pub(super) fn mark(request: &mut ClientRequest, options: &RequestOptions) {
        if let Some(text) = &options.arguments {
            request.extensions_mut().insert(Self(text.clone()));
        }
    }

    fn of(message: &ClientJsonRpcMessage) -> Option<&Self> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        request.request.extensions().get()
    }
}

/// A message as it is sent, in one line.
pub(super) fn written(message: &ClientJsonRpcMessage) -> Result<Vec<u8>, serde_json::Error> {
    let bytes = serde_json::to_vec(message)?;
    let given = GivenArguments::of(message).zip(place(&bytes));
    let Some((GivenArguments(text), place)) = given else { return Ok(bytes) };
    // A line break in JSON is space between two values.
    let text = text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
    let mut written = bytes[..place.start].to_vec();
    written.extend(text);
    written.extend_from_slice(&bytes[place.end..]);
    Ok(written)
}

#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Where the arguments are in a message.
fn place(bytes: &[u8]) -> Option<Range<usize>> {
    let outline: Outline<'_> = serde_json::from_slice(bytes).ok()?;
    let params: Params<'_> = serde_json::from_str(outline.params.get()).ok()?;
    let text = params.arguments.get();
    // A borrowed text is a part of the bytes.
    let start = text.as_ptr().addr() - bytes.as_ptr().addr();
    Some(start..start + text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &serde_json::Value) -> ClientJsonRpcMessage {
        let params = json!({ "name": "run", "arguments": arguments, "_meta": { "a/b": 1 } });
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        serde_json::from_value(call).unwrap()
    }

    fn with(mut message: ClientJsonRpcMessage, text: &str) -> String {
        let ClientJsonRpcMessage::Request(request) = &mut message else { panic!("a request") };
        let options = RequestOptions { arguments: Some(text.into()), ..RequestOptions::default() };
        GivenArguments::mark(&mut request.request, &options);
        String::from_utf8(written(&message).unwrap()).unwrap()
    }

    #[test]
    fn arguments_are_sent_as_they_were_given() {
        let text = r#"{"z":1.50,"a":[18446744073709551616],"name":"other","arguments":{"b":1}}"#;
        let sent = with(call(&serde_json::from_str(text).unwrap()), text);
        assert!(sent.contains(&format!(r#""arguments":{text}"#)), "{sent}");
        let before = serde_json::to_value(call(&json!({}))).unwrap();
        let mut after: serde_json::Value = serde_json::from_str(&sent).unwrap();
        after["params"]["arguments"] = json!({});
        assert_eq!(after, before, "nothing else changes");
    }

    #[test]
    fn a_message_is_one_line_whatever_the_space_in_its_arguments() {
        let sent = with(call(&json!({ "a": "x\ny" })), "{\r\n  \"a\": \"x\\ny\"\n}");
        assert!(!sent.contains(['\n', '\r']) && sent.contains(r#""x\ny""#), "{sent}");
    }

    #[test]
    fn what_has_no_arguments_gets_none() {
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "run" } });
        let sent = with(serde_json::from_value(call).unwrap(), r#"{"a":1}"#);
        assert!(!sent.contains("arguments"), "{sent}");
    }
}
