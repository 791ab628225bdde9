//! Names of files from titles: readable, none twice, and none that leads anywhere else.

use std::collections::HashSet;

use crate::present::save::{ending, file_name};

/// Well below what file systems take, with room for a number.
const BYTES: usize = 150;
/// An ending longer than this is none.
const ENDING: usize = 12;

/// The names that are taken.
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn new(taken: &str) -> Self {
        Self(HashSet::from([taken.to_lowercase()]))
    }

    /// A name for something of this title and kind, which is taken from now on.
    pub(super) fn take(&mut self, title: &str, mime: &str) -> String {
        let name = file_name(title, "artifact");
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending)) if !stem.is_empty() && ending.len() <= ENDING => (stem, ending),
            _ => (name.as_str(), ending(Some(mime))),
        };
        let stem = shortened(stem);
        for number in 1.. {
            let name = match number {
                1 => format!("{stem}.{ending}"),
                _ => format!("{stem}-{number}.{ending}"),
            };
            // Some file systems take `A` and `a` for one.
            if self.0.insert(name.to_lowercase()) {
                return name;
            }
        }
        unreachable!("one of all numbers is free")
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
