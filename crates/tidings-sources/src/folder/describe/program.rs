//! Files that can be run.

use std::ffi::OsString;
use std::path::Path;

use super::Desk;
use crate::folder::offer::Program;
use crate::folder::{Fix, Problem};

/// How much of a script is read to find its interpreter and its description.
pub(super) const HEAD: u64 = 16 * 1024;

impl Desk<'_> {
    /// The program that is this file: executable, or a script that says what runs it. `None` after
    /// a complaint.
    pub(super) fn program(&mut self, path: &Path) -> Option<Program> {
        let Some(stat) = self.stat(path) else {
            let advice = "create it, or correct the path";
            self.complain(Problem::error(path, "there is no such file to run", advice));
            return None;
        };
        let absolute = self.root().absolute(path);
        if stat.executable {
            return Some(Program { path: absolute, interpreter: Vec::new() });
        }
        let interpreter = self.interpreter(path);
        if interpreter.is_empty() {
            let reason = "it is not executable, and has no `#!` line that says what runs it";
            let advice = "`chmod +x` it, or run `tidings lint --fix`";
            self.complain(Problem::error(path, reason, advice).mended_by(Fix::MakeExecutable));
            return None;
        }
        let reason = "it is not executable; it is run with what its `#!` line names";
        let advice = "`chmod +x` it, or run `tidings lint --fix`";
        self.complain(Problem::warning(path, reason, advice).mended_by(Fix::MakeExecutable));
        Some(Program { path: absolute, interpreter })
    }

    /// The words of a script's `#!` line.
    pub(super) fn interpreter(&mut self, path: &Path) -> Vec<OsString> {
        let head = self.root().head(path, HEAD).unwrap_or_default();
        let Some(line) = head.strip_prefix(b"#!") else { return Vec::new() };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(line) = std::str::from_utf8(line) else { return Vec::new() };
        // The system gives all that follows the program as one word.
        let mut words = line.trim().splitn(2, char::is_whitespace).map(str::trim);
        words.by_ref().filter(|word| !word.is_empty()).map(OsString::from).collect()
    }
}

/// Whether a name is one of a helper beside programs, never run by itself.
pub(super) fn is_description(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".meta.json") || name.ends_with(".meta.toml")
}
