//! `key=value` words as values: strings for prompts and templates, typed values for tools.

mod typed;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

pub(crate) use self::typed::guess;
use crate::report::Usage;
use crate::schema::{Field, Fields, Shape};

/// One `key=value` word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

/// Splits words at their first equals sign.
pub(crate) fn pairs(words: &[String]) -> Result<Vec<Pair<'_>>, Usage> {
    words
        .iter()
        .map(|word| match word.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Pair { key, value }),
            _ => Err(Usage::new(format!("`{word}` was not expected"))
                .hint("write arguments as `key=value`")),
        })
        .collect()
}

/// The pairs as strings. `known` lists the valid names, if they are known.
pub(crate) fn texts(
    pairs: &[Pair<'_>],
    known: Option<&[&str]>,
) -> Result<BTreeMap<String, String>, Usage> {
    let mut texts = BTreeMap::new();
    for Pair { key, value } in pairs {
        if let Some(known) = known
            && !known.contains(key)
        {
            return Err(unknown(key, known));
        }
        if texts.insert((*key).to_owned(), (*value).to_owned()).is_some() {
            return Err(Usage::new(format!("`{key}` is given twice")));
        }
    }
    Ok(texts)
}

/// The object given with `--args`: the JSON itself, `@FILE`, or `-` for standard input.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>> {
    let (source, json) = match text.strip_prefix('@') {
        _ if text == "-" => {
            ("standard input".to_owned(), std::io::read_to_string(std::io::stdin())?)
        }
        Some(file) => {
            let read = std::fs::read_to_string(file);
            (format!("`{file}`"), read.with_context(|| format!("reading `{file}`"))?)
        }
        None => ("--args".to_owned(), text.to_owned()),
    };
    match serde_json::from_str(&json) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Usage::new(format!("{source} is not a JSON object"))
            .hint("write it as `{\"key\": value}`")
            .into()),
        Err(error) => Err(Usage::new(format!("{source} is not JSON: {error}")).into()),
    }
}

/// Adds typed pairs to the object of `--args`, and checks that no required field is missing.
pub(crate) fn arguments(
    fields: &Fields,
    base: Map<String, Value>,
    pairs: &[Pair<'_>],
) -> Result<Map<String, Value>, Usage> {
    let mut object = base;
    let mut given = BTreeSet::new();
    for pair in pairs {
        let again = !given.insert(pair.key);
        assign(&mut object, fields, pair.key, pair, again)?;
    }
    let missing = |field: &&Field| field.required && !object.contains_key(&field.name);
    if let Some(field) = fields.named.iter().find(missing) {
        let about = field.description.as_deref().map(|text| format!(": {text}"));
        return Err(Usage::new(format!("parameter `{}` is missing", field.name)).hint(format!(
            "give `{}=VALUE`, {}{}",
            field.name,
            field.shape,
            about.unwrap_or_default()
        )));
    }
    Ok(object)
}

/// Sets one value; dots step into objects.
fn assign(
    object: &mut Map<String, Value>,
    fields: &Fields,
    key: &str,
    pair: &Pair<'_>,
    again: bool,
) -> Result<(), Usage> {
    if let Some(field) = fields.field(key) {
        return set(object, field, pair, again);
    }
    if let Some((outer, inner)) = key.split_once('.') {
        let fields_inside = match fields.field(outer).map(|field| &field.shape) {
            Some(shape) => inside(shape),
            None => fields.open.then(Fields::default),
        };
        if let Some(mut fields) = fields_inside {
            fields.open |= fields.named.is_empty();
            let place = object.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(object) = place {
                return assign(object, &fields, inner, pair, again);
            }
            return Err(Usage::new(format!("`{outer}` has no `{inner}`: it is given as {place}")));
        }
    }
    if !fields.open {
        let names: Vec<_> = fields.named.iter().map(|field| field.name.as_str()).collect();
        return Err(unknown(key, &names));
    }
    if again {
        return Err(Usage::new(format!("`{}` is given twice", pair.key)));
    }
    object.insert(key.to_owned(), typed::guess(pair.value));
    Ok(())
}

/// The fields of a shape, if it can be an object.
fn inside(shape: &Shape) -> Option<Fields> {
    match shape {
        Shape::Object(fields) => Some(fields.clone()),
        Shape::Any => Some(Fields { named: Vec::new(), open: true }),
        Shape::Either(shapes) => shapes.iter().find_map(|shape| match shape {
            Shape::Object(fields) => Some(fields.clone()),
            _ => None,
        }),
        _ => None,
    }
}

fn set(
    object: &mut Map<String, Value>,
    field: &Field,
    pair: &Pair<'_>,
    again: bool,
) -> Result<(), Usage> {
    let value = typed::read(&field.shape, pair.value).ok_or_else(|| refused(field, pair))?;
    match (again, value) {
        (true, Value::Array(more)) => match object.get_mut(&field.name) {
            Some(Value::Array(values)) => values.extend(more),
            _ => return Err(refused(field, pair)),
        },
        (true, _) => return Err(Usage::new(format!("`{}` is given twice", pair.key))),
        (false, value) => drop(object.insert(field.name.clone(), value)),
    }
    Ok(())
}

fn refused(field: &Field, pair: &Pair<'_>) -> Usage {
    let usage = Usage::new(format!(
        "parameter `{}`: `{}` is not allowed, it takes {}",
        pair.key, pair.value, field.shape
    ));
    match &field.description {
        Some(description) => usage.hint(format!("`{}` is {description}", pair.key)),
        None => usage,
    }
}

fn unknown(key: &str, known: &[&str]) -> Usage {
    let usage = Usage::new(format!("unknown parameter `{key}`"));
    match nearest(key, known) {
        Some(near) => usage.hint(format!("did you mean `{near}`?")),
        None if known.is_empty() => usage.hint("it has no parameters"),
        None => usage.hint(format!("known parameters: {}", known.join(", "))),
    }
}

/// The name that was probably meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let scored =
        known.iter().map(|name| (similar::TextDiff::from_chars(word, *name).ratio(), *name));
    scored
        .filter(|(ratio, _)| *ratio > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields() -> Fields {
        let schema = json!({ "type": "object", "required": ["count"], "properties": {
            "count": { "type": "integer", "minimum": 1, "description": "how many to take" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "ids": { "type": "array", "items": { "type": "integer" } },
            "where": { "type": "object", "properties": { "x": { "type": "number" }, "y.z": {} } },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        }});
        Fields::of(schema.as_object().unwrap())
    }

    #[track_caller]
    fn check(words: &str, expected: &Value) {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        let object = arguments(&fields(), Map::new(), &pairs(&words).unwrap()).unwrap();
        assert_eq!(Value::Object(object), *expected);
    }

    #[track_caller]
    fn refuses(words: &str, because: &str) {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        let refusal = pairs(&words).and_then(|pairs| arguments(&fields(), Map::new(), &pairs));
        assert_eq!(refusal.unwrap_err().to_string(), because);
    }

    #[test]
    fn pairs_are_typed_by_the_schema() {
        check("count=3", &json!({ "count": 3 }));
        check("count=3 tags=a,b tags=c", &json!({ "count": 3, "tags": ["a,b", "c"] }));
        check("count=3 ids=1,2 ids=[3]", &json!({ "count": 3, "ids": [1, 2, 3] }));
        check(
            "count=3 where.x=1.5 where.y.z=q",
            &json!({ "count": 3, "where": { "x": 1.5, "y.z": "q" } }),
        );
        check("count=3 where={\"x\":2}", &json!({ "count": 3, "where": { "x": 2 } }));
        check("count=3 note=null", &json!({ "count": 3, "note": null }));
        check("count=3 note=a=b", &json!({ "count": 3, "note": "a=b" }));
    }

    #[test]
    fn what_does_not_fit_is_named_with_what_would() {
        refuses(
            "count=many",
            "parameter `count`: `many` is not allowed, it takes integer (at least 1)",
        );
        refuses("count=0", "parameter `count`: `0` is not allowed, it takes integer (at least 1)");
        refuses("ids=1,x count=1", "parameter `ids`: `1,x` is not allowed, it takes integer[]");
        refuses(
            "where.x=east count=1",
            "parameter `where.x`: `east` is not allowed, it takes number",
        );
        refuses("tags=a", "parameter `count` is missing");
        refuses("cuont=1", "unknown parameter `cuont`");
        refuses("count=1 count=2", "`count` is given twice");
        refuses("count", "`count` was not expected");
    }

    #[test]
    fn a_name_that_is_nearly_right_is_offered() {
        assert_eq!(nearest("cuont", &["tags", "count"]), Some("count"));
        assert_eq!(nearest("zebra", &["tags", "count"]), None);
    }

    #[test]
    fn pairs_win_over_the_object() {
        let words = ["count=2".to_owned()];
        let base = object(r#"{"count": 1, "tags": ["x"]}"#).unwrap();
        let object = arguments(&fields(), base, &pairs(&words).unwrap()).unwrap();
        assert_eq!(Value::Object(object), json!({ "count": 2, "tags": ["x"] }));
    }

    #[test]
    fn only_an_object_is_an_object_of_arguments() {
        assert!(object("[1]").unwrap_err().to_string().contains("not a JSON object"));
        assert!(object("{").unwrap_err().to_string().contains("not JSON"));
    }
}
