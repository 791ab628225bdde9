//! Counts unexpected messages of a server, so that a flood leads to few warnings.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of separate counts; further ones lead to no warning.
const MOST: usize = 64;

/// How often each thing came.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: HashMap<Arc<str>, u64>,
}

impl Tally {
    /// Counts one more. Returns the count if it deserves a warning: the first, the tenth, the
    /// hundredth and so on.
    pub(super) fn count(&mut self, what: &Arc<str>) -> Option<u64> {
        if !self.counts.contains_key(what) && self.counts.len() == MOST {
            return None;
        }
        let count = self.counts.entry(what.clone()).or_default();
        *count += 1;
        (10u64.pow(count.ilog10()) == *count).then_some(*count)
    }

    pub(super) fn clear(&mut self) {
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_at_every_power_of_ten_and_of_few_things() {
        let mut tally = Tally::default();
        let told: Vec<_> = (0..1000).filter_map(|_| tally.count(&"a".into())).collect();
        assert_eq!(told, [1, 10, 100, 1000]);
        let things = (0..1000).filter_map(|thing| tally.count(&thing.to_string().into()));
        assert_eq!(things.count(), MOST - 1);
    }
}
