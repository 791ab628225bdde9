//! Names that look like another name, for errors that help.

use std::collections::HashSet;

/// So many are suggested.
const MOST: usize = 3;
/// The least likeness of a suggestion, from 0 to 1.
const LIKE: f64 = 0.65;
/// Longer names are compared with none.
const LONGEST: usize = 256;

/// The names that are most like `name`, the most like first.
pub(crate) fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let pairs = pairs(name);
    let mut near: Vec<_> = names
        .filter(|other| other.len() <= LONGEST)
        .map(|other| (likeness(&pairs, other), other))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .collect();
    // Names that are equally like keep their order.
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// Neighbouring characters, whatever their case.
fn pairs(name: &str) -> HashSet<(char, char)> {
    let folded = || name.chars().flat_map(char::to_lowercase);
    std::iter::once(' ').chain(folded()).zip(folded()).collect()
}

fn likeness(pairs_of_one: &HashSet<(char, char)>, other: &str) -> f64 {
    let other = pairs(other);
    let common = pairs_of_one.intersection(&other).count();
    2.0 * common as f64 / (pairs_of_one.len() + other.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_near() {
        let names = ["git__list_issues", "git__create_issue", "memory__read_graph", "git__search"];
        let near_to = |name: &str| near(name, names.into_iter());
        assert_eq!(near_to("git__list_issue"), ["git__list_issues", "git__create_issue"]);
        assert_eq!(near_to("LIST_ISSUES"), ["git__list_issues"]);
        assert_eq!(near_to("weather"), [""; 0]);
        assert_eq!(near_to(""), [""; 0]);
        assert_eq!(near_to(&"git__list_issues".repeat(20)), [""; 0]);
    }
}
