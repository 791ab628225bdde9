//! Forms: the fields of a JSON Schema, the problems of what was filled in, and the command line
//! that would send the same.

use serde_json::{Map, Value, json};
use tidings_mirror::model::PromptArgument;

use crate::args::Place;
use crate::console::secret::{DOTS, is_secret};
use crate::schema::{Field, Fields, Shape};

/// The most problems that are named.
const PROBLEMS: usize = 50;
/// How deep forms are nested; deeper values are written as JSON.
const DEPTH: usize = 4;

/// The fields of a schema.
pub(crate) fn fields(schema: &Map<String, Value>) -> Value {
    described(&Fields::of(schema), schema, 0)
}

fn described(fields: &Fields, schema: &Map<String, Value>, depth: usize) -> Value {
    let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
    fields.named.iter().map(|field| described_field(field, property(&field.name), depth)).collect()
}

fn described_field(field: &Field, schema: Option<&Value>, depth: usize) -> Value {
    let text = |name: &str| schema.and_then(|schema| schema[name].as_str());
    let is_secret = is_secret(&field.name) || text("format") == Some("password");
    let mut json = json!({
        "name": field.name, "required": field.required, "type": field.shape.to_string(),
        "about": field.description, "title": text("title"), "format": text("format"),
        "default": field.default, "secret": is_secret,
    });
    json["example"] = field.example.clone().unwrap_or(Value::Null);
    let (shape, nullable) = without_null(&field.shape);
    json["nullable"] = nullable.into();
    let inner = schema.and_then(Value::as_object);
    input(&mut json, shape, inner, depth);
    json
}

/// What the field is filled in with.
fn input(json: &mut Value, shape: &Shape, schema: Option<&Map<String, Value>>, depth: usize) {
    let empty = Map::new();
    match shape {
        Shape::Boolean => json["input"] = "boolean".into(),
        Shape::Number(range) => {
            json["input"] = if range.whole { "integer" } else { "number" }.into();
        }
        Shape::String => json["input"] = "text".into(),
        Shape::Literal(choices) => {
            json["input"] = "choice".into();
            json["choices"] = choices.clone().into();
            let names = schema.and_then(|schema| schema.get("enumNames"));
            json["names"] = names.cloned().unwrap_or_default();
        }
        Shape::Array(item) if matches!(**item, Shape::String) => json["input"] = "texts".into(),
        Shape::Array(item) if matches!(**item, Shape::Literal(_)) => {
            if let Shape::Literal(choices) = &**item {
                json["input"] = "choices".into();
                json["choices"] = choices.clone().into();
            }
        }
        Shape::Object(fields) if !fields.named.is_empty() && depth < DEPTH => {
            json["input"] = "object".into();
            json["type"] = "object".into();
            json["fields"] = described(fields, schema.unwrap_or(&empty), depth + 1);
        }
        _ => json["input"] = "json".into(),
    }
}

/// A shape without `null`, and whether that was allowed.
fn without_null(shape: &Shape) -> (&Shape, bool) {
    if let Shape::Either(shapes) = shape
        && let [one, other] = &**shapes
    {
        match (one, other) {
            (Shape::Null, shape) | (shape, Shape::Null) => return (shape, true),
            _ => {}
        }
    }
    (shape, false)
}

/// The fields of a prompt's arguments: all are texts.
pub(crate) fn arguments(arguments: &[PromptArgument]) -> Value {
    let each = arguments.iter().map(|argument| {
        json!({
            "name": argument.name, "required": argument.required == Some(true), "type": "string",
            "about": argument.description, "title": argument.title, "input": "text",
            "secret": is_secret(&argument.name), "completes": true,
        })
    });
    each.collect()
}

/// The fields of a template's variables.
pub(crate) fn variables<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    let each = names.map(|name| {
        json!({ "name": name, "required": false, "type": "string", "input": "text",
            "secret": is_secret(name), "completes": true })
    });
    each.collect()
}

/// What does not fit the schema: the place as a JSON pointer, and the reason.
pub(crate) fn problems(schema: &Value, values: &Value) -> Value {
    let Ok(validator) = jsonschema::validator_for(schema) else {
        // A schema that is not valid cannot refuse anything; the server decides.
        return Value::Array(Vec::new());
    };
    let errors = validator.iter_errors(values).take(PROBLEMS);
    errors
        .map(|error| {
            let at = error.instance_path().to_string();
            let name = at.rsplit('/').next().unwrap_or_default();
            let is_hidden = is_secret(name);
            let text = if is_hidden { "does not fit".to_owned() } else { error.to_string() };
            json!({ "at": at, "text": text })
        })
        .collect()
}

/// The command line that sends the same values.
pub(crate) fn line(
    place: &Place,
    command: &str,
    name: &str,
    values: &Map<String, Value>,
) -> String {
    let mut words = vec![name.to_owned()];
    for (key, value) in values {
        words.push(match value {
            Value::String(_) | Value::Number(_) if is_secret(key) => format!("{key}={DOTS}"),
            Value::String(text) => format!("{key}={text}"),
            other => format!("{key}={other}"),
        });
    }
    place.line(command, &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["module"],
            "properties": {
                "module": { "type": "string", "description": "its name" },
                "mode": { "enum": ["slow", "fast"] },
                "at": { "type": "object", "properties": {
                    "port": { "type": "integer", "minimum": 1, "maximum": 6 },
                    "deck": { "type": ["integer", "null"] },
                } },
                "tags": { "type": "array", "items": { "type": "string" } },
                "password": { "type": "string" },
                "more": { "type": "array", "items": { "type": "object" } },
            },
        })
    }

    #[test]
    fn each_field_says_how_it_is_filled_in() {
        let schema = schema();
        let fields = fields(schema.as_object().unwrap());
        let by_name = |name: &str| {
            let fields = fields.as_array().unwrap();
            fields.iter().find(|field| field["name"] == name).unwrap().clone()
        };
        assert_eq!(fields[0]["name"], "module", "required ones come first");
        assert_eq!(by_name("mode")["choices"], json!(["slow", "fast"]));
        let at = by_name("at");
        assert_eq!(
            (&at["fields"][0]["name"], &at["fields"][0]["nullable"]),
            (&"deck".into(), &true.into())
        );
        assert_eq!(at["fields"][1]["type"], "integer (at least 1, at most 6)");
        assert_eq!(
            (&by_name("tags")["input"], &by_name("more")["input"]),
            (&"texts".into(), &"json".into())
        );
        assert_eq!(by_name("password")["secret"], true);
    }

    #[test]
    fn a_problem_names_its_place() {
        let found = problems(&schema(), &json!({ "module": "iris", "at": { "port": 9 } }));
        assert_eq!((found.as_array().unwrap().len(), &found[0]["at"]), (1, &"/at/port".into()));
        let text = problems(&schema(), &json!({ "module": "i", "password": 7 }))[0]["text"].clone();
        assert_eq!(text, "does not fit");
        assert_eq!(problems(&json!({ "type": 3 }), &json!({})), json!([]));
    }

    #[test]
    fn a_command_line_sends_the_same_without_secrets() {
        let values = json!({ "module": "it's", "at": { "port": 1 }, "token": "hunter2" });
        let place = Place::Named("station".to_owned());
        let line = line(&place, "call", "dock", values.as_object().unwrap());
        assert_eq!(
            line,
            r#"tidings call station dock 'at={"port":1}' 'module=it'\''s' 'token=••••••'"#
        );
    }
}
