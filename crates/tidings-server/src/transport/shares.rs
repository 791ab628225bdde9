//! Fair shares: how much of each limited resource one address or one token may use.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::tokens::TokenHash;

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scarce {
    Connections,
    Sessions,
    Listeners,
    /// Requests with a body to additional routes.
    Uploads,
}

/// The current use by addresses and tokens.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    held: Mutex<HashMap<Holder, [usize; 4]>>,
}

/// The holder of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Address(Origin),
    Token(TokenHash),
}

/// Clients that are counted together: one IPv4 address, or one IPv6 network, because a single machine
/// may have all addresses of a network.
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

    /// How many of `limit` it may use: half. All clients on this machine, and all clients of a proxy
    /// on it, have one address, so loopback may use all.
    pub(crate) fn share(self, limit: usize) -> usize {
        if self.0.is_loopback() { limit } else { (limit / 2).max(1) }
    }
}

impl Shares {
    /// A place for one more of this address; `None` if it uses its share of `limit`.
    pub(crate) fn take(
        self: &Arc<Self>,
        origin: Option<Origin>,
        scarce: Scarce,
        limit: usize,
    ) -> Option<TakenPlace> {
        // Inside another server the address of a request is unknown.
        let Some(origin) = origin else { return Some(TakenPlace { held: None }) };
        self.count(Holder::Address(origin), scarce, origin.share(limit))
    }

    /// A place for one more of this token; `None` if it uses its maximum. Without a token or a limit
    /// there is always one.
    pub(crate) fn take_own(
        self: &Arc<Self>,
        token: Option<TokenHash>,
        scarce: Scarce,
        limit: Option<usize>,
    ) -> Option<TakenPlace> {
        let (Some(token), Some(limit)) = (token, limit) else {
            return Some(TakenPlace { held: None });
        };
        self.count(Holder::Token(token), scarce, limit)
    }

    fn count(self: &Arc<Self>, holder: Holder, scarce: Scarce, share: usize) -> Option<TakenPlace> {
        let mut held = self.lock();
        let count = held.get(&holder).map_or(0, |counts| counts[scarce as usize]);
        if count >= share {
            return None;
        }
        held.entry(holder).or_default()[scarce as usize] += 1;
        Some(TakenPlace { held: Some((self.clone(), holder, scarce)) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, [usize; 4]>> {
        self.held.lock().expect("no code panics while it holds the shares")
    }
}

/// One place of an address or a token, until this is dropped.
#[derive(Debug)]
pub(crate) struct TakenPlace {
    held: Option<(Arc<Shares>, Holder, Scarce)>,
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let Some((shares, holder, scarce)) = self.held.take() else { return };
        let mut held = shares.lock();
        let Some(counts) = held.get_mut(&holder) else { return };
        counts[scarce as usize] -= 1;
        if counts.iter().all(|count| *count == 0) {
            held.remove(&holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Token;

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
    fn a_token_holds_what_its_own_limit_allows() {
        let shares = Arc::new(Shares::default());
        let token = |text: &str| Some(TokenHash::of(&Token::new(text).unwrap()));
        let (ada, bob) = (token("0123456789abcdef"), token("fedcba9876543210"));
        let take = |token| shares.take_own(token, Scarce::Sessions, Some(1));
        let one = take(ada).unwrap();
        assert!(take(ada).is_none() && take(bob).is_some());
        assert!(shares.take_own(ada, Scarce::Sessions, None).is_some());
        drop(one);
        assert!(take(ada).is_some());
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
