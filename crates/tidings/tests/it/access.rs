//! Tokens of the program: made, used, followed, withdrawn.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidings_store::date::Moment;
use tokio::io::AsyncReadExt as _;

use crate::support::demo::{Demo, Ended, http, run, within};

/// A file of tokens, and the secrets of those that were made.
struct Tokens {
    folder: TempDir,
}

impl Tokens {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tokens.toml")
    }

    async fn command(&self, words: &[&str]) -> Ended {
        let path = self.path();
        run(&[&["token"], words, &["--tokens", path.to_str().unwrap()]].concat()).await
    }

    /// Makes a token and returns its secret.
    async fn make(&self, name: &str) -> String {
        let made = self.command(&["new", name]).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        made.output.trim_end().to_owned()
    }

    fn set_mode(&self, mode: u32) {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(), permissions).unwrap();
    }

    /// A server with these tokens on which nothing happens by itself.
    async fn serve(&self, more: &str) -> Server {
        let path = self.path();
        let arguments = format!("--every 3600 --silent --tokens {} {more}", path.display());
        Server { demo: Demo::start(&arguments).await, client: http() }
    }
}

struct Server {
    demo: Demo,
    client: reqwest::Client,
}

impl Server {
    async fn post(
        &self,
        secret: Option<&str>,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> reqwest::Response {
        let mut request = self.client.post(self.demo.url()).body(message.to_string());
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(secret) = secret {
            request = request.bearer_auth(secret);
        }
        within(request.send()).await.unwrap()
    }

    /// The status of a request that opens a session.
    async fn status(&self, secret: Option<&str>) -> u16 {
        self.post(secret, &[], &request("initialize", json!({}))).await.status().as_u16()
    }

    /// Opens a legacy session.
    async fn session(&self, secret: &str) -> String {
        let opened = self.post(Some(secret), &[], &request("initialize", json!({}))).await;
        assert_eq!(opened.status(), 200);
        let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.within(Some(secret), &session, &begun).await.status(), 202);
        session
    }

    /// A message in a session.
    async fn within(
        &self,
        secret: Option<&str>,
        session: &str,
        message: &Value,
    ) -> reqwest::Response {
        self.post(secret, &[("mcp-session-id", session)], message).await
    }

    /// The stream of a legacy session.
    async fn stream(&self, secret: &str, session: &str) -> reqwest::Response {
        let request = self.client.get(self.demo.url()).bearer_auth(secret);
        let request = request.header("accept", "text/event-stream");
        let stream = within(request.header("mcp-session-id", session).send()).await.unwrap();
        assert_eq!(stream.status(), 200);
        stream
    }

    /// A modern listen request for the list of resources, acknowledged.
    async fn listen(&self, secret: &str) -> reqwest::Response {
        let mut message = request(
            "subscriptions/listen",
            json!({ "notifications": { "resourcesListChanged": true } }),
        );
        message["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let headers =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
        let mut stream = self.post(Some(secret), &headers, &message).await;
        assert_eq!(stream.status(), 200);
        until(&mut stream, "acknowledged").await;
        stream
    }

    /// Ends the server; returns its log.
    async fn log(mut self) -> String {
        self.demo.signal("-TERM");
        let mut log = String::new();
        within(self.demo.child.stderr.take().unwrap().read_to_string(&mut log)).await.unwrap();
        log
    }
}

fn request(method: &str, params: Value) -> Value {
    let mut params = params;
    if method == "initialize" {
        params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Reads a stream until it says this; returns everything read.
async fn until(stream: &mut reqwest::Response, says: &str) -> String {
    let mut text = String::new();
    while !text.contains(says) {
        let chunk = within(stream.chunk()).await.unwrap().expect("the stream goes on");
        text += &String::from_utf8_lossy(&chunk);
    }
    text
}

/// Reads a stream to its end.
async fn to_end(mut stream: reqwest::Response) -> String {
    let mut text = String::new();
    while let Some(chunk) = within(stream.chunk()).await.unwrap() {
        text += &String::from_utf8_lossy(&chunk);
    }
    text
}

#[tokio::test]
async fn only_tokens_that_were_made_are_served() {
    let tokens = Tokens::new();
    let ada = tokens.make("ada").await;
    let server = tokens.serve("").await;
    assert_eq!(server.status(Some(&ada)).await, 200);
    assert_eq!(server.status(None).await, 401);
    assert_eq!(server.status(Some(&ada[1..])).await, 401);
    assert_eq!(server.status(Some("ada")).await, 401);
}

#[tokio::test]
async fn a_session_belongs_to_the_token_that_opened_it() {
    let tokens = Tokens::new();
    let (ada, bob) = (tokens.make("ada").await, tokens.make("bob").await);
    let server = tokens.serve("--allow-anyone").await;
    let session = server.session(&ada).await;
    let list = request("tools/list", json!({}));
    let status = async |secret| server.within(secret, &session, &list).await.status().as_u16();
    assert_eq!(status(Some(&*ada)).await, 200);
    assert_eq!(status(Some(&*bob)).await, 404);
    assert_eq!(status(None).await, 404);
    // What is not there is refused in the same words.
    let other = server.within(Some(&bob), &session, &list).await.text().await.unwrap();
    let absent = server.within(Some(&bob), "no-such-session", &list).await.text().await.unwrap();
    assert_eq!(other, absent);
}

#[tokio::test]
async fn a_removed_token_ends_what_it_opened_and_nobody_else_notices() {
    let tokens = Tokens::new();
    let (ada, bob) = (tokens.make("ada").await, tokens.make("bob").await);
    let server = tokens.serve("").await;
    let (ours, theirs) = (server.session(&ada).await, server.session(&bob).await);
    let (stream, listening) = (server.stream(&ada, &ours).await, server.listen(&ada).await);
    let mut kept = [server.stream(&bob, &theirs).await, server.listen(&bob).await];
    assert_eq!(tokens.command(&["rm", "ada"]).await.code, Some(0));
    to_end(stream).await;
    let last = to_end(listening).await;
    assert!(last.contains(r#""result""#), "a listen request ends with its result: {last}");
    let list = request("tools/list", json!({}));
    assert_eq!(server.within(Some(&ada), &ours, &list).await.status(), 401);
    // The others hear of the next change, and of nothing before it.
    let dock =
        request("tools/call", json!({ "name": "dock_module", "arguments": { "module": "iris" } }));
    assert_eq!(server.within(Some(&bob), &theirs, &dock).await.status(), 200);
    for stream in &mut kept {
        let heard = until(stream, "resources/list_changed").await;
        assert_eq!(heard.matches("resources/list_changed").count(), 1, "{heard}");
    }
    // Its session is gone, even for a new token of the same name.
    let again = tokens.make("ada").await;
    while server.status(Some(&again)).await != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.within(Some(&again), &ours, &list).await.status(), 404);
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires() {
    let tokens = Tokens::new();
    let (ada, bob) = (tokens.make("ada").await, tokens.make("bob").await);
    let server = tokens.serve("").await;
    let (session, stream) = {
        let session = server.session(&ada).await;
        let stream = server.stream(&ada, &session).await;
        (session, stream)
    };
    // The next full second: dates are stored to the second.
    let expires = Moment::now().after(std::time::Duration::from_secs(1)).to_second();
    let text = std::fs::read_to_string(tokens.path()).unwrap();
    let text = text.replacen("\ncreated", &format!("\nexpires = {expires}\ncreated"), 1);
    std::fs::write(tokens.path(), text).unwrap();
    to_end(stream).await;
    assert!(Moment::now() >= expires, "it lives until it expires");
    let list = request("tools/list", json!({}));
    assert_eq!(server.within(Some(&ada), &session, &list).await.status(), 401);
    assert_eq!(server.status(Some(&bob)).await, 200);
    let listed = tokens.command(&["ls"]).await;
    assert!(listed.output.contains("expired"), "{listed:?}");
}

#[tokio::test]
async fn a_bad_entry_is_reported_with_its_line_and_the_others_are_served() {
    let tokens = Tokens::new();
    let ada = tokens.make("ada").await;
    let mut text = std::fs::read_to_string(tokens.path()).unwrap();
    let line = text.lines().count() + 4;
    write!(text, "\n[[tokens]]\nname = \"bob\"\nhash = \"not-a-hash-but-a-secret\"\n").unwrap();
    std::fs::write(tokens.path(), text).unwrap();
    let listed = tokens.command(&["ls"]).await;
    assert!(listed.errors.contains(&format!("line {line}, token `bob`")), "{listed:?}");
    assert!(listed.output.contains("ada") && !listed.output.contains("bob"), "{listed:?}");
    let server = tokens.serve("").await;
    assert_eq!(server.status(Some(&ada)).await, 200);
    let log = server.log().await;
    assert!(log.contains(&format!("line {line}, token `bob`")), "{log}");
    assert!(!log.contains("but-a-secret") && !listed.errors.contains("but-a-secret"), "{log}");
}

#[tokio::test]
async fn a_file_that_breaks_keeps_the_last_tokens_and_says_where() {
    let tokens = Tokens::new();
    let ada = tokens.make("ada").await;
    let mut server = tokens.serve("").await;
    let whole = std::fs::read_to_string(tokens.path()).unwrap();
    let line = whole.lines().count() + 1;
    std::fs::write(tokens.path(), format!("{whole}[[tokens\n")).unwrap();
    let mut log = String::new();
    let stderr = server.demo.child.stderr.as_mut().unwrap();
    while !log.contains("keeping the last ones") {
        let mut part = [0; 1024];
        let read = within(stderr.read(&mut part)).await.unwrap();
        assert_ne!(read, 0, "{log}");
        log += &String::from_utf8_lossy(&part[..read]);
    }
    assert!(log.contains(&format!("line {line}")), "{log}");
    assert_eq!(server.status(Some(&ada)).await, 200);
    std::fs::write(tokens.path(), "# nobody\n").unwrap();
    while server.status(Some(&ada)).await != 401 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_read_its_tokens_does_not_start() {
    let tokens = Tokens::new();
    let path = tokens.path();
    let serve = ["serve", "--demo", "--http", "127.0.0.1:0", "--tokens", path.to_str().unwrap()];
    let missing = run(&serve).await;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.errors.contains("hint: `tidings token new NAME --tokens"), "{missing:?}");
    tokens.make("ada").await;
    tokens.set_mode(0o660);
    let writable = run(&serve).await;
    assert_eq!(writable.code, Some(1), "{writable:?}");
    assert!(writable.errors.contains("others can write"), "{writable:?}");
    std::fs::write(&path, "[[tokens]\n").unwrap();
    tokens.set_mode(0o600);
    let broken = run(&serve).await;
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(broken.errors.contains("line 1"), "{broken:?}");
}

#[tokio::test]
async fn others_who_can_read_the_file_are_warned_of() {
    let tokens = Tokens::new();
    let ada = tokens.make("ada").await;
    tokens.set_mode(0o644);
    let server = tokens.serve("").await;
    assert_eq!(server.status(Some(&ada)).await, 200);
    let log = server.log().await;
    assert!(log.contains("other users can read the tokens"), "{log}");
}

#[tokio::test]
async fn names_are_logged_and_counted_and_secrets_are_not() {
    let tokens = Tokens::new();
    let ada = tokens.make("ada").await;
    let server = tokens.serve("--access-log --log trace").await;
    let session = server.session(&ada).await;
    drop(server.stream(&ada, &session).await);
    drop(server.listen(&ada).await);
    let metrics = format!("http://{}/metrics", server.demo.address);
    let metrics = server.client.get(metrics).bearer_auth(&ada).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains(r#"{name="ada"}"#), "{metrics}");
    let log = server.log().await;
    assert!(log.contains(r#"who="ada""#), "{log}");
    let random = ada.strip_prefix("tidings_").unwrap();
    let file = std::fs::read_to_string(tokens.path()).unwrap();
    for text in [log, metrics, file] {
        assert!(!text.contains(random), "{text}");
    }
}

#[tokio::test]
async fn the_one_token_of_all_works_beside_named_ones() {
    let tokens = Tokens::new();
    let ada = tokens.make("ada").await;
    let shared = tokens.folder.path().join("shared");
    std::fs::write(&shared, "a-token-for-all-of-us\n").unwrap();
    let server = tokens.serve(&format!("--token-file {}", shared.display())).await;
    assert_eq!(server.status(Some(&ada)).await, 200);
    assert_eq!(server.status(Some("a-token-for-all-of-us")).await, 200);
    std::fs::write(&shared, "another-token-for-all\n").unwrap();
    server.demo.signal("-HUP");
    while server.status(Some("another-token-for-all")).await != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.status(Some("a-token-for-all-of-us")).await, 401);
    assert_eq!(server.status(Some(&ada)).await, 200);
}

#[tokio::test]
async fn a_token_has_limits_of_its_own() {
    let tokens = Tokens::new();
    let made = tokens.command(&["new", "ada", "--sessions", "1", "--listeners", "1"]).await;
    let (ada, bob) = (made.output.trim_end().to_owned(), tokens.make("bob").await);
    let server = tokens.serve("").await;
    let session = server.session(&ada).await;
    let _stream = server.stream(&ada, &session).await;
    assert_eq!(server.status(Some(&ada)).await, 503);
    assert_eq!(server.status(Some(&bob)).await, 200);
}

#[tokio::test]
async fn standard_output_has_the_secret_alone() {
    let tokens = Tokens::new();
    let made = tokens.command(&["new", "ada", "--label", "role:admin", "--expires", "30d"]).await;
    assert_eq!(made.output.lines().count(), 1, "{made:?}");
    assert!(made.output.starts_with("tidings_"), "{made:?}");
    assert!(made.errors.contains("expires in 29 days") || made.errors.contains("30 days"));
    let listed = tokens.command(&["ls", "--json"]).await.object();
    assert_eq!(listed["labels"], json!(["role:admin"]));
    assert_eq!((&listed["name"], &listed["expired"]), (&json!("ada"), &json!(false)));
    assert_eq!(tokens.command(&["rm", "ada"]).await.output, "removed ada\n");
    assert_eq!(tokens.command(&["ls", "--json"]).await.output, "");
}

/// A folder with a tool, a prompt and files of which some are for some.
fn folder_for_some() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (name, audience) in [("look", ""), ("stop", r#","audience":"role:admin user:eve""#)] {
        let meta = format!(r#"{{"name":"{name}","description":"x"{audience}}}"#);
        write(&format!("tools/{name}/tool.meta.json"), &meta);
        write(&format!("tools/{name}/tool.sh"), "#!/bin/sh\necho done\n");
        let tool = folder.path().join(format!("tools/{name}/tool.sh"));
        std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    write("prompts/plan.md", "---\naudience: [role:admin]\n---\nPlan it.\n");
    write("resources/open.md", "open");
    write("resources/finance/q3.md", "secret numbers");
    let template = r#"{"name":"any","uriTemplate":"note://{+path}","path":"{+path}"}"#;
    write("resources/any.meta.json", template);
    write(
        "server.d/policy.toml",
        "[[audience]]\npaths = ['resources/finance/**']\nlabels = 'role:admin'\n",
    );
    folder
}

/// The names that a command lists, sorted.
async fn names(command: &str, url: &str, token: &std::path::Path) -> Vec<String> {
    let listed = run(&[command, url, "--token-file", token.to_str().unwrap(), "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let name = |line: &Value| line["name"].as_str().unwrap().to_owned();
    let mut names: Vec<_> = listed.lines().iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_folder_shows_each_client_what_is_for_it() {
    let (tokens, folder) = (Tokens::new(), folder_for_some());
    let ada = tokens.command(&["new", "ada", "--label", "role:admin"]).await.output;
    let bob = tokens.make("bob").await;
    let file = |name: &str, secret: &str| {
        let path = tokens.folder.path().join(name);
        std::fs::write(&path, secret).unwrap();
        path
    };
    let (ada, bob) = (file("ada", &ada), file("bob", &bob));
    let server = tokens.serve(&format!("--folder {}", folder.path().display())).await;
    let url = server.demo.url();
    let (all, some) = (names("tools", &url, &ada).await, names("tools", &url, &bob).await);
    assert!(all.contains(&"stop".to_owned()) && all.contains(&"look".to_owned()), "{all:?}");
    assert!(!some.contains(&"stop".to_owned()) && some.contains(&"look".to_owned()), "{some:?}");
    assert!(names("prompts", &url, &ada).await.contains(&"plan".to_owned()));
    assert!(!names("prompts", &url, &bob).await.contains(&"plan".to_owned()));
    assert!(names("resources", &url, &ada).await.contains(&"finance/q3.md".to_owned()));
    let seen = names("resources", &url, &bob).await;
    assert!(seen.contains(&"open.md".to_owned()) && !seen.contains(&"finance/q3.md".to_owned()));
    // A hidden file cannot be reached through a template either, and is refused like an invented one.
    let read = async |token: &std::path::Path, uri: &str| {
        run(&["read", &url, uri, "--token-file", token.to_str().unwrap()]).await
    };
    assert_eq!(read(&bob, "note://open.md").await.output, "open");
    let (hidden, absent) =
        (read(&bob, "note://finance/q3.md").await, read(&bob, "note://no/q3.md").await);
    assert_eq!(hidden.code, Some(1), "{hidden:?}");
    assert_eq!(hidden.errors.replace("finance", "no"), absent.errors);
    // A policy that changes moves the view of those that it concerns.
    let secret = std::fs::read_to_string(&bob).unwrap();
    let session = server.session(&secret).await;
    let mut stream = server.stream(&secret, &session).await;
    std::fs::write(folder.path().join("server.d/policy.toml"), "").unwrap();
    until(&mut stream, "resources/list_changed").await;
    assert!(names("resources", &url, &bob).await.contains(&"finance/q3.md".to_owned()));
}

#[tokio::test]
async fn the_owner_of_a_folder_runs_every_tool() {
    let folder = folder_for_some();
    let ran = run(&["run", folder.path().to_str().unwrap(), "stop"]).await;
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), "done\n"), "{ran:?}");
}

#[tokio::test]
async fn readers_cannot_write_and_writers_write_in_their_own_name() {
    let tokens = Tokens::new();
    let ada = tokens.command(&["new", "ada", "--label", "scope:write"]).await.output;
    let (ada, bob) = (ada.trim_end().to_owned(), tokens.make("bob").await);
    let place = tokens.folder.path().join("work");
    let more = format!("--writers scope:write --workspace {}", place.display());
    let server = tokens.serve(&more).await;
    let call = |name: &str, arguments: Value| {
        request("tools/call", json!({ "name": name, "arguments": arguments }))
    };
    let artifact = json!({ "title": "t", "text": "x", "creator": "someone else" });
    let sessions = [server.session(&ada).await, server.session(&bob).await];
    let write = call("create_artifact", artifact);
    let made = server.within(Some(&ada), &sessions[0], &write).await.text().await.unwrap();
    let refused = server.within(Some(&bob), &sessions[1], &write).await.text().await.unwrap();
    let invented = call("no_such_tool", json!({}));
    let invented = server.within(Some(&bob), &sessions[1], &invented).await.text().await.unwrap();
    assert!(made.contains("ada") && !made.contains("someone else"), "{made}");
    assert_eq!(refused.replace("create_artifact", "no_such_tool"), invented);
    let search = call("search_artifacts", json!({ "creator": "ada" }));
    let found = server.within(Some(&bob), &sessions[1], &search).await.text().await.unwrap();
    assert!(found.contains("artifact"), "{found}");
    // So it is for large bytes.
    let put = async |secret: &str| {
        let url = format!("http://{}/blob", server.demo.address);
        let request = server.client.put(url).bearer_auth(secret).header("tidings-actor", "eve");
        within(request.body("bytes").send()).await.unwrap().status().as_u16()
    };
    assert_eq!(put(&ada).await, 201);
    assert_eq!(put(&bob).await, 403);
    let log = run(&["workspace", place.to_str().unwrap(), "log", "--json"]).await;
    assert!(log.output.contains(r#""actor":"ada""#) && !log.output.contains("eve"), "{log:?}");
}

#[tokio::test]
async fn feeds_are_read_by_all_and_changed_by_some() {
    let tokens = Tokens::new();
    let ada = tokens.command(&["new", "ada", "--label", "scope:write"]).await.output;
    let bob = tokens.make("bob").await;
    let files = [("ada", ada), ("bob", bob)].map(|(name, secret)| {
        let path = tokens.folder.path().join(name);
        std::fs::write(&path, secret).unwrap();
        path
    });
    let place = tokens.folder.path().join("feeds");
    let more = format!("--writers scope:write --feeds --data {}", place.display());
    let server = tokens.serve(&more).await;
    let url = server.demo.url();
    let (all, some) =
        (names("tools", &url, &files[0]).await, names("tools", &url, &files[1]).await);
    let (shown, hidden): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| some.contains(name));
    assert_eq!(shown, some);
    assert!(some.contains(&"search_items".to_owned()), "{some:?}");
    let changes =
        ["add_feed", "mark_items", "new_since", "pause_feed", "refresh_feed", "remove_feed"];
    assert_eq!(hidden, changes);
}

#[tokio::test]
async fn the_client_of_stdio_has_the_labels_of_the_command_line() {
    let folder = folder_for_some();
    let path = folder.path().to_str().unwrap();
    let tools = async |more: &[&str]| {
        let serve = ["--", crate::support::demo::PROGRAM, "serve", "--stdio", "--folder", path];
        let listed = run(&[&["tools", "--json"], &serve[..], more].concat()).await;
        listed.lines().len()
    };
    assert_eq!(tools(&[]).await, 1);
    assert_eq!(tools(&["--label", "user:eve"]).await, 2);
}
