//! Repairs that do not change the meaning of a folder.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tidings_folder::{Fix, Problem};

use crate::draft::draft;

/// A byte order mark, which interpreters do not accept.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Repairs one problem and returns what was done; `None` if it cannot be repaired.
pub(crate) fn mend(root: &Path, problem: &Problem) -> Result<Option<&'static str>> {
    let Some(fix) = problem.fix else { return Ok(None) };
    let file = root.join(&problem.file);
    let mending = || format!("repairing `{}`", problem.file.display());
    let real = file.canonicalize().with_context(mending)?;
    if !real.starts_with(root.canonicalize().with_context(mending)?) {
        bail!("`{}` is a link that leads out of the folder", problem.file.display());
    }
    match fix {
        Fix::MakeExecutable => make_executable(&real).with_context(mending)?,
        Fix::DropByteOrderMark => drop_byte_order_mark(&real).with_context(mending)?,
        _ => return Ok(None),
    }
    Ok(Some(match fix {
        Fix::MakeExecutable => "made executable",
        _ => "removed the byte order mark",
    }))
}

/// Everyone who may read it may run it.
fn make_executable(file: &Path) -> std::io::Result<()> {
    let mut permissions = std::fs::metadata(file)?.permissions();
    let mode = permissions.mode();
    permissions.set_mode(mode | (mode & 0o444) >> 2);
    std::fs::set_permissions(file, permissions)
}

fn drop_byte_order_mark(file: &Path) -> std::io::Result<()> {
    let bytes = std::fs::read(file)?;
    let Some(rest) = bytes.strip_prefix(MARK) else { return Ok(()) };
    let new = draft(file, Some(&std::fs::metadata(file)?), rest)?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_may_read_may_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool.sh");
        std::fs::write(&file, "\u{feff}#!/bin/sh\n").unwrap();
        for (before, after) in [(0o600, 0o700), (0o644, 0o755), (0o640, 0o750), (0o755, 0o755)] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(before)).unwrap();
            make_executable(&file).unwrap();
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, after);
        }
        drop_byte_order_mark(&file).unwrap();
        drop_byte_order_mark(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "#!/bin/sh\n");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
