//! What comes back when the console starts again: servers by URL or name, what was watched, and the
//! port. Command lines are offered, and started by nobody but a person.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::args::Place;
use crate::console::Console;
use crate::console::secret::{DOTS, is_secret};
use crate::draft::draft;
use crate::feeds::data_home;

/// The version of the file.
const VERSION: u64 = 1;
/// The shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(1);
/// The servers of the last run that are kept though they do not run.
const OFFERS: usize = 20;
/// The watched resources of one server that come back.
const WATCHED: usize = 1_000;

/// The state of a console, as it is kept in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KeptState {
    version: u64,
    /// The page keeps its layout for its address, so the port comes back if it is free.
    pub(crate) port: u16,
    pub(crate) servers: Vec<KeptServer>,
}

/// One server of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct KeptServer {
    pub(crate) place: Place,
    /// The file that names it, or the folder of a program.
    pub(crate) path: Option<PathBuf>,
    #[serde(default)]
    pub(crate) watched: Vec<String>,
}

impl KeptServer {
    /// A server that may be kept: a URL without secrets, a name with the file that has it, or a
    /// command line, whose secrets are dotted.
    pub(crate) fn of(place: &Place, shown: &Place, path: Option<PathBuf>) -> Option<Self> {
        let watched = Vec::new();
        match place {
            Place::Named(_) => {
                (place == shown).then(|| Self { place: place.clone(), path, watched })
            }
            Place::Command(words) => {
                Some(Self { place: Place::Command(harmless(words)), path, watched })
            }
        }
    }

    /// Whether it is the same server, whatever is watched.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.place, &self.path) == (&other.place, &other.path)
    }

    /// The command line that opens it again, if it is a program.
    pub(crate) fn offer(&self) -> Option<String> {
        let Place::Command(_) = &self.place else { return None };
        let line = self.place.line("open", &[]);
        Some(match &self.path {
            Some(folder) => {
                let folder = crate::args::quoted(&folder.to_string_lossy());
                format!("cd {folder} && {line}")
            }
            None => line,
        })
    }
}

/// A command line without what is named like a secret: `--token=X`, `--api-key X`, `KEY=X`.
fn harmless(words: &[String]) -> Vec<String> {
    let names = |word: &str| {
        let name = word.trim_start_matches('-');
        is_secret(name) || name.to_ascii_lowercase().ends_with("token")
    };
    let mut is_value = false;
    let shown = words.iter().map(|word| {
        let (is_hidden, dashes) = (is_value, word.starts_with('-'));
        is_value = dashes && !word.contains('=') && names(word);
        match word.split_once('=') {
            Some((name, _)) if names(name) => format!("{name}={DOTS}"),
            _ if is_hidden && !dashes => DOTS.to_owned(),
            _ => word.clone(),
        }
    });
    shown.collect()
}

/// The file of the state.
pub(crate) fn path() -> Option<PathBuf> {
    Some(data_home()?.join("tidings/console-state.json"))
}

/// Reads the state. A file that cannot be understood is moved aside, so that nothing is lost.
pub(crate) fn read(path: &Path) -> KeptState {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return KeptState::default(),
        Err(error) => {
            warn!(path = %path.display(), %error, "the last state of the console is not read");
            return KeptState::default();
        }
    };
    let known = serde_json::from_slice::<KeptState>(&text);
    match known {
        Ok(state) if state.version == VERSION => state,
        other => {
            let why = other.err().map_or_else(|| "another version".to_owned(), |it| it.to_string());
            let aside = path.with_extension("json.bad");
            drop(std::fs::rename(path, &aside));
            let aside = aside.display();
            warn!(path = %aside, error = why, "the last state of the console cannot be used");
            KeptState::default()
        }
    }
}

/// Writes the state in one step. Only its owner may read it.
fn write(path: &Path, state: &KeptState) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = draft(path, None, &serde_json::to_vec_pretty(state)?)?;
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600))?;
    file.persist(path)?;
    Ok(())
}

/// Keeps the state of a console in a file, as long as this is awaited.
pub(crate) struct StateKeeper {
    console: Console,
    path: PathBuf,
    port: u16,
    written: KeptState,
}

impl StateKeeper {
    pub(crate) fn new(console: Console, path: PathBuf, port: u16) -> Self {
        Self { console, path, port, written: KeptState::default() }
    }

    /// Writes the state whenever it changes. It never ends by itself.
    pub(crate) async fn run(&mut self) {
        let mut seen = 0;
        loop {
            self.keep();
            seen = self.console.changed(seen).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Writes the state if it is another.
    pub(crate) fn keep(&mut self) {
        let mut servers = self.console.kept();
        for server in &mut servers {
            server.watched.truncate(WATCHED);
        }
        let state = KeptState { version: VERSION, port: self.port, servers };
        if state == self.written {
            return;
        }
        match write(&self.path, &state) {
            Ok(()) => self.written = state,
            Err(error) => {
                let path = self.path.display();
                warn!(%path, %error, "the state of the console is not kept");
            }
        }
    }
}

/// The newest of these, each once.
pub(crate) fn newest(mut all: Vec<KeptServer>) -> Vec<KeptServer> {
    let mut kept: Vec<KeptServer> = Vec::new();
    while let Some(server) = all.pop() {
        if kept.len() < OFFERS && !kept.iter().any(|known| known.is_same(&server)) {
            kept.push(server);
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn secrets_of_a_command_line_are_not_kept() {
        let given = words("node s.js --token abc --api-key=def GITHUB_TOKEN=g --port 7");
        let expected =
            format!("node s.js --token {DOTS} --api-key={DOTS} GITHUB_TOKEN={DOTS} --port 7");
        assert_eq!(harmless(&given), words(&expected));
    }

    #[test]
    fn a_url_with_secrets_is_not_kept() {
        let named = |text: &str| Place::Named(text.to_owned());
        let plain = named("http://h/mcp");
        assert!(KeptServer::of(&plain, &plain, None).is_some());
        assert_eq!(KeptServer::of(&named("http://h/mcp?key=x"), &plain, None), None);
    }

    #[test]
    fn a_program_is_offered_in_its_folder() {
        let place = Place::Command(words("node s.js"));
        let kept = KeptServer::of(&place, &place, Some("/my project".into())).unwrap();
        assert_eq!(kept.offer().unwrap(), "cd '/my project' && tidings open -- node s.js");
        assert_eq!(newest(vec![kept.clone(), kept]).len(), 1);
    }

    #[test]
    fn a_state_that_cannot_be_used_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert_eq!(read(&path), KeptState::default());
        let state = KeptState { version: VERSION, port: 7, servers: Vec::new() };
        write(&path, &state).unwrap();
        assert_eq!(read(&path), state);
        std::fs::write(&path, "{\"version\":1,").unwrap();
        assert_eq!(read(&path), KeptState::default());
        let aside = folder.path().join("state.json.bad");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), "{\"version\":1,");
    }
}
