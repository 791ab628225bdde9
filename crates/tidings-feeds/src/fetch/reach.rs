//! Whether this machine has a network, judged by the names that could not be resolved.

use std::collections::HashSet;
use std::sync::Mutex;

use super::failure::{FetchError, NO_NETWORK};

/// This many hosts in a row without an answer of their name servers mean that the network is down.
const IN_A_ROW: usize = 3;

/// The hosts that could not be resolved since the last answer of any server.
#[derive(Debug, Default)]
pub(super) struct Network(Mutex<HashSet<String>>);

impl Network {
    /// A server answered in any way.
    pub(super) fn answered(&self) {
        self.unresolved_hosts().clear();
    }

    /// A host could not be resolved: returns whether that is its own fault.
    pub(super) fn unresolved(&self, host: String) -> FetchError {
        self.trouble(&host.clone(), FetchError::Unresolved(host))
    }

    /// A host is unreachable: it may have an address of a kind that this machine does not have.
    pub(super) fn unreachable(&self, host: &str) -> FetchError {
        self.trouble(host, FetchError::Connect("network is unreachable".to_owned()))
    }

    fn trouble(&self, host: &str, its_own: FetchError) -> FetchError {
        let mut hosts = self.unresolved_hosts();
        // No more are counted than necessary.
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
        let reach = Network::default();
        let is_here = |host: &str| matches!(reach.unresolved(host.to_owned()), FetchError::Here(_));
        assert!(["a", "b", "a", "b"].into_iter().all(|host| !is_here(host)));
        assert!(is_here("c") && is_here("a") && is_here("d"));
        reach.answered();
        assert!(!is_here("a"));
    }
}
