//! The fast server that all gateways stand in front of: it answers at once, from no library.
//!
//! Its two resources are files of its folder, so that a server that was started again has them too. It
//! logs every request there.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Failure;
use crate::process::{Head, head};

pub(crate) const ONE: &str = "bench://one";
pub(crate) const TWO: &str = "bench://two";

/// Runs the server: `stdio`, `silent` (stdio, without subscriptions), or a port for HTTP.
pub(crate) fn main(how: &str, folder: &str) -> Result<(), Failure> {
    let folder = Folder(folder.into());
    folder.note(&format!("start {}", std::process::id()))?;
    match how {
        "stdio" | "silent" => stdio(Fast::new(folder, how == "stdio")?),
        port => http(port.parse()?, Fast::new(folder, true)?),
    }
}

/// Where a server has its resources and its log.
#[derive(Clone)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self, uri: &str) -> PathBuf {
        self.0.join(uri.trim_start_matches("bench://"))
    }

    pub(crate) fn write(&self, uri: &str, text: &str) -> std::io::Result<()> {
        std::fs::write(self.file(uri), text)
    }

    fn log(&self) -> std::io::Result<File> {
        OpenOptions::new().create(true).append(true).open(self.0.join("log"))
    }

    fn note(&self, line: &str) -> std::io::Result<()> {
        writeln!(self.log()?, "{line}")
    }

    /// How often a server was asked this; everything, if it is empty.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(method)).count()
    }

    /// The processes that were started here.
    pub(crate) fn servers(&self) -> Vec<u32> {
        let lines = self.lines();
        lines.iter().filter_map(|line| line.strip_prefix("start ")?.parse().ok()).collect()
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

struct Fast {
    folder: Folder,
    log: File,
    announces: bool,
    watched: HashSet<String>,
}

impl Fast {
    fn new(folder: Folder, announces: bool) -> Result<Self, Failure> {
        Ok(Self { log: folder.log()?, folder, announces, watched: HashSet::new() })
    }

    /// What is sent for a message: notices first, then its answer.
    fn answer(&mut self, message: &Value) -> Result<Vec<Value>, Failure> {
        let Some(method) = message["method"].as_str() else { return Ok(Vec::new()) };
        writeln!(self.log, "{method}")?;
        let Some(id) = message.get("id") else { return Ok(Vec::new()) };
        let mut sent = Vec::new();
        let params = &message["params"];
        let answer = match method {
            "initialize" => Ok(self.hello(params)),
            "tools/list" => Ok(tools()),
            "tools/call" => Ok(self.call(params, &mut sent)?),
            "resources/list" => Ok(json!({ "resources": [
                { "uri": ONE, "name": "one", "mimeType": "text/plain" },
                { "uri": TWO, "name": "two", "mimeType": "text/plain" },
            ] })),
            "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
            "resources/read" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                let text = std::fs::read_to_string(self.folder.file(uri)).unwrap_or_default();
                Ok(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] }))
            }
            "resources/subscribe" if self.announces => {
                self.watched.extend(params["uri"].as_str().map(str::to_owned));
                Ok(json!({}))
            }
            "resources/unsubscribe" if self.announces => {
                self.watched.remove(params["uri"].as_str().unwrap_or_default());
                Ok(json!({}))
            }
            "ping" => Ok(json!({})),
            _ => Err(json!({ "code": -32601, "message": "Method not found" })),
        };
        sent.push(match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        });
        Ok(sent)
    }

    fn hello(&self, params: &Value) -> Value {
        json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {
                "tools": {},
                "resources": { "subscribe": self.announces },
            },
            "serverInfo": { "name": "fast", "version": "1" },
        })
    }

    /// `echo` answers, `write` changes a resource so many times, and `claim` says that it changed.
    fn call(&mut self, params: &Value, sent: &mut Vec<Value>) -> Result<Value, Failure> {
        let arguments = &params["arguments"];
        let (uri, text) = (arguments["uri"].as_str(), arguments["text"].as_str());
        let uri = uri.unwrap_or(ONE);
        let times = match params["name"].as_str() {
            Some("write") => arguments["times"].as_u64().unwrap_or(1),
            Some("claim") => {
                sent.extend(self.updated(uri));
                0
            }
            _ => 0,
        };
        for time in 1..=times {
            self.folder.write(uri, &format!("{} {time}", text.unwrap_or_default()))?;
            sent.extend(self.updated(uri));
        }
        let said = arguments["message"].as_str().unwrap_or("done");
        Ok(json!({ "content": [{ "type": "text", "text": said }] }))
    }

    fn updated(&self, uri: &str) -> Option<Value> {
        let notice = json!({
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": { "uri": uri },
        });
        self.watched.contains(uri).then_some(notice)
    }
}

fn tools() -> Value {
    let text = json!({ "type": "string" });
    let tool = |name: &str, properties: Value, is_read_only: bool| {
        json!({
            "name": name,
            "description": "A tool of the benchmark",
            "inputSchema": { "type": "object", "properties": properties },
            "annotations": { "readOnlyHint": is_read_only },
        })
    };
    json!({ "tools": [
        tool("echo", json!({ "message": text }), true),
        tool("write", json!({ "uri": text, "text": text, "times": { "type": "integer" } }), false),
        tool("claim", json!({ "uri": text }), true),
    ] })
}

fn stdio(mut fast: Fast) -> Result<(), Failure> {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let mut bytes = Vec::new();
        for message in fast.answer(&serde_json::from_str(&line?)?)? {
            serde_json::to_writer(&mut bytes, &message)?;
            bytes.push(b'\n');
        }
        output.write_all(&bytes)?;
        output.flush()?;
    }
    Ok(())
}

/// A thread for each connection; only requests and their answers.
fn http(port: u16, fast: Fast) -> Result<(), Failure> {
    let (listener, fast) = (TcpListener::bind(("127.0.0.1", port))?, Arc::new(Mutex::new(fast)));
    loop {
        let (socket, _) = listener.accept()?;
        let fast = fast.clone();
        std::thread::spawn(move || {
            // A client that went away.
            let _ = serve(&socket, &fast);
        });
    }
}

fn serve(mut socket: &TcpStream, fast: &Mutex<Fast>) -> Result<(), Failure> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket.try_clone()?);
    loop {
        let Head { length, .. } = head(&mut reader)?;
        let mut body = vec![0; length.unwrap_or_default()];
        std::io::Read::read_exact(&mut reader, &mut body)?;
        let message = serde_json::from_slice(&body)?;
        let sent = fast.lock().unwrap_or_else(PoisonError::into_inner).answer(&message)?;
        let answer = sent.last().map(Value::to_string).unwrap_or_default();
        let status = if answer.is_empty() { "202 Accepted" } else { "200 OK" };
        let length = answer.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: one\r\n\
             content-length: {length}\r\n\r\n{answer}"
        );
        socket.write_all(answer.as_bytes())?;
    }
}
