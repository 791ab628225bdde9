//! Messages that are too large to be held: finds which request they answer while their bytes pass.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::{Value, json};

/// How many times the largest message may pass before the sender is given up.
pub(super) const MOST: usize = 16;
/// The mark of our own failures, in their data.
const MARK: &str = "tidings.mirror/larger-than";
/// The key of its length.
const PASSED: &str = "tidings.mirror/bytes";
/// The longest key or id that is examined.
const TOKEN: usize = 128;

/// Scans the top level of a JSON object of any length.
#[derive(Debug, Default)]
pub(super) struct Skim {
    bytes: usize,
    /// The depth of open objects and arrays.
    depth: usize,
    text: Text,
    /// The current key or value of the top level, as far as it is examined.
    token: Vec<u8>,
    key: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
    /// Whether it does not start like an object.
    is_other: bool,
}

/// The position of a byte relative to strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Skim {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// The bytes passed so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this can be a message.
    pub(super) fn is_object(&self) -> bool {
        !self.is_other
    }

    /// The request it answers, if it is a complete answer.
    pub(super) fn answered(&self) -> Option<RequestId> {
        let is_answer = self.is_object() && self.depth == 0 && !self.has_method;
        is_answer.then(|| serde_json::from_slice(&self.id).ok())?
    }

    fn byte(&mut self, byte: u8) {
        if self.text != Text::Outside {
            self.note(byte);
            self.text = match (self.text, byte) {
                (Text::Inside, b'\\') => Text::Escaped,
                (Text::Inside, b'"') => Text::Outside,
                _ => Text::Inside,
            };
            return;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' if self.depth > 0 || byte == b'{' => self.depth += 1,
            _ if self.depth == 0 => self.is_other = true,
            b'"' => {
                self.note(byte);
                self.text = Text::Inside;
            }
            b':' if self.depth == 1 => self.key = std::mem::take(&mut self.token),
            b',' if self.depth == 1 => self.value(),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.value();
                }
                self.depth -= 1;
            }
            other => self.note(other),
        }
    }

    fn note(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < TOKEN {
            self.token.push(byte);
        }
    }

    fn value(&mut self) {
        let value = std::mem::take(&mut self.token);
        match self.key.as_slice() {
            b"\"id\"" => self.id = value,
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
    }
}

/// The failure in place of an answer of `bytes`, which is too large.
pub(super) fn too_large(id: RequestId, most: usize, bytes: usize) -> ServerJsonRpcMessage {
    let words = format!("the server's answer is larger than {most} bytes");
    let error = ErrorData::new(
        ErrorCode::INTERNAL_ERROR,
        words,
        Some(json!({ MARK: most, PASSED: bytes })),
    );
    ServerJsonRpcMessage::error(error, Some(id))
}

/// The limit, if the failure is that of an oversized answer.
pub(super) fn limit(error: &ErrorData) -> Option<usize> {
    let most = error.data.as_ref()?.get(MARK).and_then(Value::as_u64)?;
    usize::try_from(most).ok()
}

/// The length of the oversized answer, if this is its failure.
pub(super) fn passed(message: &ServerJsonRpcMessage) -> Option<usize> {
    let ServerJsonRpcMessage::Error(error) = message else { return None };
    let bytes = error.error.data.as_ref()?.get(PASSED).and_then(Value::as_u64)?;
    usize::try_from(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&RequestId>) {
        // In one piece and in many.
        for size in [1, 3, text.len()] {
            let mut skim = Skim::default();
            text.as_bytes().chunks(size).for_each(|chunk| skim.take(chunk));
            assert_eq!(skim.answered().as_ref(), expected, "{text}");
        }
    }

    #[test]
    fn the_id_of_an_answer_is_found_wherever_it_stands() {
        let number = &RequestId::Number(7);
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"id":1,"method":"x"}}"#, Some(number));
        check(r#" { "result" : [{"id":1},"\"id\":2,{"] , "id" : 7 }  "#, Some(number));
        check(r#"{"id":7,"error":{"code":1,"message":"}"}}"#, Some(number));
        check(r#"{"result":{},"id":"a\"b"}"#, Some(&RequestId::String("a\"b".into())));
    }

    #[test]
    fn what_is_no_answer_has_no_id() {
        check(r#"{"id":7,"method":"ping"}"#, None);
        check(r#"{"method":"notifications/x","params":{"id":7}}"#, None);
        check(r#"{"id":7,"result":{"#, None);
        check(r#"[{"id":7,"result":{}}]"#, None);
        check("\0\0", None);
        check("}{", None);
        check(r#"{"id":{"a":7}}"#, None);
    }
}
