//! A hub of this process: who listens to what, and the ledger of every change with its outcome.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Value, json};
use tidings_server::{Event, HealthState, Hub, ListenerInfo, Outcome, SourceInfo, Transport};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::console::log::millis;
use crate::console::revisions::Revisions;

/// The key of the hub.
pub(crate) const KEY: &str = "hub";
/// The rows of the ledger.
const ROWS: usize = 500;
/// Listeners, sources and watched URIs in one answer; further ones are counted.
const SHOWN: usize = 200;
/// URIs and lists whose merged changes are not in a row yet.
const OPEN: usize = 10_000;
/// The shortest time between two looks: each visits every listener.
const EVERY: Duration = Duration::from_millis(250);

/// A hub that is looked at.
pub(crate) struct HubView {
    /// The server of the console that is this hub.
    pub(crate) server: u64,
    hub: Hub,
    ledger: Mutex<Ledger>,
    /// The last answer, with its revision and time: a look visits every listener, so viewers share
    /// it.
    last: Mutex<Option<(u64, Instant, Value)>>,
    revisions: Arc<Revisions>,
}

/// What became of every change. Written by [`HubView::follow`].
#[derive(Debug, Default)]
struct Ledger {
    rows: VecDeque<LedgerRow>,
    /// Merged changes that no row has yet.
    merged: HashMap<String, u64>,
    totals: Totals,
}

/// Exact counts since the console started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Totals {
    changes: u64,
    /// Notices for listeners.
    notices: u64,
    merged: u64,
    equal: u64,
    unfollowed: u64,
    withheld: u64,
    /// Events that came faster than they were read.
    missed: u64,
}

/// One change, or several in a row with the same outcome.
#[derive(Clone, Debug, Serialize)]
struct LedgerRow {
    n: u64,
    at: f64,
    what: String,
    became: &'static str,
    /// The listeners that are notified, or are not because of their protocol revision.
    listeners: usize,
    merged: u64,
    times: u64,
}

impl Ledger {
    fn hear(&mut self, event: &Event, at: SystemTime) {
        let Event::Change { what, outcome } = event else { return };
        let (became, listeners) = match *outcome {
            Outcome::Merged => {
                self.totals.changes += 1;
                self.totals.merged += 1;
                if self.merged.len() < OPEN || self.merged.contains_key(what) {
                    *self.merged.entry(what.clone()).or_default() += 1;
                }
                return;
            }
            Outcome::Announced(listeners) => {
                self.totals.notices += listeners as u64;
                ("announced", listeners)
            }
            Outcome::Equal => ("equal", 0),
            Outcome::NotFollowed => ("unfollowed", 0),
            Outcome::Withheld(listeners) => ("withheld", listeners),
            _ => return,
        };
        match became {
            "equal" => self.totals.equal += 1,
            "unfollowed" => self.totals.unfollowed += 1,
            "withheld" => self.totals.withheld += 1,
            _ => {}
        }
        // A list that is announced to some is withheld from others: one change, two rows.
        self.totals.changes += u64::from(became != "withheld");
        let merged = if became == "withheld" { 0 } else { self.merged.remove(what).unwrap_or(0) };
        self.push(LedgerRow {
            n: 0,
            at: millis(at),
            what: what.clone(),
            became,
            listeners,
            merged,
            times: 1,
        });
    }

    fn push(&mut self, mut row: LedgerRow) {
        let last = self.rows.back_mut();
        let number = last.as_ref().map_or(0, |last| last.n);
        if let Some(last) = last
            && (&last.what, last.became, last.listeners) == (&row.what, row.became, row.listeners)
        {
            last.times += 1;
            last.merged += row.merged;
            last.at = row.at;
            return;
        }
        row.n = number + 1;
        self.rows.push_back(row);
        if self.rows.len() > ROWS {
            self.rows.pop_front();
        }
    }
}

impl HubView {
    pub(crate) fn new(server: u64, hub: Hub, revisions: Arc<Revisions>) -> Self {
        Self { server, hub, ledger: Mutex::default(), last: Mutex::default(), revisions }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the events of the hub until it ends. Viewers are woken at the first, and again when
    /// the notices that it led to had time to be sent.
    pub(crate) async fn follow(self: Arc<Self>, cancel: CancellationToken) {
        let mut events = self.hub.events();
        let mut due = None;
        loop {
            let look = tokio::time::sleep_until(due.unwrap_or_else(Instant::now));
            tokio::select! {
                () = cancel.cancelled() => return,
                () = look, if due.is_some() => {
                    due = None;
                    self.revisions.touch(&[KEY]);
                }
                event = events.recv() => {
                    match event {
                        Ok(event) => self.ledger().hear(&event, SystemTime::now()),
                        Err(RecvError::Lagged(missed)) => self.ledger().totals.missed += missed,
                        Err(RecvError::Closed) => return,
                    }
                    if due.is_none() {
                        due = Some(Instant::now() + EVERY);
                        self.revisions.touch(&[KEY]);
                    }
                }
            }
        }
    }

    /// The hub as it was at its last revision, and its ledger, newest row first.
    pub(crate) fn json(&self) -> Value {
        let revision = self.revisions.of(KEY);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((seen, at, value)) if *seen == revision && at.elapsed() < EVERY => value.clone(),
            _ => last.insert((revision, Instant::now(), self.look())).2.clone(),
        }
    }

    fn look(&self) -> Value {
        let seen = self.hub.inspect();
        let modern = seen.listeners.iter().filter(|it| it.is_modern).count();
        let subscriptions: usize = seen.watched.iter().map(|it| it.listeners).sum();
        let watched = seen.watched.iter().take(SHOWN).map(|it| {
            json!({ "uri": it.uri.as_ref() as &str, "listeners": it.listeners, "changes": it.changes })
        });
        let ledger = self.ledger();
        json!({
            "server": self.server, "totals": ledger.totals, "subscriptions": subscriptions,
            "sources": seen.sources.iter().take(SHOWN).map(source).collect::<Vec<_>>(),
            "listening": seen.listeners.len(), "modern": modern,
            "listeners": seen.listeners.iter().take(SHOWN).map(listener).collect::<Vec<_>>(),
            "uris": seen.watched.len(), "watched": watched.collect::<Vec<_>>(),
            "ledger": ledger.rows.iter().rev().take(SHOWN).collect::<Vec<_>>(),
        })
    }
}

fn source(it: &SourceInfo) -> Value {
    let state = match it.health.state {
        HealthState::Good => "good",
        HealthState::Degraded => "degraded",
        HealthState::Failing => "failing",
    };
    let again = it.health.again_in.map(|it| it.as_millis());
    json!({ "name": it.name, "items": it.items, "state": state, "words": it.health.words, "again": again })
}

fn listener(it: &ListenerInfo) -> Value {
    let over = match it.transport {
        Transport::Stdio => "stdio",
        _ => "HTTP",
    };
    let since = SystemTime::now().checked_sub(it.since.elapsed()).map(millis);
    json!({
        "id": it.id, "client": it.client, "era": if it.is_modern { "modern" } else { "legacy" },
        "over": over, "since": since, "waiting": it.waiting, "told": it.told,
        "labels": it.labels.to_string(), "uris": it.uris.len(),
        "lists": it.lists.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "follows": it.uris.iter().take(20).map(ToString::to_string).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(what: &str, outcome: Outcome) -> Event {
        Event::Change { what: what.to_owned(), outcome }
    }

    #[test]
    fn merged_changes_are_in_the_row_of_the_change_that_took_them_along() {
        let mut ledger = Ledger::default();
        for event in [
            change("a:b", Outcome::Merged),
            change("a:b", Outcome::Merged),
            change("a:c", Outcome::Equal),
            change("a:b", Outcome::Announced(3)),
            change("a:b", Outcome::Announced(3)),
            change("tools", Outcome::Withheld(1)),
        ] {
            ledger.hear(&event, SystemTime::UNIX_EPOCH);
        }
        let row = |it: &LedgerRow| (it.what.clone(), it.became, it.listeners, it.merged, it.times);
        let rows: Vec<_> = ledger.rows.iter().map(row).collect();
        assert_eq!(
            rows,
            [
                ("a:c".to_owned(), "equal", 0, 0, 1),
                ("a:b".to_owned(), "announced", 3, 2, 2),
                ("tools".to_owned(), "withheld", 1, 0, 1),
            ]
        );
        let totals = Totals {
            changes: 5,
            notices: 6,
            merged: 2,
            equal: 1,
            withheld: 1,
            ..Totals::default()
        };
        assert_eq!(ledger.totals, totals);
    }

    #[test]
    fn the_ledger_keeps_the_newest_rows_and_counts_all() {
        let mut ledger = Ledger::default();
        for number in 0..ROWS + 10 {
            ledger.hear(&change(&format!("a:{number}"), Outcome::Equal), SystemTime::UNIX_EPOCH);
        }
        assert_eq!((ledger.rows.len(), ledger.rows[0].n), (ROWS, 11));
        assert_eq!(ledger.totals.changes, ROWS as u64 + 10);
    }

    #[tokio::test]
    async fn the_view_shows_sources_and_what_became_of_a_change() {
        let hub = Hub::new("test", "1");
        hub.source("notes").unwrap().resource("notes://all", "All", || "none").unwrap();
        let revisions: Arc<Revisions> = Arc::default();
        let view = Arc::new(HubView::new(1, hub.clone(), revisions.clone()));
        let cancel = CancellationToken::new();
        let following = view.clone().follow(cancel.clone());
        let looking = async {
            let before = revisions.last();
            // The events are followed from the first poll on.
            tokio::task::yield_now().await;
            hub.changed("notes://all").unwrap();
            revisions.changed(before).await;
            cancel.cancel();
        };
        tokio::join!(following, looking);
        let json = view.json();
        assert_eq!(json["sources"][0]["items"], 1, "{json}");
        let became = |row: &Value| row["what"] == "notes://all" && row["became"] == "unfollowed";
        assert!(json["ledger"].as_array().unwrap().iter().any(became), "{json}");
    }
}
