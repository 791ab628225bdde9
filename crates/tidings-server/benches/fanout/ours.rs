//! Our server: the `counter` example's source, served as the example serves it.

use std::error::Error;

use tidings_server::{Config, Hub, Merging, http};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::counter::Counter;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let mut config = Config::new("counter", env!("CARGO_PKG_VERSION"));
    config.merging = Merging::off();
    let hub = Hub::new(config);
    hub.add("counter", Counter::default()).await?;
    http::serve(&hub, listener, http::HttpConfig::default(), CancellationToken::new()).await?;
    Ok(())
}
