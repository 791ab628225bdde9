//! The stock: a folder's files as last seen, the items they describe, and which of them are
//! offered.

mod scan;
mod select;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::describe::{
    Confines, Described, INSTRUCTIONS, Introduction, POLICY, Policy, ROOTS, Registration, SERVER,
    Surroundings, confines, describe, introduction, policy, registration, unit_of,
};
use crate::guard;
use crate::hidden::Hidden;
use crate::offer::{Check, Key, Kind, Offered};
use crate::tree::{Root, Stat};
use crate::{FolderLimits, Problem};

/// The registration file.
pub(crate) const REGISTER: &str = "server.d/register.json";

/// Everything known about a folder. Only the folder's task changes it.
pub(crate) struct Stock {
    root: Root,
    limits: FolderLimits,
    /// The `PATH` of the folder's programs.
    search: Option<OsString>,
    hidden: Hidden,
    files: BTreeMap<PathBuf, Stat>,
    /// The links in the folder, by the file they lead to.
    links: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// All links, including broken ones.
    link_paths: BTreeSet<PathBuf>,
    /// The links to directories that are followed, with their targets.
    linked: BTreeMap<PathBuf, PathBuf>,
    /// Files outside the parts that descriptions consult, as last seen.
    consulted: BTreeMap<PathBuf, Stat>,
    units: BTreeMap<PathBuf, Unit>,
    /// The units that consult a file outside themselves, by file.
    readers: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The units that claim each name, sorted by path; rarely more than one.
    claims: BTreeMap<Key, Vec<(PathBuf, Arc<Offered>)>>,
    /// The kinds that the registration lists.
    registered: BTreeSet<Kind>,
    /// The last output of a registration program, and its file.
    printed: Option<(PathBuf, String)>,
    policy: Policy,
    /// The directories that tools may work in.
    confines: Confines,
    introduction: Introduction,
    /// The results of the checks of tools.
    verdicts: BTreeMap<String, bool>,
    /// Whether checks are run at all.
    asks: bool,
    /// Problems of paths: links, pipes, directories.
    places: BTreeMap<PathBuf, Vec<Problem>>,
    /// Problems of the folder's own settings.
    settings: BTreeMap<PathBuf, Vec<Problem>>,
}

/// Items that are described together.
#[derive(Debug, Default)]
struct Unit {
    keys: Vec<Key>,
    problems: Vec<Problem>,
    reads: BTreeSet<PathBuf>,
}

impl Unit {
    /// Whether other units' offers depend on this one: a provider or a template decides over
    /// everything of its scheme.
    fn decides_over_others(&self) -> bool {
        self.keys.iter().any(|(kind, _)| matches!(kind, Kind::Provider | Kind::Template))
    }
}

/// Items and files that may have changed.
#[derive(Debug, Default)]
pub(crate) struct Affected {
    pub(crate) keys: BTreeSet<Key>,
    /// Files whose content may have changed.
    pub(crate) files: BTreeSet<PathBuf>,
    /// The files that are known to be completely written.
    pub(crate) complete: BTreeSet<PathBuf>,
}

impl Stock {
    /// An empty stock; [`Stock::rescan`] fills it.
    pub(crate) fn new(root: Root, limits: FolderLimits, asks: bool) -> Self {
        Self {
            root,
            limits,
            search: None,
            hidden: Hidden::default(),
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            link_paths: BTreeSet::new(),
            linked: BTreeMap::new(),
            consulted: BTreeMap::new(),
            units: BTreeMap::new(),
            readers: BTreeMap::new(),
            claims: BTreeMap::new(),
            registered: BTreeSet::new(),
            printed: None,
            policy: Policy::closed(),
            confines: Confines::Nowhere,
            introduction: Introduction::default(),
            verdicts: BTreeMap::new(),
            asks,
            places: BTreeMap::new(),
            settings: BTreeMap::new(),
        }
    }

    /// The same stock, for programs with this `PATH`.
    pub(crate) fn searching(self, search: Option<OsString>) -> Self {
        Self { search, ..self }
    }

    pub(crate) fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn confines(&self) -> &Confines {
        &self.confines
    }

    pub(crate) fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    pub(crate) fn files(&self) -> &BTreeMap<PathBuf, Stat> {
        &self.files
    }

    /// Directories of consulted files outside the parts.
    pub(crate) fn consulted_directories(&self) -> BTreeSet<PathBuf> {
        let files = self.readers.keys().chain(self.links.keys());
        let outside = files.map(PathBuf::as_path).filter(|path| unit_of(path).is_none());
        let outside = outside.chain([Path::new(ROOTS)]);
        outside.filter_map(|path| path.parent().map(Path::to_owned)).collect()
    }

    /// The checks of tools, by name.
    pub(crate) fn checks(&self) -> BTreeMap<String, Check> {
        if !self.asks {
            return BTreeMap::new();
        }
        let tools = self.claims.range((Kind::Tool, "".into())..);
        let tools = tools.take_while(|((kind, _), _)| *kind == Kind::Tool);
        tools
            .flat_map(|((_, name), claims)| claims.iter().map(move |(_, offered)| (name, offered)))
            .filter_map(|(name, offered)| match &**offered {
                Offered::Tool(offer) => Some((name.to_string(), offer.check.clone()?)),
                _ => None,
            })
            .collect()
    }

    /// Stores the result of a tool's check.
    pub(crate) fn judge(&mut self, name: &str, verdict: bool) -> Affected {
        let before = self.verdicts.insert(name.to_owned(), verdict);
        let mut affected = Affected::default();
        if before != Some(verdict) {
            affected.keys.insert((Kind::Tool, name.into()));
        }
        affected
    }

    /// Forgets the check of a removed tool.
    pub(crate) fn forget(&mut self, name: &str) {
        self.verdicts.remove(name);
    }

    /// Stores the output of a registration program; `None` if there is no program any more.
    pub(crate) fn print(&mut self, printed: Option<(PathBuf, String)>) -> Affected {
        let mut affected = Affected::default();
        if self.printed != printed {
            self.printed = printed;
            self.register(&mut affected);
        }
        affected
    }

    /// Stores or clears a problem that belongs to no file.
    pub(crate) fn set_problem(&mut self, about: &Path, problem: Option<Problem>) {
        match problem {
            Some(problem) => drop(self.settings.insert(about.to_owned(), vec![problem])),
            None => drop(self.settings.remove(about)),
        }
    }

    /// All problems, sorted.
    pub(crate) fn problems(&self) -> BTreeSet<Problem> {
        // Descriptions that a registration replaces are not used, so their problems do not matter.
        let seen = self.units.iter().filter(|(path, _)| !self.is_masked(path));
        let units = seen.flat_map(|(_, unit)| &unit.problems);
        let places = self.places.values().flatten();
        let settings = self.settings.values().flatten();
        let mut problems: BTreeSet<_> = units.chain(places).chain(settings).cloned().collect();
        problems.extend(self.conflicts());
        problems
    }

    /// Whether a registration replaces everything that this part of the folder describes.
    fn is_masked(&self, unit: &Path) -> bool {
        let has = |kind| self.registered.contains(&kind);
        match unit.components().next().and_then(|part| part.as_os_str().to_str()) {
            Some("tools") => has(Kind::Tool),
            Some("prompts") => has(Kind::Prompt),
            Some("completions") => has(Kind::Completion),
            Some("resources") => has(Kind::Resource) && has(Kind::Template),
            _ => false,
        }
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            root: &self.root,
            files: &self.files,
            limits: &self.limits,
            hidden: &self.hidden,
            policy: &self.policy,
            search: self.search.as_deref(),
        }
    }

    /// Reads every unit and setting that depends on changed files.
    fn reread(&mut self, changed: &BTreeSet<PathBuf>, affected: &mut Affected) {
        let mut units: BTreeSet<PathBuf> = BTreeSet::new();
        for path in changed {
            units.extend(unit_of(path));
            units.extend(self.readers.get(path).into_iter().flatten().cloned());
            for link in self.links.get(path).into_iter().flatten() {
                units.extend(unit_of(link));
                affected.files.insert(link.clone());
            }
        }
        let has = |name: &str| changed.contains(Path::new(name));
        if has(POLICY) && self.reload_policy(affected) {
            // The policy decides which files a description may consult.
            units.extend(self.units.keys().cloned());
        }
        if has(guard::FILE) {
            let problem = guard::problem(&self.root);
            self.settings.insert(guard::FILE.into(), problem.into_iter().collect());
        }
        if has(ROOTS) {
            self.reload_confines(affected);
        }
        if has(SERVER) || has(INSTRUCTIONS) || units.contains(Path::new(SERVER)) {
            self.reload_introduction();
        }
        // The registration is read apart from the other units.
        if units.remove(Path::new(REGISTER)) || has(REGISTER) {
            self.register(affected);
        }
        for unit in units {
            let says = describe(self.surroundings(), &unit);
            self.take(unit, says, affected);
        }
    }

    /// Reads the policy again; true if it changed.
    fn reload_policy(&mut self, affected: &mut Affected) -> bool {
        let (policy, problems) = policy(self.surroundings());
        self.settings.insert(POLICY.into(), problems);
        let moved = policy.as_ref().is_some_and(|policy| !policy.is_alike(&self.policy));
        if let Some(policy) = policy.filter(|_| moved) {
            self.policy = policy;
            affected.keys.extend(self.claims.keys().cloned());
        }
        moved
    }

    fn reload_confines(&mut self, affected: &mut Affected) {
        let (confines, problems) = confines(self.surroundings());
        self.settings.insert(ROOTS.into(), problems);
        if let Some(confines) = confines {
            self.confines = confines;
        }
        affected.keys.extend(self.claims.keys().filter(|key| key.0 == Kind::Tool).cloned());
    }

    fn reload_introduction(&mut self) {
        let (introduction, problems) = introduction(self.surroundings());
        if let Some(introduction) = introduction {
            self.introduction = introduction;
        }
        self.settings.insert(SERVER.into(), problems);
    }

    /// Reads the registration: the file if it exists, otherwise the output of the program.
    fn register(&mut self, affected: &mut Affected) {
        let file = Path::new(REGISTER);
        let said = if self.files.contains_key(file) {
            match self.root.read(file, self.limits.description) {
                Ok(bytes) => Some((file.to_owned(), String::from_utf8_lossy(&bytes).into_owned())),
                Err(error) => {
                    let advice = "correct it; its last valid version is used";
                    let problem = Problem::error(file, error.to_string(), advice);
                    self.settings.insert(REGISTER.into(), vec![problem]);
                    return;
                }
            }
        } else {
            self.printed.clone()
        };
        let Registration { mut says, kinds } = match &said {
            Some((file, text)) => registration(self.surroundings(), file, text),
            None => Registration::default(),
        };
        self.settings.remove(file);
        if says.broken && !self.units.contains_key(file) {
            // There is no earlier version: its valid entries are used, and files of the kinds it
            // lists are not used instead.
            says.broken = false;
        }
        if !says.broken && kinds != self.registered {
            self.registered = kinds;
            affected.keys.extend(self.claims.keys().cloned());
        }
        self.take(REGISTER.into(), says, affected);
    }

    /// Replaces what a unit described before with what it describes now. A broken description keeps
    /// its last valid version, except for programs and files that are gone.
    fn take(&mut self, path: PathBuf, says: Described, affected: &mut Affected) {
        let mut unit = self.units.remove(&path).unwrap_or_default();
        let decided = unit.decides_over_others();
        let before = self.withdraw(&path, &mut unit, affected);
        let items: Vec<Arc<Offered>> = if says.broken {
            before.into_iter().filter(|offered| self.is_there(offered)).collect()
        } else {
            says.items.into_iter().map(Arc::new).collect()
        };
        unit.problems = says.problems;
        self.claim(&path, &mut unit, items, affected);
        if decided || unit.decides_over_others() {
            let decided_over = |kind: Kind| matches!(kind, Kind::Resource | Kind::Template);
            let keys = self.claims.keys().filter(|(kind, _)| decided_over(*kind)).cloned();
            affected.keys.extend(keys);
        }
        let mut reads = says.reads;
        if says.broken {
            reads.append(&mut unit.reads);
        }
        self.note_reads(&path, &mut unit, reads);
        if !unit.keys.is_empty() || !unit.problems.is_empty() || !unit.reads.is_empty() {
            self.units.insert(path, unit);
        }
    }

    /// Takes back every claim of a unit and forgets which files it consulted. Returns what it
    /// offered.
    fn withdraw(
        &mut self,
        path: &Path,
        unit: &mut Unit,
        affected: &mut Affected,
    ) -> Vec<Arc<Offered>> {
        for read in &unit.reads {
            if let Some(readers) = self.readers.get_mut(read) {
                readers.remove(path);
                if readers.is_empty() {
                    self.readers.remove(read);
                }
            }
        }
        unit.keys
            .drain(..)
            .filter_map(|key| {
                let claims = self.claims.get_mut(&key)?;
                let at = claims.iter().position(|(unit, _)| *unit == path)?;
                let (_, offered) = claims.remove(at);
                if claims.is_empty() {
                    self.claims.remove(&key);
                }
                affected.keys.insert(key);
                Some(offered)
            })
            .collect()
    }

    /// Claims a name for each item of a unit. If two items have the same name, the second is
    /// reported.
    fn claim(
        &mut self,
        path: &Path,
        unit: &mut Unit,
        items: Vec<Arc<Offered>>,
        affected: &mut Affected,
    ) {
        let mut names = BTreeSet::new();
        for offered in items {
            let key = offered.key();
            if !names.insert(key.clone()) {
                let file = self.file_of(&offered).unwrap_or_else(|| path.to_owned());
                let reason = format!("another {} `{}` is described beside it", key.0.word(), key.1);
                let problem = Problem::error(file, reason, "give one of them another name");
                unit.problems.push(problem);
                continue;
            }
            affected.keys.insert(key.clone());
            let claims = self.claims.entry(key.clone()).or_insert_with(|| Vec::with_capacity(1));
            let at = claims.partition_point(|(unit, _)| unit.as_path() < path);
            claims.insert(at, (path.to_owned(), offered));
            unit.keys.push(key);
        }
    }

    /// Remembers the files outside a unit that its description consulted.
    fn note_reads(&mut self, path: &Path, unit: &mut Unit, reads: BTreeSet<PathBuf>) {
        let outside = |read: &PathBuf| unit_of(read).as_deref() != Some(path);
        unit.reads = reads.into_iter().filter(outside).collect();
        for read in &unit.reads {
            self.readers.entry(read.clone()).or_default().insert(path.to_owned());
        }
    }
}
