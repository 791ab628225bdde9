//! `troublemaker.py`: a server over stdio that does what servers should not do, on command.

use std::path::Path;

/// The script, which describes its troubles.
pub(crate) const SCRIPT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/troublemaker.py");

/// Whether a process of this id is there. One that nobody has waited for yet is not.
pub(crate) fn is_alive(id: u64) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}
