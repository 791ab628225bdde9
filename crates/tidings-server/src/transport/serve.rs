//! Serving a hub in one line, over HTTP or stdio.

use tokio::net::{TcpListener, ToSocketAddrs};
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::transport::http::{self, HttpConfig};
use crate::transport::stdio;

impl Hub {
    /// Serves this hub over Streamable HTTP at `/mcp` of this address, until the hub is shut down.
    /// [`http::serve`] takes a listener, a configuration and a cancellation of your own.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub async fn serve_http(&self, address: impl ToSocketAddrs) -> std::io::Result<()> {
        let listener = TcpListener::bind(address).await?;
        http::serve(self, listener, HttpConfig::default(), CancellationToken::new()).await
    }

    /// Serves this hub to the one client on standard input and output, until the input ends or the
    /// hub is shut down. [`stdio::serve`] takes streams and a cancellation of your own.
    ///
    /// # Errors
    ///
    /// Serving failed; that the client left is not a failure.
    pub async fn serve_stdio(&self) -> Result<(), stdio::ServeError> {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        stdio::serve(self, input, output, CancellationToken::new()).await
    }
}
