//! JSON Schemas and annotations of tools.

use std::sync::Arc;

use serde_json::{Value, json};
use tidings_server::model::{JsonObject, Tool, ToolAnnotations};

/// The effect of a tool on a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only reads.
    Reads,
    /// It adds something, and again with every call.
    Adds,
    /// It adds something; a repeated call changes nothing.
    Sets,
    /// It removes or overwrites something; a repeated call changes nothing.
    Removes,
}

/// A tool with its description, schemas and annotations.
pub(super) fn tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    effect: Effect,
    (input, output): (Value, Value),
) -> Tool {
    let annotations = ToolAnnotations::with_title(title)
        .read_only(effect == Effect::Reads)
        .destructive(effect == Effect::Removes)
        .idempotent(effect != Effect::Adds)
        .open_world(false);
    Tool::new(name, description, fields(input))
        .with_title(title)
        .with_raw_output_schema(fields(output))
        .with_annotations(annotations)
}

/// An object with only these properties, some of them required.
pub(super) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A text.
pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Texts.
pub(super) fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// A boolean.
pub(super) fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// A whole number in a range.
pub(super) fn number(from: u64, to: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": from, "maximum": to, "description": description })
}

/// A listed artifact.
pub(super) fn entry() -> Value {
    object(
        &json!({
            "id": text("its id"),
            "title": text("its title"),
            "hash": text("the BLAKE3 hash of its bytes"),
            "mimeType": text("the MIME type"),
            "size": { "type": "integer", "description": "the number of bytes" },
            "creator": text("its creator"),
            "created": text("when it was created, in UTC"),
            "tags": texts("its tags, in order"),
            "set": text("the set it is part of"),
            "index": { "type": "integer", "description": "its position in the set, from 0" },
            "archived": flag("whether it is archived"),
        }),
        &["id", "title", "hash", "mimeType", "size", "creator", "created", "tags", "archived"],
    )
}

/// A hint.
pub(super) fn hint() -> Value {
    object(
        &json!({
            "kind": text("the kind of hint"),
            "value": text("its value"),
            "confidence": {
                "type": "number", "minimum": 0, "maximum": 1, "description": "the confidence; default: 1",
            },
        }),
        &["kind", "value"],
    )
}

/// A connection.
pub(super) fn connection() -> Value {
    object(
        &json!({
            "from": text("the id of the source identity"),
            "from_port": text("the port of the source"),
            "to": text("the id of the target identity"),
            "to_port": text("the port of the target"),
            "transport": text("the kind of connection"),
        }),
        &["from", "from_port", "to", "to_port"],
    )
}

/// An identity with its hints and connections.
pub(super) fn identity() -> Value {
    object(
        &json!({
            "id": text("its id"),
            "name": text("its name"),
            "tags": texts("its tags, in order"),
            "created": text("when it was created, in UTC"),
            "hints": { "type": "array", "items": hint() },
            "connections": { "type": "array", "items": connection() },
            "connectionCount": {
                "type": "integer",
                "description": "the number of connections; the first hundred are shown",
            },
        }),
        &["id", "name", "tags", "created", "hints", "connections", "connectionCount"],
    )
}

fn fields(schema: Value) -> Arc<JsonObject> {
    let Value::Object(fields) = schema else { unreachable!("a tool takes and gives objects") };
    Arc::new(fields)
}
