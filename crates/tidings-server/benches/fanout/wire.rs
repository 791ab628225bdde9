//! Just enough HTTP/1.1 to drive a server: whole requests as bytes, answers with a length or in
//! chunks, streams left to [`crate::listener`].

use std::io;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::plan::Era;

const COUNTER: &str = "bench://counter";
const LEGACY_VERSION: &str = "2025-06-18";
const MODERN_VERSION: &str = "2026-07-28";
/// What a client that does not read offers: a receive buffer and segments so small that the
/// server's own send buffer, which the kernel makes from the latter, is full soon too.
const SMALL_BUFFER: u32 = 2048;
const SMALL_SEGMENT: u32 = 536;

/// An answer that has ended.
pub(crate) struct Answer {
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// One connection to a server, with the session it has, if any.
pub(crate) struct Connection {
    address: SocketAddr,
    stream: TcpStream,
    session: Option<String>,
    /// Read and not used yet.
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        Self::with(address, TcpSocket::new_v4()?).await
    }

    /// A connection of a client that will not read.
    pub(crate) async fn open_narrow(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(SMALL_BUFFER)?;
        socket2::SockRef::from(&socket).set_tcp_mss(SMALL_SEGMENT)?;
        Self::with(address, socket).await
    }

    async fn with(address: SocketAddr, socket: TcpSocket) -> io::Result<Self> {
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, session: None, buffer: Vec::new() })
    }

    /// Does what a client does before it can call or listen.
    pub(crate) async fn begin(&mut self, era: Era) -> io::Result<()> {
        if era == Era::Modern {
            return Ok(());
        }
        let client = json!({ "name": "load", "version": "1" });
        let params = json!({
            "protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": client,
        });
        let answer = self.post(era, "initialize", Some(0), params).await?;
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        self.post(era, "notifications/initialized", None, json!({})).await?;
        Ok(())
    }

    /// Changes the counter `n` times; the answer is yet to be read.
    pub(crate) async fn send_bump(&mut self, era: Era, n: usize) -> io::Result<()> {
        let params = json!({ "name": "bump", "arguments": { "n": n } });
        self.send(era, "tools/call", Some(1), params).await
    }

    /// Listens to the counter and returns the open stream.
    pub(crate) async fn listen(mut self, era: Era) -> io::Result<TcpStream> {
        match era {
            Era::Legacy => {
                self.post(era, "resources/subscribe", Some(1), json!({ "uri": COUNTER })).await?;
                let head = self.head("GET", "/mcp", era, "text/event-stream");
                self.stream.write_all(format!("{head}\r\n").as_bytes()).await?;
                self.read_until(b"\r\n\r\n").await?;
            }
            Era::Modern => {
                let filter = json!({ "resourceSubscriptions": [COUNTER] });
                let params = json!({ "notifications": filter });
                self.send(era, "subscriptions/listen", Some(1), params).await?;
                self.read_until(b"acknowledged").await?;
            }
        }
        if self.buffer.starts_with(b"HTTP/1.1 200") {
            return Ok(self.stream);
        }
        Err(io::Error::other(String::from_utf8_lossy(&self.buffer).into_owned()))
    }

    /// A GET with a short answer.
    pub(crate) async fn get(&mut self, path: &str) -> io::Result<String> {
        let head = self.head("GET", path, Era::Legacy, "*/*");
        self.stream.write_all(format!("{head}\r\n").as_bytes()).await?;
        Ok(self.answer().await?.body)
    }

    async fn post(
        &mut self,
        era: Era,
        method: &str,
        id: Option<u64>,
        params: Value,
    ) -> io::Result<Answer> {
        self.send(era, method, id, params).await?;
        self.answer().await
    }

    async fn send(
        &mut self,
        era: Era,
        method: &str,
        id: Option<u64>,
        mut params: Value,
    ) -> io::Result<()> {
        let mut head = self.head("POST", "/mcp", era, "application/json, text/event-stream");
        if era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
                "io.modelcontextprotocol/clientInfo": { "name": "load", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            head.extend(["Mcp-Method: ", method, "\r\n"]);
            if let Some(name) = params["name"].as_str() {
                head.extend(["Mcp-Name: ", name, "\r\n"]);
            }
        }
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if let Some(id) = id {
            message["id"] = id.into();
        }
        let body = message.to_string();
        let length = body.len();
        let request = format!(
            "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await
    }

    /// The first lines of a request, each ended.
    fn head(&self, verb: &str, path: &str, era: Era, accept: &str) -> String {
        let version = if era == Era::Legacy { LEGACY_VERSION } else { MODERN_VERSION };
        let session = self.session.as_ref();
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        format!(
            "{verb} {path} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n\
             MCP-Protocol-Version: {version}\r\n{session}",
            self.address
        )
    }

    /// Reads one whole answer; one that is not a success is an error.
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        let end = self.read_until(b"\r\n\r\n").await?;
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let body = match header(&head, "content-length").and_then(|length| length.parse().ok()) {
            Some(length) => self.take(length).await?,
            None if header(&head, "transfer-encoding").is_some() => self.chunks().await?,
            None => Vec::new(),
        };
        let answer = Answer { head, body: String::from_utf8_lossy(&body).into_owned() };
        if answer.head.starts_with("HTTP/1.1 2") {
            return Ok(answer);
        }
        Err(io::Error::other(answer.head + &answer.body))
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = self.read_until(b"\r\n").await?;
            let line: Vec<u8> = self.buffer.drain(..end).collect();
            let digits = String::from_utf8_lossy(&line);
            let length = usize::from_str_radix(digits.trim(), 16).map_err(io::Error::other)?;
            let chunk = self.take(length + 2).await?;
            if length == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// Reads until this was seen and says where it ends.
    async fn read_until(&mut self, mark: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|bytes| bytes == mark) {
                return Ok(at + mark.len());
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            let seen = String::from_utf8_lossy(&self.buffer).into_owned();
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, seen));
        }
        Ok(())
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
