//! JSON Schemas of Rust types, as tools and prompts show them.

use rmcp::model::{JsonObject, PromptArgument};
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema of a tool's arguments.
pub(crate) fn of_arguments<T: JsonSchema>() -> JsonObject {
    of_object::<T>().unwrap_or_else(|| {
        let Value::Object(any) = json!({ "type": "object" }) else { return JsonObject::new() };
        any
    })
}

/// The schema of a type that is an object, without keywords that do not describe its values.
pub(crate) fn of_object<T: JsonSchema>() -> Option<JsonObject> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.to_value() else { return None };
    schema.remove("$schema");
    schema.remove("title");
    (schema.get("type") == Some(&json!("object"))).then_some(schema)
}

/// The arguments of a prompt: the fields of its input.
pub(crate) fn prompt_arguments<T: JsonSchema>() -> Vec<PromptArgument> {
    let schema = of_object::<T>().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(name, field)| {
            let mut argument = PromptArgument::new(name.clone())
                .with_required(required.iter().any(|it| it.as_str() == Some(name)));
            if let Some(description) = field.get("description").and_then(Value::as_str) {
                argument = argument.with_description(description);
            }
            argument
        })
        .collect()
}
