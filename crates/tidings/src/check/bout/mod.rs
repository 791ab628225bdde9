//! A bout: all checks in one era, in an order in which none disturbs the next.

mod caching;
mod caps;
mod caused;
mod crowd;
mod listens;
mod lists;
mod quiet;
mod reads;
mod recovery;
mod rhythm;
mod streams;
mod surface;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tidings_mirror::Era;
use tokio::time::Instant;

use super::Settings;
use super::client::Probe;
use super::client::log::{Via, What};
use super::door::Door;
use super::measure::Measures;
use super::table::CHECKS;
use super::topic::{ItemList, LISTS, Topic, list};
use super::verdict::Findings;
use crate::present::text::one_line;

/// The checks of one era, under way.
pub(crate) struct Bout<'a> {
    door: &'a Door,
    settings: &'a Settings,
    era: Era,
    findings: &'a mut Findings,
    measures: &'a mut Measures,
    progress: &'a dyn Fn(&str),
    /// The first client. It stays connected until the end.
    client: Probe,
    /// What the lists were at the beginning; lists that are not offered are missing.
    listed: BTreeMap<Topic, ItemList>,
    /// Why the stream of a legacy session was refused.
    no_stream: Option<u16>,
    /// A resource whose subscription was accepted although none is advertised.
    undeclared: bool,
    /// Whether two connections get different lists.
    varies: bool,
    /// Whether notices come without end.
    is_stormy: bool,
}

/// What an era offers, to compare it with the other.
#[derive(PartialEq)]
pub(crate) struct Met {
    era: Era,
    flags: BTreeMap<String, bool>,
    names: BTreeMap<Topic, BTreeSet<String>>,
}

impl Met {
    /// What this client is offered.
    pub(crate) async fn of(client: &Probe) -> Self {
        let mut flags = BTreeMap::new();
        for (group, flag) in [
            ("tools", "listChanged"),
            ("prompts", "listChanged"),
            ("resources", "listChanged"),
            ("resources", "subscribe"),
        ] {
            flags.insert(format!("{group}.{flag}"), client.flag(group, flag));
        }
        let mut names = BTreeMap::new();
        for topic in LISTS.iter().filter(|topic| client.offers(topic.group())) {
            if let Ok(listing) = list(client, topic).await {
                names.insert(topic.clone(), listing.keys(topic).into_iter().collect());
            }
        }
        Self { era: client.era, flags, names }
    }

    /// What one era has and the other has not.
    pub(crate) fn differs(&self, other: &Self) -> Option<String> {
        for (flag, value) in &self.flags {
            let theirs = other.flags.get(flag).copied().unwrap_or_default();
            if theirs != *value {
                let (one, two) = (self.era, other.era);
                return Some(format!(
                    "`{flag}` is {value} in the {one} era, {theirs} in the {two}"
                ));
            }
        }
        let nothing = BTreeSet::new();
        for topic in &LISTS {
            let ours = self.names.get(topic).unwrap_or(&nothing);
            let theirs = other.names.get(topic).unwrap_or(&nothing);
            if let Some(name) = ours.difference(theirs).next() {
                return Some(format!("{topic}: `{name}` is only in the {} era", self.era));
            }
            if let Some(name) = theirs.difference(ours).next() {
                return Some(format!("{topic}: `{name}` is only in the {} era", other.era));
            }
        }
        None
    }
}

impl<'a> Bout<'a> {
    pub(crate) fn new(
        door: &'a Door,
        settings: &'a Settings,
        client: Probe,
        findings: &'a mut Findings,
        measures: &'a mut Measures,
        progress: &'a dyn Fn(&str),
    ) -> Self {
        let era = client.era;
        Self {
            door,
            settings,
            era,
            findings,
            measures,
            progress,
            client,
            listed: BTreeMap::new(),
            no_stream: None,
            undeclared: false,
            varies: false,
            is_stormy: false,
        }
    }

    pub(crate) async fn run(&mut self) {
        if self.era == Era::Legacy
            && let Err(status) = self.client.open_stream().await
        {
            self.no_stream = Some(status);
        }
        self.step("listing").await;
        caps::served(self).await;
        lists::run(self).await;
        caps::run(self).await;
        reads::run(self).await;
        caching::run(self).await;
        surface::run(self).await;
        listens::run(self).await;
        if !self.is_over() {
            self.step("listening").await;
            quiet::run(self).await;
        }
        if !self.is_over() {
            caused::run(self).await;
        }
        if !self.is_over() {
            if self.settings.restart.is_some() {
                self.step("restarting").await;
            }
            recovery::run(self).await;
        }
        if self.is_over() {
            for check in CHECKS.iter().filter(|check| check.concerns(self.era)) {
                self.findings.not_tried(check.id, self.era, "the server ended during the run");
            }
        }
    }

    /// Whether a server that is a program has ended.
    fn is_over(&self) -> bool {
        let heard = self.client.log.since(0);
        heard.iter().any(|heard| heard.via == Via::Pipe && matches!(heard.what, What::Ended(_)))
    }

    /// Ends the bout with the checks that end its first client: the name of the server.
    pub(crate) async fn finish(self) -> String {
        let hello = &self.client.hello;
        // Modern servers name themselves in the metadata.
        let info = [&hello["serverInfo"], &hello["_meta"]["io.modelcontextprotocol/serverInfo"]];
        let info = info.into_iter().find(|info| info.is_object()).unwrap_or(&Value::Null);
        let name = info["name"].as_str().unwrap_or("a server without a name");
        let server = one_line(&format!("{name} {}", info["version"].as_str().unwrap_or_default()));
        surface::farewell(self.client, self.era, self.findings).await;
        server.trim().to_owned()
    }

    async fn step(&self, what: &str) {
        (self.progress)(&format!("{}: {what}", self.era));
        tokio::task::yield_now().await;
    }

    /// Another client of the same kind.
    async fn another(&self) -> Result<Probe, String> {
        Probe::connect(self.door, self.era, json!({})).await
    }

    /// The time after which a notice of what was done before has come.
    fn pause(&self) -> Duration {
        let slowest = self.measures.slowest() + self.measures.slowest() / 2;
        self.settings.settle.max(slowest.min(self.settings.within))
    }

    /// Waits until nothing arrives any more, for a bounded time.
    async fn settle(&self) {
        let end = Instant::now() + self.settings.within;
        loop {
            let (mark, deadline) = (self.client.log.mark(), Instant::now() + self.pause());
            let heard = self.client.log.wait(mark, deadline, |heard| heard.notice().is_some());
            if heard.await.is_none() || Instant::now() >= end {
                return;
            }
        }
    }

    /// The lists that are offered.
    fn offered(&self) -> Vec<Topic> {
        LISTS.iter().filter(|topic| self.client.offers(topic.group())).cloned().collect()
    }

    /// Some of the listed resources.
    fn some_uris(&self, most: usize) -> Vec<String> {
        let resources = self.listed.get(&Topic::Resources);
        let keys = resources.map(|listing| listing.keys(&Topic::Resources)).unwrap_or_default();
        keys.into_iter().filter(|uri| !uri.is_empty()).take(most).collect()
    }

    /// Lists everything that is offered, for later comparison.
    async fn list_all(&mut self) {
        for topic in self.offered() {
            if let Ok(listing) = list(&self.client, &topic).await {
                self.listed.insert(topic, listing);
            }
        }
    }
}
