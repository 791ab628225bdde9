//! A folder that is served while people work in it: real files, over stdio and HTTP at once.

mod bad;
mod examples;
mod killed;
mod live;
mod motion;
mod talk;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use serde_json::{Value, json};
use tidings_folder::{Config, Folder, Report};
use tidings_server::http::{self, HttpConfig};
use tidings_server::{Config as HubConfig, Greeting, Hub, Merging};
use tokio::sync::mpsc;

use crate::support::client::{Client, Way};

/// A file that is there to be changed when everything before it must have been told.
const FENCE: &str = "resources/zz-fence.txt";

/// A folder that is served, and who listens to it.
struct Yard {
    directory: tempfile::TempDir,
    hub: Hub,
    router: Router,
    reports: mpsc::Receiver<Report>,
    fences: usize,
}

impl Yard {
    /// Serves what `prepare` makes, with the usual windows.
    async fn new(prepare: impl FnOnce(&Plot)) -> Self {
        Self::with(prepare, Merging::default(), |_| {}).await
    }

    /// With windows so long that a busy machine does not split them.
    async fn patient(prepare: impl FnOnce(&Plot)) -> Self {
        let merging = Merging::new(Duration::from_millis(300), Duration::from_secs(5));
        Self::with(prepare, merging, |_| {}).await
    }

    async fn with(
        prepare: impl FnOnce(&Plot),
        merging: Merging,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let plot = Plot(directory.path().to_owned());
        plot.write(FENCE, "");
        prepare(&plot);
        let (sender, reports) = mpsc::channel(64);
        let mut config = Config::new(directory.path().to_owned());
        config.pass(std::env::vars_os(), &[]);
        config.reports = Some(sender);
        change(&mut config);
        let folder = Folder::open(config).await.unwrap();
        let mut config = HubConfig::new("yard", "1");
        config.greeting = Greeting::Silent;
        config.merging = merging;
        let hub = Hub::with_config(config);
        hub.add("folder", |shelf| Ok(folder.on(shelf))).await.unwrap();
        let router = http::router(&hub, HttpConfig::default());
        Self { directory, hub, router, reports, fences: 0 }
    }

    fn plot(&self) -> Plot {
        Plot(self.directory.path().to_owned())
    }

    /// Two clients that know the folder as it is, one for each transport.
    async fn listeners(&self) -> Listeners {
        let mut clients = Vec::new();
        for way in [Way::Stdio, Way::Http] {
            clients.push(self.listener(way).await);
        }
        Listeners(clients)
    }

    async fn listener(&self, way: Way) -> Listener {
        listener(way, &self.hub, &self.router).await
    }

    /// Changes something else and waits until everyone heard of it: whatever was to be told of
    /// what happened before has been told then.
    async fn fence(&mut self, listeners: &mut Listeners) {
        self.fences += 1;
        let name = format!("zz-fence-{}", self.fences);
        self.plot().write(&format!("prompts/{name}.md"), "a fence");
        for listener in &mut listeners.0 {
            listener.until_listed("prompts", &name).await;
        }
        // What is read to be compared may come after a list; a file that is watched comes last.
        let uri = self.plot().uri(FENCE);
        for listener in &mut listeners.0 {
            listener.subscribe(&uri).await;
        }
        self.plot().write(FENCE, &name);
        for listener in &mut listeners.0 {
            listener.client.wait(&json!({ "params": { "uri": uri } })).await;
            listener.ask("resources/unsubscribe", json!({ "uri": uri })).await;
        }
    }

    /// What the next reload found.
    async fn report(&mut self) -> Report {
        let waiting = tokio::time::timeout(Duration::from_secs(20), self.reports.recv());
        waiting.await.expect("a report").unwrap()
    }
}

/// A client that knows a hub as it is.
async fn listener(way: Way, hub: &Hub, router: &Router) -> Listener {
    let mut client = Client::new(way, hub, router);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "neighbour", "version": "1" },
    });
    let id = client.request("initialize", params, false).await;
    client.wait(&json!({ "id": id })).await;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    client.send(ready).await;
    let mut listener = Listener { client };
    for method in ["tools/list", "prompts/list", "resources/list"] {
        listener.ask(method, json!({})).await;
    }
    listener
}

/// A place to work in.
struct Plot(PathBuf);

impl Plot {
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn uri(&self, path: &str) -> String {
        let path = self.0.canonicalize().unwrap().join(path);
        format!("file://{}", path.to_str().unwrap().replace(' ', "%20"))
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// As an editor saves: beside it, and into its place.
    fn save(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.at(path);
        let beside = path.with_extension("tmp");
        std::fs::write(&beside, bytes).unwrap();
        std::fs::rename(beside, path).unwrap();
    }

    fn script(&self, path: &str, text: &str) {
        self.write(path, format!("#!/bin/sh\n{text}\n"));
        let path = self.at(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A tool in a directory of its own, which comes in one step.
    fn tool(&self, name: &str, description: &str, body: &str) {
        let beside = format!(".making/{name}");
        self.script(&format!("{beside}/tool.sh"), body);
        let meta = json!({ "name": name, "description": description });
        self.write(&format!("{beside}/tool.meta.json"), meta.to_string());
        std::fs::create_dir_all(self.at("tools")).unwrap();
        std::fs::rename(self.at(&beside), self.at(&format!("tools/{name}"))).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.at(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// A legacy client that counts what it is told.
struct Listener {
    client: Client,
}

impl Listener {
    /// Asks, and gives the answer.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.client.request(method, params, false).await;
        let answer = self.client.wait(&json!({ "id": id })).await;
        match answer.get("error") {
            Some(error) => json!({ "error": error }),
            None => answer["result"].clone(),
        }
    }

    /// The names in a list.
    async fn names(&mut self, list: &str) -> Vec<String> {
        let answer = self.ask(&format!("{list}/list"), json!({})).await;
        let items = answer[list].as_array().unwrap();
        let names = items.iter().map(|item| item["name"].as_str().unwrap().to_owned());
        names.filter(|name| !FENCE.ends_with(name.as_str())).collect()
    }

    async fn text(&mut self, uri: &str) -> String {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        match answer["contents"][0]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => answer.to_string(),
        }
    }

    async fn subscribe(&mut self, uri: &str) {
        let answer = self.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(answer, json!({}), "{uri}");
    }

    /// Waits until a list that was told of has this name.
    async fn until_listed(&mut self, list: &str, name: &str) {
        let method = format!("notifications/{list}/list_changed");
        loop {
            self.client.wait(&json!({ "method": method })).await;
            if self.names(list).await.iter().any(|it| it == name) {
                return;
            }
        }
    }

    /// How often each thing was told of, and not waited for.
    fn told(&self, told: &mut BTreeMap<String, usize>) {
        while let Some(notice) = self.client.take(&json!({ "jsonrpc": "2.0" })) {
            let method = notice["method"].as_str().unwrap_or("an answer nobody waited for");
            let what = match notice["params"]["uri"].as_str() {
                Some(uri) => format!("updated {}", uri.rsplit('/').next().unwrap()),
                None => method.trim_start_matches("notifications/").replace("/list_changed", ""),
            };
            *told.entry(what).or_default() += 1;
        }
    }
}

/// Listeners that all hear the same.
struct Listeners(Vec<Listener>);

impl Listeners {
    async fn subscribe(&mut self, uri: &str) {
        for listener in &mut self.0 {
            listener.subscribe(uri).await;
        }
    }

    /// Waits until each was told all this since the last time, and checks that it was no more.
    async fn told(&mut self, expected: &[(&str, usize)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(what, times)| ((*what).to_owned(), *times)).collect();
        for listener in &mut self.0 {
            let mut told = BTreeMap::new();
            listener.told(&mut told);
            while expected.iter().any(|(what, times)| told.get(what).is_none_or(|it| it < times)) {
                listener.client.more().await;
                listener.told(&mut told);
            }
            assert_eq!(told, expected);
        }
    }
}

fn seconds(path: &Path) -> std::time::SystemTime {
    path.metadata().unwrap().modified().unwrap()
}

/// Whether a process runs; one that ended and waits to be buried does not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}
