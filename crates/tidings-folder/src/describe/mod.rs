//! Descriptions: read the files of a folder into offered items and problems.

mod audience;
mod completion;
mod document;
mod head;
mod icon;
mod policy;
mod program;
mod prompt;
mod register;
mod resource;
mod roots;
mod schema;
mod server;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) use self::policy::{POLICY, Policy, policy};
pub(crate) use self::register::{Registration, registration};
pub(crate) use self::resource::{decoded, encoded, file_of};
pub(crate) use self::roots::{Confine, Confines, ROOTS, confines};
pub use self::server::Introduction;
pub(crate) use self::server::{INSTRUCTIONS, SERVER, introduction};
use crate::hidden::Hidden;
use crate::offer::Offered;
use crate::tree::{PARTS, Root, Stat};
use crate::{FolderLimits, Problem};

/// The result of reading one description.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) items: Vec<Offered>,
    pub(crate) problems: Vec<Problem>,
    /// The consulted files: if one changes, the description is read again.
    pub(crate) reads: BTreeSet<PathBuf>,
    /// Whether the description is invalid: its last valid version stays in use.
    pub(crate) broken: bool,
}

/// Everything a description can depend on.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) root: &'a Root,
    /// All files of the parts of the folder.
    pub(crate) files: &'a BTreeMap<PathBuf, Stat>,
    pub(crate) limits: &'a FolderLimits,
    pub(crate) hidden: &'a Hidden,
    pub(crate) policy: &'a Policy,
    /// The `PATH` of the folder's programs, if known.
    pub(crate) search: Option<&'a OsStr>,
}

/// Reads one description and collects its items and problems.
pub(crate) struct Describer<'a> {
    surroundings: Surroundings<'a>,
    result: Described,
}

impl<'a> Describer<'a> {
    fn new(surroundings: Surroundings<'a>) -> Self {
        Self { surroundings, result: Described::default() }
    }

    fn root(&self) -> &'a Root {
        self.surroundings.root
    }

    fn limits(&self) -> &'a FolderLimits {
        self.surroundings.limits
    }

    /// Whether a file may be served. The folder's own settings always may.
    fn may_read(&self, path: &Path) -> bool {
        let Surroundings { hidden, policy, .. } = self.surroundings;
        let own = path.starts_with("server.d") || path == Path::new(ROOTS);
        own || (!hidden.hides_any(path, false) && policy.allows_path(path))
    }

    fn report(&mut self, problem: Problem) {
        self.result.problems.push(problem);
    }

    /// Reports a problem that makes the description invalid.
    fn reject(&mut self, problem: Problem) {
        self.report(problem);
        self.result.broken = true;
    }

    fn stat(&mut self, path: &Path) -> Option<&'a Stat> {
        self.result.reads.insert(path.to_owned());
        self.surroundings.files.get(path)
    }

    /// The files that belong to a unit: see [`unit_of`].
    fn siblings(&self, unit: &Path) -> Vec<(&'a Path, &'a Stat)> {
        let files = self.surroundings.files;
        let Some(name) = unit.file_name().and_then(|name| name.to_str()) else {
            // A name that is not text has no siblings.
            return files
                .get_key_value(unit)
                .map(|(path, stat)| (path.as_path(), stat))
                .into_iter()
                .collect();
        };
        let begins = format!("{name}.");
        let depth = unit.components().count() - 1;
        // Files with the same prefix are adjacent in the map, mixed with directories of such names.
        let alike = files.range(unit.with_file_name(&begins)..).take_while(|(path, _)| {
            let at = path.components().nth(depth);
            path.parent().is_some_and(|it| it.starts_with(unit.parent().unwrap_or(Path::new(""))))
                && at.is_some_and(|it| {
                    it.as_os_str().as_encoded_bytes().starts_with(begins.as_bytes())
                })
        });
        let alike = alike.filter(|(path, _)| path.parent() == unit.parent());
        let all = files.get_key_value(unit).into_iter().chain(alike);
        all.filter(|(path, _)| unit_of(path).as_deref() == Some(unit))
            .map(|(path, stat)| (path.as_path(), stat))
            .collect()
    }

    /// The files directly in a directory.
    fn files_in<'b>(&self, directory: &'b Path) -> impl Iterator<Item = (&'a Path, &'a Stat)> + 'b
    where
        'a: 'b,
    {
        self.surroundings
            .files
            .range(directory.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(directory))
            .filter(move |(path, _)| path.parent() == Some(directory))
            .map(|(path, stat)| (path.as_path(), stat))
    }
}

/// The unit of a file: all files that are described together, named by one path. If one changes,
/// the unit is read again.
pub(crate) fn unit_of(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    let part = parts.next()?.as_os_str().to_str()?;
    if !PARTS.contains(&part) {
        return None;
    }
    let below = parts.next()?;
    match part {
        "tools" if parts.next().is_some() => Some(Path::new(part).join(below)),
        // Whether a file has a description depends on both, so they belong to one unit.
        "tools" | "resources" | "prompts" => Some(stem_of(path)),
        "server.d" => None,
        _ => Some(path.to_owned()),
    }
}

/// A path without its extension and without that of a description: `a/b.txt`, `a/b.meta.json` and
/// `a/b.txt.meta.json` all have the stem `a/b`.
fn stem_of(path: &Path) -> PathBuf {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return path.to_owned();
    };
    let name = name.strip_suffix(META).unwrap_or(name);
    let stem = match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    };
    path.with_file_name(stem)
}

/// The extension of descriptions.
pub(crate) const META: &str = ".meta.json";

/// Reads the description of a unit.
pub(crate) fn describe(surroundings: Surroundings<'_>, unit: &Path) -> Described {
    let mut describer = Describer::new(surroundings);
    match unit.components().next().and_then(|part| part.as_os_str().to_str()) {
        Some("tools") => describer.tool_unit(unit),
        Some("resources") => describer.resource_unit(unit),
        Some("prompts") => describer.prompt_unit(unit),
        Some("providers") => describer.provider_unit(unit),
        Some("completions") => describer.completion_unit(unit),
        _ => {}
    }
    describer.result
}
