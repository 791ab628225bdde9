//! The policy: `server.d/policy.toml` limits what a folder may offer.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use tidings_server::Labels;

use super::audience::WrittenLabels;
use super::{Describer, Surroundings};
use crate::Problem;
use crate::tree::PathKind;

pub(crate) const POLICY: &str = "server.d/policy.toml";

/// What may be offered. Denied items are not listed and cannot be used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// The text, to detect changes.
    text: String,
    tools: Rules,
    hosts: Rules,
    paths: Rules,
    /// Whom items are for; the first rule that matches counts.
    audiences: Vec<AudienceRule>,
    /// The host patterns as written, for programs that fetch.
    pub(crate) written_hosts: (Vec<String>, Vec<String>),
    /// Whether nothing is allowed, because there was never a valid policy.
    closed: bool,
}

/// Allow and deny patterns. Without allow patterns everything is allowed, except for what is
/// denied.
#[derive(Clone, Debug, Default)]
struct Rules {
    allow: Option<GlobSet>,
    deny: GlobSet,
}

/// The audience of the items that one of the patterns matches.
#[derive(Clone, Debug)]
struct AudienceRule {
    tools: GlobSet,
    paths: GlobSet,
    labels: Labels,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyDocument {
    #[serde(default)]
    tools: Lists,
    #[serde(default)]
    hosts: Lists,
    #[serde(default)]
    paths: Lists,
    #[serde(default)]
    audience: Vec<AudienceTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AudienceTable {
    labels: WrittenLabels,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    allow: Option<Vec<String>>,
    #[serde(default)]
    deny: Vec<String>,
}

impl Policy {
    /// Denies everything: used until a policy is valid.
    pub(crate) fn closed() -> Self {
        Self { closed: true, ..Self::default() }
    }

    pub(crate) fn allows_tool(&self, name: &str) -> bool {
        !self.closed && self.tools.allows(name)
    }

    fn allows_host(&self, host: &str) -> bool {
        !self.closed && self.hosts.allows(host)
    }

    /// Whether the host of a URI is allowed, if the URI has one.
    pub(crate) fn allows_uri(&self, uri: &str) -> bool {
        let Some((_, rest)) = uri.split_once("://") else { return self.allows_no_host() };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.strip_prefix('[') {
            Some(literal) => literal.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        if host.is_empty() {
            return self.allows_no_host();
        }
        self.allows_host(&host.to_ascii_lowercase())
    }

    /// If only some hosts are allowed, a URI must name its host.
    fn allows_no_host(&self) -> bool {
        !self.closed && self.hosts.allow.is_none()
    }

    /// Whether both policies have the same text.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        self.closed == other.closed && self.text == other.text
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whom the policy says that an item is for, if it says so: by the name of a tool, or by a path.
    pub(crate) fn audience(&self, tool: Option<&str>, path: Option<&Path>) -> Option<&Labels> {
        let is_meant = |rule: &&AudienceRule| {
            tool.is_some_and(|tool| rule.tools.is_match(tool))
                || path.is_some_and(|path| rule.paths.is_match(path))
        };
        self.audiences.iter().find(is_meant).map(|rule| &rule.labels)
    }

    pub(crate) fn allows_path(&self, path: &Path) -> bool {
        !self.closed && self.paths.allows(path)
    }
}

impl Rules {
    fn new(lists: &Lists) -> Result<Self, globset::Error> {
        let allow = lists.allow.as_deref().map(globs).transpose()?;
        Ok(Self { allow, deny: globs(&lists.deny)? })
    }

    fn allows(&self, name: impl AsRef<Path>) -> bool {
        let name = name.as_ref();
        self.allow.as_ref().is_none_or(|allow| allow.is_match(name)) && !self.deny.is_match(name)
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build()?);
    }
    set.build()
}

/// Reads the policy; `None` if it is invalid.
pub(crate) fn policy(surroundings: Surroundings<'_>) -> (Option<Policy>, Vec<Problem>) {
    let path = Path::new(POLICY);
    // Only a missing file means that there is no policy.
    if matches!(surroundings.root.inspect(path), PathKind::Nothing) {
        return (Some(Policy::default()), Vec::new());
    }
    let mut describer = Describer::new(surroundings);
    let advice = "correct it; until then the last valid policy is used, or nothing is offered";
    let Some((document, text)) = describer.document::<PolicyDocument>(path) else {
        let problems = describer.result.problems.into_iter();
        let problems = problems.map(|it| Problem { advice: advice.to_owned(), ..it }).collect();
        return (None, problems);
    };
    match Policy::of(document, text) {
        Ok(policy) => (Some(policy), describer.result.problems),
        Err((reason, advice)) => {
            describer.report(Problem::error(path, reason, advice));
            (None, describer.result.problems)
        }
    }
}

impl Policy {
    /// The policy of a document, or what is wrong with it and what to do.
    fn of(document: PolicyDocument, text: String) -> Result<Self, (String, &'static str)> {
        let wrong = |error: globset::Error| {
            (format!("a pattern is wrong: {error}"), "write patterns as `name-*` or `a/**`")
        };
        let mut audiences = Vec::new();
        for AudienceTable { labels, tools, paths } in &document.audience {
            let advice = "write `labels = [\"role:admin\"]`";
            let labels = labels.labels().map_err(|error| (error.to_string(), advice))?;
            let (tools, paths) = (globs(tools).map_err(wrong)?, globs(paths).map_err(wrong)?);
            audiences.push(AudienceRule { tools, paths, labels });
        }
        Ok(Self {
            text,
            tools: Rules::new(&document.tools).map_err(wrong)?,
            hosts: Rules::new(&document.hosts).map_err(wrong)?,
            paths: Rules::new(&document.paths).map_err(wrong)?,
            audiences,
            written_hosts: (document.hosts.allow.unwrap_or_default(), document.hosts.deny),
            closed: false,
        })
    }
}
