//! The memory that a JSON text takes as a tree of values, estimated before any of it is built.
//!
//! Seven bytes of text (`{"":0},`) become more than six hundred bytes of tree, so the length of a
//! message says little about its cost. One pass over the bytes does.

use serde_json::Value;

/// One value of a tree.
const VALUE: usize = size_of::<Value>();
/// The smallest piece of memory that an allocator hands out, with its own bookkeeping.
const PIECE: usize = 32;
/// A node of the map behind an object: room for eleven names and values, however few there are.
const NODE: usize = 11 * (size_of::<String>() + VALUE) + PIECE;
/// How many members the least full node of a large map has.
const NODE_MEMBERS: usize = 5;
/// How many members fit into a map of one node.
const ONE_NODE: usize = 11;
/// Parsers refuse deeper texts, so nothing deeper is built.
const DEPTH: usize = 128;

/// Estimates the memory of the tree that a JSON text becomes; at least what it takes, at most about
/// twice that. Stops counting above `limit`. Works on any bytes; invalid JSON is never built.
pub(crate) fn of(text: &[u8], limit: usize) -> usize {
    let mut weight = VALUE;
    // How many values each open array or object has so far.
    let mut open: Vec<Level> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = string_end(text, at + 1);
                weight += string(end - at - 1);
                begin_value(&mut open);
                at = end;
            }
            b'{' | b'[' => {
                begin_value(&mut open);
                if open.len() < DEPTH {
                    open.push(Level { is_object: *byte == b'{', values: 0 });
                }
            }
            b'}' | b']' => weight += open.pop().map_or(0, |level| level.weight()),
            b',' => {
                if let Some(level) = open.last_mut() {
                    level.values += 1;
                }
            }
            b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => begin_value(&mut open),
        }
        at += 1;
        if weight > limit {
            return weight;
        }
    }
    // A text that is cut off was built up to here.
    weight + open.iter().map(Level::weight).sum::<usize>()
}

struct Level {
    is_object: bool,
    values: usize,
}

impl Level {
    fn weight(&self) -> usize {
        match (self.values, self.is_object) {
            (0, _) => 0,
            (values, false) => values.next_power_of_two().max(4) * VALUE + PIECE,
            (values, true) if values <= ONE_NODE => NODE,
            (values, true) => (values / NODE_MEMBERS + 1) * NODE,
        }
    }
}

/// The first value makes a level one that has any; each comma adds one.
fn begin_value(open: &mut [Level]) {
    if let Some(level) = open.last_mut() {
        level.values = level.values.max(1);
    }
}

fn string(length: usize) -> usize {
    if length == 0 { 0 } else { (length + PIECE / 2).next_multiple_of(PIECE / 2).max(PIECE) }
}

/// Where the quotation mark that ends a string stands; the end of the text if none does.
pub(crate) fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What a tree really takes: nodes, capacities and texts.
    fn taken(value: &Value) -> usize {
        fn heap(value: &Value) -> usize {
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => 0,
                Value::String(text) => text.len(),
                Value::Array(all) => all.capacity() * VALUE + all.iter().map(heap).sum::<usize>(),
                Value::Object(all) => {
                    let nodes = all.len().div_ceil(ONE_NODE);
                    let texts: usize = all.iter().map(|(name, it)| name.len() + heap(it)).sum();
                    nodes * (NODE - PIECE) + texts
                }
            }
        }
        VALUE + heap(value)
    }

    #[track_caller]
    fn check(text: &str, least: usize, most: usize) {
        let weight = of(text.as_bytes(), usize::MAX);
        assert!((least..=most).contains(&weight), "{text}: {weight}");
    }

    #[test]
    fn small_objects_weigh_far_more_than_their_text() {
        let bomb = format!("[{}0]", r#"{"":0},"#.repeat(10_000));
        let weight = of(bomb.as_bytes(), usize::MAX);
        assert!(weight > 80 * bomb.len(), "{weight}");
        check(r#"{"":0}"#, 600, 800);
        check("{}", VALUE, VALUE);
        check("[[],[],[]]", 4 * VALUE, 8 * VALUE);
        check("[0]", 5 * VALUE, 8 * VALUE);
    }

    #[test]
    fn long_texts_weigh_what_they_are_long() {
        let text = "x".repeat(100_000);
        check(&json!({ "text": text }).to_string(), 100_000, 102_000);
        check(r#""{\"\":0},[1,2,3]""#, VALUE, 100);
    }

    #[test]
    fn counting_stops_above_the_limit() {
        let bomb = r#"{"":0},"#.repeat(1_000_000);
        assert!(of(bomb.as_bytes(), 10_000) < 12_000);
    }

    /// Any JSON.
    pub(crate) fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~\"\\\\{}\\[\\],:é]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 256, 40, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{0,6}", inner, 0..40)
                    .prop_map(|map| map.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_tree_takes_no_more_than_its_text_weighs(value in value(), pretty in any::<bool>()) {
            let text =
                if pretty { format!("{value:#}") } else { value.to_string() };
            let tree: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(of(text.as_bytes(), usize::MAX) >= taken(&tree));
        }

        #[test]
        fn any_bytes_can_be_weighed(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            of(&bytes, usize::MAX);
        }
    }
}
