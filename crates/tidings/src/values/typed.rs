//! Parses a word as a type that a schema allows.

use serde_json::Value;

use crate::schema::Shape;

/// Parses a word as this shape; `None` if it does not fit.
pub(crate) fn read(shape: &Shape, text: &str) -> Option<Value> {
    match shape {
        Shape::Any => Some(guess(text)),
        Shape::String => Some(text.into()),
        Shape::Array(item) => array(item, text),
        Shape::Literal(allowed) => literal(allowed, text),
        Shape::Number(range) => number(text)
            .filter(|number| range.holds(number))
            .map(|number| if range.whole { Value::Number(whole(number)) } else { number.into() }),
        Shape::Null | Shape::Boolean | Shape::Object(_) => {
            serde_json::from_str(text).ok().filter(|value| shape.accepts(value))
        }
        Shape::Either(shapes) => either(shapes, text),
    }
}

/// Parses a word without a declared type: JSON if it parses, otherwise a string.
pub(crate) fn guess(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Strings are tried last, because they accept everything. To pass a string that looks like another
/// type, write its quotes.
fn either(shapes: &[Shape], text: &str) -> Option<Value> {
    let mut ordered: Vec<_> = shapes.iter().collect();
    ordered.sort_by_key(|shape| match shape {
        Shape::Null | Shape::Boolean | Shape::Number(_) => 0,
        Shape::Literal(_) => 1,
        Shape::Object(_) => 2,
        // A single item would fit an array, so a string goes first unless the word is JSON.
        Shape::Array(_) if text.starts_with('[') => 2,
        Shape::String => 3,
        _ => 4,
    });
    if shapes.contains(&Shape::String)
        && let Ok(Value::String(inside)) = serde_json::from_str(text)
    {
        return Some(inside.into());
    }
    ordered.into_iter().find_map(|shape| read(shape, text))
}

fn array(item: &Shape, text: &str) -> Option<Value> {
    if text.starts_with('[')
        && let Ok(value @ Value::Array(_)) = serde_json::from_str(text)
    {
        return value.as_array()?.iter().all(|value| item.accepts(value)).then_some(value);
    }
    // A comma may be part of a string, but of no other scalar.
    let values: Option<Vec<_>> = match item {
        Shape::Number(_) | Shape::Boolean | Shape::Literal(_) => {
            text.split(',').map(|word| read(item, word.trim())).collect()
        }
        _ => Some(vec![read(item, text)?]),
    };
    values.map(Value::Array)
}

fn literal(allowed: &[Value], text: &str) -> Option<Value> {
    let as_text = allowed.iter().find(|value| value.as_str() == Some(text));
    let as_json = || {
        let json: Value = serde_json::from_str(text).ok()?;
        allowed.iter().find(|value| **value == json)
    };
    as_text.or_else(as_json).cloned()
}

fn number(text: &str) -> Option<serde_json::Number> {
    match serde_json::from_str(text.strip_prefix('+').unwrap_or(text)).ok()? {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// `3.0` and `1e3` are whole numbers too, but some servers accept only digits.
fn whole(number: serde_json::Number) -> serde_json::Number {
    if number.is_f64() {
        let digits = number.as_f64().map(|value| format!("{value:.0}"));
        if let Some(digits) = digits.and_then(|digits| digits.parse::<i64>().ok()) {
            return digits.into();
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Fields;
    use serde_json::json;

    #[track_caller]
    fn check(schema: &Value, text: &str, expected: impl Into<Option<Value>>) {
        let schema = json!({ "properties": { "x": schema } });
        let fields = Fields::of(schema.as_object().unwrap());
        assert_eq!(read(&fields.named[0].shape, text), expected.into());
    }

    #[test]
    fn a_word_becomes_what_the_schema_says() {
        check(&json!({ "type": "string" }), "5", json!("5"));
        check(&json!({ "type": "integer" }), "5", json!(5));
        check(&json!({ "type": "integer" }), "5.0", json!(5));
        check(&json!({ "type": "integer" }), "5.5", None);
        check(&json!({ "type": "integer" }), "18446744073709551615", json!(u64::MAX));
        check(&json!({ "type": "number" }), "-1.5e3", json!(-1500.0));
        check(&json!({ "type": "number" }), "NaN", None);
        check(&json!({ "type": "boolean" }), "true", json!(true));
        check(&json!({ "type": "boolean" }), "1", None);
        check(&json!({ "enum": ["low", "high"] }), "high", json!("high"));
        check(&json!({ "enum": [1, "2", null] }), "1", json!(1));
        check(&json!({ "enum": ["low", "high"] }), "mid", None);
        check(
            &json!({ "type": "array", "items": { "enum": ["a", "b"] } }),
            "a,b",
            json!(["a", "b"]),
        );
        check(&json!({ "type": "array" }), "[1,\"x\"]", json!([1, "x"]));
        check(&json!({ "type": "object" }), "{\"a\":1}", json!({ "a": 1 }));
        check(&json!({ "type": "object" }), "a", None);
        check(&json!({}), "plain", json!("plain"));
        check(&json!({}), "{\"a\":1}", json!({ "a": 1 }));
    }

    #[test]
    fn of_several_types_a_text_is_the_last() {
        let schema = || json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }] });
        check(&schema(), "5", json!(5));
        check(&schema(), "null", json!(null));
        check(&schema(), "five", json!("five"));
        check(&schema(), "\"5\"", json!("5"));
        let listed = || json!({ "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "string" }] });
        check(&listed(), "a", json!("a"));
        check(&listed(), "[\"a\"]", json!(["a"]));
    }
}
