//! Descriptions of prompts: Markdown with front matter, or a text and its description.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tidings_server::model::{Icon, MetaObject, Prompt, PromptArgument, Role};

use super::document::in_words;
use super::tool::DescriptionText;
use super::{Describer, META};
use crate::Problem;
use crate::fill::{placeholders, with_braces};
use crate::offer::{Offered, PromptText};
use crate::tree::join;

const KNOWN: &str = "name, title, description, arguments, role, path, icons, audience, _meta";

/// The fields of a prompt's description.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptMeta {
    pub(super) name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    /// A list of arguments, or their JSON Schema.
    arguments: Option<Value>,
    role: Option<Speaker>,
    /// The file of the text, if it is not beside the description.
    pub(super) path: Option<String>,
    icons: Option<Vec<Icon>>,
    audience: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// The role of the message.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
    /// Supported by `mcp-bash`, but not by the protocol.
    System,
}

#[derive(Debug, Deserialize)]
struct ArgumentMeta {
    name: String,
    title: Option<String>,
    description: Option<String>,
    required: Option<bool>,
    #[serde(default, alias = "enum")]
    values: Vec<String>,
}

impl Describer<'_> {
    pub(super) fn prompt_unit(&mut self, unit: &Path) {
        let siblings = self.siblings(unit);
        let (metas, files): (Vec<_>, Vec<_>) = siblings
            .into_iter()
            .map(|(path, _)| path)
            .partition(|path| path.to_string_lossy().ends_with(META));
        let Some(meta) = metas.first() else {
            for file in files.into_iter().filter(|file| is_prompt(file)) {
                self.markdown(file);
            }
            return;
        };
        let Some((document, text)) = self.document::<PromptMeta>(meta) else { return };
        let written = DescriptionText { file: meta, text: &text, line: None };
        let body = match &document.path {
            Some(path) => join(meta.parent().unwrap_or(Path::new("")), path),
            None => files.first().map(|file| (*file).to_owned()),
        };
        let Some(body) = body else {
            let advice = "put the text beside it, or name it in `path`";
            self.report(Problem::error(*meta, "its text is missing", advice));
            return;
        };
        let name = unit.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.prompt_with_text(document, &written, &name, &body);
    }

    /// Adds a prompt from its description and the file of its text.
    pub(super) fn prompt_with_text(
        &mut self,
        meta: PromptMeta,
        written: &DescriptionText<'_>,
        name: &str,
        body: &Path,
    ) {
        if self.stat(body).is_none() && !self.root().absolute(body).is_file() {
            let reason = format!("there is no `{}`", body.display());
            let advice = "create it, or correct the description";
            self.report(Problem::error(written.file, reason, advice));
            return;
        }
        let Some(text) = self.text(body) else { return };
        let text = match front_matter(&text) {
            Some((_, body)) => body.to_owned(),
            None => text,
        };
        self.prompt(meta, written, name, body, text);
    }

    /// Adds a prompt from a file with front matter.
    fn markdown(&mut self, file: &Path) {
        let Some(text) = self.text(file) else { return };
        if is_never_closed(&text) {
            let reason = "the front matter has no end";
            let problem = Problem::error(file, reason, "add a line `---` after it");
            self.reject(problem.at(1));
            return;
        }
        let (meta, body) = match front_matter(&text) {
            None => (PromptMeta::default(), text.as_str()),
            Some((matter, body)) => match serde_saphyr::from_str::<Option<PromptMeta>>(matter) {
                Ok(meta) => (meta.unwrap_or_default(), body),
                Err(error) => {
                    let line = error.location().and_then(|it| usize::try_from(it.line()).ok());
                    let reason = format!(
                        "the front matter is wrong: {}",
                        in_words(message(&error.to_string()))
                    );
                    let problem = Problem::error(file, reason, "correct it between the two `---`");
                    self.reject(Problem { line: Some(line.unwrap_or(0) + 1), ..problem });
                    return;
                }
            },
        };
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let body = body.to_owned();
        let written = DescriptionText { file, text: &text, line: None };
        self.prompt(meta, &written, &name, file, body);
    }

    fn prompt(
        &mut self,
        meta: PromptMeta,
        written: &DescriptionText<'_>,
        name: &str,
        file: &Path,
        body: String,
    ) {
        self.unknown_keys(written.file, written.text, meta.unknown.keys(), KNOWN);
        let name = meta.name.clone().unwrap_or_else(|| name.to_owned());
        if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            let reason = format!("`{}` cannot name a prompt", name.escape_debug());
            let problem = Problem::error(written.file, reason, "use 1 to 128 printable characters");
            self.reject(Problem { line: written.at("name"), ..problem });
            return;
        }
        let Some(declared) = self.declared_arguments(&meta, written) else { return };
        let Some(audience) = self.audience(meta.audience.as_ref(), &meta.unknown, written) else {
            return;
        };
        let body = with_braces(body, declared.iter().map(|it| it.name.as_str()));
        let used = placeholders(&body);
        self.report_unused(&declared, &used, written);
        let (listed, values) = listed_arguments(declared, used);
        let mut prompt =
            Prompt::new(name, meta.description, (!listed.is_empty()).then_some(listed));
        prompt.title = meta.title;
        prompt.icons = self.icons(written.file, meta.icons);
        prompt.meta = meta.meta;
        let role = self.role(meta.role, written);
        let file = file.to_owned();
        self.result.items.push(Offered::Prompt(PromptText {
            file,
            prompt,
            audience,
            body,
            role,
            values,
        }));
    }

    /// The arguments that a description declares; `None` after a rejection.
    fn declared_arguments(
        &mut self,
        meta: &PromptMeta,
        written: &DescriptionText<'_>,
    ) -> Option<Vec<ArgumentMeta>> {
        let declared = match meta.arguments.as_ref().map(arguments).transpose() {
            Ok(declared) => declared.unwrap_or_default(),
            Err(reason) => {
                let reason = format!("`arguments` is wrong: {reason}");
                let advice = "give a list of `{name, description, required}`, or a JSON Schema";
                let problem = Problem::error(written.file, reason, advice);
                self.reject(Problem { line: written.at("arguments"), ..problem });
                return None;
            }
        };
        if let Some(Value::Object(schema)) = &meta.arguments {
            self.judge_required(written, "arguments", schema);
        }
        Some(declared)
    }

    /// Reports declared arguments that the text does not use.
    fn report_unused(
        &mut self,
        declared: &[ArgumentMeta],
        used: &BTreeSet<String>,
        written: &DescriptionText<'_>,
    ) {
        for argument in declared.iter().filter(|it| !used.contains(&it.name)) {
            let reason = format!(
                "the argument `{0}` is not used: the text has no `{{{{{0}}}}}`",
                argument.name
            );
            let advice = "put it into the text, or take it off the list";
            let problem = Problem::warning(written.file, reason, advice);
            self.report(Problem { line: written.at("arguments"), ..problem });
        }
    }

    /// The role of a prompt's message.
    fn role(&mut self, speaker: Option<Speaker>, written: &DescriptionText<'_>) -> Role {
        match speaker {
            Some(Speaker::Assistant) => Role::Assistant,
            Some(Speaker::System) => {
                let reason = "the protocol has no role `system`: it is served as the user's";
                let problem = Problem::note(written.file, reason, "write `role: user`");
                self.report(Problem { line: written.at("role"), ..problem });
                Role::User
            }
            Some(Speaker::User) | None => Role::User,
        }
    }
}

/// The arguments as listed to clients, and the known values of each.
fn listed_arguments(
    declared: Vec<ArgumentMeta>,
    used: BTreeSet<String>,
) -> (Vec<PromptArgument>, BTreeMap<String, Vec<String>>) {
    let mut values = BTreeMap::new();
    let mut listed = Vec::new();
    let names: BTreeSet<_> = declared.iter().map(|argument| argument.name.clone()).collect();
    for argument in declared {
        let mut shown = PromptArgument::new(argument.name.clone());
        shown.title = argument.title;
        shown.description = argument.description;
        shown.required = Some(argument.required.unwrap_or(false));
        if !argument.values.is_empty() {
            values.insert(argument.name, argument.values);
        }
        listed.push(shown);
    }
    // An undeclared placeholder needs a value too.
    let more = used.into_iter().filter(|name| !names.contains(name));
    listed.extend(more.map(|name| PromptArgument::new(name).with_required(true)));
    (listed, values)
}

/// Every Markdown file is a prompt, except for the `README`.
fn is_prompt(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default();
    file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
        && !stem.eq_ignore_ascii_case("readme")
}

/// The front matter between two `---` lines, and the text after it.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?.trim_start_matches('\r').strip_prefix('\n')?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], rest[at + line.len()..].trim_start_matches(['\r', '\n'])));
        }
        at += line.len();
    }
    None
}

/// Whether a text begins with front matter that never ends. A single `---` may be a ruler.
fn is_never_closed(text: &str) -> bool {
    let mut lines = text.lines();
    lines.next().is_some_and(|line| line.trim_end() == "---")
        && lines.next().is_some_and(|line| {
            line.split_once(':').is_some_and(|(key, _)| {
                !key.is_empty() && key.chars().all(|it| it.is_alphanumeric() || it == '_')
            })
        })
        && front_matter(text).is_none()
}

/// The first line of the library's message, without the position, which is reported separately.
fn message(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let placed = line.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    placed.map_or(line, |(_, message)| message)
}

/// The arguments of a prompt, from a list or from a schema.
fn arguments(value: &Value) -> Result<Vec<ArgumentMeta>, String> {
    let schema = match value {
        Value::Array(_) => {
            return serde_json::from_value(value.clone())
                .map_err(|error| in_words(&error.to_string()));
        }
        Value::Object(schema) => schema,
        _ => return Err("it is neither a list nor an object".to_owned()),
    };
    let required: Vec<_> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties") else { return Ok(Vec::new()) };
    let properties = properties.as_object().ok_or("`properties` is not an object")?;
    let text = |property: &Value, key: &str| property[key].as_str().map(str::to_owned);
    Ok(properties
        .iter()
        .map(|(name, property)| ArgumentMeta {
            name: name.clone(),
            title: text(property, "title"),
            description: text(property, "description"),
            required: Some(required.contains(&name.as_str())),
            values: property["enum"]
                .as_array()
                .map(|values| {
                    values.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
                })
                .unwrap_or_default(),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_what_stands_between_two_lines() {
        assert_eq!(front_matter("---\na: 1\n---\n\nbody\n"), Some(("a: 1\n", "body\n")));
        assert_eq!(front_matter("---\r\na: 1\r\n---\r\nbody"), Some(("a: 1\r\n", "body")));
        assert_eq!(front_matter("---\n---"), Some(("", "")));
        assert_eq!(front_matter("--- not\n---\n"), None);
        assert_eq!(front_matter("---\nnever closed\n"), None);
        assert_eq!(front_matter("plain"), None);
    }
}
