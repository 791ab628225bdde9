//! The commands about a folder: made, and added to.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::demo::{Ended, PROGRAM, client, ended};

/// A home of one test, with nothing in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With an example folder `hello` in it.
    async fn with_example() -> Self {
        let home = Self::new();
        let made = home.run(&["new", "folder", "hello"]).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file)).unwrap()
    }

    /// Runs the program in it.
    async fn run(&self, words: &[&str]) -> Ended {
        let mut command = client(words);
        command.env("HOME", self.path()).current_dir(self.path());
        let ended = ended(command).await;
        let (output, errors) = (self.shown(&ended.output), self.shown(&ended.errors));
        Ended { output, errors, ..ended }
    }

    /// Text without the paths of the machine.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "~").replace(PROGRAM, "PROGRAM")
    }
}

#[track_caller]
fn refused(ended: &Ended, code: i32, errors: &str) {
    assert_eq!((ended.code, ended.errors.as_str()), (Some(code), errors), "{ended:?}");
}

#[tokio::test]
async fn a_new_folder_is_told_with_what_to_do_next() {
    let home = Home::new();
    let made = home.run(&["new", "folder", "my tools"]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    insta::assert_snapshot!(made.output, @"
    made my tools/README.md
    made my tools/.tidingsignore
    made my tools/prompts/explain.md
    made my tools/resources/colours.json
    made my tools/resources/notes.jsonl
    made my tools/resources/notes.jsonl.meta.json
    made my tools/resources/welcome.md
    made my tools/server.d/server.instructions.md
    made my tools/server.d/server.meta.json
    made my tools/tools/greet/tool.meta.json
    made my tools/tools/greet/tool.sh
    made my tools/tools/note.sh
    next:
      tidings run 'my tools' greet name=Ada
      tidings serve --folder 'my tools'
      tidings watch http://127.0.0.1:8484/mcp notes://all
      tidings call http://127.0.0.1:8484/mcp note text=hello
    ");
    let server: Value =
        serde_json::from_str(&home.read("my tools/server.d/server.meta.json")).unwrap();
    assert_eq!(server["name"], "my-tools");
    for tool in ["my tools/tools/greet/tool.sh", "my tools/tools/note.sh"] {
        let mode = std::fs::metadata(home.path().join(tool)).unwrap().permissions().mode();
        assert_eq!(mode & 0o100, 0o100, "{tool}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_empty_is_left_alone() {
    let home = Home::with_example().await;
    let again = home.run(&["new", "folder", "hello"]).await;
    refused(
        &again,
        2,
        "error: `hello` is not empty\n\
         hint: give a folder that is not there yet; `tidings new tool NAME --folder DIR` adds to \
         one that is\n",
    );
    home.write("file", "");
    let file = home.run(&["new", "folder", "file"]).await;
    assert_eq!(file.code, Some(2), "{file:?}");
    std::fs::create_dir_all(home.path().join("fresh/.git")).unwrap();
    assert_eq!(home.run(&["new", "folder", "fresh"]).await.code, Some(0));
}

#[tokio::test]
async fn items_are_added_to_a_folder() {
    let home = Home::with_example().await;
    let words = ["new", "tool", "weather", "--folder", "hello"];
    insta::assert_snapshot!(home.run(&words).await.output, @"
    made hello/tools/weather/tool.meta.json
    made hello/tools/weather/tool.sh
    next:
      tidings run hello weather text=hello
    ");
    let words = ["new", "tool", "tide", "--folder", "hello", "--single", "--language", "python"];
    let made = home.run(&[&words[..], &["--json"]].concat()).await.object();
    assert_eq!(made, json!({ "folder": "hello", "files": ["tools/tide.py"] }));
    let made = home.run(&["new", "prompt", "review", "--folder", "hello", "--json"]).await.object();
    assert_eq!(made["files"], json!(["prompts/review.md"]));
    let words = ["new", "resource", "a/today", "--folder", "hello", "--json"];
    let made = home.run(&words).await.object();
    let files = json!(["resources/a/today.md", "resources/a/today.md.meta.json"]);
    assert_eq!(made["files"], files);
}

#[tokio::test]
async fn nothing_is_overwritten_and_names_are_checked() {
    let home = Home::with_example().await;
    let taken = home.run(&["new", "tool", "note", "--folder", "hello"]).await;
    refused(
        &taken,
        2,
        "error: `hello/tools/note.sh` is there already\n\
         hint: give another name, or take it away first\n",
    );
    let taken = home.run(&["new", "prompt", "explain", "--folder", "hello"]).await;
    assert_eq!(taken.code, Some(2), "{taken:?}");
    let taken = home.run(&["new", "resource", "welcome.md", "--folder", "hello"]).await;
    assert_eq!(taken.code, Some(2), "{taken:?}");
    let wrong = home.run(&["new", "tool", "a b", "--folder", "hello"]).await;
    assert!(wrong.errors.contains("`a b` cannot name a tool"), "{wrong:?}");
    let wrong = home.run(&["new", "resource", "../x", "--folder", "hello"]).await;
    assert!(wrong.errors.contains("leads out of the folder"), "{wrong:?}");
    let nowhere = home.run(&["new", "tool", "x"]).await;
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.errors.contains("does not look like a folder to serve"), "{nowhere:?}");
    let missing = home.run(&["new", "tool", "x", "--folder", "none"]).await;
    refused(
        &missing,
        2,
        "error: there is no folder `none`\nhint: `tidings new folder none` makes one\n",
    );
}
