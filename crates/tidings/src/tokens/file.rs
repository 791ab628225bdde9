//! The contents of `tokens.toml`. An invalid entry is reported with its line, and the others count.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use serde::{Deserialize, Deserializer, de};
use tidings_server::http::{TokenEntry, TokenHash};
use tidings_server::{Identity, IdentityLimits, Labels};
use tidings_store::date::Moment;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::report::Hint;
use crate::values::nearest;

/// The key of the entries.
pub(super) const TOKENS: &str = "tokens";
/// How a hash begins: the name of its algorithm.
pub(super) const ALGORITHM: &str = "blake3:";
/// A larger file is not one of tokens: this is enough for about 20,000.
const LARGEST: u64 = 4 << 20;
/// The longest name of a token, in bytes.
const LONGEST_NAME: usize = 64;
/// The permissions that let users other than the owner read or write a file.
const READABLE: u32 = 0o044;
const WRITABLE: u32 = 0o022;

/// A token: everything but its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) hash: TokenHash,
    pub(crate) labels: Labels,
    pub(crate) created: Option<Moment>,
    pub(crate) expires: Option<Moment>,
    pub(crate) connections: Option<usize>,
    pub(crate) sessions: Option<usize>,
    pub(crate) listeners: Option<usize>,
}

impl StoredToken {
    pub(crate) fn is_expired(&self, now: Moment) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// The token for a server.
    pub(crate) fn entry(&self) -> TokenEntry {
        let mut identity = Identity::new(self.name.as_str(), self.labels.clone());
        identity.expires = self.expires.map(|expires| {
            let millis = u64::try_from(expires.millis()).unwrap_or_default();
            SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
        });
        let mut limits = IdentityLimits::default();
        limits.connections = self.connections;
        limits.sessions = self.sessions;
        limits.listeners = self.listeners;
        identity.limits = limits;
        TokenEntry::new(self.hash, identity)
    }
}

/// What is wrong in a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenProblem {
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The name of the token, if it has one.
    pub(crate) token: Option<String>,
    pub(crate) reason: String,
}

impl fmt::Display for TokenProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}", self.line)?;
        if let Some(token) = &self.token {
            write!(formatter, ", token `{token}`")?;
        }
        write!(formatter, ": {}", self.reason)
    }
}

impl std::error::Error for TokenProblem {}

/// A file of tokens.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The valid tokens, in the order of the file.
    pub(crate) tokens: Vec<StoredToken>,
    /// The entries that are refused.
    pub(crate) problems: Vec<TokenProblem>,
    /// The mode of the file, if other users can read it.
    pub(crate) readable: Option<u32>,
}

/// Loads a file.
///
/// # Errors
///
/// If it cannot be read, is empty or not TOML, or if other users could add tokens to it.
pub(crate) fn load(path: &Path) -> Result<Loaded> {
    let shown = path.display();
    let text = || -> Result<(String, u32)> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            return Err(anyhow!("it is not a file of tokens"));
        }
        let mut text = String::new();
        file.by_ref().take(LARGEST).read_to_string(&mut text)?;
        Ok((text, metadata.permissions().mode() & 0o777))
    };
    let (text, mode) = text().with_context(|| format!("reading the tokens in `{shown}`"))?;
    if mode & WRITABLE != 0 {
        let hint = Hint(format!("run `chmod 600 {shown}` after checking its tokens"));
        let error = anyhow!("others can write `{shown}` (its mode is {mode:03o})");
        return Err(error.context(hint));
    }
    if text.trim().is_empty() {
        // A save may begin with an empty file, and must not withdraw every token for a moment.
        let hint = Hint("to serve nobody, leave a comment in the file".to_owned());
        return Err(anyhow!("`{shown}` is empty").context(hint));
    }
    let loaded = parse(&text).with_context(|| format!("reading the tokens in `{shown}`"))?;
    Ok(Loaded { readable: readable(mode), ..loaded })
}

/// The mode of a file that users other than its owner can read.
pub(crate) fn others_may_read(file: &Path) -> Option<u32> {
    readable(std::fs::metadata(file).ok()?.permissions().mode() & 0o777)
}

fn readable(mode: u32) -> Option<u32> {
    (mode & READABLE != 0).then_some(mode)
}

/// Parses a file's text.
///
/// # Errors
///
/// The text is not TOML.
pub(super) fn parse(text: &str) -> Result<Loaded, TokenProblem> {
    let document = DeTable::parse(text).map_err(|error| problem(&error, text, None))?;
    let mut loaded = Loaded::default();
    for (key, value) in document.into_inner() {
        let line = line_at(text, key.span().start);
        match (key.get_ref().as_ref(), value.into_inner()) {
            (TOKENS, DeValue::Array(entries)) => {
                entries.into_iter().for_each(|entry| loaded.take(entry, text));
            }
            (TOKENS, _) => {
                let reason = "write each token as a table that begins with `[[tokens]]`".to_owned();
                loaded.problems.push(TokenProblem { line, token: None, reason });
            }
            (key, _) => {
                let reason = unknown(key, &[TOKENS]);
                loaded.problems.push(TokenProblem { line, token: None, reason });
            }
        }
    }
    Ok(loaded)
}

impl Loaded {
    /// Takes a valid entry, or reports what is wrong with it.
    fn take(&mut self, entry: Spanned<DeValue<'_>>, text: &str) {
        let line = line_at(text, entry.span().start);
        let name = named(entry.get_ref()).map(str::to_owned);
        let token = match WrittenToken::deserialize(ValueDeserializer::from(entry)) {
            Ok(entry) => StoredToken::from(entry),
            Err(error) => return self.problems.push(problem(&error, text, name)),
        };
        let same = |other: &&StoredToken| other.name == token.name || other.hash == token.hash;
        if let Some(other) = self.tokens.iter().find(same) {
            let what = if other.name == token.name { "name" } else { "hash" };
            let reason = format!("another token, `{}`, has the same {what}", other.name);
            return self.problems.push(TokenProblem { line, token: name, reason });
        }
        self.tokens.push(token);
    }
}

/// The name that an entry has, valid or not.
pub(super) fn named<'e>(entry: &'e DeValue<'_>) -> Option<&'e str> {
    entry.as_table()?.get("name")?.get_ref().as_str()
}

/// A token as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    #[serde(deserialize_with = "name_text")]
    name: String,
    #[serde(deserialize_with = "hash_text")]
    hash: TokenHash,
    #[serde(default, deserialize_with = "label_texts")]
    labels: Labels,
    #[serde(default, deserialize_with = "moment")]
    created: Option<Moment>,
    #[serde(default, deserialize_with = "moment")]
    expires: Option<Moment>,
    connections: Option<usize>,
    sessions: Option<usize>,
    listeners: Option<usize>,
}

impl From<WrittenToken> for StoredToken {
    fn from(entry: WrittenToken) -> Self {
        let WrittenToken { name, hash, labels, created, expires, connections, sessions, listeners } =
            entry;
        Self { name, hash, labels, created, expires, connections, sessions, listeners }
    }
}

/// Checks the name of a token. It appears in logs and metrics.
///
/// # Errors
///
/// What a name must be.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(is_plain) {
        return Err("use up to 64 letters, digits and `-`, `_`, `.`, `@`".to_owned());
    }
    Ok(text.to_owned())
}

fn name_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    name(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn hash_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TokenHash, D::Error> {
    let text = String::deserialize(deserializer)?;
    // The text is not repeated: it may be a secret that was written here by mistake.
    text.strip_prefix(ALGORITHM)
        .and_then(|digits| TokenHash::parse(digits).ok())
        .ok_or_else(|| de::Error::custom("a hash is `blake3:` and 64 hexadecimal digits"))
}

fn label_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Labels::new(texts).map_err(de::Error::custom)
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Moment>, D::Error> {
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::Datetime(datetime) => datetime.to_string(),
        toml::Value::String(text) => text,
        _ => String::new(),
    };
    let wrong = || de::Error::custom("write a date such as 2027-01-31 or 2027-01-31T12:00:00Z");
    Moment::parse(&text).map(Some).ok_or_else(wrong)
}

/// The problem of an entry or of the whole text, in words.
fn problem(error: &toml::de::Error, text: &str, token: Option<String>) -> TokenProblem {
    let line = line_at(text, error.span().map_or(0, |span| span.start));
    let message = error.message().trim();
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return TokenProblem { line, token, reason: message.replace('\n', ", ") };
    };
    let mut words = rest.split('`').step_by(2);
    let key = words.next().unwrap_or_default();
    // Commas and words separate the expected names.
    let known: Vec<_> = rest.split('`').skip(2).step_by(2).collect();
    TokenProblem { line, token, reason: unknown(key, &known) }
}

fn unknown(key: &str, known: &[&str]) -> String {
    match nearest(key, known) {
        Some(near) => format!("unknown key `{key}`: did you mean `{near}`?"),
        None => format!("unknown key `{key}`; known keys: {}", known.join(", ")),
    }
}

/// The line, counted from 1, of a position.
fn line_at(text: &str, position: usize) -> usize {
    1 + text.as_bytes().iter().take(position).filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    const OTHER: &str = "blake3:d74981efa70a0c880b8d8c1985d075dbcbf679b99a5f9914e5aaf96b831a9e24";

    fn problems(text: &str) -> Vec<String> {
        parse(text).unwrap().problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_token_has_all_that_can_be_set() {
        let text = format!(
            "# ours\n[[tokens]]\nname = 'ada'\nhash = '{HASH}'\nlabels = ['role:admin']\n\
             created = 2026-11-18T10:00:00Z\nexpires = 2026-12-18\nconnections = 2\n\
             sessions = 3\nlisteners = 4\n\
             [[tokens]]\nname = 'bob'\nhash = '{OTHER}'\n"
        );
        let loaded = parse(&text).unwrap();
        assert_eq!(loaded.problems, []);
        let [ada, bob] = loaded.tokens.as_slice() else { panic!("{loaded:?}") };
        assert!(ada.labels.contains("role:admin"));
        assert_eq!(ada.expires, Moment::parse("2026-12-18T00:00:00Z"));
        assert!(ada.is_expired(Moment::parse("2026-12-18T00:00:00Z").unwrap()));
        assert!(!ada.is_expired(Moment::parse("2026-12-17T23:59:59Z").unwrap()));
        let limits = ada.entry().identity.limits;
        assert_eq!((limits.connections, limits.sessions), (Some(2), Some(3)));
        assert_eq!(limits.listeners, Some(4));
        assert_eq!(bob.entry().identity, Identity::new("bob", Labels::NONE));
    }

    #[test]
    fn a_bad_entry_costs_only_itself() {
        let text = format!(
            "[[tokens]]\nname = 'ada'\nhash = '{HASH}'\n\
             [[tokens]]\nname = 'bob'\nhash = 'hunter2hunter2hunter2'\n\
             [[tokens]]\nname = 'eve'\nhash = '{OTHER}'\nlable = ['x']\n\
             [[tokens]]\nhash = '{OTHER}'\n\
             [[tokens]]\nname = 'dan'\nhash = '{OTHER}'\nexpires = 'soon'\n\
             [[tokens]]\nname = 'ada'\nhash = '{OTHER}'\n\
             [[tokens]]\nname = 'fay'\nhash = '{HASH}'\n\
             [[tokens]]\nname = 'a b'\nhash = '{OTHER}'\n\
             [[tokens]]\nname = 'gil'\nhash = '{OTHER}'\nlabels = ['a', 'b c']\n\
             [[tokens]]\nname = 'hal'\nhash = '{OTHER}'\n"
        );
        let loaded = parse(&text).unwrap();
        let names: Vec<_> = loaded.tokens.iter().map(|token| token.name.as_str()).collect();
        assert_eq!(names, ["ada", "hal"]);
        insta::assert_snapshot!(problems(&text).join("\n"), @r#"
        line 6, token `bob`: a hash is `blake3:` and 64 hexadecimal digits
        line 10, token `eve`: unknown key `lable`: did you mean `labels`?
        line 11: missing field `name`
        line 16, token `dan`: write a date such as 2027-01-31 or 2027-01-31T12:00:00Z
        line 17, token `ada`: another token, `ada`, has the same name
        line 20, token `fay`: another token, `ada`, has the same hash
        line 24, token `a b`: use up to 64 letters, digits and `-`, `_`, `.`, `@`
        line 29, token `gil`: the label "b c" has a space, a comma or a control character
        "#);
    }

    #[test]
    fn a_text_that_is_not_toml_is_refused_with_its_line() {
        let refused = parse("[[tokens]]\nname = 'ada\n").unwrap_err();
        assert_eq!(refused.line, 2, "{refused}");
        assert_eq!(parse("").unwrap(), Loaded::default());
    }

    #[test]
    fn a_misspelt_table_is_reported() {
        let text = format!("[[token]]\nname = 'ada'\nhash = '{HASH}'\n");
        assert_eq!(problems(&text), ["line 1: unknown key `token`: did you mean `tokens`?"]);
        assert!(problems("tokens = 1")[0].contains("[[tokens]]"));
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        std::fs::write(&file, "\n").unwrap();
        assert!(load(&file).unwrap_err().chain().any(|it| it.to_string().contains("is empty")));
        std::fs::write(&file, "# nobody\n").unwrap();
        let set = |mode| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o600);
        assert_eq!(load(&file).unwrap().readable, None);
        set(0o640);
        assert_eq!(load(&file).unwrap().readable, Some(0o640));
        for mode in [0o620, 0o602, 0o666] {
            set(mode);
            let error = load(&file).unwrap_err();
            assert!(format!("{error:#}").contains("others can write"), "{error:#}");
        }
        assert!(load(folder.path()).is_err());
    }
}
