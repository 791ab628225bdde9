//! `tidings workspace` and `tidings serve --workspace`: the real binary on real directories.

mod blob;
mod cli;
mod crowd;
mod kill;
mod live;
mod trouble;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::demo::{Ended, client, ended, program, within};
use crate::support::piped::Server;

/// A directory of one test, and the program in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// In memory, where there is such a place: a kill is no power cut, and fifty need not wait for
    /// a disk.
    fn in_memory() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::new(), Self)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// `tidings` with these words.
    fn command(&self, words: &str) -> Command {
        let mut command = client(&words.split_whitespace().collect::<Vec<_>>());
        command.current_dir(self.0.path());
        command
    }

    /// `tidings workspace w` with these words, to its end.
    async fn run(&self, words: &str) -> Ended {
        ended(self.command(&format!("workspace w {words}"))).await
    }

    /// The lines of JSON of a command that succeeds.
    async fn lines(&self, words: &str) -> Vec<Value> {
        let ended = self.run(&format!("{words} --json")).await;
        assert_eq!(ended.code, Some(0), "{words}: {ended:?}");
        ended.lines()
    }

    /// Makes an artifact of a text; gives its id.
    async fn import(&self, name: &str, options: &str) -> String {
        self.write(name, name);
        let lines = self.lines(&format!("import {name} {options}")).await;
        lines[0]["id"].as_str().unwrap().to_owned()
    }

    /// How many files there are below a part of the workspace.
    fn files(&self, part: &str) -> usize {
        fn count(path: &Path) -> usize {
            let entries = std::fs::read_dir(path).into_iter().flatten();
            entries
                .map(|entry| entry.unwrap().path())
                .map(|path| if path.is_dir() { count(&path) } else { 1 })
                .sum()
        }
        count(&self.path("w").join(part))
    }
}

/// `tidings serve --stdio --workspace w`.
async fn serve(place: &Place, options: &str) -> Server {
    let words = format!("serve --stdio --silent --workspace w {options}");
    Server::of(place.command(&words)).await
}

/// Makes an artifact of a text; gives the answer.
async fn create(server: &mut Server, title: &str, text: &str, tags: &[&str]) -> Value {
    let arguments = json!({ "title": title, "text": text, "tags": tags });
    server.call("create_artifact", arguments).await
}

/// `tidings serve --workspace w` behind a socket.
struct Listening {
    child: Child,
    /// `http://…`, without a path.
    url: String,
}

impl Listening {
    async fn start(place: &Place, options: &str, token: Option<&str>) -> Self {
        let mut command = program("serve --json --http 127.0.0.1:0 --workspace w");
        command.args(options.split_whitespace()).current_dir(place.0.path());
        if let Some(token) = token {
            command.env("TIDINGS_TOKEN", token);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = within(lines.next_line()).await.unwrap().unwrap();
        let first: Value = serde_json::from_str(&first).unwrap();
        let url = first["endpoint"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
        assert_eq!(first["blobs"], format!("{url}/blob"));
        Self { child, url }
    }

    fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }
}
