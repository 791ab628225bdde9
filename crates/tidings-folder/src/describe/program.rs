//! Programs: find out whether and how a file can be run.

use std::ffi::OsString;
use std::path::Path;

use super::Describer;
use super::roots::ROOTS;
use crate::offer::{Dialect, Program};
use crate::workshop::along;
use crate::{Fix, Problem, guard};

/// How many bytes of a script are read to find its interpreter and its description.
pub(super) const HEAD: u64 = 16 * 1024;

/// Files that only an `mcp-bash` project has.
const MCP_BASH_FILES: [&str; 4] = [".mcp-bash", "sdk/tool-sdk.sh", ROOTS, guard::FILE];
/// Variables that a program of such a project reads.
const MCP_BASH_WORDS: [&str; 2] = ["MCP_SDK", "MCPBASH_"];

impl Describer<'_> {
    /// The conventions a program follows, recognised by its project and its text.
    pub(super) fn dialect(&self, program: &Path) -> Dialect {
        let has = |file: &&str| self.root().absolute(Path::new(file)).exists();
        let head = self.root().head(program, HEAD).unwrap_or_default();
        let head = String::from_utf8_lossy(&head);
        let mentions = |word: &&str| head.contains(*word);
        if MCP_BASH_FILES.iter().any(has) || MCP_BASH_WORDS.iter().any(mentions) {
            Dialect::McpBash
        } else {
            Dialect::Own
        }
    }

    /// The program of this file: executable, or a script with a `#!` line. `None` after a problem
    /// was reported.
    pub(super) fn program(&mut self, path: &Path) -> Option<Program> {
        let Some(stat) = self.stat(path) else {
            let advice = "create it, or correct the path";
            self.report(Problem::error(path, "there is no such file to run", advice));
            return None;
        };
        let absolute = self.root().absolute(path);
        self.judge_first_line(path, stat.executable);
        if stat.executable {
            return Some(Program { path: absolute, interpreter: Vec::new() });
        }
        let interpreter = self.interpreter(path);
        if interpreter.is_empty() {
            let reason = "it is not executable, and has no `#!` line that says what runs it";
            let advice = "`chmod +x` it";
            self.report(Problem::error(path, reason, advice).mended_by(Fix::MakeExecutable));
            return None;
        }
        let reason = "it is not executable; it is run with what its `#!` line names";
        let advice = "`chmod +x` it";
        self.report(Problem::warning(path, reason, advice).mended_by(Fix::MakeExecutable));
        Some(Program { path: absolute, interpreter })
    }

    /// Reports a first line with which the system cannot run a script.
    fn judge_first_line(&mut self, path: &Path, executable: bool) {
        let head = self.root().head(path, HEAD).unwrap_or_default();
        let Some(line) = head.strip_prefix(b"#!") else {
            // Compiled programs contain zero bytes.
            if executable && !head.is_empty() && !head.contains(&0) {
                let reason = "it has no `#!` line, so the system does not know what runs it";
                let advice = "begin it with `#!/bin/sh`, `#!/usr/bin/env python3` or the like";
                self.report(Problem::error(path, reason, advice).at(1));
            }
            return;
        };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if line.ends_with(b"\r") {
            let reason = "its `#!` line ends with a carriage return, which the system takes for a \
                          part of the interpreter's name";
            let advice = "save it with the line ends of Unix: `sed -i 's/\\r$//'` does it";
            self.report(Problem::error(path, reason, advice).at(1));
            return;
        }
        if let Some(missing) = self.missing_interpreter(&self.interpreter(path)) {
            let reason = format!("its `#!` line names `{missing}`, which is not on this machine");
            let advice = "install it, or correct the line";
            self.report(Problem::error(path, reason, advice).at(1));
        }
    }

    /// The program that a `#!` line names, if it does not exist.
    fn missing_interpreter(&self, words: &[OsString]) -> Option<String> {
        let shown = |word: &OsString| Some(word.to_string_lossy().into_owned());
        let program = words.first()?;
        if !Path::new(program).exists() {
            return shown(program);
        }
        let search =
            self.surroundings.search.filter(|_| program.to_str() == Some("/usr/bin/env"))?;
        // Options and variables of `env` before the name are skipped.
        let rest = words.get(1)?.to_str()?;
        let name = rest.trim_start_matches("-S").split_whitespace().next()?;
        let plain = !name.starts_with('-') && !name.contains(['=', '/']);
        (plain && along(Some(search), name.as_ref()).is_none()).then(|| name.to_owned())
    }

    /// The words of a script's `#!` line.
    pub(super) fn interpreter(&self, path: &Path) -> Vec<OsString> {
        let head = self.root().head(path, HEAD).unwrap_or_default();
        let Some(line) = head.strip_prefix(b"#!") else { return Vec::new() };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(line) = std::str::from_utf8(line) else { return Vec::new() };
        // The system passes everything after the program as one word.
        let mut words = line.trim().splitn(2, char::is_whitespace).map(str::trim);
        words.by_ref().filter(|word| !word.is_empty()).map(OsString::from).collect()
    }
}

/// Whether a file is a description, which is never run.
pub(super) fn is_description(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".meta.json") || name.ends_with(".meta.toml")
}
