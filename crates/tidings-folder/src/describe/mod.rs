//! Descriptions to offers: what the files of a folder say, and what is wrong with it.

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
use crate::{Limits, Problem};

/// What one description yields.
#[derive(Debug, Default)]
pub(crate) struct Described {
    pub(crate) items: Vec<Offered>,
    pub(crate) problems: Vec<Problem>,
    /// The files that were consulted: when one changes, the description is read again.
    pub(crate) reads: BTreeSet<PathBuf>,
    /// Whether it could not be understood: what it said before holds.
    pub(crate) broken: bool,
}

/// What a description is made from.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) root: &'a Root,
    /// All files of the parts of the folder.
    pub(crate) files: &'a BTreeMap<PathBuf, Stat>,
    pub(crate) limits: &'a Limits,
    pub(crate) hidden: &'a Hidden,
    pub(crate) policy: &'a Policy,
    /// The directories in which programs look for others, if they are known.
    pub(crate) search: Option<&'a OsStr>,
}

/// One description while it is read.
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

    fn limits(&self) -> &'a Limits {
        self.surroundings.limits
    }

    /// Whether a file may become part of what is served. The folder's own settings always may.
    fn may_read(&self, path: &Path) -> bool {
        let Surroundings { hidden, policy, .. } = self.surroundings;
        let own = path.starts_with("server.d") || path == Path::new(ROOTS);
        own || (!hidden.hides_any(path, false) && policy.allows_path(path))
    }

    fn report(&mut self, problem: Problem) {
        self.result.problems.push(problem);
    }

    /// The description cannot be understood.
    fn reject(&mut self, problem: Problem) {
        self.report(problem);
        self.result.broken = true;
    }

    fn stat(&mut self, path: &Path) -> Option<&'a Stat> {
        self.result.reads.insert(path.to_owned());
        self.surroundings.files.get(path)
    }

    /// The files that are described together with this one: see [`unit_of`].
    fn siblings(&self, unit: &Path) -> Vec<(&'a Path, &'a Stat)> {
        let files = self.surroundings.files;
        let Some(name) = unit.file_name().and_then(|name| name.to_str()) else {
            // A name that is no text is alone.
            return files
                .get_key_value(unit)
                .map(|(path, stat)| (path.as_path(), stat))
                .into_iter()
                .collect();
        };
        let begins = format!("{name}.");
        let depth = unit.components().count() - 1;
        // Names that begin alike stand beside each other, directories of such names among them.
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

    /// The files right in a directory.
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

/// What is described together, named by one path: a change of a file in it means reading it again.
pub(crate) fn unit_of(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    let part = parts.next()?.as_os_str().to_str()?;
    if !PARTS.contains(&part) {
        return None;
    }
    let below = parts.next()?;
    match part {
        "tools" if parts.next().is_some() => Some(Path::new(part).join(below)),
        // Whether a file has a description beside it depends on both, so that the description and
        // everything of its stem are one.
        "tools" | "resources" | "prompts" => Some(stem_of(path)),
        "server.d" => None,
        _ => Some(path.to_owned()),
    }
}

/// A path without the ending of a description, and without its own: `a/b.txt`, `a/b.meta.json` and
/// `a/b.txt.meta.json` are all of `a/b`.
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

/// How the name of a description ends.
pub(crate) const META: &str = ".meta.json";

/// Reads what is described at a unit.
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
