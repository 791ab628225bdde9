//! Follows one server and prints what happens to it.

use std::error::Error;

use tidings_mirror::{Config, HttpTarget, Mirror, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of a server")?;
    let target = Target::Http(HttpTarget::new(url));
    let (mirror, mut events) =
        Mirror::connect_with_events(target, Config::new("follow", "1.0")).await?;
    eprintln!("{} tools, {} resources", mirror.tools().len(), mirror.resources().len());
    for resource in mirror.resources().iter().take(3) {
        mirror.read_resource(&resource.uri).await?;
        mirror.subscribe(&[&resource.uri]).await?;
    }
    while let Some(event) = events.next().await {
        eprintln!("{event:?}");
    }
    Ok(())
}
