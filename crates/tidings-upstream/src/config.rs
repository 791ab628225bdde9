//! What can be set for one upstream server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use tidings_mirror::Target;

use crate::neighbours::Neighbours;

/// The longest name of an upstream. With it, a tool's name of 90 characters still fits.
const LONGEST_NAME: usize = 32;

/// One upstream server: where it is, and how it is offered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Its name here.
    pub name: Name,
    /// Where it is.
    pub target: Target,
    /// What the names of its tools and prompts begin with; default its name.
    pub prefix: Prefix,
    /// Which tools are offered, and how; default all.
    pub tools: Selection,
    /// Which prompts are offered, and how; default all.
    pub prompts: Selection,
    /// Which resources and templates are offered, by URI; default all.
    pub resources: Selection,
    /// How changes are found that the server does not announce.
    pub poll: Poll,
    /// Whether each client session has a connection of its own for calls, prompts and questions;
    /// default no: all share one.
    pub isolate: bool,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// A file of approved definitions. With it, a tool or prompt that is new or changed waits for
    /// [`Upstream::approve`](crate::Upstream::approve). The first definitions are approved as they
    /// come. Default none: everything is offered.
    pub pin: Option<PathBuf>,
    /// How long its items stay listed after it is lost; default 30 s.
    pub grace: Duration,
    /// When it is started; default at once.
    pub start: Start,
    /// The folders that it may use, as URIs, if it asks for them on a shared connection; default
    /// none: the client whose call led to the question is asked.
    pub roots: Vec<String>,
    /// Other upstreams of the same hub: of two with the same name or URI, the one of the lower rank
    /// has it. Default nobody.
    pub neighbours: Neighbours,
    /// Its place among its neighbours; default 0.
    pub rank: usize,
}

impl Config {
    /// The defaults for this server.
    #[must_use]
    pub fn new(name: Name, target: impl Into<Target>) -> Self {
        Self {
            name,
            target: target.into(),
            prefix: Prefix::default(),
            tools: Selection::default(),
            prompts: Selection::default(),
            resources: Selection::default(),
            poll: Poll::default(),
            isolate: false,
            timeouts: Timeouts::default(),
            pin: None,
            grace: Duration::from_secs(30),
            start: Start::default(),
            roots: Vec::new(),
            neighbours: Neighbours::default(),
            rank: 0,
        }
    }
}

/// The name of an upstream: letters, digits and hyphens, beginning with a letter, at most 32.
///
/// It has no underscore, so that `NAME__tool` can be taken apart in one way only, and it can stand
/// before the scheme of a URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a text is not the name of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot name an upstream: a name is a letter, followed by up to 31 letters, digits or hyphens"
)]
pub struct NameError(String);

impl Name {
    /// Checks a name.
    ///
    /// ```
    /// use tidings_upstream::Name;
    ///
    /// assert_eq!(Name::parse("git-hub")?.as_str(), "git-hub");
    /// assert!(Name::parse("git_hub").is_err());
    /// # Ok::<(), tidings_upstream::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If it has other characters, or is too long.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_begun = text.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_plain = text.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
        if is_begun && is_plain && text.len() <= LONGEST_NAME {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(&self.0)
    }
}

/// What the names of tools and prompts begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prefix {
    /// The name of the upstream: `NAME__tool`.
    #[default]
    Name,
    /// Another text: `text__tool`.
    Text(Name),
    /// Nothing: names are kept. A name that a neighbour of a lower rank or another source has is
    /// listed as `NAME__tool`.
    Keep,
}

/// Which items of one kind are offered, and how.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Selection {
    allow: Option<GlobSet>,
    deny: Option<GlobSet>,
    /// Other names, without the prefix, by the upstream's names.
    pub rename: BTreeMap<String, String>,
    /// Other descriptions, by the upstream's names.
    pub describe: BTreeMap<String, String>,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern: {reason}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong.
    pub reason: String,
}

impl Selection {
    /// The items whose name or URI matches one of `allow` and none of `deny`; without `allow`, all
    /// but `deny`. In a pattern, `*` stands for any text, `?` for one character and `{a,b}` for one
    /// of several.
    ///
    /// ```
    /// use tidings_upstream::Selection;
    ///
    /// let issues = Selection::new(&["*issue*"], &["delete_*"])?;
    /// assert!(issues.has("list_issues") && !issues.has("delete_issue"));
    /// # Ok::<(), tidings_upstream::PatternError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a pattern is not one.
    pub fn new<P: AsRef<str>>(allow: &[P], deny: &[P]) -> Result<Self, PatternError> {
        let allow = (!allow.is_empty()).then(|| set(allow)).transpose()?;
        let deny = (!deny.is_empty()).then(|| set(deny)).transpose()?;
        Ok(Self { allow, deny, ..Self::default() })
    }

    /// Whether an item of this name or URI is offered.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.is_match(key))
            && !self.deny.as_ref().is_some_and(|deny| deny.is_match(key))
    }
}

fn set(patterns: &[impl AsRef<str>]) -> Result<GlobSet, PatternError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.as_ref();
        let glob = Glob::new(pattern).map_err(|error| PatternError {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })?;
        set.add(glob);
    }
    set.build().map_err(|error| PatternError {
        pattern: error.glob().unwrap_or_default().to_owned(),
        reason: error.kind().to_string(),
    })
}

/// How changes are found that a server does not announce.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Poll {
    /// For all resources and lists without a rule of their own.
    pub rest: PollRule,
    /// For the URIs that match a pattern; the first that matches counts.
    rules: Vec<(globset::GlobMatcher, PollRule)>,
}

/// How often something is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PollRule {
    /// Watched resources more often after changes and less often without, from 2 s to 5 min; lists
    /// every minute while somebody listens.
    #[default]
    Adaptive,
    /// At this interval.
    Every(Duration),
    /// Never.
    Never,
}

impl Poll {
    /// Sets a rule for the URIs that match a pattern.
    ///
    /// # Errors
    ///
    /// If the pattern is not one.
    pub fn rule(mut self, pattern: &str, rule: PollRule) -> Result<Self, PatternError> {
        let glob = Glob::new(pattern).map_err(|error| PatternError {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })?;
        self.rules.push((glob.compile_matcher(), rule));
        Ok(self)
    }

    /// The rule of a URI.
    #[must_use]
    pub fn of(&self, uri: &str) -> PollRule {
        let own = self.rules.iter().find(|(pattern, _)| pattern.is_match(uri));
        own.map_or(self.rest, |(_, rule)| *rule)
    }
}

impl From<PollRule> for Poll {
    fn from(rest: PollRule) -> Self {
        Self { rest, rules: Vec::new() }
    }
}

/// How long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// To connect, and so how long a request waits for a server that is starting; default 30 s.
    pub connect: Duration,
    /// Silence during a request; progress of a call begins it anew. Default 60 s.
    pub call: Duration,
    /// A request in all; default 10 min.
    pub most: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            call: Duration::from_mins(1),
            most: Duration::from_mins(10),
        }
    }
}

/// When an upstream is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// At once.
    #[default]
    Now,
    /// On first use. Until then its lists are those of the last run, which are kept in this file;
    /// without the file it is started at once.
    Lazy(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_stand_before_two_underscores_and_before_a_scheme() {
        for good in ["a", "A1", "git-hub", &"a".repeat(32)] {
            assert!(Name::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "-a", "a_b", "a__b", "a.b", "a+b", "ä", "a b", &"a".repeat(33)] {
            let error = Name::parse(bad).unwrap_err().to_string();
            assert!(error.contains("letters, digits or hyphens"), "{error}");
        }
    }

    #[test]
    fn what_is_denied_is_not_offered_even_if_it_is_allowed() {
        let selection = Selection::new(&["*issue*", "file:///a/*"], &["delete_*"]).unwrap();
        assert!(selection.has("list_issues") && selection.has("file:///a/b/c"));
        assert!(!selection.has("delete_issue") && !selection.has("search"));
        let none: [&str; 0] = [];
        assert!(Selection::new(&none, &none).unwrap().has("anything"));
        let error = Selection::new(&["[a"], &none).unwrap_err();
        assert_eq!(error.pattern, "[a");
    }

    #[test]
    fn the_first_rule_that_matches_a_uri_counts() {
        let poll = Poll::from(PollRule::Never)
            .rule("log://*", PollRule::Every(Duration::from_secs(10)))
            .unwrap()
            .rule("*", PollRule::Adaptive)
            .unwrap();
        assert_eq!(poll.of("log://a"), PollRule::Every(Duration::from_secs(10)));
        assert_eq!(poll.of("x://a"), PollRule::Adaptive);
        assert_eq!(Poll::default().of("x://a"), PollRule::Adaptive);
    }
}
