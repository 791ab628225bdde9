//! Checks a tool's arguments and result against its schemas. A mismatch is only reported: the
//! server decides.

use rmcp::model::{CallToolResult, JsonObject, Tool};
use serde_json::Value;

/// The number of mismatches that are named.
const NAMED: usize = 3;

/// Checks the arguments of a call; returns the problem in words.
pub(crate) fn arguments(tool: &Tool, arguments: &JsonObject) -> Option<String> {
    let arguments = Value::Object(arguments.clone());
    misfit(&tool.input_schema, &arguments)
        .map(|problem| format!("the arguments do not match the schema: {problem}"))
}

/// Checks the result of a call; returns the problem in words.
pub(crate) fn result(tool: &Tool, result: &CallToolResult) -> Option<String> {
    let schema = tool.output_schema.as_ref()?;
    if result.is_error == Some(true) {
        return None;
    }
    let Some(value) = &result.structured_content else {
        return Some("it declares an output schema but returned no structured content".to_owned());
    };
    misfit(schema, value).map(|problem| format!("the result does not match the schema: {problem}"))
}

/// Names the first mismatches. An unusable schema, such as one that refers to another document, is
/// ignored: nothing is ever fetched.
fn misfit(schema: &JsonObject, value: &Value) -> Option<String> {
    let schema = Value::Object(schema.clone());
    let validator = jsonschema::validator_for(&schema).ok()?;
    let mut problems = validator.iter_errors(value).map(|error| {
        let path = error.instance_path().to_string();
        if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
    });
    let mut named: Vec<_> = problems.by_ref().take(NAMED).collect();
    let others = problems.count();
    if others > 0 {
        named.push(format!("and {others} more"));
    }
    (!named.is_empty()).then(|| named.join("; "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn tool(input: Value) -> Tool {
        let Value::Object(input) = input else { panic!("a schema is an object") };
        Tool::new("add", "adds", Arc::new(input))
    }

    fn check(schema: Value, given: Value) -> Option<String> {
        let Value::Object(given) = given else { panic!("arguments are an object") };
        arguments(&tool(schema), &given)
    }

    #[test]
    fn a_misfit_names_the_place_and_what_is_wrong() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "number" } }, "required": ["a"] });
        assert_eq!(check(schema.clone(), json!({ "a": 1 })), None);
        let problem = check(schema.clone(), json!({ "a": "one" })).unwrap();
        assert!(problem.contains("/a") && problem.contains("number"), "{problem}");
        assert!(check(schema, json!({})).unwrap().contains("required"));
    }

    #[test]
    fn a_schema_that_refers_elsewhere_is_not_fetched_and_says_nothing() {
        let schema =
            json!({ "type": "object", "properties": { "a": { "$ref": "http://127.0.0.1:1/x" } } });
        assert_eq!(check(schema, json!({ "a": 1 })), None);
    }

    #[test]
    fn a_result_without_the_promised_structure_is_told() {
        let mut tool = tool(json!({ "type": "object" }));
        let Value::Object(output) = json!({ "type": "object", "required": ["sum"] }) else {
            return;
        };
        tool.output_schema = Some(Arc::new(output));
        assert!(result(&tool, &CallToolResult::success(Vec::new())).is_some());
        assert_eq!(
            result(&tool, &CallToolResult::error(Vec::new())),
            None,
            "it failed and said so"
        );
        assert_eq!(result(&tool, &CallToolResult::structured(json!({ "sum": 3 }))), None);
    }
}
