//! Descriptions of tools: a directory with a program, or one file that describes itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tidings_server::model::{Icon, MetaObject, Tool, ToolAnnotations};

use super::Describer;
use super::document::{in_words, line_of};
use super::head::Head;
use super::program::{HEAD, is_description};
use super::schema::anything;
use crate::offer::{Check, Dialect, Offered, Patience, ToolOffer, ToolScript};
use crate::tree::join;
use crate::{Fix, Problem};

/// How often a check runs if `everySecs` is not set.
const CHECK_EVERY: Duration = Duration::from_secs(30);
const KNOWN: &str = "name, title, description, inputSchema, outputSchema, annotations, icons, \
                     timeoutSecs, timeoutHint, progressExtendsTimeout, maxTimeoutSecs, enabled, \
                     audience, _meta";

/// The annotations of the protocol.
const ANNOTATIONS: [&str; 5] =
    ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// The fields of a tool's description.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolMeta {
    pub(super) name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    #[serde(alias = "arguments")]
    input_schema: Option<Map<String, Value>>,
    output_schema: Option<Map<String, Value>>,
    annotations: Option<Value>,
    icons: Option<Vec<Icon>>,
    timeout_secs: Option<f64>,
    timeout_hint: Option<String>,
    progress_extends_timeout: Option<bool>,
    max_timeout_secs: Option<f64>,
    enabled: Option<Value>,
    audience: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
    /// The program, in a registration.
    pub(super) path: Option<String>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// The file and text of a description, to locate problems and relative paths.
pub(super) struct DescriptionText<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    /// The line of problems, if it cannot be found in the text.
    pub(super) line: Option<usize>,
}

impl DescriptionText<'_> {
    pub(super) fn at(&self, key: &str) -> Option<usize> {
        self.line.or_else(|| line_of(self.text, key))
    }
}

impl Describer<'_> {
    pub(super) fn tool_unit(&mut self, unit: &Path) {
        self.directory_tool(unit);
        let siblings = self.siblings(unit);
        let meta = siblings.iter().map(|(path, _)| *path).find(|path| is_description(path));
        for (path, _) in siblings {
            if !is_description(path) {
                self.file_tool(path, meta);
            }
        }
    }

    /// Adds the tool of `tools/<name>/tool.*` and its description.
    fn directory_tool(&mut self, directory: &Path) {
        let Some(name) = directory.file_name().map(|name| name.to_string_lossy().into_owned())
        else {
            return;
        };
        let mut programs: Vec<&Path> = Vec::new();
        let mut meta = None;
        for (path, _) in self.files_in(directory) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if is_description(path) {
                let preferred = path.file_name().is_some_and(|it| it == "tool.meta.json");
                if meta.is_none() || preferred {
                    meta = Some(path);
                }
            } else if stem == "tool" {
                let at = programs.iter().filter(|it| it.file_stem() == path.file_stem()).count();
                programs.insert(at, path);
            } else if stem == name {
                programs.push(path);
            }
        }
        let program = programs.first().copied();
        if let [first, others @ ..] = programs.as_slice() {
            for other in others {
                let reason =
                    format!("`{}` is run as this tool; this file is not used", shown(first));
                let advice = "remove one of them, or give this one another name";
                self.report(Problem::warning(*other, reason, advice));
            }
        }
        let Some(program) = program else {
            if let Some(meta) = meta {
                let advice = "add an executable `tool.sh`, `tool.py` or the like";
                self.report(Problem::error(meta, "its program is missing", advice));
            }
            return;
        };
        match meta {
            Some(meta) => {
                let Some((document, text)) = self.document::<ToolMeta>(meta) else { return };
                let written = DescriptionText { file: meta, text: &text, line: None };
                self.tool(document, &written, &name, program);
            }
            None => self.headed_tool(program, &name),
        }
    }

    /// Adds the tool of `tools/<name>.*`, described by its head or by a file beside it.
    fn file_tool(&mut self, path: &Path, meta: Option<&Path>) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(meta) = meta {
            let Some((document, text)) = self.document::<ToolMeta>(meta) else { return };
            let written = DescriptionText { file: meta, text: &text, line: None };
            self.tool(document, &written, &name, path);
            return;
        }
        self.headed_tool(path, &name);
    }

    fn headed_tool(&mut self, program: &Path, name: &str) {
        let executable = self.stat(program).is_some_and(|stat| stat.executable);
        let bytes = self.root().head(program, HEAD).unwrap_or_default();
        // A compiled program has no head; a character cut off at the end does no harm.
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => "",
        };
        let head = Head::parse(text);
        // A file that is neither executable nor described is not a tool.
        let described = head.is_there() && text.starts_with("#!");
        if !executable && !described {
            if text.starts_with("#!") {
                let reason = "it is not executable and has no description: it is not a tool";
                let advice = "make it one with `chmod +x`, or name it in `.tidingsignore`";
                self.report(
                    Problem::warning(program, reason, advice).mended_by(Fix::MakeExecutable),
                );
            }
            return;
        }
        self.judge_head(&head, program);
        if self.result.broken {
            return;
        }
        let document = match &head.json {
            Some((json, line)) => match serde_json::from_str::<ToolMeta>(json) {
                Ok(document) => document,
                Err(error) => {
                    let reason = format!(
                        "the description after `mcp:` is wrong: {}",
                        in_words(&error.to_string())
                    );
                    let problem = Problem::error(program, reason, "correct the JSON on that line");
                    self.reject(problem.at(*line));
                    return;
                }
            },
            None => self.read_head(&head, program).unwrap_or_default(),
        };
        if self.result.broken {
            return;
        }
        let line = head.json.as_ref().map_or(1, |(_, line)| *line);
        let written = DescriptionText { file: program, text: "", line: Some(line) };
        self.tool(document, &written, name, program);
    }

    /// Reports the invalid and the misspelt lines of a head.
    fn judge_head(&mut self, head: &Head, program: &Path) {
        for (line, word, meant) in &head.misspelt {
            let reason = format!("`{word}` means nothing here");
            let advice = format!("write `{meant}`");
            if *meant == "@audience" {
                // A tool that is for some must not be open to everyone.
                self.reject(Problem::error(program, reason, advice).at(*line));
            } else {
                self.report(Problem::warning(program, reason, advice).at(*line));
            }
        }
        for (line, reason, advice) in &head.faults {
            self.reject(Problem::error(program, reason.clone(), advice.clone()).at(*line));
        }
    }

    fn read_head(&mut self, head: &Head, program: &Path) -> Option<ToolMeta> {
        let output_schema = match &head.returns {
            None => None,
            Some((file, line)) => {
                let Some(path) = join(program.parent()?, file) else {
                    let reason = format!("`{file}` is outside of the folder");
                    let problem = Problem::error(program, reason, "put the schema beside the tool");
                    self.reject(problem.at(*line));
                    return None;
                };
                let (schema, _) = self.document::<Map<String, Value>>(&path)?;
                Some(schema)
            }
        };
        Some(ToolMeta {
            description: head.description.clone(),
            input_schema: head.input_schema(),
            output_schema,
            timeout_secs: head.timeout.map(|timeout| timeout.as_secs_f64()),
            audience: head.audience.clone().map(Value::from),
            ..ToolMeta::default()
        })
    }

    /// Adds a described tool.
    pub(super) fn tool(
        &mut self,
        meta: ToolMeta,
        written: &DescriptionText<'_>,
        name: &str,
        program: &Path,
    ) {
        self.unknown_keys(written.file, written.text, meta.unknown.keys(), KNOWN);
        let Some(name) = self.tool_name(&meta, written, name) else { return };
        let Some(terms) = self.terms(&meta, written, program) else { return };
        let Some(audience) = self.audience(meta.audience.as_ref(), &meta.unknown, written) else {
            return;
        };
        let check = match terms.enabled {
            Enabled::Never => return,
            Enabled::When(check) => Some(check),
            Enabled::Always => None,
        };
        let Some(program_file) = self.program(program) else { return };
        let metadata = metadata(&meta, &name);
        let mut tool =
            Tool::new_with_raw(name, meta.description.map(Into::into), terms.input_schema);
        tool.title = meta.title;
        tool.output_schema = terms.output_schema.map(Arc::new);
        tool.annotations = terms.annotations;
        tool.icons = self.icons(written.file, meta.icons);
        tool.meta = meta.meta;
        let dialect = self.dialect(program);
        let directory = match dialect {
            Dialect::Own => program.parent().unwrap_or(Path::new("")),
            Dialect::McpBash => Path::new(""),
        };
        let script = ToolScript {
            tool,
            program: program_file,
            dialect,
            directory: self.root().absolute(directory),
            patience: terms.patience,
            hint: meta.timeout_hint,
            metadata,
            input: terms.input,
            output: terms.output,
        };
        self.result.items.push(Offered::Tool(ToolOffer {
            script: Arc::new(script),
            audience,
            check,
        }));
    }

    /// The name of a tool; `None` after a rejection. A missing description is reported.
    fn tool_name(
        &mut self,
        meta: &ToolMeta,
        written: &DescriptionText<'_>,
        fallback: &str,
    ) -> Option<String> {
        let name = meta.name.clone().unwrap_or_else(|| fallback.to_owned());
        if !is_tool_name(&name) {
            let reason = format!("`{name}` cannot name a tool");
            let advice = "use 1 to 128 letters, digits, `_`, `-` and `.`";
            let problem = Problem::error(written.file, reason, advice);
            self.reject(Problem { line: written.at("name"), ..problem });
            return None;
        }
        if meta.description.as_deref().is_none_or(|text| text.trim().is_empty()) {
            let reason = "the tool has no description, so models do not know when to use it";
            let advice = "add `description`, or a comment line `@describe TEXT`";
            self.report(Problem::warning(written.file, reason, advice));
        }
        Some(name)
    }

    /// The terms of a description; `None` after a rejection.
    fn terms(
        &mut self,
        meta: &ToolMeta,
        written: &DescriptionText<'_>,
        program: &Path,
    ) -> Option<Terms> {
        let input_schema = meta.input_schema.clone().map_or_else(anything, with_type);
        let input = self.validator(written, "inputSchema", &input_schema);
        let output_schema = meta.output_schema.clone().map(with_type);
        let output =
            output_schema.as_ref().map(|schema| self.validator(written, "outputSchema", schema));
        let patience = self.patience(meta, written);
        let annotations = self.annotations(meta.annotations.as_ref(), written)?;
        let enabled = self.check(meta.enabled.as_ref(), written, program);
        Some(Terms {
            input_schema,
            input: input?,
            output_schema,
            output: match output {
                Some(output) => Some(output?),
                None => None,
            },
            patience: patience?,
            annotations,
            enabled: enabled?,
        })
    }

    /// The annotations; `None` after a problem was reported.
    #[expect(clippy::option_option, reason = "a tool without annotations is valid")]
    fn annotations(
        &mut self,
        value: Option<&Value>,
        written: &DescriptionText<'_>,
    ) -> Option<Option<ToolAnnotations>> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Some(None) };
        let keys = value.as_object().into_iter().flat_map(Map::keys);
        let unknown: Vec<_> = keys.filter(|key| !ANNOTATIONS.contains(&key.as_str())).collect();
        self.unknown_keys(written.file, written.text, unknown.into_iter(), &ANNOTATIONS.join(", "));
        match serde_json::from_value(value.clone()) {
            Ok(annotations) => Some(Some(annotations)),
            Err(error) => {
                let reason = format!("`annotations` is wrong: {}", in_words(&error.to_string()));
                let problem = Problem::error(written.file, reason, "correct the description");
                self.reject(Problem { line: written.at("annotations"), ..problem });
                None
            }
        }
    }

    fn patience(&mut self, meta: &ToolMeta, written: &DescriptionText<'_>) -> Option<Patience> {
        let limits = self.limits();
        let mut seconds = |key: &str, value: Option<f64>, otherwise: Duration| match value {
            None => Some(otherwise),
            Some(seconds) if seconds > 0.0 && seconds <= 86_400.0 => {
                Some(Duration::from_secs_f64(seconds))
            }
            Some(seconds) => {
                let reason = format!("`{key}` cannot be {seconds}");
                let problem = Problem::error(
                    written.file,
                    reason,
                    "give a number of seconds above 0, at most 86400",
                );
                self.reject(Problem { line: written.at(key), ..problem });
                None
            }
        };
        let limit = seconds("timeoutSecs", meta.timeout_secs, limits.timeout)?;
        let extended = meta.progress_extends_timeout.unwrap_or(false);
        let at_most = seconds("maxTimeoutSecs", meta.max_timeout_secs, limits.timeout_at_most)?;
        if !extended {
            return Some(Patience::fixed(limit));
        }
        Some(Patience { limit, extended, at_most: at_most.max(limit) })
    }

    /// The check that decides whether a tool is offered.
    fn check(
        &mut self,
        enabled: Option<&Value>,
        written: &DescriptionText<'_>,
        program: &Path,
    ) -> Option<Enabled> {
        let directory = program.parent().unwrap_or(Path::new("")).to_owned();
        let (command, files, every) = match enabled {
            None | Some(Value::Null | Value::Bool(true)) => return Some(Enabled::Always),
            Some(Value::Bool(false)) => return Some(Enabled::Never),
            Some(Value::Object(check)) => {
                let every = check.get("everySecs").map(Value::as_f64);
                let files = check.get("files").map_or(Some(Vec::new()), texts);
                match (check.get("command").and_then(words), every, files) {
                    (Some(command), None | Some(Some(0.1..=86_400.0)), Some(files)) => {
                        (command, files, every.flatten().map(Duration::from_secs_f64))
                    }
                    _ => return self.bad_check(written),
                }
            }
            Some(other) => match words(other) {
                Some(command) => (command, Vec::new(), None),
                None => return self.bad_check(written),
            },
        };
        let named = command.iter().flat_map(|word| named_files(word));
        let files: BTreeSet<_> = files
            .iter()
            .map(String::as_str)
            .chain(named)
            .filter_map(|named| join(&directory, named))
            .collect();
        self.result.reads.extend(files.iter().cloned());
        let directory = self.root().absolute(&directory);
        let command = command.iter().map(OsString::from).collect();
        let every = every.unwrap_or(CHECK_EVERY);
        Some(Enabled::When(Check { command, directory, files, every }))
    }

    fn bad_check<T>(&mut self, written: &DescriptionText<'_>) -> Option<T> {
        let problem = Problem::error(
            written.file,
            "`enabled` is neither true, false nor a command",
            "give a shell command, a list of words, or `{\"command\": …, \"files\": […], \
             \"everySecs\": 30}`",
        );
        self.reject(Problem { line: written.at("enabled"), ..problem });
        None
    }
}

/// How a tool may be called, according to its description.
struct Terms {
    input_schema: Map<String, Value>,
    input: Arc<jsonschema::Validator>,
    output_schema: Option<Map<String, Value>>,
    output: Option<Arc<jsonschema::Validator>>,
    patience: Patience,
    annotations: Option<ToolAnnotations>,
    enabled: Enabled,
}

#[derive(Debug, PartialEq, Eq)]
enum Enabled {
    Always,
    Never,
    When(Check),
}

/// A command: a line for the shell, or a list of words.
fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(line) if !line.trim().is_empty() => {
            Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()])
        }
        Value::Array(words) if !words.is_empty() => texts(value),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

/// The parts of a command that may name files. A wrong guess does no harm: the file never appears.
fn named_files(word: &str) -> impl Iterator<Item = &str> {
    let parts = word.split(|it: char| it.is_whitespace() || "'\"()[]{};&|<>=".contains(it));
    parts.filter(|part| {
        !part.is_empty() && !part.starts_with(['-', '/', '$', '!']) && part.len() < 256
    })
}

fn shown(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-.".contains(&it))
}

/// Clients expect every schema to have a `type`.
fn with_type(mut schema: Map<String, Value>) -> Map<String, Value> {
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}

/// The description that is passed to the tool itself.
fn metadata(meta: &ToolMeta, name: &str) -> Value {
    let mut value = Map::new();
    value.insert("name".to_owned(), name.into());
    let texts = [("title", &meta.title), ("description", &meta.description)];
    for (key, text) in texts {
        if let Some(text) = text {
            value.insert(key.to_owned(), text.clone().into());
        }
    }
    let schemas = [("inputSchema", &meta.input_schema), ("outputSchema", &meta.output_schema)];
    for (key, schema) in schemas {
        if let Some(schema) = schema {
            value.insert(key.to_owned(), Value::Object(schema.clone()));
        }
    }
    Value::Object(value)
}

/// The file of a registered item: below the part it belongs to, or below the folder.
pub(super) fn registered_path(
    describer: &Describer<'_>,
    part: &str,
    written: &str,
) -> Option<PathBuf> {
    let below = join(Path::new(part), written);
    let plain = join(Path::new(""), written);
    let exists = |path: &PathBuf| describer.root().absolute(path).is_file();
    below.clone().filter(exists).or_else(|| plain.filter(exists)).or(below)
}
