//! Descriptions of tools: their common parts.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidings_server::model::{Tool, ToolAnnotations};

use crate::tools::Need;
use crate::tools::budget::{LEAST, MOST, USUAL};

/// The texts of a tool.
pub(super) struct Words {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
}

/// The behaviour of a tool, apart from its needs.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// It only reads the store.
    Looks,
    /// A repeated call changes nothing more.
    Repeatable,
    /// A repeated call may do something else.
    Once,
    /// It removes something.
    Destroys,
}

/// A tool with these arguments, some of them required, and this shape of an answer.
pub(super) fn tool(
    words: &Words,
    effect: Effect,
    properties: &Value,
    required: &[&str],
    output: Value,
) -> Tool {
    let input = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::new()
        .destructive(matches!(effect, Effect::Destroys))
        .idempotent(!matches!(effect, Effect::Once));
    Tool::new(words.name, words.description, object(input))
        .with_title(words.title)
        .with_raw_output_schema(object(output))
        .with_annotations(annotations)
}

/// Adds the common parts, and the consequences of its needs.
pub(super) fn finished(mut tool: Tool, needs: &[Need]) -> Tool {
    let mut input = (*tool.input_schema).clone();
    if let Some(Value::Object(properties)) = input.get_mut("properties") {
        properties.insert("maxTokens".to_owned(), max_tokens());
    }
    tool.input_schema = Arc::new(input);
    tool.annotations = tool.annotations.map(|annotations| {
        let open_world = annotations.open_world_hint == Some(true) || needs.contains(&Need::Fetch);
        annotations.read_only(!needs.contains(&Need::Change)).open_world(open_world)
    });
    tool
}

/// The shape of an object with these fields, some of them always present.
pub(super) fn shape(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The field for what did not fit.
pub(super) fn left_out() -> Value {
    let mut shape = shape(
        &json!({
            "count": { "type": "integer", "minimum": 1, "description": "How many more there are" },
            "how": { "type": "string", "description": "How to get them" },
        }),
        &["count", "how"],
    );
    shape["description"] = json!("What did not fit into the answer; missing if everything did");
    shape
}

fn max_tokens() -> Value {
    json!({
        "type": "integer", "minimum": LEAST, "maximum": MOST, "default": USUAL,
        "description": "About how long the answer may be, in tokens of four bytes. The rest is \
            left out, and the answer says so",
    })
}

fn object(value: Value) -> Arc<Map<String, Value>> {
    let Value::Object(object) = value else { unreachable!("schemas are written as objects") };
    Arc::new(object)
}
