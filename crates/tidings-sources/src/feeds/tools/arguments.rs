//! The arguments of a call: checked against the tool's schema, then typed.

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings_server::model::JsonObject;

use crate::feeds::tools::answer::{Refusal, shortened};
use crate::feeds::tools::budget::Budget;

/// How many faults are told at once.
const FAULTS: usize = 5;
/// How much is said of each: a fault repeats the value it is about.
const FAULT: usize = 300;

/// Checks arguments and takes the one that all tools have.
pub(super) fn checked(
    schema: &Validator,
    arguments: JsonObject,
) -> Result<(Budget, JsonObject), Refusal> {
    let value = Value::Object(arguments);
    let faults: Vec<_> = schema.iter_errors(&value).take(FAULTS).map(|it| line(&it)).collect();
    if !faults.is_empty() {
        return Err(Refusal::new(faults.join("\n")));
    }
    let Value::Object(mut arguments) = value else { return Err(Refusal::new("no arguments")) };
    let budget = arguments.remove("maxTokens").and_then(|tokens| tokens.as_u64());
    Ok((budget.map(Budget::of_tokens).unwrap_or_default(), arguments))
}

/// Arguments as a tool uses them.
pub(super) fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Refusal> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Refusal::new(error.to_string()))
}

/// One fault, with the name of the argument.
fn line(fault: &jsonschema::ValidationError<'_>) -> String {
    let path = fault.instance_path().to_string();
    let name = path.trim_start_matches('/');
    let text = match fault.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("there is no argument `{}`", unexpected.join("`, `"))
        }
        ValidationErrorKind::Required { property } => {
            format!("the argument {property} is required").replace('"', "`")
        }
        _ if name.is_empty() => fault.to_string(),
        _ => format!("`{name}`: {fault}"),
    };
    shortened(&text, FAULT).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(arguments: Value, expected: &str) {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["ID"],
            "properties": {
                "ID": { "type": "string" }, "limit": { "type": "integer", "maximum": 3 },
                "format": { "enum": ["text", "html"] }, "maxTokens": { "type": "integer" },
            },
        });
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let schema = jsonschema::validator_for(&schema).unwrap();
        let told = checked(&schema, arguments).map_or_else(|it| it.to_string(), |_| String::new());
        assert_eq!(told, expected);
    }

    #[test]
    fn a_fault_names_the_argument_its_value_and_what_is_allowed() {
        check(json!({ "ID": "a", "limit": 3 }), "");
        check(json!({}), "the argument `ID` is required");
        check(json!({ "ID": "a", "colour": 1 }), "there is no argument `colour`");
        check(json!({ "ID": "a", "limit": 4 }), "`limit`: 4 is greater than the maximum of 3");
        check(json!({ "ID": 1 }), "`ID`: 1 is not of type \"string\"");
        check(
            json!({ "ID": "a", "format": "x" }),
            "`format`: \"x\" is not one of \"text\" or \"html\"",
        );
    }

    #[test]
    fn the_budget_is_taken_out() {
        let schema = jsonschema::validator_for(&json!({ "type": "object" })).unwrap();
        let Value::Object(arguments) = json!({ "a": 1, "maxTokens": 1000 }) else { panic!() };
        let (budget, rest) = checked(&schema, arguments).unwrap();
        assert_eq!((budget.bytes(), rest.len()), (4000, 1));
    }
}
