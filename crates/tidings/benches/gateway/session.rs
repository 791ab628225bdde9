//! The lean client: a session over HTTP with blocking sockets, which reads answers as bytes.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failure;
use crate::process::{Head, head};

/// What an answer of a slow server may take.
const PATIENCE: Duration = Duration::from_secs(20);
const VERSION: &str = "2025-11-25";

/// A client of one server.
pub(crate) struct Session {
    address: SocketAddr,
    reader: BufReader<TcpStream>,
    id: Option<String>,
    next: u64,
    /// URIs of notices that came with answers: some servers send them there.
    pub(crate) heard: Vec<String>,
}

fn connect(address: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(socket))
}

impl Session {
    pub(crate) fn open(port: u16) -> Result<Self, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut session =
            Self { address, reader: connect(address)?, id: None, next: 0, heard: Vec::new() };
        let client = json!({ "name": "bench", "version": "1" });
        session.ask(
            "initialize",
            &json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client }),
        )?;
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        session.exchange(&session.post(&done))?;
        Ok(session)
    }

    /// Another connection for the same session: servers close idle ones.
    pub(crate) fn reconnect(&mut self) -> std::io::Result<()> {
        self.reader = connect(self.address)?;
        Ok(())
    }

    /// The result of a request.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.next += 1;
        let id = self.next;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let body = self.exchange(&self.post(&message))?;
        self.heard.extend(String::from_utf8_lossy(&body).lines().filter_map(updated));
        let answer = answer(&body, id)
            .ok_or_else(|| format!("no answer to {method}: {}", String::from_utf8_lossy(&body)))?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("{method} failed: {answer}").into()),
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The time of so many calls of `echo`, each of which must come back.
    pub(crate) fn time_calls(&mut self, calls: usize) -> Result<Vec<f64>, Failure> {
        let params = json!({ "name": "echo", "arguments": { "message": "to and fro" } });
        let call =
            json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params });
        let request = self.post(&call);
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let began = Instant::now();
            let body = self.exchange(&request)?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
            if !body.windows(10).any(|bytes| bytes == b"to and fro") {
                return Err(format!("not an echo: {}", String::from_utf8_lossy(&body)).into());
            }
        }
        Ok(times)
    }

    /// Opens the stream of notices. Their URIs come through the channel, until the server ends it.
    pub(crate) fn listen(&mut self) -> Result<mpsc::Receiver<String>, Failure> {
        let reader = self.open_stream()?;
        reader.get_ref().set_read_timeout(None)?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(Chunks::new(reader)).lines() {
                let Ok(line) = line else { return };
                if updated(&line).is_some_and(|uri| sender.send(uri).is_err()) {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    /// Opens the stream of notices and does not read it.
    pub(crate) fn open_stream(&mut self) -> Result<BufReader<TcpStream>, Failure> {
        let mut reader = connect(self.address)?;
        let head_of = self.head("GET", "text/event-stream");
        reader.get_mut().write_all(format!("{head_of}\r\n").as_bytes())?;
        let Head { status, .. } = head(&mut reader)?;
        if status != 200 {
            return Err(format!("no stream of notices: status {status}").into());
        }
        Ok(reader)
    }

    fn head(&self, verb: &str, accept: &str) -> String {
        let session = self.id.as_ref();
        let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
        format!(
            "{verb} /mcp HTTP/1.1\r\nhost: {}\r\naccept: {accept}\r\n\
             mcp-protocol-version: {VERSION}\r\n{session}",
            self.address
        )
    }

    fn post(&self, message: &Value) -> Vec<u8> {
        let (head, body) =
            (self.head("POST", "application/json, text/event-stream"), message.to_string());
        let length = body.len();
        format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    /// Sends a request and reads the whole answer.
    fn exchange(&mut self, request: &[u8]) -> Result<Vec<u8>, Failure> {
        self.reader.get_mut().write_all(request)?;
        let Head { status, length, is_chunked, session, .. } = head(&mut self.reader)?;
        let mut body = Vec::new();
        if is_chunked {
            Chunks::new(&mut self.reader).read_to_end(&mut body)?;
        } else {
            body.resize(length.unwrap_or_default(), 0);
            self.reader.read_exact(&mut body)?;
        }
        if !(200..300).contains(&status) {
            return Err(format!("status {status}: {}", String::from_utf8_lossy(&body)).into());
        }
        self.id = session.or(self.id.take());
        Ok(body)
    }
}

/// The answer to a request in a body: JSON alone, or an event among others.
fn answer(body: &[u8], id: u64) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    let texts = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    let mut values = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    values.find(|value| value["id"] == id)
}

/// The URI that a line of a stream says was updated.
fn updated(line: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line.strip_prefix("data:")?).ok()?;
    let is_update = message["method"] == "notifications/resources/updated";
    is_update.then(|| message["params"]["uri"].as_str().unwrap_or_default().to_owned())
}

/// A body in chunks, without them.
struct Chunks<R> {
    reader: R,
    left: usize,
    is_over: bool,
}

impl<R: BufRead> Chunks<R> {
    fn new(reader: R) -> Self {
        Self { reader, left: 0, is_over: false }
    }

    fn begin(&mut self) -> std::io::Result<()> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        self.is_over = self.left == 0;
        if self.is_over {
            self.reader.read_line(&mut line)?;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.is_over {
            self.begin()?;
        }
        if self.is_over {
            return Ok(0);
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        if self.left == 0 {
            let mut end = String::new();
            self.reader.read_line(&mut end)?;
        }
        // The connection broke.
        self.is_over |= read == 0;
        Ok(read)
    }
}
