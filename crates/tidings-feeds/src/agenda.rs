//! The order of fetches: plans by their due time, and places shared between hosts; pure.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use tidings_store::date::Moment;

use crate::schedule::Plan;

/// The maximum number of feeds of the web in progress, including those that wait for their host.
/// The fetcher limits the requests on their way; this limits the queue for it.
const AT_ONCE: usize = 256;
/// The maximum of them for one host, which answers one after the other. More would let one slow
/// host keep all others waiting.
const AT_ONE_HOST: usize = 4;
/// The maximum number of files read at once. Files wait for no host, and no host waits for them.
/// More would not be faster, and would take more memory.
const FILES_AT_ONCE: usize = 4;

/// The queue of a feed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    Files,
    Host(String),
}

impl Lane {
    /// Whether it can be fetched without the web: files, this machine, and the local network.
    pub(crate) fn is_near(&self) -> bool {
        match self {
            Self::Files => true,
            Self::Host(host) => is_near(host),
        }
    }
}

/// Whether a host is this machine or in a private network, judging by its name.
pub(crate) fn is_near(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(it)) => it.is_loopback() || it.is_private() || it.is_link_local(),
        Ok(IpAddr::V6(it)) => {
            it.is_loopback() || it.is_unique_local() || it.is_unicast_link_local()
        }
        Err(_) => name.rsplit_once('.').is_none_or(|(_, last)| last.eq_ignore_ascii_case("local")),
    }
}

/// The feeds that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All feeds.
    Web,
    /// Files, and hosts nearby.
    Near,
}

/// The plans of the feeds that are not in progress, and the number in progress of each lane.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    plans: HashMap<String, Planned>,
    /// Feeds with a due time in the future.
    waiting: BTreeSet<(Moment, String)>,
    lanes: HashMap<Lane, Queue>,
    /// The lanes with a ready feed and a free place, by the longest wait. Invariant: updated by
    /// [`Agenda::settle`] after every change of a lane.
    open: BTreeSet<(Moment, Lane)>,
    /// The number of feeds of the web in progress.
    asking: usize,
}

#[derive(Debug)]
struct Planned {
    plan: Plan,
    lane: Lane,
    /// Since when it is ready, once it is.
    ready: Option<Moment>,
}

#[derive(Debug, Default)]
struct Queue {
    ready: BTreeSet<(Moment, String)>,
    asking: usize,
    /// Its entry in `open`.
    opened: Option<Moment>,
}

impl Agenda {
    /// Plans a feed, replacing its earlier plan.
    pub(crate) fn put(&mut self, id: &str, lane: Lane, plan: Plan) {
        self.remove(id);
        if let Some(due) = plan.due() {
            self.waiting.insert((due, id.to_owned()));
        }
        self.plans.insert(id.to_owned(), Planned { plan, lane, ready: None });
    }

    /// Removes a feed.
    pub(crate) fn remove(&mut self, id: &str) -> Option<Plan> {
        let planned = self.plans.remove(id)?;
        if let Some(since) = planned.ready {
            if let Some(queue) = self.lanes.get_mut(&planned.lane) {
                queue.ready.remove(&(since, id.to_owned()));
            }
            self.settle(&planned.lane);
        } else if let Some(due) = planned.plan.due() {
            self.waiting.remove(&(due, id.to_owned()));
        }
        Some(planned.plan)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Plan> {
        self.plans.get(id).map(|planned| &planned.plan)
    }

    /// Whether a planned feed can be fetched without the web.
    pub(crate) fn is_near(&self, id: &str) -> bool {
        self.plans.get(id).is_some_and(|planned| planned.lane.is_near())
    }

    /// Queues the feeds that are due, unless their plan has changed since.
    pub(crate) fn wake(&mut self, now: Moment, mut again: impl FnMut(&str, &Plan) -> Plan) {
        while let Some((due, id)) = self.waiting.first().filter(|(due, _)| *due <= now).cloned() {
            self.waiting.pop_first();
            let Some(planned) = self.plans.get_mut(&id) else { continue };
            planned.plan = again(&id, &planned.plan);
            match planned.plan.due() {
                Some(due) if due > now => drop(self.waiting.insert((due, id))),
                Some(_) => self.queue(&id, due),
                None => {}
            }
        }
    }

    /// Puts a feed before all others of its lane.
    pub(crate) fn hurry(&mut self, id: &str) {
        let Some(planned) = self.plans.get(id) else { return };
        let (lane, plan) = (planned.lane.clone(), planned.plan.clone());
        self.remove(id);
        self.plans.insert(id.to_owned(), Planned { plan, lane, ready: None });
        self.queue(id, Moment::EPOCH);
    }

    /// The next feed to fetch; only files if the web cannot be reached. It has a place until
    /// [`Agenda::done`].
    pub(crate) fn begin(&mut self, reach: Reach) -> Option<(String, Lane, Plan)> {
        let mut open = self.open.iter().map(|(_, lane)| lane);
        let lane = if self.asking < AT_ONCE {
            open.find(|lane| reach == Reach::Web || lane.is_near()).cloned()?
        } else {
            // All places of the web are taken.
            let since = self.lanes.get(&Lane::Files)?.opened;
            since.map(|_| Lane::Files)?
        };
        let queue = self.lanes.get_mut(&lane)?;
        let (_, id) = queue.ready.pop_first()?;
        queue.asking += 1;
        if lane != Lane::Files {
            self.asking += 1;
        }
        self.settle(&lane);
        let planned = self.plans.remove(&id)?;
        Some((id, lane, planned.plan))
    }

    /// A feed of this lane was fetched.
    pub(crate) fn done(&mut self, lane: &Lane) {
        if let Some(queue) = self.lanes.get_mut(lane) {
            queue.asking = queue.asking.saturating_sub(1);
        }
        if *lane != Lane::Files {
            self.asking = self.asking.saturating_sub(1);
        }
        self.settle(lane);
    }

    /// When the next feed becomes due.
    pub(crate) fn next_time(&self) -> Option<Moment> {
        self.waiting.first().map(|(due, _)| *due)
    }

    fn queue(&mut self, id: &str, since: Moment) {
        let Some(planned) = self.plans.get_mut(id) else { return };
        planned.ready = Some(since);
        let lane = planned.lane.clone();
        self.lanes.entry(lane.clone()).or_default().ready.insert((since, id.to_owned()));
        self.settle(&lane);
    }

    fn settle(&mut self, lane: &Lane) {
        let Some(queue) = self.lanes.get_mut(lane) else { return };
        let places = if *lane == Lane::Files { FILES_AT_ONCE } else { AT_ONE_HOST };
        let first = queue.ready.first().map(|(since, _)| *since);
        let opens = first.filter(|_| queue.asking < places);
        if queue.opened != opens {
            if let Some(before) = queue.opened {
                self.open.remove(&(before, lane.clone()));
            }
            if let Some(since) = opens {
                self.open.insert((since, lane.clone()));
            }
            queue.opened = opens;
        }
        if queue.ready.is_empty() && queue.asking == 0 {
            self.lanes.remove(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Lane {
        Lane::Host(name.to_owned())
    }

    fn same(_: &str, plan: &Plan) -> Plan {
        plan.clone()
    }

    /// All feeds that may be fetched now.
    fn begun(agenda: &mut Agenda) -> Vec<String> {
        std::iter::from_fn(|| agenda.begin(Reach::Web).map(|(id, ..)| id)).collect()
    }

    #[test]
    fn one_slow_host_leaves_room_for_the_others() {
        let mut agenda = Agenda::default();
        for number in 0..300 {
            agenda.put(
                &format!("slow {number:03}"),
                host("slow"),
                Plan::new(Moment::from_millis(1)),
            );
        }
        for number in 0..300 {
            agenda.put(
                &format!("quick {number}"),
                host(&number.to_string()),
                Plan::new(Moment::from_millis(2)),
            );
        }
        agenda.wake(Moment::from_millis(2), same);
        let asked = begun(&mut agenda);
        assert_eq!(asked.len(), AT_ONCE);
        assert_eq!(asked.iter().filter(|id| id.starts_with("slow")).count(), AT_ONE_HOST);
        // A quick feed is done: its place goes to another quick one, because the slow host has its
        // own.
        agenda.done(&host("0"));
        assert_eq!(begun(&mut agenda).len(), 1);
        // The longest waiting feed is next at the slow host.
        agenda.done(&host("slow"));
        assert_eq!(begun(&mut agenda), ["slow 004"]);
    }

    #[test]
    fn files_wait_for_no_host() {
        let mut agenda = Agenda::default();
        for number in 0..=AT_ONCE {
            agenda.put(
                &format!("{number:03}"),
                host(&number.to_string()),
                Plan::new(Moment::from_millis(1)),
            );
        }
        agenda.wake(Moment::from_millis(1), same);
        assert_eq!(begun(&mut agenda).len(), AT_ONCE);
        for number in 0..20 {
            agenda.put(
                &format!("file {number:02}"),
                Lane::Files,
                Plan::new(Moment::from_millis(2)),
            );
        }
        agenda.wake(Moment::from_millis(2), same);
        let asked = begun(&mut agenda);
        assert_eq!(asked.len(), FILES_AT_ONCE);
        assert!(asked.iter().all(|id| id.starts_with("file")));
        agenda.done(&Lane::Files);
        assert_eq!(begun(&mut agenda), [format!("file {FILES_AT_ONCE:02}")]);
    }

    #[test]
    fn files_are_read_while_the_web_is_out_of_reach() {
        let mut agenda = Agenda::default();
        agenda.put("web", host("a.org"), Plan::new(Moment::from_millis(1)));
        agenda.put("file", Lane::Files, Plan::new(Moment::from_millis(2)));
        agenda.wake(Moment::from_millis(2), same);
        assert_eq!(agenda.begin(Reach::Near).unwrap().0, "file");
        assert!(agenda.begin(Reach::Near).is_none());
        assert_eq!(begun(&mut agenda), ["web"]);
    }

    #[test]
    fn feeds_are_asked_in_the_order_they_are_due() {
        let mut agenda = Agenda::default();
        for (id, due) in [("c", 3), ("a", 1), ("b", 2)] {
            agenda.put(id, host(id), Plan::new(Moment::from_millis(due)));
        }
        agenda.put("never", host("never"), Plan::new(Moment::from_millis(0)).paused());
        assert_eq!(agenda.next_time(), Some(Moment::from_millis(1)));
        agenda.wake(Moment::from_millis(2), same);
        assert_eq!(begun(&mut agenda), ["a", "b"]);
        assert_eq!(agenda.next_time(), Some(Moment::from_millis(3)));
        agenda.put("c", host("c"), Plan::new(Moment::from_millis(9)));
        agenda.wake(Moment::from_millis(8), same);
        assert!(begun(&mut agenda).is_empty());
        assert!(agenda.remove("c").is_some() && agenda.get("c").is_none());
        assert_eq!(agenda.next_time(), None);
    }

    #[test]
    fn who_is_wanted_now_is_asked_first() {
        let mut agenda = Agenda::default();
        for number in 0..9 {
            agenda.put(&number.to_string(), host("one"), Plan::new(Moment::from_millis(1)));
        }
        agenda.put("later", host("one"), Plan::new(Moment::from_millis(99)));
        agenda.wake(Moment::from_millis(1), same);
        agenda.hurry("later");
        agenda.hurry("7");
        assert_eq!(begun(&mut agenda), ["7", "later", "0", "1"]);
        // No feed is fetched twice.
        for _ in 0..4 {
            agenda.done(&host("one"));
        }
        agenda.wake(Moment::from_millis(100), same);
        assert_eq!(begun(&mut agenda), ["2", "3", "4", "5"]);
    }

    #[test]
    fn what_is_near_is_asked_without_the_web() {
        for near in ["localhost", "127.0.0.1", "[::1]", "10.1.2.3", "nas", "printer.local"] {
            assert!(is_near(near), "{near}");
        }
        for far in ["example.org", "9.9.9.9", "[2001:db8::1]"] {
            assert!(!is_near(far), "{far}");
        }
        let mut agenda = Agenda::default();
        agenda.put("far", host("example.org"), Plan::new(Moment::from_millis(1)));
        agenda.put("near", host("127.0.0.1"), Plan::new(Moment::from_millis(2)));
        agenda.wake(Moment::from_millis(3), same);
        assert_eq!(agenda.begin(Reach::Near).unwrap().0, "near");
        assert!(agenda.begin(Reach::Near).is_none());
    }

    #[test]
    fn who_is_long_overdue_may_get_another_time() {
        let mut agenda = Agenda::default();
        agenda.put("a", host("a"), Plan::new(Moment::from_millis(1)));
        agenda.wake(Moment::from_millis(50), |_, _| Plan::new(Moment::from_millis(60)));
        assert!(begun(&mut agenda).is_empty());
        assert_eq!(agenda.next_time(), Some(Moment::from_millis(60)));
        agenda.remove("a");
        assert_eq!((agenda.next_time(), agenda.lanes.len()), (None, 0));
    }
}
