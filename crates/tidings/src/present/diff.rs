//! The difference of two texts, as a unified diff.

use similar::{ChangeTag, TextDiff};

use crate::present::colour::Paint;
use crate::present::text::harmless;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// A longer diff is cut: people watch it, and can read the whole text.
const LINES: usize = 200;

/// The changed lines with context; empty if no line changed.
pub(crate) fn unified(old: &str, new: &str, paint: Paint) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        lines.push(paint.cyan(&hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let text = harmless(change.value().trim_end_matches(['\r', '\n']));
            lines.push(match change.tag() {
                ChangeTag::Delete => paint.red(&format!("-{text}")),
                ChangeTag::Insert => paint.green(&format!("+{text}")),
                ChangeTag::Equal => format!(" {text}"),
            });
        }
    }
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES);
        lines.push(paint.faint(&format!("… {more} more lines")));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_what_stands_around_it() {
        insta::assert_snapshot!(unified("a\nb\nc\n", "a\nB\nc\n", Paint::PLAIN), @"
        @@ -1,3 +1,3 @@
         a
        -b
        +B
         c
        ");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("a\n", "a\n", Paint::PLAIN), "");
    }

    #[test]
    fn a_long_diff_is_cut() {
        let new: String = "a line\n".repeat(1000);
        let shown = unified("", &new, Paint::PLAIN);
        assert_eq!(shown.lines().count(), LINES + 1);
        assert!(shown.ends_with("… 801 more lines\n"), "{shown}");
    }
}
