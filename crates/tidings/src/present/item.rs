//! One item in full: its signature, and an example call.

use serde_json::Value;
use tidings_core::Template;
use tidings_mirror::model::{Prompt, Resource, ResourceTemplate, Tool};

use crate::args::Place;
use crate::present::colour::Paint;
use crate::present::text::{harmless, width, wrapped};
use crate::schema::{Field, Fields, Shape};

/// The style of the output.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// The server, as named in examples.
    pub(crate) place: &'a Place,
    pub(crate) width: Option<usize>,
    pub(crate) paint: Paint,
}

impl Frame<'_> {
    pub(crate) fn tool(&self, tool: &Tool) -> String {
        let fields = Fields::of(&tool.input_schema);
        let mut text = self.head("tool", &signature(&tool.name, &fields), tool.title.as_deref());
        text += &self.description(tool.description.as_deref());
        text += &self.parameters(&fields);
        if let Some(schema) = &tool.output_schema {
            text += &self.section("gives", &harmless(&Fields::of(schema).to_string()));
        }
        let hints = self.behaviour(tool);
        if !hints.is_empty() {
            text += &self.section("hints", &hints.join(", "));
        }
        let mut words = vec![tool.name.to_string()];
        words.extend(fields.named.iter().filter(|field| field.required).map(example));
        text + &self.example("call", &words)
    }

    pub(crate) fn prompt(&self, prompt: &Prompt) -> String {
        let arguments = prompt.arguments.as_deref().unwrap_or_default();
        let shown: Vec<_> = arguments
            .iter()
            .map(|argument| {
                let mark = if argument.required == Some(true) { "" } else { "?" };
                format!("{}{mark}", argument.name)
            })
            .collect();
        let signature = format!("{}({})", prompt.name, shown.join(", "));
        let mut text = self.head("prompt", &signature, prompt.title.as_deref());
        text += &self.description(prompt.description.as_deref());
        let rows: Vec<_> = arguments
            .iter()
            .map(|argument| {
                let about = argument.description.clone().unwrap_or_default();
                let required = argument.required == Some(true);
                (argument.name.clone(), word(required).to_owned(), about)
            })
            .collect();
        text += &self.rows("arguments", &rows);
        let mut words = vec![prompt.name.clone()];
        words.extend(
            arguments
                .iter()
                .filter(|it| it.required == Some(true))
                .map(|argument| format!("{}=text", argument.name)),
        );
        text + &self.example("prompt", &words)
    }

    pub(crate) fn resource(&self, resource: &Resource) -> String {
        let mut text = self.head("resource", &resource.uri, resource.title.as_deref());
        text += &self.description(resource.description.as_deref());
        let mut rows = vec![("name".to_owned(), resource.name.clone())];
        rows.extend(resource.mime_type.iter().map(|mime| ("type".to_owned(), mime.clone())));
        rows.extend(resource.size.iter().map(|size| ("size".to_owned(), format!("{size} bytes"))));
        text += &self.facts(&rows);
        text + &self.example("read", std::slice::from_ref(&resource.uri))
    }

    pub(crate) fn template(&self, template: &ResourceTemplate) -> String {
        let mut text = self.head("template", &template.uri_template, template.title.as_deref());
        text += &self.description(template.description.as_deref());
        let mut rows = vec![("name".to_owned(), template.name.clone())];
        rows.extend(template.mime_type.iter().map(|mime| ("type".to_owned(), mime.clone())));
        text += &self.facts(&rows);
        let mut words = vec![template.uri_template.clone()];
        if let Ok(parsed) = Template::parse(&template.uri_template) {
            words.extend(parsed.variables().map(|variable| format!("{variable}=text")));
        }
        text + &self.example("read", &words)
    }

    fn head(&self, kind: &str, name: &str, title: Option<&str>) -> String {
        let title = title.map(|title| format!("\n{}", harmless(title)));
        format!(
            "{} {}{}\n",
            self.paint.faint(kind),
            self.paint.bold(&harmless(name)),
            title.unwrap_or_default()
        )
    }

    fn description(&self, description: Option<&str>) -> String {
        let Some(description) = description.filter(|text| !text.trim().is_empty()) else {
            return String::new();
        };
        let lines = match self.width {
            Some(width) => wrapped(&harmless(description), width.clamp(20, 100)),
            None => harmless(description).lines().map(str::to_owned).collect(),
        };
        format!("\n{}\n", lines.join("\n").trim_end())
    }

    fn parameters(&self, fields: &Fields) -> String {
        let rows: Vec<_> = fields
            .named
            .iter()
            .map(|field| {
                let default = field.default.as_ref().map(|value| format!(" = {value}"));
                let shape = format!("{}{}", field.shape, default.unwrap_or_default());
                let about = field.description.clone().unwrap_or_default();
                let about = if field.required {
                    about
                } else {
                    format!("{about}{}(optional)", if about.is_empty() { "" } else { " " })
                };
                (field.name.clone(), shape, about)
            })
            .collect();
        self.rows("parameters", &rows)
    }

    fn rows(&self, label: &str, rows: &[(String, String, String)]) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let first = rows.iter().map(|row| width(&row.0)).max().unwrap_or(0);
        let second = rows.iter().map(|row| width(&row.1)).max().unwrap_or(0).min(40);
        let mut text = format!("\n{}\n", self.label(label));
        for (name, shape, about) in rows {
            let (name, shape) = (harmless(name), harmless(shape));
            let spaces =
                |text: &str, columns: usize| " ".repeat(columns.saturating_sub(width(text)) + 2);
            let about = harmless(about).replace('\n', " ");
            let line = format!(
                "  {}{}{shape}{}{about}",
                self.paint.bold(&name),
                spaces(&name, first),
                spaces(&shape, second)
            );
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    fn facts(&self, rows: &[(String, String)]) -> String {
        let lines = rows
            .iter()
            .map(|(name, value)| format!("{}  {}\n", self.paint.faint(name), harmless(value)));
        format!("\n{}", lines.collect::<String>())
    }

    fn label(&self, text: &str) -> String {
        self.paint.faint(text)
    }

    /// The tool's own hints. They are not guarantees.
    #[expect(clippy::unused_self, reason = "one of the printed parts")]
    fn behaviour(&self, tool: &Tool) -> Vec<&'static str> {
        let Some(annotations) = &tool.annotations else { return Vec::new() };
        let words = [
            (annotations.read_only_hint, "only reads", "changes things"),
            (annotations.destructive_hint, "may destroy", "destroys nothing"),
            (
                annotations.idempotent_hint,
                "can be repeated without harm",
                "does more when repeated",
            ),
            (annotations.open_world_hint, "reaches outside", "stays inside"),
        ];
        words
            .iter()
            .filter_map(|(hint, yes, no)| hint.map(|hint| if hint { *yes } else { *no }))
            .collect()
    }

    fn example(&self, command: &str, words: &[String]) -> String {
        self.section("example", &harmless(&self.place.line(command, words)))
    }

    fn section(&self, label: &str, text: &str) -> String {
        format!("\n{}\n  {text}\n", self.label(label))
    }
}

/// A tool as a function signature.
pub(crate) fn signature(name: &str, fields: &Fields) -> String {
    let shown: Vec<_> = fields.named.iter().map(ToString::to_string).collect();
    format!("{name}({})", shown.join(", "))
}

/// The names of a tool's parameters, for a list.
pub(crate) fn names(fields: &Fields) -> String {
    let shown = fields.named.iter().map(|field| {
        let mark = if field.required { "" } else { "?" };
        format!("{}{mark}", field.name)
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn word(required: bool) -> &'static str {
    if required { "required" } else { "optional" }
}

/// An example pair for a parameter.
fn example(field: &Field) -> String {
    let value = field.example.clone().or_else(|| field.default.clone());
    let value = value.unwrap_or_else(|| sample(&field.shape, &field.name));
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    format!("{}={text}", field.name)
}

/// An example value of a shape.
fn sample(shape: &Shape, name: &str) -> Value {
    match shape {
        Shape::Any | Shape::String => name.to_uppercase().into(),
        Shape::Null => Value::Null,
        Shape::Boolean => true.into(),
        #[expect(clippy::cast_possible_truncation, reason = "an example is a small number")]
        Shape::Number(range) if range.whole => (range.sample().ceil() as i64).into(),
        Shape::Number(range) => range.sample().into(),
        Shape::Literal(values) => values.first().cloned().unwrap_or_default(),
        Shape::Array(item) => vec![sample(item, name)].into(),
        Shape::Object(fields) => {
            let required = fields.named.iter().filter(|field| field.required);
            required.map(|field| (field.name.clone(), sample(&field.shape, &field.name))).collect()
        }
        Shape::Either(shapes) => shapes.first().map_or(Value::Null, |shape| sample(shape, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(place: &Place) -> Frame<'_> {
        Frame { place, width: None, paint: Paint::PLAIN }
    }

    #[test]
    fn a_tool_is_a_function_with_an_example() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "dock", "title": "Dock", "description": "Docks a module.",
            "annotations": { "readOnlyHint": false },
            "inputSchema": { "type": "object", "required": ["module", "at"], "properties": {
                "module": { "type": "string", "description": "who comes" },
                "at": { "type": "object", "required": ["port"], "properties": { "port": { "type": "integer", "minimum": 1 } } },
                "gently": { "type": "boolean", "default": true },
            }},
            "outputSchema": { "type": "object", "required": ["port"], "properties": { "port": { "type": "integer" } } },
        })).unwrap();
        let place = Place::Named("station".to_owned());
        insta::assert_snapshot!(frame(&place).tool(&tool), @r#"
        tool dock(at: { port: integer (at least 1) }, module: string, gently?: boolean = true)
        Dock

        Docks a module.

        parameters
          at      { port: integer (at least 1) }
          module  string                          who comes
          gently  boolean = true                  (optional)

        gives
          { port: integer }

        hints
          changes things

        example
          tidings call station dock 'at={"port":1}' module=MODULE
        "#);
    }

    #[test]
    fn a_template_is_read_with_its_variables() {
        let template = ResourceTemplate::new("station://module/{name}", "module");
        let place = Place::Command(vec!["node".to_owned(), "s.js".to_owned()]);
        insta::assert_snapshot!(frame(&place).template(&template), @"
        template station://module/{name}

        name  module

        example
          tidings read 'station://module/{name}' name=text -- node s.js
        ");
    }

    #[test]
    fn a_prompt_shows_what_it_must_have() {
        let prompt: Prompt = serde_json::from_value(json!({
            "name": "report", "arguments": [
                { "name": "focus", "description": "a module", "required": true }, { "name": "tone" },
            ],
        })).unwrap();
        let place = Place::Named("station".to_owned());
        insta::assert_snapshot!(frame(&place).prompt(&prompt), @"
        prompt report(focus, tone?)

        arguments
          focus  required  a module
          tone   optional

        example
          tidings prompt station report focus=text
        ");
    }
}
