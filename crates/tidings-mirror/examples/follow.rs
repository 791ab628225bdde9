//! The five things a mirror keeps, against the demo: lists, a watched resource, and what a template,
//! a prompt and a tool gave last. Every event is printed as a line of JSON.
//!
//! `tidings serve --demo`, then `cargo run --example follow -- http://127.0.0.1:8484/mcp`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tidings_mirror::{Config, Mirror};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of the demo")?;
    // The lists are loaded now, and loaded again whenever the server says that they changed.
    let (mirror, mut events) =
        Mirror::connect_with_events(url, Config::new("follow", "1.0")).await?;
    for resource in mirror.resources().iter() {
        println!("{}", resource.uri);
    }
    // What was read is kept, and kept current while it is watched.
    mirror.read_resource("station://log").await?;
    mirror.subscribe(["station://log"]).await?;
    // Templates, prompts and tools: the cache has what each gave last.
    mirror.read_from_template("station://module/{name}", [("name", "aurora")]).await?;
    mirror.get_prompt("station_report", [("focus", "aurora")]).await?;
    mirror.call_tool("dock_module", [("module", "iris")]).await?;
    let cache = mirror.cache();
    println!("{}", cache.resource("station://log").map(|it| it.text()).unwrap_or_default());
    println!("{}", cache.prompt("station_report").map(|it| it.text()).unwrap_or_default());
    println!("{}", cache.tool_result("dock_module").map(|it| it.text()).unwrap_or_default());
    // Each of these was an event, and so is every change from here on.
    while let Some(event) = events.next().await {
        println!("{}", serde_json::to_string(&event)?);
    }
    Ok(())
}
