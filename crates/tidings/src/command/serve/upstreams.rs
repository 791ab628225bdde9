//! The upstream servers of a running server: joined to the hub, changed, reported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_mirror::Target;
use tidings_server::model::Resource;
use tidings_server::{Hub, Offer};
use tidings_upstream::{Config, Name, Neighbours, Start, State, Status, Upstream};
use tokio::time::MissedTickBehavior;

use super::plan::{Plan, PlannedUpstream};
use super::printer::Printer;
use crate::command::upstream::remedy;
use crate::feeds::data_home;
use crate::present::text::count;
use crate::target;

/// The resource that reports all upstreams.
pub(crate) const RESOURCE: &str = "tidings://upstreams";
/// The source of that resource. No upstream can have this name.
const SOURCE: &str = "list of upstreams";
/// How often the states are compared with the last ones printed.
const LOOK: Duration = Duration::from_millis(250);

/// How long a client over stdio waits for the lists of upstreams. Many hosts list once, at their
/// start, and wait for a server much longer than this.
const FIRST_LISTS: Duration = Duration::from_secs(5);

/// All upstreams. Cloning is cheap, and all clones are the same upstreams.
#[derive(Clone)]
pub(super) struct Upstreams {
    hub: Hub,
    neighbours: Neighbours,
    running: Arc<Mutex<BTreeMap<String, Upstream>>>,
}

impl Upstreams {
    /// The upstreams of a plan, joined to a hub.
    pub(super) async fn of(plan: &Plan, hub: &Hub) -> Result<Self> {
        let neighbours = Neighbours::default();
        let upstreams = Self { hub: hub.clone(), neighbours, running: Arc::default() };
        for planned in &plan.upstreams {
            upstreams.add(planned).await?;
        }
        Ok(upstreams)
    }

    /// Waits until every upstream offers its lists or could not be reached, up to a limit.
    pub(super) async fn settled(&self) {
        let running: Vec<_> = self.lock().values().cloned().collect();
        let settling = async {
            for upstream in &running {
                upstream.settled().await;
            }
        };
        // Those that take longer announce their lists when they have them.
        let _ = tokio::time::timeout(FIRST_LISTS, settling).await;
    }

    /// Serves an upstream. It need not be reachable.
    pub(super) async fn add(&self, planned: &PlannedUpstream) -> Result<()> {
        let config = self.config(planned)?;
        let upstream = Upstream::join(&self.hub, config).await;
        let upstream = upstream.with_context(|| format!("serving `{}`", planned.name))?;
        let is_first = {
            let mut running = self.lock();
            running.insert(planned.name.to_string(), upstream);
            running.len() == 1
        };
        if is_first { self.offer_list() } else { Ok(()) }
    }

    /// Serves an upstream no longer.
    pub(super) fn remove(&self, name: &Name) {
        self.hub.remove(name.as_str());
        let is_last = {
            let mut running = self.lock();
            running.remove(name.as_str());
            running.is_empty()
        };
        if is_last {
            self.hub.remove(SOURCE);
        }
    }

    /// Offers a running upstream in another way.
    pub(super) fn adjust(&self, planned: &PlannedUpstream) -> Result<()> {
        let config = self.config(planned)?;
        if let Some(upstream) = self.named(planned.name.as_str()) {
            upstream.adjust(config);
        }
        Ok(())
    }

    /// The upstream of this name.
    pub(super) fn named(&self, name: &str) -> Option<Upstream> {
        self.lock().get(name).cloned()
    }

    /// How all upstreams are, by name.
    pub(super) fn statuses(&self) -> Vec<Status> {
        let running: Vec<_> = self.lock().values().cloned().collect();
        running.iter().map(Upstream::status).collect()
    }

    fn config(&self, planned: &PlannedUpstream) -> Result<Config> {
        let name = &planned.name;
        let mut target =
            target::of_entry(&planned.entry()).with_context(|| format!("upstream `{name}`"))?;
        if let (Target::Http(http), Some(file)) = (&mut target, &planned.table.token_file) {
            http.token = Some(target::token_in(file.clone()));
        }
        let mut config = Config::new(name.clone(), target);
        planned.table.apply(&mut config).with_context(|| format!("upstream `{name}`"))?;
        let file = |ending: &str| -> Result<PathBuf> {
            let home = data_home().context("the home directory is unknown: set HOME")?;
            let directory = home.join("tidings/upstream");
            std::fs::create_dir_all(&directory)
                .with_context(|| format!("creating `{}`", directory.display()))?;
            Ok(directory.join(format!("{name}.{ending}")))
        };
        if planned.table.pin {
            config.pin = Some(file("pins.json")?);
        }
        if planned.table.is_lazy() {
            config.start = Start::Lazy(file("lists.json")?);
        }
        config.neighbours = self.neighbours.clone();
        config.rank = planned.rank;
        Ok(config)
    }

    fn offer_list(&self) -> Result<()> {
        let running = self.running.clone();
        let read = move || {
            let running = running.lock().unwrap_or_else(PoisonError::into_inner);
            let statuses: Vec<_> = running.values().map(Upstream::status).collect();
            serde_json::to_string(&statuses).expect("texts and numbers are JSON")
        };
        let offer = Offer::<Resource>::resource(RESOURCE, "upstreams", read)
            .title("Upstream servers")
            .description("The servers behind this one: state, reason, next try and counts of each.")
            .mime_type("application/json");
        let shelf = self.hub.source(SOURCE).context("offering the list of upstreams")?;
        shelf.add(offer).map(drop).context("offering the list of upstreams")
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Upstream>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line whenever an upstream comes up or goes down; never ends.
    pub(super) async fn report(&self, printer: &Printer) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = BTreeMap::<String, (String, u64)>::new();
        loop {
            looks.tick().await;
            let statuses = self.statuses();
            told.retain(|name, _| statuses.iter().any(|status| status.name == *name));
            let mut has_moved = false;
            for status in &statuses {
                // One that was lost and is back already says so too.
                let Some(words) = words(status) else { continue };
                let now = (words, status.connections);
                if told.get(&status.name) != Some(&now) {
                    printer.change("upstream", &format!("{}: {}", status.name, now.0));
                    told.insert(status.name.clone(), now);
                    has_moved = true;
                }
            }
            if has_moved {
                self.hub.changed(RESOURCE).expect("the resource is a URI");
            }
        }
    }
}

/// The state of an upstream, for its line; `None` while it is being connected to.
fn words(status: &Status) -> Option<String> {
    let offers = || {
        let kinds = [
            (status.tools, "tool", "tools"),
            (status.prompts, "prompt", "prompts"),
            (status.resources, "resource", "resources"),
            (status.templates, "template", "templates"),
        ];
        let kinds = kinds.iter().filter(|(number, ..)| *number > 0);
        let kinds: Vec<_> = kinds.map(|(number, one, many)| count(*number, one, many)).collect();
        if kinds.is_empty() { "nothing offered".to_owned() } else { kinds.join(", ") }
    };
    let failure = serde_json::to_value(status.failure).unwrap_or_default();
    let to_do = failure.as_str().and_then(remedy).map(|to_do| format!("; {to_do}"));
    let to_do = to_do.unwrap_or_default();
    let reason = status.reason.as_deref().unwrap_or("no reason is known");
    Some(match status.state {
        State::Ready if status.failure.is_some() => format!("{reason}{to_do}"),
        State::Ready => {
            let held = status.held.len();
            let held = match held {
                0 => String::new(),
                _ => format!(
                    "; {} to approve with `tidings upstream approve {}`",
                    count(held, "definition", "definitions"),
                    status.name
                ),
            };
            format!("ready, {}{held}", offers())
        }
        State::Waiting => format!("starts on first use, {}", offers()),
        State::Lost => format!("lost: {reason}; its items stay listed for a while{to_do}"),
        State::Down => format!("down: {reason}; trying again{to_do}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::time::Instant;

    use super::*;
    use crate::hosts::Kind;
    use crate::settings::UpstreamTable;

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_never_answers_delays_the_first_lists_up_to_the_limit() {
        // Connections are made, and nobody accepts them.
        let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", mute.local_addr().unwrap());
        let kind = Kind::Http { url, headers: BTreeMap::new() };
        let name = Name::parse("mute").unwrap();
        let mut plan = Plan::default();
        plan.upstreams.push(PlannedUpstream::new(name, kind, UpstreamTable::default()));
        let hub = Hub::new("gateway", "1");
        let upstreams = Upstreams::of(&plan, &hub).await.unwrap();
        let began = Instant::now();
        upstreams.settled().await;
        let took = began.elapsed();
        assert!(took >= FIRST_LISTS && took < FIRST_LISTS + LOOK, "{took:?}");
        hub.shutdown().await;
    }
}
