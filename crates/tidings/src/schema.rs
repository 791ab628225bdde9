//! A tool's JSON Schema, as far as the command line needs it.

use std::fmt;

use serde_json::{Map, Value};

/// How deep a schema is followed; deeper values may be anything.
const DEPTH: usize = 12;

/// The values a schema allows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Any,
    Null,
    Boolean,
    Number(Range),
    String,
    /// One of these values.
    Literal(Vec<Value>),
    Array(Box<Self>),
    Object(Fields),
    Either(Vec<Self>),
}

/// The allowed range of a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) whole: bool,
    least: Option<f64>,
    most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
}

/// The fields of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) named: Vec<Field>,
    /// Whether the schema allows further fields.
    pub(crate) open: bool,
}

/// One named value of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<Value>,
    pub(crate) example: Option<Value>,
}

impl Fields {
    /// Parses the schema of a tool's input.
    pub(crate) fn of(schema: &Map<String, Value>) -> Self {
        match (Reading { root: schema }).object_shape(schema, 0) {
            Shape::Object(fields) => fields,
            _ => Self { named: Vec::new(), open: true },
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.named.iter().find(|field| field.name == name)
    }
}

impl Range {
    fn of(schema: &Map<String, Value>, whole: bool) -> Self {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        Self {
            whole,
            least: bound("minimum"),
            most: bound("maximum"),
            above: bound("exclusiveMinimum"),
            below: bound("exclusiveMaximum"),
        }
    }

    pub(crate) fn holds(&self, number: &serde_json::Number) -> bool {
        let Some(value) = number.as_f64() else { return false };
        let whole = number.is_i64() || number.is_u64() || value.fract() == 0.0;
        (whole || !self.whole)
            && self.least.is_none_or(|least| value >= least)
            && self.most.is_none_or(|most| value <= most)
            && self.above.is_none_or(|above| value > above)
            && self.below.is_none_or(|below| value < below)
    }

    /// An allowed number, for examples.
    pub(crate) fn sample(&self) -> f64 {
        let least = self.least.or(self.above.map(|above| above + 1.0));
        let most = self.most.or(self.below.map(|below| below - 1.0));
        let sample = least.map_or(1.0, |least| least.max(1.0));
        most.map_or(sample, |most| sample.min(most))
    }
}

impl Shape {
    /// Whether a JSON value fits.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::String, Value::String(_)) => true,
            (Self::Number(range), Value::Number(number)) => range.holds(number),
            (Self::Literal(allowed), value) => allowed.contains(value),
            (Self::Array(item), Value::Array(values)) => {
                values.iter().all(|value| item.accepts(value))
            }
            (Self::Object(fields), Value::Object(object)) => {
                let fits = |field: &Field| match object.get(&field.name) {
                    Some(value) => field.shape.accepts(value),
                    None => !field.required,
                };
                fields.named.iter().all(fits)
            }
            (Self::Either(shapes), value) => shapes.iter().any(|shape| shape.accepts(value)),
            _ => false,
        }
    }
}

/// A schema being read; references are looked up from its root.
struct Reading<'a> {
    root: &'a Map<String, Value>,
}

impl Reading<'_> {
    fn shape(&self, schema: &Value, depth: usize) -> Shape {
        match schema {
            Value::Object(schema) if depth < DEPTH => self.object_shape(schema, depth),
            _ => Shape::Any,
        }
    }

    fn object_shape(&self, schema: &Map<String, Value>, depth: usize) -> Shape {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            return self.find(target).map_or(Shape::Any, |found| self.shape(found, depth + 1));
        }
        if let Some(value) = schema.get("const") {
            return Shape::Literal(vec![value.clone()]);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return Shape::Literal(values.clone());
        }
        let shape = self.choice(schema, depth).unwrap_or_else(|| self.typed(schema, depth));
        match schema.get("nullable") {
            Some(Value::Bool(true)) => either(vec![shape, Shape::Null]),
            _ => shape,
        }
    }

    /// `anyOf`, `oneOf`, or an `allOf` that wraps one schema, as generators write it.
    fn choice(&self, schema: &Map<String, Value>, depth: usize) -> Option<Shape> {
        // An object with properties and alternatives is read by its properties.
        if schema.contains_key("properties") {
            return None;
        }
        let list = |name: &str| schema.get(name).and_then(Value::as_array);
        if let Some(choices) = list("anyOf").or_else(|| list("oneOf")) {
            return Some(either(
                choices.iter().map(|choice| self.shape(choice, depth + 1)).collect(),
            ));
        }
        match list("allOf")?.as_slice() {
            [only] => Some(self.shape(only, depth + 1)),
            _ => Some(Shape::Any),
        }
    }

    fn typed(&self, schema: &Map<String, Value>, depth: usize) -> Shape {
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, depth),
            Some(Value::Array(names)) => either(
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|name| self.named(name, schema, depth))
                    .collect(),
            ),
            _ if schema.contains_key("properties") => self.named("object", schema, depth),
            _ if schema.contains_key("items") => self.named("array", schema, depth),
            _ => Shape::Any,
        }
    }

    fn named(&self, name: &str, schema: &Map<String, Value>, depth: usize) -> Shape {
        match name {
            "null" => Shape::Null,
            "boolean" => Shape::Boolean,
            "integer" => Shape::Number(Range::of(schema, true)),
            "number" => Shape::Number(Range::of(schema, false)),
            "string" => Shape::String,
            "array" => {
                let item = schema.get("items").map(|items| self.shape(items, depth + 1));
                Shape::Array(Box::new(item.unwrap_or(Shape::Any)))
            }
            "object" => Shape::Object(self.fields(schema, depth)),
            _ => Shape::Any,
        }
    }

    fn fields(&self, schema: &Map<String, Value>, depth: usize) -> Fields {
        let required = schema.get("required").and_then(Value::as_array);
        let required = |name: &str| {
            required.is_some_and(|required| required.iter().any(|it| it.as_str() == Some(name)))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            shape: self.shape(schema, depth + 1),
            required: required(name),
            description: schema.get("description").and_then(Value::as_str).map(str::to_owned),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            example: schema.get("examples").and_then(|examples| examples.get(0)).cloned(),
        };
        let mut named: Vec<_> = properties.into_iter().flatten().map(field).collect();
        // Order: required fields come first, as a person would write them.
        named.sort_by_key(|field| !field.required);
        let open = match schema.get("additionalProperties") {
            Some(Value::Bool(open)) => *open,
            Some(_) => true,
            None => named.is_empty(),
        };
        Fields { named, open }
    }

    fn find(&self, target: &str) -> Option<&Value> {
        let mut steps = target.strip_prefix("#/")?.split('/');
        let unescaped = |step: &str| step.replace("~1", "/").replace("~0", "~");
        let first = self.root.get(&unescaped(steps.next()?))?;
        steps.try_fold(first, |value, step| value.get(unescaped(step)))
    }
}

/// Alternatives without nesting and repetition.
fn either(shapes: Vec<Shape>) -> Shape {
    let mut flat = Vec::new();
    for shape in shapes {
        let parts = match shape {
            Shape::Either(parts) => parts,
            other => vec![other],
        };
        for part in parts {
            if part == Shape::Any {
                return Shape::Any;
            }
            if !flat.contains(&part) {
                flat.push(part);
            }
        }
    }
    match flat.len() {
        0 => Shape::Any,
        1 => flat.remove(0),
        _ => Shape::Either(flat),
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("any"),
            Self::Null => formatter.write_str("null"),
            Self::Boolean => formatter.write_str("boolean"),
            Self::Number(range) => range.fmt(formatter),
            Self::String => formatter.write_str("string"),
            Self::Literal(values) => separated(formatter, values, " | "),
            Self::Array(item) => match **item {
                Self::Either(_) | Self::Literal(_) => write!(formatter, "({item})[]"),
                _ => write!(formatter, "{item}[]"),
            },
            Self::Object(fields) => fields.fmt(formatter),
            Self::Either(shapes) => separated(formatter, shapes, " | "),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.whole { "integer" } else { "number" })?;
        let bounds = [
            ("at least", self.least),
            ("above", self.above),
            ("at most", self.most),
            ("below", self.below),
        ];
        let said = bounds.iter().filter_map(|(word, bound)| Some(format!("{word} {}", (*bound)?)));
        let said: Vec<_> = said.collect();
        if said.is_empty() { Ok(()) } else { write!(formatter, " ({})", said.join(", ")) }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.named.is_empty() {
            return formatter.write_str("object");
        }
        formatter.write_str("{ ")?;
        separated(formatter, &self.named, ", ")?;
        formatter.write_str(" }")
    }
}

impl fmt::Display for Field {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.required { "" } else { "?" };
        write!(formatter, "{}{mark}: {}", self.name, self.shape)?;
        match &self.default {
            Some(default) => write!(formatter, " = {default}"),
            None => Ok(()),
        }
    }
}

/// Values joined with a separator.
fn separated<T: fmt::Display>(
    formatter: &mut fmt::Formatter<'_>,
    items: &[T],
    between: &str,
) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            formatter.write_str(between)?;
        }
        item.fmt(formatter)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        let schema = json!({ "type": "object", "properties": { "x": schema }, "$defs": {
            "colour": { "enum": ["red", "blue"] },
            "tree": { "type": "object", "properties": { "child": { "$ref": "#/$defs/tree" } } },
        }});
        let fields = Fields::of(schema.as_object().unwrap());
        assert_eq!(fields.named[0].shape.to_string(), expected);
    }

    #[test]
    fn a_schema_reads_as_a_type() {
        check(&json!({ "type": "string" }), "string");
        check(&json!({ "type": ["string", "null"] }), "string | null");
        check(
            &json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
            "integer (at least 1, at most 9)",
        );
        check(&json!({ "type": "array", "items": { "type": "number" } }), "number[]");
        check(&json!({ "enum": ["a", 1, null] }), r#""a" | 1 | null"#);
        check(&json!({ "$ref": "#/$defs/colour" }), r#""red" | "blue""#);
        check(
            &json!({ "anyOf": [{ "$ref": "#/$defs/colour" }, { "type": "null" }] }),
            r#""red" | "blue" | null"#,
        );
        check(
            &json!({ "type": "array", "items": { "$ref": "#/$defs/colour" } }),
            r#"("red" | "blue")[]"#,
        );
        check(&json!({ "type": "boolean", "nullable": true }), "boolean | null");
        check(&json!(true), "any");
        check(&json!({ "$ref": "#/nowhere" }), "any");
        check(
            &json!({ "type": "object", "required": ["b"], "properties": { "a": { "type": "integer", "default": 3 }, "b": {} } }),
            "{ b: any, a?: integer = 3 }",
        );
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let schema =
            json!({ "$ref": "#/$defs/loop", "$defs": { "loop": { "$ref": "#/$defs/loop" } } });
        assert!(Fields::of(schema.as_object().unwrap()).open);
    }
}
