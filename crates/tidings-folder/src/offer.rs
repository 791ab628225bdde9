//! Items that a folder offers: tools, prompts, resources, templates, providers and completions.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidings_core::Template;
use tidings_server::Labels;
use tidings_server::model::{Prompt, Resource, ResourceTemplate, Role, Tool};

/// The kinds of items. Providers and completions are not listed; they answer for listed items.
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
    /// The catalog's word for it.
    pub(crate) fn catalog_word(self) -> &'static str {
        match self {
            Self::Template => "resource template",
            other => other.word(),
        }
    }

    /// The word for it in messages.
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

/// The name or URI of an item, unique within its kind. Clones share the text.
pub(crate) type Key = (Kind, Arc<str>);

/// One item.
#[derive(Clone, Debug)]
pub(crate) enum Offered {
    Tool(ToolOffer),
    Prompt(PromptText),
    Resource(ResourceOffer),
    Template(TemplateOffer),
    /// An executable that answers for the URIs of a scheme.
    Provider(String, Program),
    /// An executable that suggests values for the arguments of a prompt or a template.
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

    /// The labels of the clients that it is for; none if it is for everyone.
    pub(crate) fn audience(&self) -> &Labels {
        match self {
            Self::Tool(offer) => &offer.audience,
            Self::Prompt(text) => &text.audience,
            Self::Resource(offer) => &offer.audience,
            Self::Template(offer) => &offer.audience,
            Self::Provider(..) | Self::Completion(_) => &Labels::NONE,
        }
    }

    /// The same item for another audience.
    pub(crate) fn with_audience(mut self, labels: &Labels) -> Self {
        match &mut self {
            Self::Tool(offer) => offer.audience = labels.clone(),
            Self::Prompt(text) => text.audience = labels.clone(),
            Self::Resource(offer) => offer.audience = labels.clone(),
            Self::Template(offer) => offer.audience = labels.clone(),
            Self::Provider(..) | Self::Completion(_) => {}
        }
        self
    }

    /// The item as reports name it.
    pub(crate) fn label(&self) -> String {
        let (kind, name) = self.key();
        let name = match self {
            Self::Resource(offer) => offer.resource.name.as_str().into(),
            _ => name,
        };
        format!("{} {name}", kind.word())
    }
}

/// The key of a completion.
pub(crate) fn completion_name(name: &str, argument: Option<&str>) -> String {
    match argument {
        Some(argument) => format!("{name}/{argument}"),
        None => name.to_owned(),
    }
}

/// A tool, and the command that decides whether it is offered.
#[derive(Clone, Debug)]
pub(crate) struct ToolOffer {
    pub(crate) script: Arc<ToolScript>,
    pub(crate) audience: Labels,
    /// If set, the tool is offered only while this command succeeds.
    pub(crate) check: Option<Check>,
}

/// A command whose exit code decides whether a tool is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) command: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// The files it names, relative to the folder: if one changes, the command runs again.
    pub(crate) files: BTreeSet<PathBuf>,
    /// How often it runs without any change.
    pub(crate) every: Duration,
}

/// A tool and the program that answers its calls.
#[derive(Clone, Debug)]
pub(crate) struct ToolScript {
    /// The listed tool.
    pub(crate) tool: Tool,
    pub(crate) program: Program,
    pub(crate) dialect: Dialect,
    /// The working directory: the tool's own, or the folder for a tool of `mcp-bash`.
    pub(crate) directory: PathBuf,
    pub(crate) patience: Patience,
    /// The author's advice for a call that times out.
    pub(crate) hint: Option<String>,
    /// The description as it was written, passed to the tool.
    pub(crate) metadata: Value,
    /// Validates arguments.
    pub(crate) input: Arc<jsonschema::Validator>,
    /// Validates structured results, if the tool has an output schema.
    pub(crate) output: Option<Arc<jsonschema::Validator>>,
}

/// The conventions a tool follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Those of Tidings.
    Own,
    /// Those of `mcp-bash`: it runs in the project's directory and validates its own arguments.
    McpBash,
}

/// A file to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The words of its `#!` line, if the file itself is not executable.
    pub(crate) interpreter: Vec<OsString>,
}

/// Time limits of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Counted from the start or, if `extended`, from the last sign of life.
    pub(crate) limit: Duration,
    /// Whether a progress or log line restarts the limit.
    pub(crate) extended: bool,
    /// Counted from the start, in any case.
    pub(crate) at_most: Duration,
}

impl Patience {
    /// One limit that nothing extends.
    pub(crate) fn fixed(limit: Duration) -> Self {
        Self { limit, extended: false, at_most: limit }
    }
}

/// A prompt and its text.
#[derive(Clone, Debug)]
pub(crate) struct PromptText {
    /// The file of the text, relative to the folder.
    pub(crate) file: PathBuf,
    pub(crate) prompt: Prompt,
    pub(crate) audience: Labels,
    /// The text, with `{{name}}` for each argument.
    pub(crate) body: String,
    pub(crate) role: Role,
    /// The known values of arguments.
    pub(crate) values: BTreeMap<String, Vec<String>>,
}

/// A resource and where its content comes from.
#[derive(Clone, Debug)]
pub(crate) struct ResourceOffer {
    pub(crate) resource: Resource,
    pub(crate) origin: ContentOrigin,
    pub(crate) audience: Labels,
}

/// Where the content of a resource comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentOrigin {
    /// A file, relative to the folder.
    File(PathBuf),
    /// The provider of this scheme.
    Provider(String),
}

/// A resource template and where the contents of its expansions come from.
#[derive(Clone, Debug)]
pub(crate) struct TemplateOffer {
    pub(crate) template: ResourceTemplate,
    pub(crate) parsed: Arc<Template>,
    pub(crate) origin: TemplateOrigin,
    pub(crate) audience: Labels,
}

/// Where the contents of a template's expansions come from.
#[derive(Clone, Debug)]
pub(crate) enum TemplateOrigin {
    /// The files that `file:` URIs name.
    Files,
    /// Files below a directory whose paths match another template with the same variables.
    Paths { directory: PathBuf, path: Arc<Template> },
    /// The provider of this scheme. If `implied`, the provider adds the template itself because
    /// nobody described one.
    Provider { scheme: String, implied: bool },
}

/// An executable that suggests values.
#[derive(Clone, Debug)]
pub(crate) struct CompletionOffer {
    /// The prompt or template to complete.
    pub(crate) name: String,
    /// The argument; all arguments if not set.
    pub(crate) argument: Option<String>,
    pub(crate) program: Program,
}
