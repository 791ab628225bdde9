//! `[upstream.NAME]`: other MCP servers to serve, and how they are offered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use tidings_upstream::{Config, Name, PatternError, Poll, PollRule, Prefix, Selection};

use crate::args::duration;
use crate::hosts::Kind;
use crate::report::Usage;

/// One upstream server, as the file describes it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UpstreamTable {
    /// The endpoint of a server behind HTTP.
    url: Option<String>,
    headers: BTreeMap<String, String>,
    /// A file with a bearer token. It is read for each connection, and again when the token is
    /// refused.
    pub(crate) token_file: Option<PathBuf>,
    /// A program and its arguments.
    command: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    /// The directory to run the program in.
    cwd: Option<PathBuf>,
    /// The name of a server in an `mcp.json`.
    server: Option<String>,
    /// Whether to leave it out.
    pub(crate) disabled: bool,
    /// Before the names of tools and prompts. An empty text keeps the names.
    prefix: Option<String>,
    tools: SelectionTable,
    prompts: SelectionTable,
    resources: SelectionTable,
    poll: Option<PollTable>,
    /// Whether each client session has a connection of its own.
    isolate: bool,
    timeout: TimeoutTable,
    /// Whether new and changed definitions wait for an approval.
    pub(crate) pin: bool,
    /// How long items stay listed after the server is lost.
    #[serde(deserialize_with = "time")]
    grace: Option<Duration>,
    start: StartTable,
    roots: Vec<String>,
}

/// Which items of one kind are offered, and how.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
struct SelectionTable {
    allow: Vec<String>,
    deny: Vec<String>,
    rename: BTreeMap<String, String>,
    describe: BTreeMap<String, String>,
}

/// How changes are found that the server does not announce: one rule, or one for each pattern.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "write `false`, a time such as '30s', or a table of URI patterns")]
enum PollTable {
    One(PollValue),
    Patterns(BTreeMap<String, PollValue>),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "write `false`, `true`, or a time such as '30s'")]
enum PollValue {
    Switch(bool),
    Every(Every),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Every(Duration);

/// How long it may take.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
struct TimeoutTable {
    #[serde(deserialize_with = "time")]
    connect: Option<Duration>,
    #[serde(deserialize_with = "time")]
    call: Option<Duration>,
    #[serde(deserialize_with = "time")]
    max: Option<Duration>,
}

/// When it is started.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum StartTable {
    #[default]
    Now,
    Lazy,
}

/// Where the server is.
pub(crate) enum ServerOrigin {
    /// Here.
    Given(Kind),
    /// In an `mcp.json`, under this name.
    Named(String),
}

impl UpstreamTable {
    /// Where the server is. `base` is the directory of the file.
    ///
    /// # Errors
    ///
    /// If none or more than one is given, or a key does not fit.
    pub(crate) fn origin(&self, base: &std::path::Path) -> Result<ServerOrigin, Usage> {
        let has = [self.url.is_some(), self.command.is_some(), self.server.is_some()];
        if has.iter().filter(|it| **it).count() != 1 {
            return Err(Usage::new("it needs exactly one of `url`, `command` and `server`"));
        }
        let is_program = self.command.is_some();
        let misplaced = [
            ("headers", !self.headers.is_empty() && self.url.is_none()),
            ("token_file", self.token_file.is_some() && self.url.is_none()),
            ("env", !self.env.is_empty() && !is_program),
            ("cwd", self.cwd.is_some() && !is_program),
        ];
        if let Some((key, _)) = misplaced.iter().find(|(_, is_there)| *is_there) {
            let needs = if ["headers", "token_file"].contains(key) { "url" } else { "command" };
            return Err(Usage::new(format!("`{key}` needs `{needs}`")));
        }
        if let Some(url) = &self.url {
            return Ok(ServerOrigin::Given(Kind::Http {
                url: url.clone(),
                headers: self.headers.clone(),
            }));
        }
        if let Some(words) = &self.command {
            let Some((program, arguments)) = words.split_first() else {
                return Err(Usage::new("`command` is empty"));
            };
            let folder = self.cwd.as_ref().map_or_else(|| base.to_owned(), |cwd| base.join(cwd));
            return Ok(ServerOrigin::Given(Kind::Command {
                program: program.clone(),
                arguments: arguments.to_vec(),
                environment: self.env.clone(),
                folder: Some(folder.to_string_lossy().into_owned()),
            }));
        }
        Ok(ServerOrigin::Named(self.server.clone().unwrap_or_default()))
    }

    /// The same without what can change while it runs: if two are equal, no restart is needed.
    pub(crate) fn fixed(&self) -> Self {
        Self {
            prefix: None,
            tools: SelectionTable::default(),
            prompts: SelectionTable::default(),
            resources: SelectionTable::default(),
            poll: None,
            grace: None,
            roots: Vec::new(),
            timeout: TimeoutTable { max: None, ..self.timeout.clone() },
            ..self.clone()
        }
    }

    /// Whether it is started on first use.
    pub(crate) fn is_lazy(&self) -> bool {
        self.start == StartTable::Lazy
    }

    /// Applies this to a configuration, apart from files.
    ///
    /// # Errors
    ///
    /// If a pattern or the prefix is invalid.
    pub(crate) fn apply(&self, config: &mut Config) -> Result<(), Usage> {
        config.prefix = match self.prefix.as_deref() {
            None => Prefix::Name,
            Some("") => Prefix::Keep,
            Some(text) => Prefix::Text(
                Name::parse(text).map_err(|error| Usage::new(format!("`prefix`: {error}")))?,
            ),
        };
        config.tools = self.tools.selection()?;
        config.prompts = self.prompts.selection()?;
        config.resources = self.resources.selection()?;
        config.poll = self.poll.as_ref().map(PollTable::poll).transpose()?.unwrap_or_default();
        config.isolate = self.isolate;
        config.roots.clone_from(&self.roots);
        if let Some(grace) = self.grace {
            config.grace = grace;
        }
        let TimeoutTable { connect, call, max } = self.timeout;
        config.timeouts.connect = connect.unwrap_or(config.timeouts.connect);
        config.timeouts.call = call.unwrap_or(config.timeouts.call);
        config.timeouts.most = max.unwrap_or(config.timeouts.most);
        Ok(())
    }
}

impl SelectionTable {
    fn selection(&self) -> Result<Selection, Usage> {
        let mut selection =
            Selection::new(&self.allow, &self.deny).map_err(|error| refused(&error))?;
        selection.rename.clone_from(&self.rename);
        selection.describe.clone_from(&self.describe);
        Ok(selection)
    }
}

impl PollTable {
    fn poll(&self) -> Result<Poll, Usage> {
        let rules = match self {
            Self::One(value) => return Ok(Poll::from(value.rule())),
            Self::Patterns(rules) => rules,
        };
        // Longer patterns first: they say more.
        let mut patterns: Vec<_> = rules.iter().collect();
        patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
        patterns.into_iter().try_fold(Poll::default(), |poll, (pattern, value)| {
            poll.rule(pattern, value.rule()).map_err(|error| refused(&error))
        })
    }
}

impl PollValue {
    fn rule(&self) -> PollRule {
        match self {
            Self::Switch(true) => PollRule::Adaptive,
            Self::Switch(false) => PollRule::Never,
            Self::Every(Every(time)) => PollRule::Every(*time),
        }
    }
}

fn refused(error: &PatternError) -> Usage {
    Usage::new(error.to_string())
}

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Every::deserialize(deserializer).map(|Every(time)| Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> UpstreamTable {
        toml::from_str(text).unwrap()
    }

    #[track_caller]
    fn refused(text: &str, because: &str) {
        let here = std::path::Path::new("/here");
        let error = table(text).origin(here).err().expect("it is refused").to_string();
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn a_server_is_in_one_place() {
        refused("prefix = 'a'", "exactly one of");
        refused("url = 'http://a'\ncommand = ['b']", "exactly one of");
        refused("url = 'http://a'\nenv = { A = 'b' }", "`env` needs `command`");
        refused("server = 'a'\nheaders = { A = 'b' }", "`headers` needs `url`");
        refused("command = []", "empty");
        let found = table("command = ['a', 'b']\ncwd = 'c'").origin("/here".as_ref()).unwrap();
        let ServerOrigin::Given(Kind::Command { folder, .. }) = found else {
            panic!("it is a program")
        };
        assert_eq!(folder.as_deref(), Some("/here/c"));
    }

    #[test]
    fn every_key_reaches_the_configuration() {
        let text = "url = 'http://a'\nprefix = ''\npoll = { 'log://*' = false, '*' = '10s' }\n\
            isolate = true\ngrace = '1s'\nroots = ['file:///a']\n\
            tools = { allow = ['a*'], deny = ['ab'], rename = { a = 'b' }, describe = { a = 'A' } }\n\
            timeout = { connect = '1s', call = '2s', max = '3s' }";
        let name = Name::parse("a").unwrap();
        let mut config = Config::new(name, "http://a");
        table(text).apply(&mut config).unwrap();
        assert_eq!(config.prefix, Prefix::Keep);
        assert!(config.tools.has("aa") && !config.tools.has("ab") && !config.tools.has("b"));
        assert_eq!(
            (config.tools.rename["a"].as_str(), config.tools.describe["a"].as_str()),
            ("b", "A")
        );
        assert_eq!(config.poll.of("log://a"), PollRule::Never);
        assert_eq!(config.poll.of("x://a"), PollRule::Every(Duration::from_secs(10)));
        assert!(config.isolate && config.grace == Duration::from_secs(1));
        assert_eq!(config.timeouts.most, Duration::from_secs(3));
        assert_eq!(config.roots, ["file:///a"]);
    }

    #[test]
    fn invalid_values_are_named() {
        let mut config = Config::new(Name::parse("a").unwrap(), "http://a");
        let error = |text: &str, config: &mut Config| table(text).apply(config).unwrap_err();
        assert!(error("prefix = 'a b'", &mut config).to_string().contains("`a b`"));
        assert!(error("tools = { allow = ['[a'] }", &mut config).to_string().contains("`[a`"));
        assert!(toml::from_str::<UpstreamTable>("poll = 'often'").is_err());
        assert!(toml::from_str::<UpstreamTable>("grace = 'soon'").is_err());
    }

    #[test]
    fn only_what_the_program_sees_needs_a_restart() {
        let before = table("command = ['a']");
        for text in
            ["prefix = 'b'", "poll = '1s'", "tools = { deny = ['x'] }", "timeout = { max = '1s' }"]
        {
            assert_eq!(table(&format!("command = ['a']\n{text}")).fixed(), before.fixed());
        }
        for text in ["env = { A = 'b' }", "isolate = true", "timeout = { call = '1s' }"] {
            assert_ne!(table(&format!("command = ['a']\n{text}")).fixed(), before.fixed());
        }
    }
}
