//! Connections: accept, configure, own and end them.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::transport::gate::{Admission, Gate};
use crate::transport::line::{Feed, Io, Line};
use crate::transport::seldom::Seldom;
use crate::transport::tail::Tail;
use crate::transport::writer::{Writer, Writers};

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
/// their requests. An idle stream gets a comment after `idle`.
pub(crate) async fn serve(
    listener: TcpListener,
    gate: &Arc<Gate>,
    router: Router,
    idle: Duration,
    stop: impl Future<Output = ()>,
) {
    let writers = Writers::start(idle);
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
                    let guest = entry.guest().clone();
                    let (router, ending, writer) =
                        (router.clone(), ending.clone(), writers.next());
                    let serving = connection((socket, peer), entry, router, ending, writer);
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
    // Order: streams leave their connections, so they are waited for last.
    let ended = async {
        while connections.join_next().await.is_some() {}
        writers.idle().await;
    };
    if tokio::time::timeout(FAREWELL, ended).await.is_err() {
        connections.shutdown().await;
    }
    writers.stop().await;
}

/// Serves a connection until it ends, or until a stream leaves with its socket.
async fn connection(
    (socket, peer): (TcpStream, IpAddr),
    entry: Admission,
    router: Router,
    ending: CancellationToken,
    writer: Writer,
) {
    let socket = Arc::new(socket);
    let line = Line::new(&socket, peer);
    let io = Io::new(socket, line.clone());
    if let Err(error) = io.tune(PEER_SILENCE) {
        debug!(%error, "a connection could not be tuned");
    }
    let router = TowerToHyperService::new(router);
    let guest = entry.guest().clone();
    let (entry, requests) = (Arc::new(entry), line.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let line = requests.clone();
        line.note(request.extensions_mut());
        let begun = entry.begin(request.extensions_mut());
        let begun = begun.map(|busy| (busy, router.call(request)));
        async move {
            let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
            let (busy, answering) = begun.ok_or_else(gone)?;
            let response = tokio::select! {
                biased;
                Ok(response) = answering => response,
                () = line.hung_up() => return Err(gone()),
            };
            let busy = line.hold_busy(busy);
            Ok(response.map(|body| Tail::new(body, busy)))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_SILENCE)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(io), service);
    let Some((serving, feed)) = until_leaving(serving, &line, &ending).await else { return };
    let parts = serving.into_parts();
    guest.leave_task();
    // The line knows the socket only weakly, and asks for it nowhere else than in this task.
    if let Some(socket) = Arc::into_inner(parts.io.into_inner().into_socket()) {
        writer.take(socket, feed, parts.read_buf.len());
    }
}

/// Polls a connection until it ends, or until a stream can leave it.
async fn until_leaving<S, B>(
    mut serving: http1::Connection<TokioIo<Io>, S>,
    line: &Line,
    ending: &CancellationToken,
) -> Option<(http1::Connection<TokioIo<Io>, S>, Feed)>
where
    S: HttpService<Incoming, ResBody = B> + Unpin,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: http_body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut stopping = std::pin::pin!(ending.cancelled());
    let mut is_stopping = false;
    let feed = std::future::poll_fn(|context| {
        if !is_stopping && stopping.as_mut().poll(context).is_ready() {
            is_stopping = true;
            Pin::new(&mut serving).graceful_shutdown();
        }
        if let Poll::Ready(result) = Pin::new(&mut serving).poll(context) {
            if let Err(error) = result {
                debug!(%error, "a connection ended early");
            }
            return Poll::Ready(None);
        }
        line.leave().map_or(Poll::Pending, |feed| Poll::Ready(Some(feed)))
    });
    let feed = feed.await?;
    Some((serving, feed))
}
