//! Connections: accepted, tuned, owned, and ended when the server is.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// A peer that acknowledges nothing for this long is gone.
const PEER_SILENCE: Duration = Duration::from_mins(1);
/// A connection on which no request comes, or only half of one, is closed after this.
pub(crate) const REQUEST_SILENCE: Duration = Duration::from_secs(75);
/// How long streams may take to end when the server does; then they are cut.
const FAREWELL: Duration = Duration::from_secs(5);
/// After an accept that failed, for want of descriptors mostly, the next is tried so much later.
const BREATH: Duration = Duration::from_millis(100);

/// Serves connections until `stop` is done; then no more are taken, and those that are open may
/// end what they are at.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let mut connections = JoinSet::new();
    let ending = CancellationToken::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(connection(socket, router.clone(), ending.clone()));
                }
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(BREATH).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    ending.cancel();
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(socket: TcpStream, router: Router, ending: CancellationToken) {
    let tuned = socket
        .set_nodelay(true)
        .and_then(|()| socket2::SockRef::from(&socket).set_tcp_user_timeout(Some(PEER_SILENCE)));
    if let Err(error) = tuned {
        debug!(%error, "a connection could not be tuned");
    }
    let service = TowerToHyperService::new(router);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_SILENCE)
        .serve_connection(TokioIo::new(socket), service);
    let mut serving = std::pin::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result,
        () = ending.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = result {
        debug!(%error, "a connection ended early");
    }
}
