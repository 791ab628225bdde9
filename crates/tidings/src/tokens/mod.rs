//! `tokens.toml`: the clients that may use a server over HTTP, with their labels and limits.

mod edit;
mod file;
mod secret;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub(crate) use self::edit::{add, remove};
pub(crate) use self::file::{StoredToken, load, name, others_may_read};
pub(crate) use self::secret::secret;
use crate::report::Hint;

/// The file: the given one, or the one in the system's place for data.
pub(crate) fn place(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given.filter(|given| !given.as_os_str().is_empty()) {
        return Ok(given.to_owned());
    }
    let data = crate::feeds::data_home()
        .context("the home directory is unknown, so tokens cannot be stored there")
        .context(Hint("give a file with `--tokens FILE`".to_owned()))?;
    Ok(data.join("tidings/tokens.toml"))
}
