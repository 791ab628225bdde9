//! Our server: the `counter` example's source, served as the example serves it.

use std::error::Error;

use tidings_server::http;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::counter;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let hub = counter::hub()?;
    let mut config = http::HttpConfig::default();
    // As many as a process of this benchmark can have files.
    config.sessions = 32_768;
    config.listeners = 32_768;
    http::serve(&hub, listener, config, CancellationToken::new()).await?;
    Ok(())
}
