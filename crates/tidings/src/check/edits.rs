//! Edits of a folder that is served in memory. The folder is a copy: the original is only read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::cause::Scope;
use crate::report::Usage;

/// What may be copied.
const FILES: usize = 20_000;
const BYTES: u64 = 256 << 20;
/// Directories that no folder serves, and that may be large.
const LEFT_OUT: [&str; 4] = [".git", "node_modules", "target", ".venv"];
/// The content that edits change.
pub(crate) const WATCHED: &str = "tidings-check.txt";

/// A copy of a folder, and what is changed in it.
#[derive(Clone, Debug)]
pub(crate) struct Edits {
    /// Removed with the last clone.
    copy: Arc<TempDir>,
}

impl Edits {
    /// Copies a folder.
    pub(crate) fn copy_of(folder: &Path) -> Result<Self> {
        let copy = TempDir::with_prefix("tidings-check-").context("making a temporary folder")?;
        let mut left = (FILES, BYTES);
        copy_tree(folder, copy.path(), &mut left)
            .with_context(|| format!("copying `{}`", folder.display()))?;
        let edits = Self { copy: Arc::new(copy) };
        edits.write(0, Scope::Everything).map_err(anyhow::Error::msg)?;
        Ok(edits)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.copy.path().to_owned()
    }

    /// Makes the edit with this number. The same number twice changes nothing.
    pub(crate) fn write(&self, step: u64, scope: Scope) -> Result<(), String> {
        let root = self.copy.path();
        let put = |place: &str, text: String| {
            let path = root.join(place);
            // Written beside and renamed, so that nobody reads half of it.
            let beside = root.join(".tidings-check.part");
            let folder = path.parent().unwrap_or(root);
            std::fs::create_dir_all(folder)?;
            std::fs::write(&beside, text)?;
            std::fs::set_permissions(&beside, PermissionsExt::from_mode(0o755))?;
            std::fs::rename(&beside, &path)
        };
        let all = || -> std::io::Result<()> {
            put(&format!("resources/{WATCHED}"), format!("edit {step}\n"))?;
            if scope == Scope::Content {
                return Ok(());
            }
            let about = format!("Edit {step} of tidings check");
            put(
                "tools/tidings_check.sh",
                format!("#!/bin/sh\n# @describe {about}\necho checked\n"),
            )?;
            put(
                "prompts/tidings-check.md",
                format!("---\nname: tidings-check\ndescription: {about}\n---\n{about}\n"),
            )?;
            put(
                "resources/tidings-check-listed.md.meta.json",
                format!("{{\"name\": \"tidings-check-listed\", \"description\": \"{about}\"}}\n"),
            )?;
            put("resources/tidings-check-listed.md", "listed\n".to_owned())
        };
        all().map_err(|error| error.to_string())
    }
}

fn copy_tree(from: &Path, to: &Path, left: &mut (usize, u64)) -> Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let (from, to) = (entry.path(), to.join(&name));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            std::fs::create_dir(&to)?;
            copy_tree(&from, &to, left)?;
        } else if kind.is_file() {
            let size = entry.metadata()?.len();
            let fits = left.0 > 0 && size <= left.1;
            if !fits {
                return Err(Usage::new("the folder is too large to be copied")
                    .hint("serve it, and give the URL with `--exec COMMAND`")
                    .into());
            }
            *left = (left.0 - 1, left.1 - size);
            std::fs::copy(&from, &to)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&from)?, &to)?;
        }
    }
    Ok(())
}
