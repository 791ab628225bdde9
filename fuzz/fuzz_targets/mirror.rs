//! Any bytes from a server: the mirror connects or says why not, keeps its promises to whoever reads
//! it, and ends with its input.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tidings_mirror::{Config, Mirror, Protocol, StreamsTarget, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fuzz_target!(|bytes: &[u8]| {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().expect("a runtime").block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let mut config = Config::new("fuzz", "1");
        // The first byte says how to begin, the others are the server's.
        let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
        config.protocol =
            [Protocol::Auto, Protocol::Legacy, Protocol::Modern][usize::from(*first) % 3].clone();
        config.connect_timeout = Duration::from_secs(5);
        config.request_timeout = Duration::from_secs(5);
        config.max_message = 1 << 16;
        config.max_items = 100;
        config.history = 16;
        let server = async {
            let (mut heard, mut said) = tokio::io::split(theirs);
            said.write_all(rest).await.expect("the mirror reads");
            said.write_all(b"\n").await.expect("the mirror reads");
            said.shutdown().await.expect("the mirror reads");
            let mut all = Vec::new();
            heard.read_to_end(&mut all).await.expect("the mirror writes");
            all
        };
        let client = async {
            let target = Target::Streams(StreamsTarget::new(input, output));
            let Ok((mirror, mut events)) = Mirror::connect_with_events(target, config).await else {
                return;
            };
            let _ = mirror.read_resource("any://thing").await;
            mirror.close().await;
            assert!(mirror.tools().is_empty(), "nothing stays");
            while events.try_next().is_some() {}
        };
        let ((), heard) = tokio::join!(client, server);
        for line in heard.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            serde_json::from_slice::<serde_json::Value>(line).expect("a line is JSON");
        }
    });
});
