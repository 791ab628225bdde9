//! Whether this machine has a network, as far as the names that could not be looked up say.

use std::collections::HashSet;
use std::sync::Mutex;

use super::failure::{FetchError, NO_NETWORK};

/// So many hosts in a row whose name servers do not answer are no accident: it is the network.
const IN_A_ROW: usize = 3;

/// The hosts that could not be looked up since the last answer of any.
#[derive(Debug, Default)]
pub(super) struct Reach(Mutex<HashSet<String>>);

impl Reach {
    /// A server answered, whatever it said.
    pub(super) fn answered(&self) {
        self.unresolved_hosts().clear();
    }

    /// A host could not be looked up: says whether that is its own trouble.
    pub(super) fn unresolved(&self, host: String) -> FetchError {
        self.trouble(&host.clone(), FetchError::Unresolved(host))
    }

    /// There is no way to a host: it may have an address of a kind that this machine has not.
    pub(super) fn unreachable(&self, host: &str) -> FetchError {
        self.trouble(host, FetchError::Connect("network is unreachable".to_owned()))
    }

    fn trouble(&self, host: &str, its_own: FetchError) -> FetchError {
        let mut hosts = self.unresolved_hosts();
        // No more are counted than matter.
        if hosts.len() < IN_A_ROW {
            hosts.insert(host.to_owned());
        }
        if hosts.len() < IN_A_ROW { its_own } else { FetchError::Here(NO_NETWORK) }
    }

    fn unresolved_hosts(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hosts_that_cannot_be_looked_up_mean_no_network() {
        let reach = Reach::default();
        let is_here = |host: &str| matches!(reach.unresolved(host.to_owned()), FetchError::Here(_));
        assert!(["a", "b", "a", "b"].into_iter().all(|host| !is_here(host)));
        assert!(is_here("c") && is_here("a") && is_here("d"));
        reach.answered();
        assert!(!is_here("a"));
    }
}
