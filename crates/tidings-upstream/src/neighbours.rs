//! Which of several upstreams has a name or URI that more than one of them offers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_mirror::List;
use tokio::sync::watch;

/// The upstreams of one hub. All clones are one register.
///
/// A name or URI that several of them offer belongs to the one of the lowest rank, even while that
/// one is not connected. So the names that clients see depend only on the configuration and on the
/// items of the servers.
#[derive(Clone, Debug)]
pub struct Neighbours {
    register: Arc<Mutex<Register>>,
    /// Advances when something that somebody claimed belongs to somebody else.
    moved: watch::Sender<u64>,
    /// Names this gateway in the list of hops of a request.
    gateway: Arc<str>,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self {
            register: Arc::default(),
            moved: watch::Sender::new(0),
            gateway: uuid::Uuid::new_v4().to_string().into(),
        }
    }
}

/// The claims to each key, by rank and then by the order in which they joined.
#[derive(Debug, Default)]
struct Register {
    joined: u64,
    claims: BTreeMap<List, HashMap<Arc<str>, BTreeSet<ClaimRank>>>,
    /// Links of results, by the upstream that gave them first.
    links: HashMap<Arc<str>, ClaimRank>,
}

/// The place of an upstream among its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimRank {
    rank: usize,
    joined: u64,
}

impl Neighbours {
    pub(crate) fn join(&self, rank: usize) -> ClaimRank {
        let mut register = self.lock();
        register.joined += 1;
        ClaimRank { rank, joined: register.joined }
    }

    /// The name of this gateway in lists of hops.
    pub(crate) fn gateway(&self) -> &str {
        &self.gateway
    }

    pub(crate) fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    /// Something was withdrawn that belongs to somebody else: they can offer it now.
    pub(crate) fn announce(&self) {
        self.moved.send_modify(|moved| *moved += 1);
    }

    /// Claims exactly these keys of a list. Returns those that belong to somebody else.
    pub(crate) fn claim(
        &self,
        place: ClaimRank,
        list: List,
        keys: &HashSet<Arc<str>>,
    ) -> HashSet<Arc<str>> {
        let mut register = self.lock();
        let claims = register.claims.entry(list).or_default();
        let mut has_moved = false;
        claims.retain(|key, places| {
            if !keys.contains(key) {
                let was_first = places.first() == Some(&place);
                has_moved |= places.remove(&place) && was_first && !places.is_empty();
            }
            !places.is_empty()
        });
        let mut lost = HashSet::new();
        for key in keys {
            let places = claims.entry(key.clone()).or_default();
            let is_new = places.insert(place);
            if places.first() != Some(&place) {
                lost.insert(key.clone());
            } else if is_new && places.len() > 1 {
                has_moved = true;
            }
        }
        drop(register);
        if has_moved {
            self.announce();
        }
        lost
    }

    /// Whether another upstream claims a key too.
    pub(crate) fn is_shared(&self, place: ClaimRank, list: List, key: &str) -> bool {
        let register = self.lock();
        let places = register.claims.get(&list).and_then(|claims| claims.get(key));
        places.is_some_and(|places| places.iter().any(|other| *other != place))
    }

    /// An upstream gave a link in a result. Returns whether it is the one that answers for it: the
    /// first, until it forgets it.
    pub(crate) fn link(&self, place: ClaimRank, uri: &str) -> bool {
        *self.lock().links.entry(uri.into()).or_insert(place) == place
    }

    /// An upstream forgot a link.
    pub(crate) fn unlink(&self, place: ClaimRank, uri: &str) {
        let mut register = self.lock();
        if register.links.get(uri) == Some(&place) {
            register.links.remove(uri);
        }
    }

    pub(crate) fn leave(&self, place: ClaimRank) {
        self.lock().links.retain(|_, giver| *giver != place);
        for list in List::ALL {
            self.claim(place, list, &HashSet::new());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> HashSet<Arc<str>> {
        keys.iter().map(|key| Arc::from(*key)).collect()
    }

    #[test]
    fn the_lower_rank_has_a_key_whoever_came_first() {
        let neighbours = Neighbours::default();
        let (second, first) = (neighbours.join(2), neighbours.join(1));
        let moves = neighbours.moves();
        assert_eq!(neighbours.claim(second, List::Tools, &keys(&["a", "b"])), keys(&[]));
        assert!(!moves.has_changed().unwrap());
        assert_eq!(neighbours.claim(first, List::Tools, &keys(&["b", "c"])), keys(&[]));
        assert!(moves.has_changed().unwrap(), "the second lost `b`");
        assert_eq!(neighbours.claim(second, List::Tools, &keys(&["a", "b"])), keys(&["b"]));
        assert_eq!(neighbours.claim(second, List::Prompts, &keys(&["b"])), keys(&[]));
        assert!(neighbours.is_shared(first, List::Tools, "b"));
        assert!(!neighbours.is_shared(first, List::Tools, "c"));
    }

    #[test]
    fn a_link_leads_to_its_first_giver_until_that_forgets_it() {
        let neighbours = Neighbours::default();
        let (first, second) = (neighbours.join(1), neighbours.join(0));
        assert!(neighbours.link(first, "a:1") && neighbours.link(first, "a:2"));
        assert!(!neighbours.link(second, "a:1") && !neighbours.link(second, "a:2"));
        neighbours.unlink(second, "a:1");
        assert!(!neighbours.link(second, "a:1"), "it is not the second's to forget");
        neighbours.unlink(first, "a:1");
        assert!(neighbours.link(second, "a:1") && !neighbours.link(first, "a:1"));
        neighbours.leave(first);
        assert!(neighbours.link(second, "a:2"));
    }

    #[test]
    fn a_key_that_is_given_up_goes_to_the_next() {
        let neighbours = Neighbours::default();
        let (first, second) = (neighbours.join(1), neighbours.join(1));
        neighbours.claim(first, List::Tools, &keys(&["a"]));
        assert_eq!(neighbours.claim(second, List::Tools, &keys(&["a"])), keys(&["a"]));
        let moves = neighbours.moves();
        neighbours.leave(first);
        assert!(moves.has_changed().unwrap());
        assert_eq!(neighbours.claim(second, List::Tools, &keys(&["a"])), keys(&[]));
    }
}
