//! The gateways that take turns: ours and those of others, each a process in front of a server.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Failure;
use crate::fast::{Folder, ONE, TWO};
use crate::process;
use crate::session::Session;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");
const RIVALS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../judges/gateway/rivals/rivals.mjs");
/// Time for a gateway to start with its server.
const READY: Duration = Duration::from_secs(40);

/// How a gateway, or a server without one, is started.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) name: String,
    words: Vec<String>,
    environment: Vec<(String, String)>,
    /// Settings of our upstream beside its command.
    settings: &'static str,
}

impl Recipe {
    fn new(name: impl Into<String>, words: Vec<String>) -> Self {
        Self { name: name.into(), words, environment: Vec::new(), settings: "" }
    }

    /// The same with a setting for its upstream, if it is ours.
    pub(crate) fn with(&self, settings: &'static str) -> Self {
        Self { settings, ..self.clone() }
    }
}

/// What is measured.
pub(crate) struct Field {
    /// All gateways, ours first.
    pub(crate) gateways: Vec<Recipe>,
    /// The command of server-everything, if it is there.
    pub(crate) everything: Option<Vec<String>>,
}

/// Installs the gateways of others. Ours is this program, or the one of this build.
pub(crate) fn all(program: Option<&str>) -> Result<Field, Failure> {
    let output = Command::new("node").arg(RIVALS).stderr(Stdio::inherit()).output()?;
    let mut field = Field { gateways: vec![ours(program.unwrap_or(PROGRAM))], everything: None };
    for line in std::str::from_utf8(&output.stdout)?.lines() {
        let said: Value = serde_json::from_str(line)?;
        let command = said["command"].as_array().into_iter().flatten();
        let words: Vec<_> = command.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let text = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        if let Some(missing) = said["missing"].as_str() {
            eprintln!("{}{} is left out: {missing}", text("name"), text("server"));
        } else if said["server"].is_string() {
            field.everything = Some(words);
        } else {
            let name = format!("{} {}", text("name"), text("version"));
            field.gateways.push(Recipe::new(name, words));
        }
    }
    Ok(field)
}

fn ours(program: &str) -> Recipe {
    let words = [program, "serve", "--config", "{tidings.toml}", "--http", "127.0.0.1:{port}"];
    Recipe::new("tidings", words.map(str::to_owned).to_vec())
}

/// A server that is asked over HTTP without a gateway.
pub(crate) fn bare(words: Vec<String>) -> Recipe {
    let mut recipe = Recipe::new("no gateway", words);
    recipe.environment.push(("PORT".to_owned(), "{port}".to_owned()));
    recipe
}

/// The command of the fast server in a folder: `stdio`, `silent`, or `{port}`.
pub(crate) fn fast(how: &str, folder: &Folder) -> Result<Vec<String>, Failure> {
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let folder = folder.path().to_string_lossy().into_owned();
    Ok(vec![program, "fast".to_owned(), how.to_owned(), folder])
}

/// A gateway that runs, with its server. It ends when this is dropped.
pub(crate) struct Gateway {
    pub(crate) name: String,
    pub(crate) port: u16,
    /// Where its server has its resources and its log.
    pub(crate) folder: Folder,
    child: Child,
    _folder: TempDir,
}

impl Gateway {
    /// A gateway in front of the fast server.
    pub(crate) fn start(recipe: &Recipe, how: &str) -> Result<Self, Failure> {
        let folder = TempDir::new()?;
        let command = fast(how, &Folder(folder.path().into()))?;
        Self::before(recipe, &command, folder)
    }

    /// A gateway in front of a server; `folder` is theirs.
    pub(crate) fn before(
        recipe: &Recipe,
        server: &[String],
        folder: TempDir,
    ) -> Result<Self, Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let files = Folder(folder.path().into());
        for uri in [ONE, TWO] {
            files.write(uri, "as it was")?;
        }
        let words = fill(recipe, server, port, folder.path())?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        for name in ["XDG_RUNTIME_DIR", "XDG_DATA_HOME", "HOME"] {
            command.env(name, folder.path());
        }
        for (name, value) in &recipe.environment {
            command.env(name, value.replace("{port}", &port.to_string()));
        }
        let child = command.spawn()?;
        let name = recipe.name.clone();
        let gateway = Self { name, port, folder: files, child, _folder: folder };
        gateway.wait()?;
        Ok(gateway)
    }

    /// Waits until it offers what its server has.
    fn wait(&self) -> Result<(), Failure> {
        let until = Instant::now() + READY;
        let offers = || {
            let tools = Session::open(self.port)?.ask("tools/list", &json!({}))?;
            let mut tools = tools["tools"].as_array().into_iter().flatten();
            if tools.any(|tool| tool["name"] == "echo") { Ok(()) } else { Err("no `echo`".into()) }
        };
        loop {
            let result: Result<(), Failure> = offers();
            match result {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        process::end(self.child.id());
        let _ = self.child.wait();
    }
}

/// The words of a gateway with its port and its server.
fn fill(
    recipe: &Recipe,
    server: &[String],
    port: u16,
    folder: &Path,
) -> Result<Vec<String>, Failure> {
    let mut filled = Vec::new();
    for word in &recipe.words {
        match word.as_str() {
            "{command}" => filled.extend(server.iter().cloned()),
            "{line}" => filled.push(server.join(" ")),
            "{config}" => {
                let server = json!({ "command": server[0], "args": server[1..] });
                let config = json!({ "mcpServers": { "bench": server } });
                let path = folder.join("mcp.json");
                std::fs::write(&path, config.to_string())?;
                filled.push(path.to_string_lossy().into_owned());
            }
            "{tidings.toml}" => {
                // The file is followed: not where the server writes its log.
                let path = folder.join("ours/tidings.toml");
                std::fs::create_dir(folder.join("ours"))?;
                let command = json!(server);
                let config = format!(
                    "[upstream.bench]\nprefix = \"\"\ncommand = {command}\n{}\n",
                    recipe.settings
                );
                std::fs::write(&path, config)?;
                filled.push(path.to_string_lossy().into_owned());
            }
            word => filled.push(word.replace("{port}", &port.to_string())),
        }
    }
    Ok(filled)
}
