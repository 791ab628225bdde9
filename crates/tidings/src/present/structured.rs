//! JSON for people: a list of similar objects becomes a table, one object its fields.

use serde_json::{Map, Value};

use crate::present::colour::Paint;
use crate::present::table::Table;
use crate::present::text::{harmless, width};

/// A value in a readable form.
pub(crate) fn render(value: &Value, limit: Option<usize>, paint: Paint) -> String {
    match value {
        Value::Array(items) => match table(items) {
            Some(table) => table.render(limit, paint),
            None => pretty(value),
        },
        Value::Object(object) if object.values().any(is_records) => sections(object, limit, paint),
        Value::Object(object) if !object.is_empty() && object.values().all(is_plain) => {
            fields(object, paint)
        }
        Value::String(text) => harmless(text) + "\n",
        _ => pretty(value),
    }
}

/// Plain fields first, then a table for each list of objects.
fn sections(object: &Map<String, Value>, limit: Option<usize>, paint: Paint) -> String {
    let (lists, rest): (Vec<_>, Vec<_>) = object.iter().partition(|(_, value)| is_records(value));
    let rest: Map<_, _> =
        rest.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut text = if rest.is_empty() { String::new() } else { fields(&rest, paint) };
    for (name, list) in lists {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &paint.bold(&harmless(name));
        text.push('\n');
        text += &render(list, limit, paint);
    }
    text
}

fn fields(object: &Map<String, Value>, paint: Paint) -> String {
    let widest = object.keys().map(|key| width(key)).max().unwrap_or(0);
    let line = |(key, value): (&String, &Value)| {
        let space = " ".repeat(widest - width(key) + 2);
        format!("{}{space}{}\n", paint.bold(&harmless(key)), cell(value).trim_end())
    };
    object.iter().map(line).collect()
}

/// A table, if every item is an object and they have enough in common.
fn table(items: &[Value]) -> Option<Table> {
    let objects: Vec<_> = items.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut headings: Vec<String> = Vec::new();
    for object in &objects {
        for key in object.keys() {
            if !headings.contains(key) {
                headings.push(key.clone());
            }
        }
    }
    let filled: usize = objects.iter().map(|object| object.len()).sum();
    if objects.is_empty() || headings.is_empty() || filled * 2 < headings.len() * objects.len() {
        return None;
    }
    let mut table = Table::with(headings.clone());
    for object in objects {
        table.row(headings.iter().map(|key| object.get(key).map_or_else(String::new, cell)));
    }
    Some(table)
}

fn is_records(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object))
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| !item.is_array() && !item.is_object()),
        Value::Object(_) => false,
        _ => true,
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => harmless(text),
        Value::Array(items) if is_plain(value) => {
            items.iter().map(cell).collect::<Vec<_>>().join(", ")
        }
        other => harmless(&other.to_string()),
    }
}

fn pretty(value: &Value) -> String {
    // JSON escapes control characters, but not everything that terminals interpret.
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    harmless(&text) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn alike_objects_are_a_table() {
        let value = json!({ "total": 2, "ports": [{ "port": 1, "module": "iris" }, { "port": 2, "module": null }] });
        insta::assert_snapshot!(render(&value, None, Paint::PLAIN), @"
        total  2

        ports
        module  port
        iris    1
                2
        ");
    }

    #[test]
    fn one_object_is_its_fields() {
        let value = json!({ "name": "iris", "tags": ["a", "b"], "free": true });
        insta::assert_snapshot!(render(&value, None, Paint::PLAIN), @"
        free  true
        name  iris
        tags  a, b
        ");
    }

    #[test]
    fn everything_else_is_json() {
        insta::assert_snapshot!(render(&json!([1, [2]]), None, Paint::PLAIN), @"
        [
          1,
          [
            2
          ]
        ]
        ");
    }
}
