//! A legacy client in memory: it watches one address and reads lines.

use serde_json::{Value, json};
use tidings_server::{Config, Greeting, Hub, Merging, stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Failure;

/// A hub that tells at once.
pub(crate) fn hub() -> Hub {
    let mut config = Config::new("feeds", env!("CARGO_PKG_VERSION"));
    config.merging = Merging::off();
    config.greeting = Greeting::Silent;
    Hub::with_config(config)
}

pub(crate) struct Client {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    line: String,
}

impl Client {
    /// Connects and watches an address.
    pub(crate) async fn watching(
        hub: &Hub,
        uri: &str,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self, Failure> {
        let mut client = Self::of(hub, tasks).await?;
        client.ask("resources/subscribe", &json!({ "uri": uri })).await?;
        Ok(client)
    }

    /// Connects.
    pub(crate) async fn of(hub: &Hub, tasks: &mut JoinSet<()>) -> Result<Self, Failure> {
        let (near, far) = tokio::io::duplex(4096);
        let (input, output) = tokio::io::split(far);
        let hub = hub.clone();
        tasks.spawn(async move {
            drop(stdio::serve(&hub, input, output, CancellationToken::new()).await);
        });
        let (input, output) = tokio::io::split(near);
        let input = BufReader::with_capacity(1024, input);
        let mut client = Self { input, output, line: String::new() };
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "load", "version": "1" },
        });
        client.ask("initialize", &params).await?;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(client)
    }

    /// The line that answers a request; there is one request at a time.
    pub(crate) async fn ask(&mut self, method: &str, params: &Value) -> Result<&str, Failure> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(&request).await?;
        while !self.line().await?.contains("\"id\":1") {}
        Ok(&self.line)
    }

    /// Reads until it is told of an address.
    pub(crate) async fn told(&mut self) -> Result<(), Failure> {
        while !self.line().await?.contains("notifications/resources/updated") {}
        Ok(())
    }

    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        Ok(self.output.write_all(format!("{message}\n").as_bytes()).await?)
    }

    async fn line(&mut self) -> Result<&str, Failure> {
        self.line.clear();
        if self.input.read_line(&mut self.line).await? == 0 {
            return Err("the hub ended the connection".into());
        }
        Ok(&self.line)
    }
}
