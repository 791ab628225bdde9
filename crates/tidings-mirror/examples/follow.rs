//! Follows one server and says what changes: `cargo run --example follow -- URL [URI]…`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tidings_mirror::{Backoff, Config, Event, HttpTarget, Mirror, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the URL of a server, and what to watch there")?;
    let mut config = Config::new("follow", "1.0");
    config.reconnect = Some(Backoff::default());
    let target = Target::Http(HttpTarget::new(url));
    let (mirror, mut events) = Mirror::connect_with_events(target, config).await?;
    for uri in arguments {
        mirror.read_resource(&uri).await?;
        mirror.subscribe(&[&uri]).await?;
    }
    while let Some(event) = events.next().await {
        match event {
            Event::ToolsChanged(change) => println!("{} tools", change.items.len()),
            Event::ResourcesChanged(change) => println!("{} resources", change.items.len()),
            Event::PromptsChanged(change) => println!("{} prompts", change.items.len()),
            Event::ResourceContentChanged { uri, content, cause } => {
                println!("{uri} ({cause:?}): {:?}", content.contents);
            }
            Event::Connection(state) => println!("{state}"),
            Event::Warning(warning) => println!("warning: {warning}"),
            Event::Lagged { missed } => println!("{missed} events were missed"),
            _ => {}
        }
    }
    Ok(())
}
