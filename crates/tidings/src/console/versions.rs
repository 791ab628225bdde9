//! Versions of resources: every content that was read, with when, why and how it differs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tidings_mirror::cache::ResourceContent;
use tidings_mirror::events::Cause;
use tidings_mirror::model::ResourceContents;

use crate::console::archive::{span, time};
use crate::console::difference::{self, Difference};
use crate::console::log::millis;
use crate::console::markdown;

/// The most versions of one resource.
const VERSIONS: usize = 50;
/// The most bytes of the versions of one resource.
const BYTES: usize = 8 << 20;
/// The most resources that were read and are not watched.
const READ: usize = 100;
/// The most bytes of a content that is sent at once.
const SHOWN: usize = 256 << 10;

/// The resources whose contents are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    resources: HashMap<Arc<str>, History>,
    /// The unwatched ones, the longest unread first.
    read: VecDeque<Arc<str>>,
    /// Why resources are not watched that should be.
    refused: BTreeMap<Arc<str>, Arc<str>>,
}

/// The versions of one resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    versions: VecDeque<Version>,
    bytes: usize,
    /// The number of the last version.
    last: u64,
    is_watched: bool,
    gone: Option<Arc<str>>,
    /// Notices for it, reads that followed one, and changes that such a read found.
    notices: u64,
    reads: u64,
    changes: u64,
}

/// One content.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    number: u64,
    at: SystemTime,
    content: Arc<ResourceContent>,
    text: Arc<str>,
    added: usize,
    removed: usize,
    cause: Cause,
    /// From the notice to the content.
    delay: Option<Duration>,
}

/// What a new content means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VersionStep {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

impl Versions {
    /// A resource was read. Returns the step, if the content differs.
    pub(crate) fn read(
        &mut self,
        uri: &Arc<str>,
        content: &Arc<ResourceContent>,
        cause: Cause,
        noticed: Option<SystemTime>,
    ) -> Option<VersionStep> {
        let history = self.resources.entry(uri.clone()).or_default();
        let step = history.add(content, cause, noticed);
        if !history.is_watched {
            self.read.retain(|other| other != uri);
            self.read.push_back(uri.clone());
            if self.read.len() > READ
                && let Some(oldest) = self.read.pop_front()
            {
                self.resources.remove(&oldest);
            }
        }
        step
    }

    /// The server announced a resource.
    pub(crate) fn announced(&mut self, uri: &str) {
        if let Some(history) = self.resources.get_mut(uri) {
            history.notices += 1;
        }
    }

    /// A read that followed a notice was answered.
    pub(crate) fn reread(&mut self, uri: &str) {
        if let Some(history) = self.resources.get_mut(uri) {
            history.reads += 1;
        }
    }

    pub(crate) fn gone(&mut self, uri: &str, reason: &Arc<str>) {
        if let Some(history) = self.resources.get_mut(uri) {
            history.gone = Some(reason.clone());
        }
    }

    /// Takes the set of watched resources.
    pub(crate) fn watch<'a>(&mut self, uris: impl Iterator<Item = &'a Arc<str>>) {
        let watched: BTreeSet<_> = uris.cloned().collect();
        for (uri, history) in &mut self.resources {
            if history.is_watched && !watched.contains(uri) {
                history.is_watched = false;
                self.read.push_back(uri.clone());
            }
        }
        for uri in watched {
            self.read.retain(|other| *other != uri);
            self.refused.remove(&uri);
            self.resources.entry(uri).or_default().is_watched = true;
        }
    }

    pub(crate) fn refuse(&mut self, uri: &str, reason: &str) {
        self.refused.insert(uri.into(), reason.into());
        while self.refused.len() > READ {
            self.refused.pop_first();
        }
    }

    /// Forgets a resource that is not watched any more.
    pub(crate) fn forget(&mut self, uri: &str) {
        self.refused.remove(uri);
        self.read.retain(|other| **other != *uri);
        self.resources.remove(uri);
    }

    /// The watched resources as rows.
    pub(crate) fn watched(&self) -> Value {
        let mut rows: Vec<_> = self
            .resources
            .iter()
            .filter(|(_, history)| history.is_watched)
            .map(|(uri, history)| (uri.clone(), history.row(uri)))
            .collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        let refused: Vec<_> =
            self.refused.iter().map(|(uri, why)| json!({ "uri": uri, "why": why })).collect();
        let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
        json!({ "rows": rows, "refused": refused })
    }

    /// Everything, as lines of a file.
    pub(crate) fn saved(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for (uri, history) in &self.resources {
            lines.push(json!({
                "resource": uri, "watched": history.is_watched, "gone": history.gone,
                "notices": history.notices, "reads": history.reads, "changes": history.changes,
            }));
            for version in &history.versions {
                let mut line = version.json();
                line["version"] = line["n"].take();
                line["of"] = (&**uri).into();
                line["result"] = version.content.raw();
                lines.push(line);
            }
        }
        lines
    }

    /// Takes such a line.
    pub(crate) fn restore(&mut self, line: &Value) -> Result<(), String> {
        let count = |name: &str| line[name].as_u64().unwrap_or(0);
        if let Some(uri) = line["resource"].as_str() {
            let history = self.resources.entry(uri.into()).or_default();
            history.is_watched = line["watched"] == true;
            history.gone = line["gone"].as_str().map(Into::into);
            history.notices = count("notices");
            (history.reads, history.changes) = (count("reads"), count("changes"));
            return Ok(());
        }
        let uri = line["of"].as_str().ok_or("the URI of the version is missing")?;
        let history = self.resources.get_mut(uri);
        let history = history.ok_or_else(|| format!("`{uri}` has no line before its version"))?;
        let number = count("version");
        if number <= history.last {
            return Err(format!("version {number} of `{uri}` follows {}", history.last));
        }
        let content = ResourceContent::parse(&line["result"].to_string());
        let content = content.map_err(|error| format!("the content of `{uri}`: {error}"))?;
        let places = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let text: Arc<str> = shown(&content).into();
        (history.last, history.bytes) = (number, history.bytes + text.len());
        history.versions.push_back(Version {
            number,
            at: time(line["at"].as_f64().unwrap_or_default()),
            content: Arc::new(content),
            text,
            added: places(count("added")),
            removed: places(count("removed")),
            cause: match line["cause"].as_str() {
                Some("notice") => Cause::Notice,
                Some("resync") => Cause::Resync,
                Some("returned") => Cause::Returned,
                _ => Cause::Asked,
            },
            delay: line["delay"].as_f64().and_then(span),
        });
        history.shrink();
        Ok(())
    }

    pub(crate) fn of(&self, uri: &str) -> Option<&History> {
        self.resources.get(uri)
    }

    pub(crate) fn watched_uris(&self) -> BTreeSet<String> {
        let watched = self.resources.iter().filter(|(_, history)| history.is_watched);
        watched.map(|(uri, _)| uri.to_string()).collect()
    }

    pub(crate) fn watched_count(&self) -> usize {
        self.resources.values().filter(|history| history.is_watched).count()
    }
}

impl History {
    fn add(
        &mut self,
        content: &Arc<ResourceContent>,
        cause: Cause,
        noticed: Option<SystemTime>,
    ) -> Option<VersionStep> {
        self.gone = None;
        let text: Arc<str> = shown(content).into();
        let before = self.versions.back();
        if before.is_some_and(|before| before.content.contents == content.contents) {
            return None;
        }
        let (added, removed) = match before {
            Some(before) => {
                let difference = difference::between(&before.text, &text);
                (difference.added, difference.removed)
            }
            None => (0, 0),
        };
        let from = before.map_or(0, |before| before.number);
        self.changes += u64::from(cause == Cause::Notice);
        self.last += 1;
        self.bytes += text.len();
        let (number, at) = (self.last, SystemTime::now());
        let delay = noticed.and_then(|noticed| at.duration_since(noticed).ok());
        let content = content.clone();
        self.versions.push_back(Version {
            number,
            at,
            content,
            text,
            added,
            removed,
            cause,
            delay,
        });
        self.shrink();
        Some(VersionStep { from, to: number, added, removed })
    }

    fn shrink(&mut self) {
        while self.versions.len() > VERSIONS || (self.bytes > BYTES && self.versions.len() > 1) {
            let Some(oldest) = self.versions.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
    }

    fn row(&self, uri: &str) -> Value {
        let last = self.versions.back();
        let times: Vec<_> = self.versions.iter().skip(1).map(|it| millis(it.at)).collect();
        json!({
            "uri": uri, "version": self.last, "at": last.map(|last| millis(last.at)),
            "times": times, "gone": self.gone,
        })
    }

    /// All versions, and the newest difference.
    pub(crate) fn json(&self, uri: &str) -> Value {
        let versions: Vec<_> = self.versions.iter().map(Version::json).collect();
        let last = self.versions.back();
        let mime = last.and_then(|last| mime(&last.content));
        let newest = last.map(|last| last.number);
        json!({
            "uri": uri, "versions": versions, "watched": self.is_watched, "gone": self.gone,
            "mime": mime, "bytes": last.map(|last| last.text.len()),
            "changes": self.last.saturating_sub(1), "notices": self.notices,
            "merged": self.notices.saturating_sub(self.reads),
            "spurious": self.reads.saturating_sub(self.changes),
            "diff": newest.and_then(|newest| self.difference(newest - 1, newest)),
        })
    }

    fn version(&self, number: u64) -> Option<&Version> {
        self.versions.iter().find(|version| version.number == number)
    }

    /// The difference of two versions; `None` if one of them is not kept.
    pub(crate) fn difference(&self, old: u64, new: u64) -> Option<Difference> {
        Some(difference::between(&self.version(old)?.text, &self.version(new)?.text))
    }

    /// The text of a version; 0 is the newest.
    pub(crate) fn content(&self, number: u64) -> Option<Value> {
        let number = if number == 0 { self.last } else { number };
        let version = self.version(number)?;
        let mut end = version.text.len().min(SHOWN);
        while !version.text.is_char_boundary(end) {
            end -= 1;
        }
        let mime = mime(&version.content);
        let is_markdown = markdown::is_markdown(mime.as_deref());
        Some(json!({
            "nodes": is_markdown.then(|| markdown::nodes(&version.text)),
            "version": number, "text": version.text[..end], "bytes": version.text.len(),
            "cut": end < version.text.len(), "mime": mime,
        }))
    }

    /// The whole result of a version; 0 is the newest.
    pub(crate) fn raw(&self, number: u64) -> Option<Value> {
        let number = if number == 0 { self.last } else { number };
        Some(self.version(number)?.content.raw())
    }
}

impl Version {
    fn json(&self) -> Value {
        json!({
            "n": self.number, "at": millis(self.at), "bytes": self.text.len(),
            "added": self.added, "removed": self.removed, "cause": self.cause,
            "delay": self.delay.map(|delay| delay.as_secs_f64() * 1e3),
        })
    }
}

fn mime(content: &ResourceContent) -> Option<String> {
    content.contents.first().and_then(|content| match content {
        ResourceContents::TextResourceContents { mime_type, .. }
        | ResourceContents::BlobResourceContents { mime_type, .. } => mime_type.clone(),
        _ => None,
    })
}

/// A content as lines. JSON in one line is written over several, so that a difference is small.
fn shown(content: &ResourceContent) -> String {
    let each = content.contents.iter().map(|content| match content {
        ResourceContents::TextResourceContents { text, .. } => pretty(text),
        ResourceContents::BlobResourceContents { blob, .. } => {
            format!("binary, {} bytes as base64\n", blob.len())
        }
        _ => "a kind of content that is not known\n".to_owned(),
    });
    each.collect::<Vec<_>>().join("\n")
}

fn pretty(text: &str) -> String {
    let is_json = text.starts_with(['{', '[']) && text.lines().count() <= 1;
    let value = if is_json { serde_json::from_str::<Value>(text).ok() } else { None };
    match value.and_then(|value| serde_json::to_string_pretty(&value).ok()) {
        Some(pretty) => pretty,
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(versions: &mut Versions, text: &str, cause: Cause) -> Option<VersionStep> {
        let content = Arc::new(ResourceContent::of_text("a:b", text));
        versions.read(&"a:b".into(), &content, cause, None)
    }

    #[test]
    fn each_content_that_differs_is_a_version() {
        let mut versions = Versions::default();
        versions.watch([&Arc::from("a:b")].into_iter());
        assert_eq!(read(&mut versions, "one\n", Cause::Asked).unwrap().to, 1);
        assert_eq!(read(&mut versions, "one\n", Cause::Asked), None);
        versions.announced("a:b");
        versions.announced("a:b");
        versions.reread("a:b");
        let step = read(&mut versions, "one\ntwo\n", Cause::Notice).unwrap();
        assert_eq!(step, VersionStep { from: 1, to: 2, added: 1, removed: 0 });
        versions.announced("a:b");
        versions.reread("a:b");
        let json = versions.of("a:b").unwrap().json("a:b");
        assert_eq!((&json["merged"], &json["spurious"]), (&1.into(), &1.into()));
        assert_eq!(json["diff"]["hunks"][0]["lines"][1]["parts"][0][1], "two");
        assert_eq!(versions.watched()["rows"][0]["version"], 2);
    }

    #[test]
    fn old_versions_and_resources_are_dropped() {
        let mut versions = Versions::default();
        for number in 0..VERSIONS + 5 {
            read(&mut versions, &number.to_string(), Cause::Asked);
        }
        let history = versions.of("a:b").unwrap();
        assert_eq!(history.versions.len(), VERSIONS);
        assert!(history.content(1).is_none() && history.difference(1, 55).is_none());
        assert_eq!(history.content(0).unwrap()["text"], "54");
        let content = Arc::new(ResourceContent::of_text("c", "x"));
        for number in 0..READ {
            versions.read(&format!("c:{number}").into(), &content, Cause::Asked, None);
        }
        assert!(versions.of("a:b").is_none(), "it was read the longest ago");
    }

    #[test]
    fn json_in_one_line_is_compared_line_by_line() {
        let mut versions = Versions::default();
        read(&mut versions, r#"{"a":1,"b":2}"#, Cause::Asked);
        let step = read(&mut versions, r#"{"a":1,"b":3}"#, Cause::Asked).unwrap();
        assert_eq!((step.added, step.removed), (1, 1));
    }
}
