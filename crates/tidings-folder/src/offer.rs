//! What a folder offers, ready to be listed and used.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidings_core::Template;
use tidings_server::model::{Prompt, Resource, ResourceTemplate, Role, Tool};

/// What can be offered. Providers and completions are not listed; they answer for what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Provider,
    Completion,
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Kind {
    /// The word the catalog uses for it.
    pub(crate) fn catalog_word(self) -> &'static str {
        match self {
            Self::Template => "resource template",
            other => other.word(),
        }
    }

    /// The word a person uses for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Completion => "completion",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
        }
    }
}

/// The name or URI of something, unique within its kind. The text is shared by all who keep it.
pub(crate) type Key = (Kind, Arc<str>);

/// One thing that a folder offers.
#[derive(Clone, Debug)]
pub(crate) enum Offered {
    Tool(ToolOffer),
    Prompt(PromptText),
    Resource(ResourceOffer),
    Template(TemplateOffer),
    /// Answers for the URIs of a scheme.
    Provider(String, Program),
    /// Proposes values for the arguments of a prompt or a template, or for one of them.
    Completion(CompletionOffer),
}

impl Offered {
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Tool(offer) => (Kind::Tool, offer.script.tool.name.as_ref().into()),
            Self::Prompt(text) => (Kind::Prompt, text.prompt.name.as_str().into()),
            Self::Resource(offer) => (Kind::Resource, offer.resource.uri.as_str().into()),
            Self::Template(offer) => (Kind::Template, offer.template.uri_template.as_str().into()),
            Self::Provider(scheme, _) => (Kind::Provider, scheme.as_str().into()),
            Self::Completion(offer) => {
                (Kind::Completion, completion_name(&offer.name, offer.argument.as_deref()).into())
            }
        }
    }

    /// What a person calls it.
    pub(crate) fn label(&self) -> String {
        let (kind, name) = self.key();
        let name = match self {
            Self::Resource(offer) => offer.resource.name.as_str().into(),
            _ => name,
        };
        format!("{} {name}", kind.word())
    }
}

/// Under which name a completion is kept.
pub(crate) fn completion_name(name: &str, argument: Option<&str>) -> String {
    match argument {
        Some(argument) => format!("{name}/{argument}"),
        None => name.to_owned(),
    }
}

/// A tool, and whether it is offered.
#[derive(Clone, Debug)]
pub(crate) struct ToolOffer {
    pub(crate) script: Arc<ToolScript>,
    /// Decides whether the tool is offered, if something does.
    pub(crate) check: Option<Check>,
}

/// A command whose exit code decides whether a tool is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) command: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// The files it names, relative to the folder: when one changes, it is asked again.
    pub(crate) files: BTreeSet<PathBuf>,
    /// How often it is asked again by itself.
    pub(crate) every: Duration,
}

/// A tool that is a program.
#[derive(Clone, Debug)]
pub(crate) struct ToolScript {
    /// As clients see it.
    pub(crate) tool: Tool,
    pub(crate) program: Program,
    pub(crate) dialect: Dialect,
    /// Where it runs: the tool's own directory, or the folder for a tool of `mcp-bash`.
    pub(crate) directory: PathBuf,
    pub(crate) patience: Patience,
    /// What its author says to do when it takes too long.
    pub(crate) hint: Option<String>,
    /// Its description as it was written, for the tool itself.
    pub(crate) metadata: Value,
    /// What arguments must be.
    pub(crate) input: Arc<jsonschema::Validator>,
    /// What structured results must be, if the tool promises that.
    pub(crate) output: Option<Arc<jsonschema::Validator>>,
}

/// Whose conventions a tool follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Ours.
    Own,
    /// Those of `mcp-bash`: it runs in the project's directory and judges its arguments itself.
    McpBash,
}

/// A file that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The words of its `#!` line, where the file itself may not be executed.
    pub(crate) interpreter: Vec<OsString>,
}

/// How long a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// From the start; or, where signs of life extend it, from the last one.
    pub(crate) limit: Duration,
    /// Whether a progress or log line begins the limit anew.
    pub(crate) extended: bool,
    /// From the start, whatever the signs.
    pub(crate) at_most: Duration,
}

impl Patience {
    /// This long, whatever happens.
    pub(crate) fn fixed(limit: Duration) -> Self {
        Self { limit, extended: false, at_most: limit }
    }
}

/// A prompt and its text.
#[derive(Clone, Debug)]
pub(crate) struct PromptText {
    /// The file of its text, relative to the folder.
    pub(crate) file: PathBuf,
    pub(crate) prompt: Prompt,
    /// With `{{name}}` where an argument goes.
    pub(crate) body: String,
    pub(crate) role: Role,
    /// The values that arguments can have, where they are known.
    pub(crate) values: BTreeMap<String, Vec<String>>,
}

/// A resource and where its content is.
#[derive(Clone, Debug)]
pub(crate) struct ResourceOffer {
    pub(crate) resource: Resource,
    pub(crate) origin: ContentOrigin,
}

/// Where the content of a resource comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentOrigin {
    /// A file, relative to the folder.
    File(PathBuf),
    /// The provider of this scheme.
    Provider(String),
}

/// A resource template and where the contents of its expansions are.
#[derive(Clone, Debug)]
pub(crate) struct TemplateOffer {
    pub(crate) template: ResourceTemplate,
    pub(crate) parsed: Arc<Template>,
    pub(crate) origin: TemplateOrigin,
}

/// Where the contents of a template's expansions come from.
#[derive(Clone, Debug)]
pub(crate) enum TemplateOrigin {
    /// The files that `file:` URIs name.
    Files,
    /// The files whose paths below a directory fit another template with the same variables.
    Paths { directory: PathBuf, path: Arc<Template> },
    /// The provider of this scheme. It offers the template by itself if nobody wrote one.
    Provider { scheme: String, implied: bool },
}

/// An executable that proposes values.
#[derive(Clone, Debug)]
pub(crate) struct CompletionOffer {
    /// The prompt or the template.
    pub(crate) name: String,
    /// The argument, if it is for one only.
    pub(crate) argument: Option<String>,
    pub(crate) program: Program,
}
