//! The difference of two texts as data: lines with their numbers, and the words that changed.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// A longer difference is cut: people read it.
const LINES: usize = 500;
/// The most characters of one line.
const WIDTH: usize = 2_000;
/// Texts without much in common are compared roughly after this time.
const PATIENCE: Duration = Duration::from_millis(200);

/// The difference of two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) hunks: Vec<Hunk>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// The number of lines that are left out.
    pub(crate) cut: usize,
}

/// Changed lines with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Hunk {
    pub(crate) head: String,
    pub(crate) lines: Vec<Line>,
}

/// One line: its numbers in both texts, its sign, and its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<usize>,
    pub(crate) sign: char,
    /// Texts, and whether each is a changed word.
    pub(crate) parts: Vec<(bool, String)>,
}

/// Compares two texts.
pub(crate) fn between(old: &str, new: &str) -> Difference {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut difference = Difference::default();
    let mut shown = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old, new) = (first.old_range().start, first.new_range().start);
        let (old_end, new_end) = (last.old_range().end, last.new_range().end);
        let head = format!("-{},{} +{},{}", old + 1, old_end - old, new + 1, new_end - new);
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|operation| diff.iter_inline_changes(operation)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            difference.added += usize::from(sign == '+');
            difference.removed += usize::from(sign == '-');
            if shown == LINES {
                difference.cut += 1;
                continue;
            }
            shown += 1;
            let number = |index: Option<usize>| index.map(|index| index + 1);
            let (old, new) = (number(change.old_index()), number(change.new_index()));
            lines.push(Line { old, new, sign, parts: parts(change.iter_strings_lossy()) });
        }
        if !lines.is_empty() {
            difference.hunks.push(Hunk { head, lines });
        }
    }
    difference
}

/// The parts of a line, without its end, and not longer than anybody reads.
fn parts<'a>(
    strings: impl Iterator<Item = (bool, std::borrow::Cow<'a, str>)>,
) -> Vec<(bool, String)> {
    let mut room = WIDTH;
    let mut parts = Vec::new();
    for (is_changed, text) in strings {
        let text = text.trim_end_matches(['\r', '\n']);
        let taken: String = text.chars().take(room).collect();
        room -= taken.chars().count();
        if !taken.is_empty() {
            parts.push((is_changed, taken));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(difference: &Difference) -> String {
        let part = |(is_changed, part): &(bool, String)| {
            if *is_changed { format!("[{part}]") } else { part.clone() }
        };
        let line = |line: &Line| {
            format!("{}{}\n", line.sign, line.parts.iter().map(part).collect::<String>())
        };
        let hunk = |hunk: &Hunk| {
            format!("@ {}\n{}", hunk.head, hunk.lines.iter().map(line).collect::<String>())
        };
        difference.hunks.iter().map(hunk).collect()
    }

    #[test]
    fn changed_words_are_marked_in_their_lines() {
        let difference = between("a\nport 2 is free\nb\n", "a\nport 2 is reserved\nb\nc\n");
        assert_eq!((difference.added, difference.removed), (2, 1));
        insta::assert_snapshot!(shown(&difference), @"
        @ -1,3 +1,4
         a
        -port 2 is [free]
        +port 2 is [reserved]
         b
        +c
        ");
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(between("a\n", "a\n"), Difference::default());
    }

    #[test]
    fn a_long_difference_is_cut_and_says_by_how_much() {
        let difference = between("", &"line\n".repeat(LINES + 20));
        assert_eq!((difference.added, difference.cut), (LINES + 20, 20));
        let wide = between("", &"x".repeat(3 * WIDTH));
        assert_eq!(wide.hunks[0].lines[0].parts[0].1.len(), WIDTH);
    }
}
