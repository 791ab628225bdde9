//! A real program as an upstream, over its standard input and output.

use tidings_mirror::CommandTarget;
use tidings_upstream::{Config, Name, State};

use super::Gateway;

#[tokio::test]
async fn a_program_is_offered_restarted_and_ended_with_the_hub() {
    let program = env!("CARGO_BIN_EXE_tidings");
    let target = CommandTarget::run(program, ["serve", "--demo", "--stdio"]);
    let gateway = Gateway::with(Config::new(Name::parse("demo").unwrap(), target)).await;
    let mut client = gateway.legacy().await;
    let tools = client.names("tools").await;
    assert!(!tools.is_empty() && tools.iter().all(|it| it.starts_with("demo__")), "{tools:?}");
    let resources = client.names("resources").await;
    assert!(client.text(&resources[0]).await.is_string(), "{resources:?}");
    gateway.upstreams[0].restart().await;
    gateway.until(|gateway| gateway.status(0).connections == 2).await;
    gateway.until(|gateway| gateway.status(0).state == State::Ready).await;
    assert!(client.text(&resources[0]).await.is_string());
    assert_eq!(gateway.status(0).version.as_deref(), Some("2026-07-28"));
    gateway.hub.shutdown().await;
    assert_ne!(gateway.status(0).state, State::Ready);
}
