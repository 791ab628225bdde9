//! `tidings check`: judges how a server keeps its clients current.
//!
//! `table` has the checks. A *bout* runs them in one era: each file of `bout/` has one group. Clients
//! (`client/`) see the wire as it is; `door` is the way to the server; `cause` makes changes.

pub(crate) mod bout;
pub(crate) mod cause;
pub(crate) mod client;
pub(crate) mod door;
pub(crate) mod edits;
pub(crate) mod measure;
pub(crate) mod output;
pub(crate) mod table;
pub(crate) mod topic;
pub(crate) mod verdict;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidings_mirror::Era;
use tokio::time::Instant;

use self::bout::{Bout, Met};
use self::cause::{Cause, Restart};
use self::client::Probe;
use self::door::Door;
use self::measure::Measures;
use self::topic::Topic;
use self::verdict::{Finding, Findings, SPENT, Verdict};

/// What a run may do.
pub(crate) struct Settings {
    pub(crate) eras: Vec<Era>,
    /// The longest a notice may take.
    pub(crate) within: Duration,
    /// How long it is quiet between two steps.
    pub(crate) settle: Duration,
    /// How long nothing is done but listening.
    pub(crate) quiet: Duration,
    /// Caused changes whose latency is measured.
    pub(crate) rounds: usize,
    /// Changes while a client does not read, at most.
    pub(crate) flood: usize,
    /// How long a subscriber stays idle.
    pub(crate) idle: Option<Duration>,
    pub(crate) cause: Option<Cause>,
    /// What the change moves; found by comparing if empty.
    pub(crate) expects: Vec<Topic>,
    pub(crate) restart: Option<Restart>,
    /// A token of somebody else.
    pub(crate) other_token: Option<String>,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Report {
    /// The server, as it calls itself.
    pub(crate) server: String,
    /// The eras that were asked for and that the server does not speak, and what it answered.
    pub(crate) unspoken: Vec<(Era, String)>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) measures: Measures,
    pub(crate) requests: usize,
    pub(crate) elapsed: Duration,
    /// The most requests and the longest time that the run might take.
    pub(crate) most: (usize, Duration),
    /// Whether the run ended because its budget was used up.
    pub(crate) is_cut_short: bool,
}

impl Report {
    /// The eras that were judged.
    pub(crate) fn eras(&self) -> BTreeSet<String> {
        let is_spoken = |era: &Era| self.unspoken.iter().all(|(unspoken, _)| unspoken != era);
        let eras = self.findings.iter().filter_map(|finding| finding.era).filter(is_spoken);
        eras.map(|era| era.to_string()).collect()
    }
}

/// Runs every check. `progress` is told what is being done.
///
/// # Errors
///
/// If the server cannot be reached in any era.
pub(crate) async fn run(
    door: &Door,
    settings: &Settings,
    progress: &dyn Fn(&str),
) -> Result<Report, String> {
    let began = Instant::now();
    let mut findings = Findings::new(door.trace.clone(), door.meter.clone());
    let mut measures = Measures::default();
    let mut server = None;
    let mut unspoken = Vec::new();
    let mut known = None;
    if let [Era::Legacy, Era::Modern] = settings.eras.as_slice() {
        progress("comparing the eras");
        known = agree(door, &mut findings).await;
    }
    for era in &settings.eras {
        progress(&format!("{era}: connecting"));
        let connected = match known.take_if(|(refused, _)| refused == era) {
            Some((_, why)) => Err(why),
            None => Probe::connect(door, *era, serde_json::json!({})).await,
        };
        match connected {
            Ok(client) => {
                let mut bout =
                    Bout::new(door, settings, client, &mut findings, &mut measures, progress);
                bout.run().await;
                server.get_or_insert(bout.finish().await);
            }
            // Then it was not asked.
            Err(_) if door.meter.is_spent() => {}
            Err(why) => {
                let said = format!("the server does not speak the {era} era: {why}");
                for check in table::CHECKS.iter().filter(|check| check.concerns(*era)) {
                    if check.id != AGREE {
                        findings.not_offered(check.id, *era, said.clone());
                    }
                }
                unspoken.push((*era, why));
            }
        }
    }
    let Some(server) = server else { return Err(refusals(&unspoken)) };
    Ok(Report {
        server,
        unspoken,
        findings: findings.finish(&settings.eras),
        measures,
        requests: door.meter.requests.load(Ordering::Relaxed),
        elapsed: began.elapsed(),
        most: (door.meter.most_requests, door.meter.deadline.saturating_duration_since(began)),
        is_cut_short: door.meter.is_spent(),
    })
}

/// Why no era is spoken.
fn refusals(unspoken: &[(Era, String)]) -> String {
    match unspoken {
        // A server that cannot be reached has the same reason in both.
        [(_, first), rest @ ..] if rest.iter().all(|(_, why)| why == first) => first.clone(),
        [] => SPENT.to_owned(),
        _ => {
            unspoken.iter().map(|(era, why)| format!("{era}: {why}")).collect::<Vec<_>>().join("; ")
        }
    }
}

/// The check that compares the eras.
const AGREE: &str = "caps.eras-agree";
/// How often the eras are compared before a server counts as changing by itself.
const TRIES: usize = 3;

/// `caps.eras-agree`, before anything is changed. The first era that is refused, and why.
async fn agree(door: &Door, findings: &mut Findings) -> Option<(Era, String)> {
    findings.begin();
    let mut difference = None;
    for _ in 0..TRIES {
        // One after the other: a program may refuse to run twice.
        let mut offers = Vec::new();
        for era in [Era::Legacy, Era::Modern, Era::Legacy] {
            match met(door, era).await {
                Ok(offer) => offers.push(offer),
                Err(_) if door.meter.is_spent() => return None,
                Err(why) => {
                    findings.across(AGREE, Verdict::NotOffered, "the server speaks one era");
                    return Some((era, why));
                }
            }
        }
        let [before, modern, after] = offers.as_slice() else { return None };
        difference = before.differs(modern);
        // A list that moved meanwhile says nothing.
        if difference.is_none() || before == after {
            break;
        }
    }
    match difference {
        Some(difference) => findings.across(AGREE, Verdict::Fail, difference),
        None => findings.across(AGREE, Verdict::Pass, "both eras offer the same lists and flags"),
    }
    None
}

/// What a client of this era is offered.
async fn met(door: &Door, era: Era) -> Result<Met, String> {
    let client = Probe::connect(door, era, serde_json::json!({})).await?;
    let met = Met::of(&client).await;
    client.end().await;
    Ok(met)
}
