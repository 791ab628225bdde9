//! The decisions of the queue, pure. Times are counted from any beginning.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How long a host is skipped that refuses without `Retry-After`. Doubled each time in a row.
const GUESS: Duration = Duration::from_mins(1);
/// The longest of these.
const LONGEST_GUESS: Duration = Duration::from_hours(1);

/// A time, counted from the beginning of the queue.
pub(crate) type Elapsed = Duration;

/// The limits on concurrency and distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Concurrent requests in total.
    pub(crate) at_once: usize,
    /// Concurrent requests to one host.
    pub(crate) host_at_once: usize,
    /// The minimum time between two requests to one host: from the beginning of one, and from its
    /// end, to the beginning of the next. Up to a quarter is added at random.
    pub(crate) apart: Duration,
}

/// A place in the queue. Lower ones are earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// The state of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its request may be made, or is in progress.
    Started,
    /// Its host must be skipped until then.
    Paused(Elapsed),
    /// It is the first at its host, whose turn comes then.
    At(Elapsed),
    /// It waits for others.
    Behind,
}

/// All waiting and running requests.
#[derive(Debug)]
pub(crate) struct Order {
    rules: Rules,
    hosts: HashMap<String, Host>,
    /// The host of each ticket. Invariant: a ticket is in here, and either waits at its host or is
    /// counted in `under_way` and in its host's `busy`.
    tickets: HashMap<Ticket, String>,
    under_way: usize,
    next: u64,
}

#[derive(Debug, Default)]
struct Host {
    waiting: VecDeque<Ticket>,
    busy: usize,
    /// The earliest time of the next request.
    free_at: Elapsed,
    /// Set by the host itself.
    paused_until: Elapsed,
    /// How often in a row it refused without `Retry-After`.
    refusals: u32,
    /// The time between the last two requests, with its random part.
    gap: Duration,
}

impl Host {
    fn opens_at(&self) -> Elapsed {
        self.free_at.max(self.paused_until)
    }

    fn is_forgettable(&self, now: Elapsed) -> bool {
        // Refusals are counted over the time between two requests of one feed.
        let memory = if self.refusals > 0 { LONGEST_GUESS } else { Duration::ZERO };
        self.waiting.is_empty() && self.busy == 0 && self.opens_at() + memory <= now
    }
}

impl Order {
    pub(crate) fn new(rules: Rules) -> Self {
        let (hosts, tickets) = (HashMap::new(), HashMap::new());
        Self { rules, hosts, tickets, under_way: 0, next: 0 }
    }

    /// Adds a ticket at the end of a host's queue.
    pub(crate) fn enter(&mut self, host: &str, now: Elapsed) -> Ticket {
        self.hosts.retain(|_, host| !host.is_forgettable(now));
        let ticket = Ticket(self.next);
        self.next += 1;
        self.hosts.entry(host.to_owned()).or_default().waiting.push_back(ticket);
        self.tickets.insert(ticket, host.to_owned());
        ticket
    }

    /// Begins requests that may begin: of the ready hosts, the longest waiting comes first.
    pub(crate) fn admit(&mut self, now: Elapsed, random: u64) -> Vec<Ticket> {
        let mut started = Vec::new();
        while self.under_way < self.rules.at_once {
            let ready = self
                .hosts
                .values_mut()
                .filter(|host| host.busy < self.rules.host_at_once && host.opens_at() <= now);
            let first = ready
                .filter_map(|host| host.waiting.front().copied().map(|ticket| (ticket, host)))
                .min_by_key(|(ticket, _)| *ticket);
            let Some((ticket, host)) = first else { break };
            host.waiting.pop_front();
            host.busy += 1;
            host.gap = widened(self.rules.apart, random);
            host.free_at = now + host.gap;
            self.under_way += 1;
            started.push(ticket);
        }
        started
    }

    /// Releases a place, whether its request was made or not.
    pub(crate) fn leave(&mut self, ticket: Ticket, now: Elapsed) {
        let Some(name) = self.tickets.remove(&ticket) else { return };
        let Some(host) = self.hosts.get_mut(&name) else { return };
        if let Some(position) = host.waiting.iter().position(|waiting| *waiting == ticket) {
            host.waiting.remove(position);
            return;
        }
        host.busy -= 1;
        host.free_at = host.free_at.max(now + host.gap);
        self.under_way -= 1;
    }

    /// Skips the host of a ticket until then.
    pub(crate) fn pause(&mut self, ticket: Ticket, until: Elapsed) {
        if let Some(host) = self.host_of(ticket) {
            host.paused_until = host.paused_until.max(until);
        }
    }

    /// The same for a host without tickets.
    pub(crate) fn pause_host(&mut self, name: &str, until: Elapsed) {
        let host = self.hosts.entry(name.to_owned()).or_default();
        host.paused_until = host.paused_until.max(until);
    }

    /// The host of a ticket refused without `Retry-After`: it is skipped, longer each time in a
    /// row.
    pub(crate) fn refuse(&mut self, ticket: Ticket, now: Elapsed) {
        // Of several concurrent refusals one counts.
        if let Some(host) = self.host_of(ticket).filter(|host| host.paused_until <= now) {
            let factor = 2u32.saturating_pow(host.refusals);
            host.paused_until = now + GUESS.saturating_mul(factor).min(LONGEST_GUESS);
            host.refusals = host.refusals.saturating_add(1);
        }
    }

    /// The host of a ticket answered.
    pub(crate) fn welcome(&mut self, ticket: Ticket) {
        if let Some(host) = self.host_of(ticket) {
            host.refusals = 0;
        }
    }

    fn host_of(&mut self, ticket: Ticket) -> Option<&mut Host> {
        self.tickets.get(&ticket).and_then(|name| self.hosts.get_mut(name))
    }

    pub(crate) fn standing(&self, ticket: Ticket, now: Elapsed) -> Standing {
        let Some(host) = self.tickets.get(&ticket).and_then(|name| self.hosts.get(name)) else {
            return Standing::Behind;
        };
        let Ok(position) = host.waiting.binary_search(&ticket) else { return Standing::Started };
        if host.paused_until > now {
            Standing::Paused(host.paused_until)
        } else if position == 0 && host.busy < self.rules.host_at_once && host.free_at > now {
            Standing::At(host.free_at)
        } else {
            Standing::Behind
        }
    }

    /// The waiting tickets of a ticket's host, in order.
    pub(crate) fn waiting_with(&self, ticket: Ticket) -> impl Iterator<Item = Ticket> {
        let host = self.tickets.get(&ticket).and_then(|name| self.hosts.get(name));
        host.into_iter().flat_map(|host| host.waiting.iter().copied())
    }

    /// The next time at which a ticket that waits only for time could begin.
    #[cfg(test)]
    pub(crate) fn wakes_at(&self, now: Elapsed) -> Option<Elapsed> {
        let hosts = self
            .hosts
            .values()
            .filter(|host| !host.waiting.is_empty() && host.busy < self.rules.host_at_once);
        hosts.map(Host::opens_at).filter(|moment| *moment > now).min()
    }
}

fn widened(apart: Duration, random: u64) -> Duration {
    apart + apart.mul_f64(random as f64 / u64::MAX as f64 / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { at_once: 2, host_at_once: 1, apart: Duration::from_secs(1) };

    fn at(seconds: u64) -> Elapsed {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_host_is_asked_in_order_and_with_time_between() {
        let mut order = Order::new(RULES);
        let [first, second] = [order.enter("a", at(0)), order.enter("a", at(0))];
        assert_eq!(order.admit(at(0), 0), [first]);
        assert_eq!(order.standing(second, at(0)), Standing::Behind);
        order.leave(first, at(5));
        assert_eq!(order.standing(second, at(5)), Standing::At(at(6)), "counted from the end");
        assert_eq!(order.wakes_at(at(5)), Some(at(6)));
        assert_eq!(order.admit(at(5), 0), []);
        assert_eq!(order.admit(at(6), 0), [second]);
    }

    #[test]
    fn the_random_part_adds_up_to_a_quarter() {
        assert_eq!(widened(at(4), 0), at(4));
        assert_eq!(widened(at(4), u64::MAX), at(5));
    }

    #[test]
    fn places_are_given_to_who_waited_longest() {
        let mut order = Order::new(RULES);
        let tickets = ["a", "b", "c", "d"].map(|host| order.enter(host, at(0)));
        assert_eq!(order.admit(at(0), 0), tickets[..2]);
        order.leave(tickets[1], at(1));
        assert_eq!(order.admit(at(1), 0), [tickets[2]]);
    }

    #[test]
    fn a_busy_host_delays_nobody_else() {
        let mut order = Order::new(RULES);
        let tickets = ["slow", "slow", "slow", "other"].map(|host| order.enter(host, at(0)));
        assert_eq!(order.admit(at(0), 0), [tickets[0], tickets[3]]);
    }

    #[test]
    fn a_pause_holds_for_everybody_at_the_host_and_is_never_shortened() {
        let mut order = Order::new(RULES);
        let [first, second] = [order.enter("a", at(0)), order.enter("a", at(0))];
        order.admit(at(0), 0);
        order.pause(first, at(100));
        order.pause(first, at(50));
        order.leave(first, at(1));
        let later = order.enter("a", at(2));
        assert_eq!(order.standing(second, at(3)), Standing::Paused(at(100)));
        assert_eq!(order.standing(later, at(3)), Standing::Paused(at(100)));
        assert_eq!(order.admit(at(99), 0), []);
        assert_eq!(order.admit(at(100), 0), [second]);
    }

    #[test]
    fn a_host_that_refuses_again_and_again_is_left_alone_for_longer() {
        let mut order = Order::new(RULES);
        let mut now = at(0);
        let mut pause = |is_in_a_row: bool| {
            let ticket = order.enter("a", now);
            assert_eq!(order.admit(now, 0), [ticket]);
            if !is_in_a_row {
                order.welcome(ticket);
            }
            // By two concurrent requests.
            order.refuse(ticket, now);
            order.refuse(ticket, now);
            order.leave(ticket, now);
            let until = order.hosts["a"].paused_until;
            let length = until.saturating_sub(now);
            // Another request comes in between.
            now = until + at(600);
            let other = order.enter("b", now);
            order.leave(other, now);
            length
        };
        assert_eq!([(); 3].map(|()| pause(true)), [at(60), at(120), at(240)]);
        assert_eq!(pause(false), at(60), "an answer ends it");
        assert_eq!([(); 7].map(|()| pause(true))[6], at(3600));
    }

    #[test]
    fn who_leaves_before_its_turn_costs_nothing() {
        let mut order = Order::new(RULES);
        let [first, second] = [order.enter("a", at(0)), order.enter("a", at(0))];
        order.leave(first, at(0));
        order.leave(first, at(0));
        assert_eq!(order.admit(at(0), 0), [second]);
        order.leave(second, at(0));
        order.enter("b", at(10));
        assert_eq!(order.hosts.len(), 1, "a host with nothing to remember is forgotten");
    }
}
