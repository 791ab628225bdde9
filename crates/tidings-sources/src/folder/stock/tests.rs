//! What of a folder is offered, and what is said to be wrong with the rest.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Stock, Touched};
use crate::folder::Limits;
use crate::folder::offer::{Kind, Offered};
use crate::folder::tree::Root;

/// A folder on disk and what is known of it.
struct Place {
    directory: tempfile::TempDir,
    stock: Stock,
}

impl Place {
    /// Files by path and text; a text that begins with `#!` is made executable.
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path()).unwrap();
        let mut place = Self { directory, stock: Stock::new(root, Limits::default()) };
        for (path, text) in files {
            place.put(path, text);
        }
        place.stock.rescan(&mut |_| {});
        place
    }

    fn put(&self, path: &str, text: &str) {
        let at = self.directory.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(&at, text).unwrap();
        if text.starts_with("#!") {
            std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Writes a file and looks at it alone.
    fn change(&mut self, path: &str, text: &str) -> Touched {
        self.put(path, text);
        self.stock.look(&[PathBuf::from(path)].into(), &mut |_| {})
    }

    fn remove(&mut self, path: &str) -> Touched {
        std::fs::remove_file(self.directory.path().join(path)).unwrap();
        self.stock.look(&[PathBuf::from(path)].into(), &mut |_| {})
    }

    /// What is offered of a kind.
    fn offers(&self, kind: Kind) -> Vec<String> {
        let keys: BTreeSet<_> = self.stock.keys().filter(|(it, _)| *it == kind).cloned().collect();
        let offered = keys.into_iter().filter(|key| self.stock.selected(key).is_some());
        let root = self.directory.path().canonicalize().unwrap();
        offered.map(|(_, name)| name.replace(root.to_str().unwrap(), "")).collect()
    }

    fn description(&self, tool: &str) -> String {
        match self.stock.selected(&(Kind::Tool, tool.to_owned())).as_deref() {
            Some(Offered::Tool(offer)) => {
                offer.script.tool.description.clone().unwrap_or_default().into_owned()
            }
            _ => panic!("no tool {tool}"),
        }
    }

    fn problems(&self) -> Vec<String> {
        self.stock.problems().iter().map(ToString::to_string).collect()
    }
}

const SCRIPT: &str = "#!/bin/sh\n";

#[test]
fn a_registration_that_breaks_keeps_what_it_said() {
    let say = |text: &str| {
        format!(r#"{{"tools": [{{"name": "a", "description": "{text}", "path": "x.sh"}}]}}"#)
    };
    let mut place = Place::new(&[("tools/x.sh", SCRIPT), ("server.d/register.json", &say("one"))]);
    assert_eq!(place.description("a"), "one");
    assert_eq!(place.offers(Kind::Tool), ["a"]);
    place.change("server.d/register.json", &say("two"));
    assert_eq!(place.description("a"), "two");
    place.change("server.d/register.json", "{\n\"tools\": [}");
    assert_eq!(place.description("a"), "two");
    assert_eq!(place.problems().len(), 1, "{:?}", place.problems());
    place.remove("server.d/register.json");
    assert_eq!(place.offers(Kind::Tool), ["x"]);
    let _ = Path::new("");
}
