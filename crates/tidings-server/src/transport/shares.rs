//! Fair shares: how much of each scarce thing one address may hold.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

/// What there is only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scarce {
    Connections,
    Sessions,
    Listeners,
    /// Requests with a body to routes beside those of the server.
    Uploads,
}

/// What the addresses hold at present.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    held: Mutex<HashMap<Origin, [usize; 4]>>,
}

/// Clients that are counted together: one IPv4 address, or one IPv6 network, of which a single
/// machine may have all addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin(IpAddr);

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                Self(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
            }
            address => Self(address),
        }
    }

    /// How many of `limit` things it may hold: half of them. Everything on this machine has one
    /// address, and so have all clients of a proxy on it, so loopback may hold all.
    pub(crate) fn share(self, limit: usize) -> usize {
        if self.0.is_loopback() { limit } else { (limit / 2).max(1) }
    }
}

impl Shares {
    /// A place for one more thing of this address; nothing if it holds its share of `limit`.
    pub(crate) fn take(
        self: &Arc<Self>,
        origin: Option<Origin>,
        scarce: Scarce,
        limit: usize,
    ) -> Option<TakenPlace> {
        // Inside another server nobody says where a request comes from.
        let Some(origin) = origin else { return Some(TakenPlace { held: None }) };
        let mut held = self.lock();
        let count = &mut held.entry(origin).or_default()[scarce as usize];
        if *count >= origin.share(limit) {
            return None;
        }
        *count += 1;
        Some(TakenPlace { held: Some((self.clone(), origin, scarce)) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Origin, [usize; 4]>> {
        self.held.lock().expect("no code panics while it holds the shares")
    }
}

/// One thing that an address holds, until this is dropped.
#[derive(Debug)]
pub(crate) struct TakenPlace {
    held: Option<(Arc<Shares>, Origin, Scarce)>,
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let Some((shares, origin, scarce)) = self.held.take() else { return };
        let mut held = shares.lock();
        let Some(counts) = held.get_mut(&origin) else { return };
        counts[scarce as usize] -= 1;
        if counts.iter().all(|count| *count == 0) {
            held.remove(&origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        Origin::of(text.parse().unwrap())
    }

    #[test]
    fn an_address_holds_half_and_leaves_the_rest_to_others() {
        let shares = Arc::new(Shares::default());
        let take = |from: &str| shares.take(Some(origin(from)), Scarce::Sessions, 4);
        let (one, two) = (take("192.0.2.1").unwrap(), take("192.0.2.1").unwrap());
        assert!(take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        let other = shares.take(Some(origin("192.0.2.1")), Scarce::Listeners, 4);
        assert!(other.is_some());
        drop((one, two, other));
        assert!(take("192.0.2.1").is_some());
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn loopback_may_hold_all() {
        let shares = Arc::new(Shares::default());
        for from in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let places: Vec<_> = (0..4)
                .map_while(|_| shares.take(Some(origin(from)), Scarce::Sessions, 4))
                .collect();
            assert_eq!(places.len(), 4, "{from}");
        }
    }

    #[test]
    fn addresses_of_one_network_share() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:2"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
    }
}
