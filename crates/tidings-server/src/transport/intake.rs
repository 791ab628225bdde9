//! Parsing: a client's bytes to a message, or to an error.
//!
//! A message is weighed before it is parsed. If it would take far more memory than its bytes, it is
//! refused. The protocol library parses a message several times, so the arguments of a heavy tool
//! call bypass it: they are parsed once and put back into the message afterwards.

use std::ops::Range;

use bytes::Bytes;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonObject, JsonRpcMessage, NumberOrString,
    RequestId,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::sent::{SentCall, arguments_of, params_of};
use crate::transport::budget::Share;
use crate::transport::lenient;
use crate::transport::overlong::Overlong;
use crate::weight;

/// The longest id of a request. It is kept and sent again with every notice of a listen request.
const ID_LIMIT: usize = 256;
/// How many trees of a message the library has at once while it parses it.
const LIBRARY: usize = 4;
/// The weight of one tree that the library may parse of any message.
const LIGHT: usize = 1 << 20;
/// The memory that parsing a message may take for each of its bytes,
const RATIO: usize = 9;
/// but at least this much,
const FLOOR: usize = LIGHT * LIBRARY;
/// and no more than this.
const CEILING: usize = 56 << 20;

/// Why a message was refused.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The id of the request, if it has one.
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
    pub(crate) kind: FaultKind,
}

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Malformed,
    /// It may be valid, but takes too much memory.
    TooLarge,
    /// It is valid, but the budget is used up.
    NoRoom,
}

/// How a message is parsed, and the cost.
#[derive(Debug)]
struct Load {
    /// The memory that the message takes while it is parsed.
    weight: usize,
    /// The range of the arguments that bypass the library, and their weight.
    arguments: Option<(Range<usize>, usize)>,
}

/// A parsed message.
#[derive(Debug)]
pub(crate) struct Received {
    /// Without the arguments of a heavy call.
    pub(crate) message: ClientJsonRpcMessage,
    pub(crate) heavy: Option<Heavy>,
}

/// The part of a heavy call that bypasses the library.
#[derive(Debug)]
pub(crate) struct Heavy {
    pub(crate) arguments: JsonObject,
    /// The memory that they take.
    pub(crate) weight: usize,
    /// The bytes of the message with empty arguments.
    pub(crate) light: Bytes,
}

impl Received {
    /// Keeps the bytes of a call while it is answered: they have its arguments as they were sent.
    pub(crate) fn keep(&mut self, bytes: &Bytes) {
        SentCall::keep(&mut self.message, bytes);
    }

    /// The message with everything in it.
    pub(crate) fn whole(self) -> ClientJsonRpcMessage {
        let mut message = self.message;
        if let Some(heavy) = self.heavy
            && let JsonRpcMessage::Request(request) = &mut message
            && let ClientRequest::CallToolRequest(call) = &mut request.request
        {
            call.params.arguments = Some(heavy.arguments);
        }
        message
    }
}

/// Weighs a message before any of it is built.
fn weigh(bytes: &[u8]) -> Result<Load, Fault> {
    let light = weight::of(bytes, LIGHT);
    if light <= LIGHT {
        return Ok(Load { weight: light * LIBRARY, arguments: None });
    }
    let limit = (bytes.len() * RATIO).clamp(FLOOR, CEILING);
    let arguments = arguments_of(bytes);
    let (before, after) = match &arguments {
        Some(arguments) => (&bytes[..arguments.start], &bytes[arguments.end..]),
        None => (bytes, &[][..]),
    };
    let light = (weight::of(before, limit) + weight::of(after, limit)).saturating_mul(LIBRARY);
    let heavy = arguments.as_ref().map_or(0, |it| weight::of(&bytes[it.clone()], limit));
    if light.saturating_add(heavy) > limit {
        return Err(too_heavy(bytes));
    }
    Ok(Load { weight: light + heavy, arguments: arguments.map(|arguments| (arguments, heavy)) })
}

/// Parses a message; its memory is counted in the share. Large messages are parsed with
/// [`beside::run`](crate::transport::beside::run).
pub(crate) fn read(bytes: &[u8], share: Option<&mut Share>) -> Result<Received, Fault> {
    let load = weigh(bytes)?;
    if share.is_some_and(|share| !share.grow(load.weight)) {
        let error = ErrorData::internal_error("Too busy", None);
        return Err(Fault { id: id_of(bytes), error, kind: FaultKind::NoRoom });
    }
    build(bytes, load)
}

fn build(bytes: &[u8], load: Load) -> Result<Received, Fault> {
    let Some((cut, weight)) = load.arguments else {
        return Ok(Received { message: parse(bytes)?, heavy: None });
    };
    let light = [&bytes[..cut.start], b"{}", &bytes[cut.end..]].concat();
    let message = parse(&light)?;
    let arguments = serde_json::from_slice(&bytes[cut]).map_err(|error| {
        let details = format!("the arguments of a call must be an object: {error}");
        let data = json!({ "parameter": "arguments", "details": details });
        malformed(id_of(&light), ErrorData::invalid_params("Invalid arguments", Some(data)))
    })?;
    Ok(Received { message, heavy: Some(Heavy { arguments, weight, light: light.into() }) })
}

/// Parses one whole message with the library.
pub(crate) fn parse(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Fault> {
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
            return Err(malformed(None, ErrorData::invalid_request("Invalid request", data)));
        }
        if lists_from_the_start(&request.request) {
            check_cursor(bytes).map_err(|error| malformed(Some(request.id.clone()), error))?;
        }
    }
    Ok(message)
}

fn malformed(id: Option<RequestId>, error: ErrorData) -> Fault {
    Fault { id, error, kind: FaultKind::Malformed }
}

/// The error for a message that takes too much memory.
pub(crate) fn too_large() -> ErrorData {
    let details = "the message has too many small values for its length; send them as text, or in \
                   several messages";
    ErrorData::invalid_request("Message too large", Some(json!({ "details": details })))
}

fn too_heavy(bytes: &[u8]) -> Fault {
    Fault { id: id_of(bytes), error: too_large(), kind: FaultKind::TooLarge }
}

/// The id of a request, even if the rest of the message is invalid.
fn id_of(bytes: &[u8]) -> Option<RequestId> {
    let mut message = Overlong::default();
    message.read(bytes);
    message.into_id()
}

/// The error for bytes that are not a message.
fn explain(bytes: &[u8]) -> Fault {
    let text = match serde_json::from_slice::<&RawValue>(bytes) {
        Ok(value) => value.get(),
        Err(error) => {
            let details = json!({ "details": error.to_string() });
            return malformed(None, ErrorData::parse_error("Parse error", Some(details)));
        }
    };
    let details = match text.as_bytes().first() {
        Some(b'[') => "batches of messages are not supported; send one message at a time",
        Some(b'{') => "this is not a JSON-RPC 2.0 message",
        _ => "a JSON-RPC message is an object",
    };
    let error = ErrorData::invalid_request("Invalid request", Some(json!({ "details": details })));
    malformed(id_of(bytes), error)
}

/// Whether the library parsed a list request without a cursor.
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

/// The library ignores parameters that it cannot parse, so a cursor of another type would list from
/// the start again.
fn check_cursor(bytes: &[u8]) -> Result<(), ErrorData> {
    let cursor = params_of(bytes).and_then(|(_, params)| params.cursor);
    match cursor {
        None => Ok(()),
        Some(cursor) if cursor.get() == "null" || cursor.get().starts_with('"') => Ok(()),
        Some(cursor) => {
            let value: String = cursor.get().chars().take(ID_LIMIT).collect();
            let data =
                json!({ "parameter": "cursor", "value": value, "details": "a cursor is a string" });
            Err(ErrorData::invalid_params("Invalid cursor", Some(data)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, id: Option<i64>, code: i32) {
        let fault = parse(text.as_bytes()).unwrap_err();
        let found = (fault.id, fault.error.code.0);
        assert_eq!(found, (id.map(RequestId::Number), code), "{text}");
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

    const BOMB: &str = r#"{"":0},"#;

    fn call(arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        )
    }

    fn received(text: &str) -> Received {
        read(text.as_bytes(), None).unwrap()
    }

    #[track_caller]
    fn refused(text: &str) {
        let fault = weigh(text.as_bytes()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooLarge);
        assert_eq!(fault.id, Some(RequestId::Number(7)));
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_built_wherever_it_is() {
        let bomb = format!("[{}0]", BOMB.repeat(1 << 16));
        refused(&call(&format!(r#"{{"rows":{bomb}}}"#)));
        refused(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"x":{bomb}}}}}"#
        ));
        refused(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":{bomb}}}}}"#));
        refused(&format!(r#"{{"jsonrpc":"2.0","x":{bomb},"id":7}}"#));
        // The arguments are light, but another parameter is heavy.
        let beside = format!(r#"{{}},"_meta":{{"x":{bomb}}}"#);
        refused(&call(&beside));
    }

    #[test]
    fn the_arguments_of_a_heavy_call_are_read_beside_the_library() {
        let rows = format!("[{}0]", r#"{"id":1,"name":"some text of a row"},"#.repeat(5_000));
        let text = call(&format!(r#"{{"rows":{rows},"id":8}}"#));
        let received = received(&text);
        let light = received.heavy.as_ref().map(|heavy| heavy.light.clone()).unwrap();
        assert_eq!(light, call("{}").as_bytes());
        let JsonRpcMessage::Request(request) = received.whole() else { panic!("no request") };
        let ClientRequest::CallToolRequest(call) = request.request else { panic!("no call") };
        let arguments = call.params.arguments.unwrap();
        assert_eq!(request.id, RequestId::Number(7));
        assert_eq!(arguments["rows"].as_array().unwrap().len(), 5_001);
    }

    #[test]
    fn a_long_text_is_not_heavy() {
        let text = "x".repeat(3 << 20);
        assert!(received(&call(&format!(r#"{{"text":"{text}"}}"#))).heavy.is_some());
        let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{text}"}}}}"#);
        assert!(received(&answer).heavy.is_none());
    }

    #[test]
    fn the_weight_of_what_is_accepted_is_bounded() {
        for count in [1, 100, 1_000, 5_000, 6_000, 50_000] {
            for small in [BOMB, "0,", "[0],", r#""a","#, r#"{"id":1,"name":"row"},"#] {
                let text = call(&format!(r#"{{"rows":[{}0]}}"#, small.repeat(count)));
                if let Ok(load) = weigh(text.as_bytes()) {
                    let bound = (9 * text.len()).clamp(4 << 20, 56 << 20);
                    assert!(load.weight <= bound, "{count} {small}: {}", load.weight);
                }
            }
        }
    }

    #[test]
    fn the_parts_of_a_message_share_one_bound() {
        let meta = format!(r#"{{}},"_meta":{{"x":"{}"}}"#, "x".repeat(3 << 20));
        assert!(weigh(call(&meta).as_bytes()).is_ok());
        let rows = format!(r#"{{"rows":[{}0]}}"#, BOMB.repeat(40_000));
        refused(&call(&meta.replacen("{}", &rows, 1)));
    }

    #[test]
    fn arguments_that_are_no_object_are_refused_with_the_id() {
        let text =
            call(&format!("[{}0]", r#"{"id":1,"name":"some text of a row"},"#.repeat(5_000)));
        let fault = read(text.as_bytes(), None).unwrap_err();
        assert_eq!((fault.id, fault.error.code.0), (Some(RequestId::Number(7)), -32602));
    }
}
