//! [`Fingerprint`]: the only answer to "did it change?".

use std::fmt;
use std::io::{BufWriter, Write};

use blake3::Hasher;
use serde_json::Value;

/// A short, fixed-size digest of a content: equal contents have equal fingerprints, and different
/// contents have different ones for every practical purpose.
///
/// It is BLAKE3 cut to 128 bits: finding two contents with one fingerprint takes 2⁶⁴ attempts.
/// Bytes, JSON and sequences never share a fingerprint, even if they are written alike. A release
/// may compute it differently, so a stored fingerprint may compare as changed after an upgrade.
///
/// ```
/// use serde_json::json;
/// use tidings_core::Fingerprint;
///
/// let fingerprint = Fingerprint::of_json(&json!({"title": "a", "size": 1}));
/// assert_eq!(fingerprint, Fingerprint::of_json(&json!({"size": 1, "title": "a"})));
/// assert_eq!(fingerprint.to_string().len(), 32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// No content, which differs from empty content.
    ///
    /// ```
    /// use tidings_core::Fingerprint;
    ///
    /// assert_ne!(Fingerprint::of_bytes(b""), Fingerprint::ABSENT);
    /// ```
    pub const ABSENT: Self = Self([0; 16]);

    /// The fingerprint of bytes as they are.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::finish(started(Domain::Bytes).update(bytes))
    }

    /// The fingerprint of a JSON value, whatever the order of keys in its objects.
    ///
    /// Numbers are compared as printed: `1` and `1.0` are different.
    #[must_use]
    pub fn of_json(value: &Value) -> Self {
        // The printer writes a few bytes at a time; the hasher is faster with blocks.
        let mut output = BufWriter::with_capacity(1024, started(Domain::Json));
        let hasher = write_canonical(value, &mut output)
            .and_then(|()| output.into_inner().map_err(std::io::IntoInnerError::into_error))
            .expect("writing into a hasher cannot fail");
        Self::finish(&hasher)
    }

    /// The fingerprint of canonical JSON text: compact, keys sorted by their bytes, and only
    /// necessary escapes.
    ///
    /// It equals [`Self::of_json`] of the value, for numbers of any size: they are compared as
    /// written.
    ///
    /// ```
    /// use serde_json::json;
    /// use tidings_core::Fingerprint;
    ///
    /// let fingerprint = Fingerprint::of_json(&json!({"title": "a", "size": 1}));
    /// assert_eq!(fingerprint, Fingerprint::of_canonical_json(r#"{"size":1,"title":"a"}"#));
    /// ```
    #[must_use]
    pub fn of_canonical_json(text: &str) -> Self {
        Self::finish(started(Domain::Json).update(text.as_bytes()))
    }

    /// The fingerprint of several contents in order.
    ///
    /// Sequences of sequences keep their shape: `[[a, b], [c]]` and `[[a], [b, c]]` differ.
    ///
    /// ```
    /// use tidings_core::Fingerprint;
    ///
    /// let [a, b] = [Fingerprint::of_bytes(b"a"), Fingerprint::of_bytes(b"b")];
    /// assert_ne!(Fingerprint::of_sequence([a, b]), Fingerprint::of_sequence([b, a]));
    /// ```
    #[must_use]
    pub fn of_sequence(fingerprints: impl IntoIterator<Item = Self>) -> Self {
        let mut hasher = started(Domain::Sequence);
        let mut length = 0_u64;
        for fingerprint in fingerprints {
            hasher.update(&fingerprint.0);
            length += 1;
        }
        // The length comes last because an iterator need not know it in advance. All items have one
        // size, so the text before it is unambiguous.
        Self::finish(hasher.update(&length.to_le_bytes()))
    }

    fn finish(hasher: &Hasher) -> Self {
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({self})")
    }
}

/// The first hashed byte, so that kinds of content cannot be confused.
#[derive(Clone, Copy)]
enum Domain {
    Bytes = 1,
    Json = 2,
    Sequence = 3,
}

fn started(domain: Domain) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&[domain as u8]);
    hasher
}

/// Writes compact JSON with the keys of each object sorted by their bytes.
fn write_canonical(value: &Value, output: &mut impl Write) -> std::io::Result<()> {
    match value {
        Value::Array(items) => {
            write_list(output, [b'[', b']'], items, |output, item| write_canonical(item, output))
        }
        Value::Object(map) => {
            // Whether the map is sorted depends on a feature of `serde_json` that any package of
            // the program can enable.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            write_list(output, [b'{', b'}'], entries, |output, (key, item)| {
                serde_json::to_writer(&mut *output, key)?;
                output.write_all(b":")?;
                write_canonical(item, output)
            })
        }
        scalar => Ok(serde_json::to_writer(output, scalar)?),
    }
}

fn write_list<W: Write, T>(
    output: &mut W,
    [open, close]: [u8; 2],
    items: impl IntoIterator<Item = T>,
    mut write_item: impl FnMut(&mut W, T) -> std::io::Result<()>,
) -> std::io::Result<()> {
    output.write_all(&[open])?;
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            output.write_all(b",")?;
        }
        write_item(output, item)?;
    }
    output.write_all(&[close])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn canonical(value: &Value) -> String {
        let mut output = Vec::new();
        write_canonical(value, &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let value = json!({"b": [1, 1.5, {"z": null, "y": true}], "a": "é\"\n", "": {}});
        assert_eq!(canonical(&value), r#"{"":{},"a":"é\"\n","b":[1,1.5,{"y":true,"z":null}]}"#);
    }

    #[test]
    fn bytes_json_and_sequences_never_share_a_fingerprint() {
        let bytes = Fingerprint::of_bytes(b"[]");
        let json = Fingerprint::of_json(&json!([]));
        let sequence = Fingerprint::of_sequence([]);
        assert!(bytes != json && json != sequence && sequence != bytes);
        assert!(![bytes, json, sequence].contains(&Fingerprint::ABSENT));
    }

    #[test]
    fn a_sequence_keeps_its_shape() {
        let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| Fingerprint::of_bytes(bytes));
        let of = |groups: &[&[Fingerprint]]| {
            let groups = groups.iter().map(|group| Fingerprint::of_sequence(group.iter().copied()));
            Fingerprint::of_sequence(groups)
        };
        assert_ne!(of(&[&[a, b], &[c]]), of(&[&[a], &[b, c]]));
        assert_ne!(of(&[&[a]]), of(&[&[a], &[]]));
        assert_ne!(Fingerprint::of_sequence([a]), a);
    }

    #[test]
    fn a_fingerprint_is_shown_in_hexadecimal() {
        let fingerprint = Fingerprint([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(fingerprint.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(format!("{fingerprint:?}"), "Fingerprint(000102030405060708090a0b0c0d0eff)");
    }

    #[test]
    fn large_values_are_hashed_whole() {
        let long = |last: &str| json!(["x".repeat(10_000), last]);
        assert_ne!(Fingerprint::of_json(&long("a")), Fingerprint::of_json(&long("b")));
        let text = canonical(&long("a"));
        let hasher = started(Domain::Json).update(text.as_bytes()).clone();
        assert_eq!(Fingerprint::of_json(&long("a")), Fingerprint::finish(&hasher));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // Quarters are read back exactly, which `serde_json` does not promise for all.
            any::<i32>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
            ".{0,4}".prop_map(Value::from),
        ];
        scalar.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,2}", inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    /// The same value with the entries of every object put in the other way round.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(map) => {
                let entries = map.iter().rev().map(|(key, item)| (key.clone(), reversed(item)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
            scalar => scalar.clone(),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_keys_does_not_matter(value in any_json()) {
            prop_assert_eq!(Fingerprint::of_json(&value), Fingerprint::of_json(&reversed(&value)));
        }

        #[test]
        fn canonical_json_is_the_same_value(value in any_json()) {
            let parsed: Value = serde_json::from_str(&canonical(&value)).unwrap();
            prop_assert_eq!(canonical(&parsed), canonical(&value));
        }

        #[test]
        fn any_other_value_has_another_fingerprint(one in any_json(), other in any_json()) {
            let same = Fingerprint::of_json(&one) == Fingerprint::of_json(&other);
            let text = Fingerprint::of_canonical_json(&canonical(&one));
            prop_assert_eq!(text, Fingerprint::of_json(&one));
            prop_assert_eq!(same, canonical(&one) == canonical(&other));
            let wrapped = json!([one.clone()]);
            prop_assert_ne!(Fingerprint::of_json(&wrapped), Fingerprint::of_json(&one));
        }

        #[test]
        fn any_other_bytes_have_another_fingerprint(bytes: Vec<u8>, at: usize, bit in 0_u8..8) {
            let mut other = bytes.clone();
            if bytes.is_empty() {
                other.push(0);
            } else {
                other[at % bytes.len()] ^= 1_u8 << bit;
            }
            prop_assert_ne!(Fingerprint::of_bytes(&bytes), Fingerprint::of_bytes(&other));
        }
    }
}
