//! Shared by the commands about a folder: resolving it and naming it.

pub(crate) mod advice;
pub(crate) mod inside;
pub(crate) mod mend;
pub(crate) mod scaffold;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use tidings_folder::Keeper;

use crate::report::Usage;

/// The entries that identify a folder to serve.
const PARTS: [&str; 5] = ["tools", "resources", "prompts", "providers", "server.d"];

/// The folder as an absolute path without links.
pub(crate) fn existing(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    if folder.is_dir() {
        return folder.canonicalize().with_context(|| format!("looking for `{shown}`"));
    }
    let usage = if folder.exists() {
        Usage::new(format!("`{shown}` is not a folder")).hint("give the folder that contains it")
    } else {
        Usage::new(format!("the folder `{shown}` does not exist"))
            .hint(format!("`tidings new folder {}` creates it", quoted(folder)))
    };
    Err(usage.into())
}

/// Whether it has an entry that identifies a folder to serve.
pub(crate) fn has_parts(folder: &Path) -> bool {
    PARTS.iter().any(|part| folder.join(part).is_dir())
}

/// The name of a folder's server: the folder's name, in letters that every host accepts. `None` for
/// a folder without a name, such as the root.
pub(crate) fn server_name(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let name: String =
        name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    let name = name.trim_matches('-');
    (!name.is_empty()).then(|| name.to_owned())
}

/// Ends the programs of all folders if this process is killed.
pub(crate) fn keeper() -> Keeper {
    // The running program, even if another release has replaced its file.
    let this = Path::new("/proc/self/exe");
    let named = std::env::current_exe().ok().filter(|_| !this.exists());
    let mut command = Command::new(named.as_deref().unwrap_or(this));
    command.arg0("tidings").arg("keep");
    Keeper::new(command)
}

/// A path, quoted for a shell.
pub(crate) fn quoted(path: &Path) -> String {
    crate::args::quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_as_its_folder_in_plain_letters() {
        let check = |path: &str, name: Option<&str>| {
            assert_eq!(server_name(Path::new(path)).as_deref(), name, "{path}");
        };
        check("/a/hello", Some("hello"));
        check("/a/My tools.d", Some("My-tools-d"));
        check("/a/.hidden", Some("hidden"));
        check("/", None);
        check("/a/…", None);
    }

    #[test]
    fn a_folder_that_is_not_there_is_said_so() {
        let error = existing(Path::new("/nonexistent/my tools")).unwrap_err();
        assert_eq!(error.to_string(), "the folder `/nonexistent/my tools` does not exist");
        assert!(error.downcast_ref::<Usage>().is_some());
    }
}
