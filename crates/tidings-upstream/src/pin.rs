//! Approved definitions: a tool or prompt that is new or changed waits until somebody approves it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidings_core::Fingerprint;
use tidings_mirror::List;

use crate::publish::Stock;
use crate::status::Held;

/// The approved definitions of one upstream, kept in a file.
pub(crate) struct Pins {
    path: PathBuf,
    state: Mutex<State>,
}

/// The approved texts, by list and name.
type Approved = BTreeMap<String, BTreeMap<String, String>>;

#[derive(Default)]
struct State {
    /// `None` before there is a first list.
    approved: Option<Approved>,
    problem: Option<String>,
}

impl Pins {
    /// The definitions of a file. A file that cannot be read approves nothing, so that everything
    /// waits.
    pub(crate) fn open(path: &Path) -> Self {
        let mut state = State::default();
        match std::fs::read(path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(approved) => state.approved = Some(approved),
                Err(error) => {
                    state.approved = Some(Approved::default());
                    state.problem = Some(format!("`{}` is not readable: {error}", path.display()));
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                state.approved = Some(Approved::default());
                state.problem = Some(format!("`{}` is not readable: {error}", path.display()));
            }
        }
        Self { path: path.to_owned(), state: Mutex::new(state) }
    }

    /// The first definitions are approved as they come.
    pub(crate) fn begin(&self, stock: &Stock) {
        if self.lock().approved.is_none() {
            self.approve(stock);
        }
    }

    /// Approves what the upstream offers now.
    pub(crate) fn approve(&self, stock: &Stock) {
        let mut approved = Approved::new();
        for (list, name, text) in definitions(stock) {
            approved.entry(list.to_string()).or_default().insert(name.to_owned(), text.to_owned());
        }
        let written = write(&self.path, &approved);
        let mut state = self.lock();
        state.problem = written
            .err()
            .map(|error| format!("`{}` could not be written: {error}", self.path.display()));
        state.approved = Some(approved);
    }

    /// Whether a definition waits for an approval.
    pub(crate) fn holds(&self, list: List, name: &str, text: &str) -> bool {
        if !matches!(list, List::Tools | List::Prompts) {
            return false;
        }
        let state = self.lock();
        let approved = state.approved.as_ref();
        let before = approved.and_then(|all| all.get(list.as_str())?.get(name));
        before.is_none_or(|before| !is_same(before, text))
    }

    /// The definitions that wait.
    pub(crate) fn held(&self, stock: &Stock) -> Vec<Held> {
        let waiting = definitions(stock).filter(|(list, name, text)| self.holds(*list, name, text));
        let held = waiting.map(|(list, name, text)| {
            let state = self.lock();
            let approved = state.approved.as_ref();
            let before = approved.and_then(|all| all.get(list.as_str())?.get(name)).cloned();
            Held { list: list.to_string(), name: name.to_owned(), before, now: text.to_owned() }
        });
        held.collect()
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn definitions(stock: &Stock) -> impl Iterator<Item = (List, &str, &str)> {
    let tools = stock.tools.iter().map(|it| (List::Tools, &*it.key, it.raw.as_str()));
    let prompts = stock.prompts.iter().map(|it| (List::Prompts, &*it.key, it.raw.as_str()));
    tools.chain(prompts)
}

/// Whether two texts are the same JSON. Texts that cannot be compared are not.
fn is_same(one: &str, other: &str) -> bool {
    let value = |text| serde_json::from_str(text).ok().map(|value| Fingerprint::of_json(&value));
    one == other || (value(one).is_some() && value(one) == value(other))
}

/// Writes a file whole, or not at all.
pub(crate) fn write(path: &Path, content: &impl serde::Serialize) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, serde_json::to_vec_pretty(content)?)?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use tidings_server::Raw;

    use super::*;
    use crate::publish::Original;

    fn stock(tools: &[&str]) -> Stock {
        let mut stock = Stock::default();
        for tool in tools {
            let raw = Raw::parse(*tool).unwrap();
            let key: String = serde_json::from_str(raw.get("name").unwrap()).unwrap();
            stock.tools.push(Original { key: key.into(), raw });
        }
        stock
    }

    #[test]
    fn what_changes_after_the_first_time_waits_for_an_approval() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/pins.json");
        let first = stock(&[r#"{"name":"a","description":"reads"}"#, r#"{"name":"b"}"#]);
        let pins = Pins::open(&path);
        pins.begin(&first);
        assert!(pins.held(&first).is_empty());
        // After a restart the file counts, not what comes first.
        let pins = Pins::open(&path);
        let respelt = stock(&[r#"{"description":"reads","name":"a"}"#]);
        pins.begin(&respelt);
        assert!(pins.held(&respelt).is_empty());
        let changed = stock(&[r#"{"name":"a","description":"deletes"}"#, r#"{"name":"c"}"#]);
        let held = pins.held(&changed);
        assert_eq!(held.len(), 2);
        assert!(
            held[0].before.as_ref().unwrap().contains("reads") && held[0].now.contains("deletes")
        );
        assert_eq!((held[1].name.as_str(), &held[1].before), ("c", &None));
        pins.approve(&changed);
        assert!(pins.held(&changed).is_empty() && pins.problem().is_none());
        assert!(Pins::open(&path).held(&changed).is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_read_approves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        std::fs::write(&path, "{").unwrap();
        let pins = Pins::open(&path);
        let stock = stock(&[r#"{"name":"a"}"#]);
        pins.begin(&stock);
        assert_eq!(pins.held(&stock).len(), 1);
        assert!(pins.problem().unwrap().contains("pins.json"));
    }
}
