//! The arguments of a call: checked against the tool's schema, then typed.

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings_server::model::JsonObject;

use crate::tools::answer::{Refusal, shortened};
use crate::tools::budget::Budget;

/// How many faults are reported at once.
const FAULTS: usize = 5;
/// The length of each: a fault repeats its value.
const FAULT: usize = 300;

/// Accepts the arguments of older servers of feeds: `URL` is `url`, and 0 is the default.
pub(super) fn of_old(tool: &str, arguments: &mut JsonObject) {
    if tool == "fetch_link"
        && !arguments.contains_key("url")
        && let Some(url) = arguments.remove("URL")
    {
        arguments.insert("url".to_owned(), url);
    }
    for name in ["limit", "maxContentLength"] {
        if arguments.get(name).and_then(Value::as_f64) == Some(0.0) {
            arguments.remove(name);
        }
    }
}

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
    arguments.values_mut().for_each(whole);
    let budget = arguments.remove("maxTokens").and_then(|tokens| tokens.as_u64());
    Ok((budget.map(Budget::of_tokens).unwrap_or_default(), arguments))
}

/// Writes `1.0` as `1`: a schema treats both as the same integer, and some programs cannot write
/// integers.
fn whole(value: &mut Value) {
    let number = value.as_f64().filter(|_| value.is_f64());
    // A number with a fraction has a point in its text, and one that is too high has too many
    // digits.
    if let Some(number) = number.and_then(|number| number.to_string().parse::<i64>().ok()) {
        *value = Value::from(number);
    }
}

/// The arguments as the tool's type.
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
    fn a_whole_number_is_one_however_it_is_written() {
        let schema = json!({ "properties": { "limit": { "type": "integer", "minimum": 0 } } });
        let schema = jsonschema::validator_for(&schema).unwrap();
        let read = |value: Value| {
            let Value::Object(arguments) = json!({ "limit": value }) else { panic!() };
            checked(&schema, arguments).map(|(_, arguments)| arguments["limit"].to_string())
        };
        for (value, expected) in
            [(json!(3.0), "3"), (json!(1e3), "1000"), (json!(-0.0), "0"), (json!(7), "7")]
        {
            assert_eq!(read(value).unwrap(), expected);
        }
        for (value, expected) in [
            (json!(1.5), "`limit`: 1.5 is not of type \"integer\""),
            (json!(-1.0), "`limit`: -1.0 is less than the minimum of 0"),
        ] {
            assert_eq!(read(value).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn arguments_of_older_callers_become_ours() {
        let read = |tool: &str, arguments: Value| {
            let Value::Object(mut arguments) = arguments else { panic!() };
            of_old(tool, &mut arguments);
            Value::Object(arguments)
        };
        let (old, ours) = (json!({ "URL": "x" }), json!({ "url": "x" }));
        assert_eq!(read("fetch_link", old.clone()), ours);
        assert_eq!(read("add_feed", old.clone()), old);
        assert_eq!(
            read("any", json!({ "limit": 0, "maxContentLength": 0.0, "offset": 0 })),
            json!({ "offset": 0 })
        );
    }

    #[test]
    fn the_budget_is_taken_out() {
        let schema = jsonschema::validator_for(&json!({ "type": "object" })).unwrap();
        for tokens in [json!(1000), json!(1000.0)] {
            let Value::Object(arguments) = json!({ "a": 1, "maxTokens": tokens }) else { panic!() };
            let (budget, rest) = checked(&schema, arguments).unwrap();
            assert_eq!((budget.bytes(), rest.len()), (4000, 1));
        }
    }
}
