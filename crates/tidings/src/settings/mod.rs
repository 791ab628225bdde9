//! `tidings.toml`: what to serve, and how.

mod upstream;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Deserializer};
use tidings_feeds::FeedConfig;
use tidings_server::Labels;

use crate::args::{Limits, duration, named};
use crate::feeds::{address, expanded};
use crate::report::{Hint, Usage};
use crate::values::nearest;

pub(crate) use self::upstream::{ServerOrigin, UpstreamTable};

/// The file that is read if nothing else is given.
pub(crate) const USUAL: &str = "tidings.toml";

/// The settings of a file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Limits for clients.
    #[serde(default)]
    pub(crate) limits: Option<Limits>,
    /// How folders are served.
    #[serde(default)]
    pub(crate) folders: Option<Folders>,
    /// Who may use the server.
    #[serde(default)]
    pub(crate) http: HttpSettings,
    #[serde(default)]
    pub(crate) serve: Serving,
    #[serde(default)]
    pub(crate) feeds: Vec<FeedTable>,
    /// Other servers to serve, by name.
    #[serde(default)]
    upstream: BTreeMap<String, toml::Spanned<UpstreamTable>>,
    /// The directory of the file, which its paths are relative to.
    #[serde(skip)]
    pub(crate) base: PathBuf,
}

/// The folders to serve, and how.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Folders {
    /// Directories to serve besides those of the command line.
    pub(crate) paths: Vec<PathBuf>,
    /// Variables for their programs, as `NAME` or `NAME=VALUE`.
    #[serde(deserialize_with = "variables")]
    env: Vec<String>,
}

/// Who may use the server, and how.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpSettings {
    /// The file of the tokens.
    pub(crate) tokens: Option<PathBuf>,
    /// Labels of clients that may change feeds and the workspace.
    #[serde(deserialize_with = "labels")]
    pub(crate) writers: Vec<String>,
}

/// How feeds are stored and fetched.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Serving {
    pub(crate) data: Option<PathBuf>,
    pub(crate) in_memory: bool,
    pub(crate) offline: bool,
    pub(crate) read_only: bool,
    pub(crate) allow_private: bool,
    /// OPML lists: files or URLs.
    pub(crate) opml: Vec<String>,
    /// How many items of each feed are stored.
    pub(crate) keep_items: Option<u64>,
    /// How many days items are stored.
    pub(crate) keep_days: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedTable {
    pub(crate) url: String,
    title: Option<String>,
    #[serde(alias = "folder")]
    category: Option<String>,
    #[serde(default, deserialize_with = "interval")]
    interval: Option<Duration>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is invalid.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("reading `{}`", file.display()))?;
        let mut settings = Self::parse(&text, &file.display().to_string())?;
        // An empty path cannot be made absolute, so the file is.
        let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        whole.parent().unwrap_or(Path::new("")).clone_into(&mut settings.base);
        let folders = settings.folders.iter_mut().flat_map(|folders| &mut folders.paths);
        let upstreams = settings.upstream.values_mut().map(toml::Spanned::get_mut);
        let tokens = upstreams.filter_map(|upstream| upstream.token_file.as_mut());
        let files = folders.chain(&mut settings.serve.data).chain(&mut settings.http.tokens);
        for path in files.chain(tokens) {
            *path = settings.base.join(&*path);
        }
        for list in &mut settings.serve.opml {
            // Invalid addresses are reported when they are parsed.
            if let Ok(address) = address(list, Some(&settings.base)) {
                *list = address.to_string();
            }
        }
        Ok(settings)
    }

    /// The directories to serve.
    pub(crate) fn folder_paths(&self) -> &[PathBuf] {
        self.folders.as_ref().map_or(&[], |folders| &folders.paths)
    }

    /// The other servers to serve, in the order of the file.
    pub(crate) fn upstreams(&self) -> Vec<(&str, &UpstreamTable)> {
        let mut upstreams: Vec<_> = self.upstream.iter().collect();
        upstreams.sort_by_key(|(_, table)| table.span().start);
        upstreams.into_iter().map(|(name, table)| (name.as_str(), table.get_ref())).collect()
    }

    /// Variables for the programs of folders.
    pub(crate) fn variables(&self) -> &[String] {
        self.folders.as_ref().map_or(&[], |folders| &folders.env)
    }

    /// Whether the file configures feeds, and not only other things. An empty one does.
    pub(crate) fn is_about_feeds(&self) -> bool {
        self.names_feeds() || self.is_empty()
    }

    /// Whether the file has feeds, or says how to serve them.
    pub(crate) fn names_feeds(&self) -> bool {
        !self.feeds.is_empty() || self.serve != Serving::default()
    }

    /// Whether the file says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let empty = Self { base: self.base.clone(), ..Self::default() };
        *self == empty
    }

    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, Usage> {
        let settings: Self = toml::from_str(text).map_err(|error| refusal(&error, text, name))?;
        if settings.serve.in_memory && settings.serve.data.is_some() {
            return Err(Usage::new(format!(
                "`{name}`: `data` and `in_memory` cannot be used together"
            )));
        }
        let Serving { keep_items, keep_days, .. } = settings.serve;
        let keeps = [("keep_items", keep_items), ("keep_days", keep_days)];
        if let Some((key, _)) = keeps.iter().find(|(_, number)| *number == Some(0)) {
            let usage = Usage::new(format!("`{name}`: `{key} = 0` would store nothing"));
            return Err(usage.hint(format!("give 1 or more, or leave `{key}` out")));
        }
        Ok(settings)
    }

    /// The feeds, with variables filled in.
    ///
    /// # Errors
    ///
    /// A variable is not set.
    pub(crate) fn feeds(&self) -> Result<Vec<FeedConfig>> {
        let feed = |feed: &FeedTable| -> Result<FeedConfig> {
            let url = expanded(&feed.url)?;
            let address = address(&url, Some(&self.base))
                .context("opening the feeds")
                .context(Hint("give a feed on this machine as a path".to_owned()))?;
            let mut config = FeedConfig::new(address);
            // The value of a variable may be secret, so it is never shown.
            config.shown_url = (url != feed.url).then(|| feed.url.clone());
            config.title.clone_from(&feed.title);
            config.category.clone_from(&feed.category);
            config.interval = feed.interval;
            for (name, value) in &feed.headers {
                config.headers.push((name.clone(), expanded(value)?));
            }
            Ok(config)
        };
        self.feeds.iter().map(feed).collect()
    }
}

fn variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| named(text).map_err(serde::de::Error::custom)).collect()
}

fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Labels::new(&texts).map_err(serde::de::Error::custom)?;
    Ok(texts)
}

fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration(&text).map(Some).map_err(serde::de::Error::custom)
}

/// The error, its line, and the name that was probably meant.
fn refusal(error: &toml::de::Error, text: &str, name: &str) -> Usage {
    let message = error.message().trim();
    let line = error.span().map(|span| {
        1 + text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
    });
    let place = match line {
        Some(line) => format!("`{name}`, line {line}"),
        None => format!("`{name}`"),
    };
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return Usage::new(format!("{place}: {message}"));
    };
    let mut words = rest.split('`').step_by(2);
    let unknown = words.next().unwrap_or_default();
    // Commas and words separate the expected names.
    let known: Vec<_> = rest.split('`').skip(2).step_by(2).collect();
    let usage = Usage::new(format!("{place}: unknown key `{unknown}`"));
    match nearest(unknown, &known) {
        Some(near) => usage.hint(format!("did you mean `{near}`?")),
        None => usage.hint(format!("known keys: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        format!("{:?}", Settings::parse(text, "tidings.toml").unwrap_err())
    }

    #[test]
    fn feeds_have_all_that_can_be_set() {
        let text = "[serve]\nkeep_items = 5\n\n[[feeds]]\nurl = 'https://a.org/f'\ntitle = 'A'\n\
            category = 'News'\ninterval = '30m'\nheaders = { X-Key = 'k' }\n[[feeds]]\nurl = 'b'\n";
        let mut settings = Settings::parse(text, "tidings.toml").unwrap();
        settings.base = "/here".into();
        assert_eq!(settings.serve.keep_items, Some(5));
        let feeds = settings.feeds().unwrap();
        assert_eq!(feeds[0].title.as_deref(), Some("A"));
        assert_eq!(feeds[0].category.as_deref(), Some("News"));
        assert_eq!(feeds[0].interval, Some(Duration::from_mins(30)));
        assert_eq!(feeds[0].headers, [("X-Key".to_owned(), "k".to_owned())]);
        assert_eq!(feeds[1].address.as_str(), "/here/b");
    }

    #[test]
    fn a_key_that_means_nothing_is_named_with_its_line_and_the_nearest() {
        let text = "[[feeds]]\nurl = 'https://a.org/f'\ntitel = 'A'\n";
        let said = refused(text);
        assert!(said.contains("line 3: unknown key `titel`"), "{said}");
        assert!(said.contains("did you mean `title`?"), "{said}");
        let said = refused("[serv]\ndata = 'x'\n");
        assert!(said.contains("line 1: unknown key `serv`") && said.contains("`serve`"), "{said}");
        let said = refused("[serve]\ncolour = 'red'\n");
        assert!(said.contains("known keys: data, in_memory, offline"), "{said}");
    }

    #[test]
    fn a_value_that_cannot_be_is_told_with_its_line() {
        let said = refused("[[feeds]]\nurl = 'https://a.org/f'\ninterval = 'soon'\n");
        assert!(said.contains("line 3") && said.contains("500ms, 30s, 5m or 1h"), "{said}");
        assert!(refused("[[feeds]]\ntitle = 'A'\n").contains("missing field `url`"));
        assert!(
            refused("[serve]\ndata = 'x'\nin_memory = true\n").contains("cannot be used together")
        );
    }

    #[test]
    fn nothing_is_kept_by_nobody() {
        for key in ["keep_items", "keep_days"] {
            let said = refused(&format!("[serve]\n{key} = 0\n"));
            assert!(said.contains(&format!("`{key} = 0` would store nothing")), "{said}");
        }
    }

    #[test]
    fn what_a_variable_holds_is_not_shown() {
        let text = "[[feeds]]\nurl = 'https://a.org/${TIDINGS_NO_SUCH:-secret}'\n\
            [[feeds]]\nurl = 'https://b.org/'\n";
        let feeds = Settings::parse(text, "tidings.toml").unwrap().feeds().unwrap();
        assert_eq!(feeds[0].address.as_str(), "https://a.org/secret");
        let shown = "https://a.org/${TIDINGS_NO_SUCH:-secret}";
        assert_eq!(feeds[0].shown_url.as_deref(), Some(shown));
        assert_eq!(feeds[1].shown_url, None);
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let text = "[[feeds]]\nurl = 'https://a.org/f'\nheaders = { K = '${TIDINGS_NO_SUCH}' }\n";
        let settings = Settings::parse(text, "tidings.toml").unwrap();
        let said = settings.feeds().unwrap_err().to_string();
        assert!(said.contains("`TIDINGS_NO_SUCH` is not set"), "{said}");
    }
}
