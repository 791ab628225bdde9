//! Our server: the `counter` example's source, served as the example serves it.

use std::error::Error;

use tidings_server::http;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::counter;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let hub = counter::hub()?;
    http::serve(&hub, listener, http::HttpConfig::default(), CancellationToken::new()).await?;
    Ok(())
}
