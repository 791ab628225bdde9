//! Any bytes from a client: the server answers with lines of JSON, ends with its input, and holds
//! nothing of the client afterwards.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_server::{Hub, stdio};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

fuzz_target!(|bytes: &[u8]| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    // What waits for a time waits for none here.
    runtime.enable_time().start_paused(true).build().expect("a runtime").block_on(async {
        let hub = Hub::new("fuzz", "1");
        let shelf = hub.source("pages").expect("a source");
        shelf.resource("page://one", "one", || "text").expect("a resource");
        shelf.template("page://{name}", "any", |_: String| "text").expect("a template");
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let serving = stdio::serve(&hub, input, output, CancellationToken::new());
        let client = async {
            let (mut output, mut input) = tokio::io::split(ours);
            let mut heard = Vec::new();
            let write = async {
                input.write_all(bytes).await.expect("the server reads");
                input.write_all(b"\n").await.expect("the server reads");
                input.shutdown().await.expect("the server reads");
            };
            let (_, read) = tokio::join!(write, output.read_to_end(&mut heard));
            read.expect("the server writes");
            heard
        };
        let (served, heard) = tokio::join!(serving, client);
        served.expect("bytes of a client are no failure");
        for line in heard.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            serde_json::from_slice::<serde_json::Value>(line).expect("a line is JSON");
        }
        let metrics = hub.metrics();
        assert!(metrics.contains("tidings_subscriptions 0"), "nothing stays");
    });
});
