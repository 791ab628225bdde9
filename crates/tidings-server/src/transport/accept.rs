//! Connections: accept, configure, own and end them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::transport::gate::{Admission, Gate};
use crate::transport::line::{Io, Line};
use crate::transport::seldom::Seldom;
use crate::transport::tail::Tail;
use crate::transport::writer::Writers;

/// A peer that acknowledges nothing for this long is gone.
const PEER_SILENCE: Duration = Duration::from_mins(1);
/// A connection without a complete request is closed after this. Usual clients close idle
/// connections after 90 seconds at most. If a server closes them earlier, requests sent at that
/// moment fail.
const REQUEST_SILENCE: Duration = Duration::from_mins(2);
/// The read buffer of a connection grows to this much, and so may the headers of a request. The
/// library's default of 400 KiB would let idle connections hold more than the budget for bodies.
const READ_BUFFER: usize = 64 << 10;
/// How often silent connections are searched for.
const SWEEP: Duration = Duration::from_secs(1);
/// How long streams may take to end when the server stops; then they are cut.
const FAREWELL: Duration = Duration::from_secs(5);
/// The pause after a failed accept, mostly for lack of file descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// Serves connections until `stop` is done. Then no more are accepted, and open ones may finish
/// their requests.
pub(crate) async fn serve(
    listener: TcpListener,
    gate: &Arc<Gate>,
    router: Router,
    stop: impl Future<Output = ()>,
) {
    // Order: writers end after the connections, because some connections must still be written.
    let writers = Writers::start();
    let mut connections = JoinSet::new();
    let ending = CancellationToken::new();
    let mut stop = std::pin::pin!(stop);
    let mut sweep = tokio::time::interval(SWEEP);
    let failures = Seldom::default();
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, address)) => {
                    let peer = address.ip();
                    let Some(entry) = gate.enter(Some(peer)) else { continue };
                    let (router, ending) = (router.clone(), ending.clone());
                    let guest = entry.guest().clone();
                    let line = Line::new(socket, peer, writers.next());
                    let serving = connection(line, entry, router, ending);
                    guest.served_by(connections.spawn(serving));
                }
                Err(error) => {
                    if let Some(left_out) = failures.now() {
                        warn!(%error, left_out, "a connection could not be accepted");
                    }
                    // The client left before it was accepted. That is not a fault of this server.
                    if error.kind() != std::io::ErrorKind::ConnectionAborted {
                        gate.relieve();
                    }
                    tokio::time::sleep(BREATH).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = sweep.tick() => gate.sweep(),
        }
    }
    drop(listener);
    ending.cancel();
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(line: Arc<Line>, entry: Admission, router: Router, ending: CancellationToken) {
    if let Err(error) = line.tune(PEER_SILENCE) {
        debug!(%error, "a connection could not be tuned");
    }
    let io = TokioIo::new(Io::new(line.clone()));
    let router = TowerToHyperService::new(router);
    let entry = Arc::new(entry);
    let service = service_fn(move |mut request: Request<Incoming>| {
        line.note(request.extensions_mut());
        let busy = entry.begin(request.extensions_mut());
        let (answering, line) = (router.call(request), line.clone());
        async move {
            let response = tokio::select! {
                biased;
                Ok(response) = answering => response,
                () = line.hung_up() => return Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            };
            Ok(response.map(|body| Tail::new(body, busy)))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_SILENCE)
        .max_buf_size(READ_BUFFER)
        .serve_connection(io, service);
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
