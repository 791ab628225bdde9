//! Files that are not served: hidden ones, leftovers of editors, and matches of `.tidingsignore`.

use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::Problem;

/// The file with patterns of files not to serve.
pub(crate) const FILE: &str = ".tidingsignore";
/// Temporary and leftover files of editors, browsers and systems.
const LEFTOVERS: [&str; 10] = [
    "*~",
    // Escaped: a line that begins with `#` is a comment.
    "\\#*#",
    "*.swp",
    "*.swx",
    "*.tmp",
    "*.part",
    "*.crdownload",
    "4913",
    "Thumbs.db",
    "*.orig",
];

/// The patterns of files not to serve.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    rules: Gitignore,
}

impl Default for Hidden {
    fn default() -> Self {
        Self::new("").0
    }
}

impl Hidden {
    /// The rules of a `.tidingsignore`, in the syntax of a `.gitignore`, and a problem for each
    /// invalid line.
    pub(crate) fn new(text: &str) -> (Self, Vec<Problem>) {
        let mut builder = GitignoreBuilder::new("");
        for pattern in LEFTOVERS {
            builder.add_line(None, pattern).expect("the patterns are well-formed");
        }
        let mut problems = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if let Err(error) = builder.add_line(None, line) {
                let reason = format!("`{line}` is not a pattern: {error}");
                let advice = "write it as in a `.gitignore`";
                problems.push(Problem::error(FILE, reason, advice).at(number + 1));
            }
        }
        let rules = builder.build().unwrap_or_else(|error| {
            let reason = format!("the patterns are too complex together: {error}");
            problems.push(Problem::error(FILE, reason, "use fewer patterns"));
            Gitignore::empty()
        });
        (Self { rules }, problems)
    }

    /// Whether a path, relative to the folder, is hidden. The caller checks its parents first.
    pub(crate) fn hides(&self, path: &Path, is_directory: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        // The folder's own settings cannot be hidden: hiding a policy would disable it.
        let settings = path.starts_with("server.d");
        name.as_encoded_bytes().starts_with(b".")
            || !settings && self.rules.matched(path, is_directory).is_ignore()
    }

    /// Like [`Self::hides_any`], for the target of a visible link. The directories in which
    /// Kubernetes keeps the files of a mount, `..data` and `..2026_01_31`, do not hide it.
    pub(crate) fn hides_target(&self, path: &Path) -> bool {
        let visible = path.components().filter(|part| {
            !matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b".."))
        });
        self.hides_any(&visible.collect::<PathBuf>(), false)
    }

    /// Like [`Self::hides`], for a path whose parents were not checked.
    pub(crate) fn hides_any(&self, path: &Path, is_directory: bool) -> bool {
        let mut above = path.ancestors();
        above.next().is_some_and(|path| self.hides(path, is_directory))
            || above
                .filter(|above| above.file_name().is_some())
                .any(|directory| self.hides(directory, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &str, path: &str, expected: bool) {
        let (hidden, problems) = Hidden::new(rules);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(hidden.hides_any(Path::new(path), false), expected, "{path}");
    }

    #[test]
    fn hidden_files_and_leftovers_are_not_served() {
        check("", "tools/echo.sh", false);
        check("", "tools/.echo.sh.swp", true);
        check("", "tools/.git/config", true);
        check("", "resources/a~", true);
        check("", "resources/#a.md#", true);
        check("", "resources/4913", true);
        check("", "resources/notes.md", false);
    }

    #[test]
    fn tidingsignore_is_written_as_a_gitignore() {
        check("*.log\n!keep.log\n", "resources/a.log", true);
        check("*.log\n!keep.log\n", "resources/keep.log", false);
        check("/resources/private/\n", "resources/private/a/b.md", true);
        check("# a remark\n\ndrafts/", "prompts/drafts/a.md", true);
    }

    #[test]
    fn a_pattern_that_is_none_is_told_with_its_line() {
        let (_, problems) = Hidden::new("fine\n[z-a]\n");
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].line, Some(2));
    }
}
