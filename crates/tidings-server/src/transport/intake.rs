//! Bytes from a client to a message, or to the error that says what is wrong with them.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, NumberOrString, RequestId,
};
use serde_json::{Value, json};

use crate::transport::lenient;

/// The longest id of a request. It is kept and sent again with every notice of a listen request.
const ID_LIMIT: usize = 256;

/// Reads one message.
pub(crate) fn parse(bytes: &[u8]) -> Result<ClientJsonRpcMessage, (Option<RequestId>, ErrorData)> {
    let Ok(mut message) = serde_json::from_slice::<ClientJsonRpcMessage>(bytes) else {
        return Err(explain(bytes));
    };
    if let JsonRpcMessage::Request(request) = message {
        let completed = lenient::complete(request.request);
        message = ClientJsonRpcMessage::request(completed, request.id);
    }
    if let JsonRpcMessage::Request(request) = &message {
        if let NumberOrString::String(id) = &request.id
            && id.len() > ID_LIMIT
        {
            let details = format!("the id of a request has at most {ID_LIMIT} bytes");
            let data = Some(json!({ "details": details }));
            return Err((None, ErrorData::invalid_request("Invalid request", data)));
        }
        if lists_from_the_start(&request.request) {
            check_cursor(bytes).map_err(|error| (Some(request.id.clone()), error))?;
        }
    }
    Ok(message)
}

/// What is wrong with bytes that are no message, and the id of the request if it has one.
fn explain(bytes: &[u8]) -> (Option<RequestId>, ErrorData) {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            let details = json!({ "details": error.to_string() });
            return (None, ErrorData::parse_error("Parse error", Some(details)));
        }
    };
    let details = match &value {
        Value::Array(_) => "batches of messages are not supported; send one message at a time",
        Value::Object(_) => "this is not a JSON-RPC 2.0 message",
        _ => "a JSON-RPC message is an object",
    };
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    (id, ErrorData::invalid_request("Invalid request", Some(json!({ "details": details }))))
}

/// Whether a list was asked for without a cursor, as the library understood it.
fn lists_from_the_start(request: &ClientRequest) -> bool {
    let params = match request {
        ClientRequest::ListToolsRequest(request) => &request.params,
        ClientRequest::ListPromptsRequest(request) => &request.params,
        ClientRequest::ListResourcesRequest(request) => &request.params,
        ClientRequest::ListResourceTemplatesRequest(request) => &request.params,
        _ => return false,
    };
    params.as_ref().is_none_or(|params| params.cursor.is_none())
}

/// The library takes parameters it cannot read for none; a cursor of another type would list from
/// the start again.
fn check_cursor(bytes: &[u8]) -> Result<(), ErrorData> {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let cursor = value.get("params").and_then(|params| params.get("cursor"));
    match cursor {
        None | Some(Value::Null) => Ok(()),
        Some(cursor) => Err(ErrorData::invalid_params(
            "Invalid cursor",
            Some(
                json!({ "parameter": "cursor", "value": cursor, "details": "a cursor is a string" }),
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, id: Option<i64>, code: i32) {
        let (found, error) = parse(text.as_bytes()).unwrap_err();
        assert_eq!((found, error.code.0), (id.map(RequestId::Number), code), "{text}");
    }

    #[test]
    fn what_is_no_message_is_explained() {
        check("{", None, -32700);
        check("[]", None, -32600);
        check(r#"{"id":3}"#, Some(3), -32600);
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(257)),
            None,
            -32600,
        );
    }

    #[test]
    fn a_cursor_of_another_type_does_not_list_from_the_start() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":5}}"#,
            Some(1),
            -32602,
        );
        for fine in
            ["", r#","params":{}"#, r#","params":{"cursor":null}"#, r#","params":{"cursor":"x"}"#]
        {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list"{fine}}}"#);
            assert!(parse(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
