//! File names from titles: readable, unique, and without path separators.

use std::collections::{HashMap, HashSet};

use crate::present::save::{ending, file_name};

/// Well below the limit of file systems, with room for a number.
const BYTES: usize = 150;
/// A longer extension is part of the name.
const ENDING: usize = 12;

/// The names in use.
pub(super) struct Names {
    taken: HashSet<String>,
    /// The next number to try, by the name without one.
    next: HashMap<String, u64>,
}

impl Names {
    pub(super) fn new(taken: &str) -> Self {
        Self { taken: HashSet::from([taken.to_lowercase()]), next: HashMap::new() }
    }

    /// A new name for a title and MIME type.
    pub(super) fn take(&mut self, title: &str, mime: &str) -> String {
        let name = file_name(title, "artifact");
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending)) if !stem.is_empty() && ending.len() <= ENDING => (stem, ending),
            _ => (name.as_str(), ending(Some(mime))),
        };
        let stem = shortened(stem);
        // Some file systems do not distinguish `A` from `a`.
        let next = self.next.entry(format!("{stem}.{ending}").to_lowercase()).or_default();
        loop {
            *next += 1;
            let name = match *next {
                1 => format!("{stem}.{ending}"),
                number => format!("{stem}-{number}.{ending}"),
            };
            if self.taken.insert(name.to_lowercase()) {
                return name;
            }
        }
    }
}

fn shortened(stem: &str) -> &str {
    let mut end = stem.len().min(BYTES);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    &stem[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(titles: &[(&str, &str)], expected: &[&str]) {
        let mut names = Names::new("manifest.json");
        let taken: Vec<_> = titles.iter().map(|(title, mime)| names.take(title, mime)).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_title_is_a_name_with_an_ending() {
        check(&[("A song", "audio/wav"), ("a.mid", "audio/midi")], &["A-song.wav", "a.mid"]);
        check(&[("v1.2 is the best of all", "text/plain")], &["v1.2-is-the-best-of-all.txt"]);
    }

    #[test]
    fn no_name_is_there_twice_whatever_its_case() {
        check(
            &[("a.txt", ""), ("A.txt", ""), ("a-2.txt", ""), ("Manifest.json", "")],
            &["a.txt", "A-2.txt", "a-2-2.txt", "Manifest-2.json"],
        );
    }

    #[test]
    fn many_of_one_title_are_named_without_trying_every_number_again() {
        let mut names = Names::new("manifest.json");
        let last = (0..100_000).map(|_| names.take("a.txt", "")).last();
        assert_eq!(last.as_deref(), Some("a-100000.txt"));
    }

    #[test]
    fn no_title_leads_out_of_the_folder() {
        check(&[("../../etc/passwd", "text/plain")], &["etc-passwd.txt"]);
        check(
            &[("/", ""), ("..", ""), ("\u{1b}[2J", "")],
            &["artifact.bin", "artifact-2.bin", "2J.bin"],
        );
        let long = "日".repeat(500);
        let mut names = Names::new("");
        assert!(names.take(&long, "text/plain").len() < 200);
    }
}
