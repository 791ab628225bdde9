//! What tools take and give, as JSON Schema.

use std::sync::Arc;

use serde_json::{Value, json};
use tidings_server::model::{JsonObject, Tool, ToolAnnotations};

/// What a tool does to a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Reads,
    /// It adds, and adds again when it is called again.
    Adds,
    /// It adds, and nothing more when it is called again.
    Sets,
    /// It takes away or overwrites, and nothing more when it is called again.
    Removes,
}

/// A tool with all that describes it.
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

/// An object with these properties, of which some are required, and no others.
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

/// Yes or no.
pub(super) fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// A whole number in a range.
pub(super) fn number(from: u64, to: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": from, "maximum": to, "description": description })
}

/// An artifact as lists have it.
pub(super) fn entry() -> Value {
    object(
        &json!({
            "id": text("its id"),
            "title": text("its title"),
            "hash": text("the BLAKE3 hash of its bytes"),
            "mimeType": text("what kind of bytes"),
            "size": { "type": "integer", "description": "how many bytes" },
            "creator": text("who made it"),
            "created": text("when, in UTC"),
            "tags": texts("its tags, in order"),
            "set": text("the set it is part of"),
            "index": { "type": "integer", "description": "its place in the set, from 0" },
            "archived": flag("whether it was put away"),
        }),
        &["id", "title", "hash", "mimeType", "size", "creator", "created", "tags", "archived"],
    )
}

/// A hint.
pub(super) fn hint() -> Value {
    object(
        &json!({
            "kind": text("what kind of hint"),
            "value": text("what it says"),
            "confidence": {
                "type": "number", "minimum": 0, "maximum": 1, "description": "how sure; 1 if not given",
            },
        }),
        &["kind", "value"],
    )
}

/// A connection.
pub(super) fn connection() -> Value {
    object(
        &json!({
            "from": text("the id of the identity where it begins"),
            "from_port": text("the port there"),
            "to": text("the id of the identity where it ends"),
            "to_port": text("the port there"),
            "transport": text("what kind of connection"),
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
            "created": text("when it was first bound, in UTC"),
            "hints": { "type": "array", "items": hint() },
            "connections": { "type": "array", "items": connection() },
            "connectionCount": {
                "type": "integer",
                "description": "how many there are; the first hundred are shown",
            },
        }),
        &["id", "name", "tags", "created", "hints", "connections", "connectionCount"],
    )
}

fn fields(schema: Value) -> Arc<JsonObject> {
    let Value::Object(fields) = schema else { unreachable!("a tool takes and gives objects") };
    Arc::new(fields)
}
