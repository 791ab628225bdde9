//! JSON Schemas of tools: check them before the first call.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Describer;
use super::tool::DescriptionText;
use crate::Problem;

impl Describer<'_> {
    /// The validator of a schema; `None` after a problem was reported.
    pub(super) fn validator(
        &mut self,
        written: &DescriptionText<'_>,
        key: &str,
        schema: &Map<String, Value>,
    ) -> Option<Arc<jsonschema::Validator>> {
        if schema.get("type").is_some_and(|kind| kind != "object") {
            let reason = format!("`{key}` must describe an object");
            let advice = "give it `\"type\": \"object\"`";
            self.reject(Problem {
                line: written.at(key),
                ..Problem::error(written.file, reason, advice)
            });
            return None;
        }
        self.judge_required(written, key, schema);
        // References to other documents are never fetched.
        let compiled = jsonschema::options().build(&Value::Object(schema.clone()));
        match compiled {
            Ok(validator) => Some(Arc::new(validator)),
            Err(error) => {
                let reason = format!("`{key}` is not a JSON Schema: {error}");
                let problem = Problem::error(written.file, reason, "correct the schema");
                self.reject(Problem { line: written.at(key), ..problem });
                None
            }
        }
    }
}

impl Describer<'_> {
    /// Reports required names that the schema does not describe.
    pub(super) fn judge_required(
        &mut self,
        written: &DescriptionText<'_>,
        key: &str,
        schema: &Map<String, Value>,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object);
        let (Some(required), Some(properties)) = (required, properties) else { return };
        for name in required.iter().filter_map(Value::as_str) {
            if !properties.contains_key(name) {
                let reason = format!("`{key}` requires `{name}`, which is not in its `properties`");
                let advice = "describe it there, or take it off `required`";
                let problem = Problem::warning(written.file, reason, advice);
                self.report(Problem { line: written.at("required"), ..problem });
            }
        }
    }
}

/// The schema of a tool without one: an object with any properties.
pub(super) fn anything() -> Map<String, Value> {
    let Value::Object(schema) = json!({ "type": "object" }) else { return Map::new() };
    schema
}
