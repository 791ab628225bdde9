//! Groups of watched resources, one for each stream of notices.

use std::sync::Arc;

/// The most resources in one listen request. Servers limit it; our own hub has this limit.
const MOST: usize = 1_000;
/// A long URI counts once per this many bytes, as in our own hub.
const BYTES: usize = 256;

/// Splits resources into one group per listen request; at least one group, which may be empty.
pub(crate) fn groups(uris: &[Arc<str>]) -> Vec<Vec<Arc<str>>> {
    let mut groups = vec![Vec::new()];
    let mut weight = 0;
    for uri in uris {
        let more = 1 + uri.len() / BYTES;
        if weight + more > MOST {
            groups.push(Vec::new());
            weight = 0;
        }
        weight += more;
        if let Some(group) = groups.last_mut() {
            group.push(uri.clone());
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uris: &[Arc<str>], sizes: &[usize]) {
        let groups = groups(uris);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
        assert_eq!(groups.concat(), uris);
    }

    #[test]
    fn a_group_is_what_one_request_may_ask_for() {
        check(&[], &[0]);
        let many: Vec<Arc<str>> = (0..2500).map(|number| format!("a:{number}").into()).collect();
        check(&many, &[1000, 1000, 500]);
        let long: Arc<str> = format!("a:{}", "x".repeat(600)).into();
        check(&vec![long; 400], &[333, 67]);
    }
}
