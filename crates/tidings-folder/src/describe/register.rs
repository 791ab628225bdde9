//! Registrations: one document that lists the folder's items instead of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::document::{in_words, line_of, without_place};
use super::prompt::PromptMeta;
use super::resource::ResourceMeta;
use super::tool::{DescriptionText, ToolMeta, registered_path};
use super::{Described, Describer, Surroundings};
use crate::Problem;
use crate::offer::{CompletionOffer, Kind, Offered};

const KNOWN: &str = "version, tools, resources, resourceTemplates, prompts, completions, _meta";

/// The content of a registration.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    pub(crate) says: Described,
    /// The kinds it lists: files of these kinds are not used.
    pub(crate) kinds: BTreeSet<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistrationDocument {
    version: Option<u64>,
    tools: Option<Vec<ToolMeta>>,
    resources: Option<Vec<ResourceMeta>>,
    resource_templates: Option<Vec<ResourceMeta>>,
    prompts: Option<Vec<PromptMeta>>,
    completions: Option<Vec<CompletionMeta>>,
    #[serde(rename = "_meta")]
    _meta: Option<Value>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct CompletionMeta {
    name: String,
    argument: Option<String>,
    path: String,
}

/// Reads a registration: the text of a file, or the output of a program.
pub(crate) fn registration(
    surroundings: Surroundings<'_>,
    file: &Path,
    text: &str,
) -> Registration {
    let mut describer = Describer::new(surroundings);
    describer.result.reads.insert(file.to_owned());
    let mut kinds = BTreeSet::new();
    match serde_json::from_str::<RegistrationDocument>(text) {
        Ok(document) => describer.registered(document, file, text, &mut kinds),
        Err(error) => {
            let reason = in_words(&without_place(&error.to_string()));
            let problem =
                Problem::error(file, reason, "correct it; its last valid version is used");
            describer.reject(problem.at(error.line()));
            // It could list any kind.
            kinds.extend([
                Kind::Tool,
                Kind::Prompt,
                Kind::Resource,
                Kind::Template,
                Kind::Completion,
            ]);
        }
    }
    Registration { says: describer.result, kinds }
}

impl Describer<'_> {
    fn registered(
        &mut self,
        document: RegistrationDocument,
        file: &Path,
        text: &str,
        kinds: &mut BTreeSet<Kind>,
    ) {
        if let Some(key) = document.unknown.keys().next() {
            let reason = format!("`{key}` means nothing here");
            let problem = Problem::error(file, reason, format!("known keys: {KNOWN}"));
            self.reject(Problem { line: line_of(text, key), ..problem });
            return;
        }
        if document.version.is_some_and(|version| version != 1) {
            let problem = Problem::error(file, "only version 1 is known", "write `\"version\": 1`");
            self.reject(Problem { line: line_of(text, "version"), ..problem });
            return;
        }
        let lines = EntryLines { file, text, lines: lines_of_texts(text) };
        if let Some(tools) = document.tools {
            kinds.insert(Kind::Tool);
            self.registered_tools(tools, &lines);
        }
        let resources = document.resources.map(|list| (Kind::Resource, list));
        let templates = document.resource_templates.map(|list| (Kind::Template, list));
        for (kind, list) in resources.into_iter().chain(templates) {
            // Registered templates are added to those found in files.
            if kind == Kind::Resource || list.is_empty() {
                kinds.insert(kind);
            }
            for resource in list {
                let written = lines.written(resource.name.as_ref());
                self.resource(resource, &written, None);
            }
        }
        if let Some(prompts) = document.prompts {
            kinds.insert(Kind::Prompt);
            self.registered_prompts(prompts, &lines);
        }
        if let Some(completions) = document.completions {
            kinds.insert(Kind::Completion);
            self.registered_completions(completions, &lines);
        }
    }

    fn registered_tools(&mut self, tools: Vec<ToolMeta>, lines: &EntryLines<'_>) {
        for tool in tools {
            let written = lines.written(tool.name.as_ref());
            let path = self.entry_path("tools", tool.path.as_deref(), &written);
            let Some(path) = path else { continue };
            self.tool(tool, &written, &stem(&path), &path);
        }
    }

    fn registered_prompts(&mut self, prompts: Vec<PromptMeta>, lines: &EntryLines<'_>) {
        for prompt in prompts {
            let written = lines.written(prompt.name.as_ref());
            let path = self.entry_path("prompts", prompt.path.as_deref(), &written);
            let Some(path) = path else { continue };
            self.prompt_with_text(prompt, &written, &stem(&path), &path);
        }
    }

    fn registered_completions(&mut self, completions: Vec<CompletionMeta>, lines: &EntryLines<'_>) {
        for completion in completions {
            let written = lines.written(Some(&completion.name));
            let path = self.entry_path("completions", Some(&completion.path), &written);
            let Some(program) = path.and_then(|path| self.program(&path)) else { continue };
            let CompletionMeta { name, argument, .. } = completion;
            let offer = CompletionOffer { name, argument, program };
            self.result.items.push(Offered::Completion(offer));
        }
    }

    /// The file that an entry names.
    fn entry_path(
        &mut self,
        part: &str,
        path: Option<&str>,
        written: &DescriptionText<'_>,
    ) -> Option<PathBuf> {
        let Some(path) = path else {
            let reason = "the entry has no `path`";
            let advice = format!("name its file, relative to `{part}/`");
            let problem = Problem::error(written.file, reason, advice);
            self.reject(Problem { line: written.line, ..problem });
            return None;
        };
        let found = registered_path(self, part, path);
        if found.is_none() {
            let reason = format!("`{path}` leads out of the folder");
            let problem = Problem::error(written.file, reason, "name a file in the folder");
            self.reject(Problem { line: written.line, ..problem });
        }
        found
    }
}

/// The text of a registration, with the lines on which its entries are written.
struct EntryLines<'a> {
    file: &'a Path,
    text: &'a str,
    lines: BTreeMap<&'a str, usize>,
}

impl<'a> EntryLines<'a> {
    /// Where the entry of this name is written; the first line if it is not found.
    fn written(&self, name: Option<&String>) -> DescriptionText<'a> {
        let line = name.and_then(|name| self.lines.get(name.as_str()).copied());
        DescriptionText { file: self.file, text: self.text, line: line.or(Some(1)) }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The line on which each quoted text is first written.
fn lines_of_texts(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        for quoted in line.split('"').skip(1).step_by(2) {
            lines.entry(quoted).or_insert(index + 1);
        }
    }
    lines
}
