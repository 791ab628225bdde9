//! `tidings.toml` is followed: an edit changes what it touches while the server runs.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::ChildStderr;

use crate::support::demo::{client, folder, within};
use crate::support::piped::Server;

/// A server with a configuration file of its own.
struct Configured {
    server: Server,
    errors: Lines<BufReader<ChildStderr>>,
    /// Lines that nobody waited for yet: the log and the printer do not wait for each other.
    unread: Vec<String>,
    directory: PathBuf,
}

impl Configured {
    async fn start(name: &str, text: &str, folders: &[&str]) -> Self {
        let directory = folder(&format!("config-{name}"));
        for folder in folders {
            tool(&directory, folder);
        }
        std::fs::write(directory.join("tidings.toml"), text).unwrap();
        let file = directory.join("tidings.toml").display().to_string();
        let mut command = client(&["serve", "--stdio", "--verbose", "--silent", "--config", &file]);
        command.env("XDG_DATA_HOME", &directory);
        let mut server = Server::of(command).await;
        let errors = BufReader::new(server.child.stderr.take().unwrap()).lines();
        Self { server, errors, unread: Vec::new(), directory }
    }

    fn edit(&self, text: &str) {
        let (file, new) = (self.directory.join("tidings.toml"), self.directory.join("new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    async fn tools(&mut self) -> Vec<String> {
        let listed = self.server.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the server says this on standard error.
    async fn said(&mut self, holds: &str) -> String {
        loop {
            if let Some(at) = self.unread.iter().position(|line| line.contains(holds)) {
                return self.unread.remove(at);
            }
            self.unread.push(within(self.errors.next_line()).await.unwrap().unwrap());
        }
    }
}

/// A folder with one tool of the same name, which returns a variable.
fn tool(directory: &Path, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let tools = directory.join(name).join("tools").join(name);
    std::fs::create_dir_all(&tools).unwrap();
    let script = tools.join("tool.sh");
    std::fs::write(&script, "#!/bin/sh\necho \"colour=$COLOUR\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(tools.join("tool.meta.json"), r#"{"description": "Says a colour"}"#).unwrap();
}

#[tokio::test]
async fn a_folder_that_is_added_or_removed_is_announced_once() {
    let text = "[folders]\npaths = ['red']\n";
    let mut it = Configured::start("folders", text, &["red", "green"]).await;
    assert_eq!(it.tools().await, ["red"]);
    it.edit("[folders]\npaths = ['red', 'green']\n");
    it.said("serving the folder").await;
    while it.server.next().await["method"] != "notifications/tools/list_changed" {}
    assert_eq!(it.tools().await, ["green", "red"]);
    it.edit("[folders]\npaths = ['green']\n");
    it.said("no longer serving the folder").await;
    while it.server.next().await["method"] != "notifications/tools/list_changed" {}
    assert_eq!(it.tools().await, ["green"]);
    let told = it.server.heard.iter().filter(|method| method.contains("tools")).count();
    assert_eq!(told, 2, "{:?}", it.server.heard);
}

#[tokio::test]
async fn another_environment_restarts_the_folder_and_announces_nothing() {
    let text = "[folders]\npaths = ['red']\nenv = ['COLOUR=red']\n";
    let mut it = Configured::start("environment", text, &["red"]).await;
    let said = it.server.call("red", json!({})).await;
    assert!(said.to_string().contains("colour=red"), "{said}");
    it.edit("[folders]\npaths = ['red']\nenv = ['COLOUR=dark red']\n");
    it.said("restarted the folder").await;
    let said = it.server.call("red", json!({})).await;
    assert!(said.to_string().contains("colour=dark red"), "{said}");
    it.edit(
        "[folders]\npaths = ['red']\nenv = ['COLOUR=dark red']\n# the end\n[limits]\nsessions = 5",
    );
    it.said("it takes effect after a restart").await;
    assert_eq!(it.tools().await, ["red"]);
    assert_eq!(it.server.heard, [""; 0]);
}

#[tokio::test]
async fn an_invalid_file_keeps_what_is_served_and_its_line_is_named() {
    let text = "[folders]\npaths = ['red']\n";
    let mut it = Configured::start("invalid", text, &["red", "green"]).await;
    it.edit("[folders]\npaths = ['green']\ncolour = 'red'\n");
    let said = it.said("keeping the last one").await;
    assert!(said.contains("line 3: unknown key `colour`"), "{said}");
    it.edit("");
    it.said("the configuration is empty").await;
    std::fs::remove_file(it.directory.join("tidings.toml")).unwrap();
    it.said("No such file").await;
    assert_eq!(it.tools().await, ["red"]);
    it.edit("[folders]\npaths = ['red', 'green']\n");
    it.said("serving the folder").await;
    assert_eq!(it.tools().await, ["green", "red"]);
}

#[tokio::test]
async fn one_part_that_fails_leaves_the_others_and_a_signal_tries_again() {
    let text = "[folders]\npaths = ['red']\n";
    let mut it = Configured::start("failing", text, &["red", "green"]).await;
    it.edit("[folders]\npaths = ['missing', 'green']\n");
    it.said("no longer serving").await;
    let said = it.said("could not be applied").await;
    assert!(said.contains("missing` cannot be served"), "{said}");
    it.said("serving the folder").await;
    assert_eq!(it.tools().await, ["green"]);
    tool(&it.directory, "missing");
    let id = it.server.child.id().unwrap().to_string();
    std::process::Command::new("kill").args(["-HUP", &id]).status().unwrap();
    it.said("missing`").await;
    assert_eq!(it.tools().await, ["green", "missing"]);
}

#[tokio::test]
async fn feeds_of_the_file_come_and_go() {
    let feed = |title: &str| {
        format!(
            "<rss version='2.0'><channel><title>{title}</title><item><title>One</title>\
             <guid>1</guid></item></channel></rss>"
        )
    };
    let mut it = Configured::start("feeds", "[folders]\npaths = ['red']\n", &["red"]).await;
    for name in ["a", "b"] {
        std::fs::write(it.directory.join(format!("{name}.xml")), feed(name)).unwrap();
    }
    let file = |urls: &[&str]| {
        let feeds = urls.iter().map(|url| format!("[[feeds]]\nurl = '{url}'\n"));
        format!("[serve]\nin_memory = true\n{}", feeds.collect::<String>())
    };
    it.edit(&file(&["a.xml"]));
    it.said("serving feeds").await;
    let count = |all: &serde_json::Value| all.as_array().unwrap().len();
    assert_eq!(count(&it.server.read("feeds://all").await), 1);
    it.edit(&file(&["b.xml", "a.xml"]));
    it.said("feeds: added `b.xml`").await;
    assert_eq!(count(&it.server.read("feeds://all").await), 2);
    it.edit("[folders]\npaths = ['red']\n");
    it.said("no longer serving feeds").await;
    assert!(it.server.try_read("feeds://all").await.is_err());
    it.edit(&file(&["b.xml"]));
    it.said("serving feeds").await;
    assert_eq!(count(&it.server.read("feeds://all").await), 1);
}
