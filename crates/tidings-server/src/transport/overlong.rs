//! Messages that are too long: they are skipped except for the id, so that the sender gets an error.

use rmcp::model::RequestId;

/// The longest id that is recognised, in bytes.
const WRITTEN: usize = 512;

/// Reads a JSON object piece by piece and keeps only the value of its `id`.
#[derive(Debug, Default)]
pub(crate) struct Overlong {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    /// The text at the outermost level since the last `:` or `,`, up to the length of an id.
    word: Vec<u8>,
    /// Whether the word is the value of `id`.
    is_id: bool,
    id: Option<RequestId>,
}

impl Overlong {
    /// Reads the next piece.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.next(*byte);
        }
    }

    /// The id, if there was one so far.
    pub(crate) fn into_id(self) -> Option<RequestId> {
        self.id
    }

    fn next(&mut self, byte: u8) {
        if self.is_in_text {
            let ends = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.is_in_text = !ends;
            self.keep(byte);
            return;
        }
        match byte {
            b'"' => {
                self.is_in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                // An array or object is not an id.
                self.is_id = false;
                self.depth += 1;
                self.word.clear();
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.is_id = self.word == b"\"id\"";
                self.word.clear();
            }
            b',' => self.end_value(),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.word.len() < WRITTEN {
            self.word.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth != 1 {
            return;
        }
        if std::mem::take(&mut self.is_id) && self.id.is_none() {
            self.id = serde_json::from_slice(&self.word).ok();
        }
        self.word.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn id_of(text: &str) -> Option<RequestId> {
        let mut overlong = Overlong::default();
        overlong.read(text.as_bytes());
        overlong.into_id()
    }

    #[test]
    fn the_id_of_the_message_is_found_wherever_it_is() {
        let seven = Some(RequestId::Number(7));
        assert_eq!(id_of(r#"{"id":7,"params":{"id":8}}"#), seven);
        assert_eq!(id_of(r#"{"params":{"id":8,"text":"\"id\":9,{"}, "id" : 7 }"#), seven);
        assert_eq!(id_of(r#"{"params":[{"id":8}],"id":7}"#), seven);
        assert_eq!(id_of(r#"{"id":"a,\"}","x":1}"#), Some(RequestId::String("a,\"}".into())));
        for none in ["", "{", "[{\"id\":7}]", r#"{"params":{"id":7}}"#, r#"{"id":{"id":7}}"#] {
            assert_eq!(id_of(none), None, "{none}");
        }
        assert_eq!(id_of(&format!(r#"{{"id":"{}"}}"#, "x".repeat(WRITTEN))), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[ -~]{0,8}".prop_map(Value::from),
            Just(json!({ "id": 1 })),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,3}", inner, 0..4)
                    .prop_map(|map| map.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_a_parser_finds(
            before in value(), id in any::<i64>(), after in value(), split in any::<prop::sample::Index>(),
        ) {
            let text = format!(r#"{{"before":{before},"id":{id},"params":{after}}}"#);
            let at = split.index(text.len());
            let mut overlong = Overlong::default();
            overlong.read(&text.as_bytes()[..at]);
            overlong.read(&text.as_bytes()[at..]);
            prop_assert_eq!(overlong.into_id(), Some(RequestId::Number(id)));
        }

        #[test]
        fn it_never_fails(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut overlong = Overlong::default();
            overlong.read(&bytes);
            drop(overlong.into_id());
        }
    }
}
