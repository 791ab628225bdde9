//! One client over a pair of byte streams, a message a line; usually standard input and output.

mod input;
mod link;
mod output;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use self::link::Link;
use self::output::LineWriter;
use crate::handler::{Connection, FrameWriter as _, Handler};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::outbox::Next;

/// The time for the last notices when the server stops, and for a client to read the last lines.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why a connection ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A task of ours failed.
    #[error("serving the connection failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Serves a hub to one client until its input ends, its output fails, the token is cancelled, or the
/// hub is shut down.
///
/// When the input ends or the token is cancelled, requests under way are answered and notices that
/// are due are sent first. A request that takes longer than ten seconds after that is cancelled.
///
/// # Errors
///
/// Serving failed. A client that leaves is not an error.
pub async fn serve<R, W>(
    hub: &Hub,
    input: R,
    output: W,
    cancel: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_as(hub, Identity::anonymous(), (input, output), cancel).await
}

/// As [`serve`], to a client of this name and with these labels.
///
/// # Errors
///
/// As [`serve`].
pub async fn serve_as<R, W>(
    hub: &Hub,
    identity: Identity,
    (input, output): (R, W),
    cancel: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let pipeline = hub.pipeline().clone();
    let writer = LineWriter::default();
    let frames = Box::new(writer.clone());
    let connection = Connection::new(pipeline.clone(), identity, Some(frames));
    let ends = Ends { cancel, ..Ends::default() };
    let link = Link::new(
        input,
        writer.clone(),
        connection.clone(),
        ends.service.clone(),
        ends.cancel.clone(),
    );
    let handler = Handler::of(pipeline.clone(), connection.clone());
    // A task of its own, so that a notice does not poll everything that waits for requests.
    let mut writing = JoinSet::new();
    let (gone, over) = (ends.gone.clone(), ends.over.clone());
    writing.spawn(write(connection.clone(), writer, output, gone, over));
    info!("serving stdio");
    let result = tokio::select! {
        // The library's handshake is a large future, and this one lives as long as the connection.
        result = Box::pin(requests(handler, link, &ends)) => result,
        () = stop(&connection, &pipeline.stopped, &ends) => Ok(()),
    };
    connection.close();
    ends.over.cancel();
    let written = writing.join_next().await;
    info!("stopped serving stdio");
    written.transpose().map_err(|error| ServeError::Failed(Box::new(error)))?;
    result
}

/// The ways a connection ends.
#[derive(Default)]
struct Ends {
    /// The caller stops the server: requests under way have time.
    cancel: CancellationToken,
    /// The output failed: nobody reads any more.
    gone: CancellationToken,
    /// The protocol library's service ends. Order: after the listeners, so that their last notices
    /// are sent.
    service: CancellationToken,
    /// No request is under way; the last lines are written.
    over: CancellationToken,
}

/// Answers requests until the input ends or the service is ended.
async fn requests<R>(handler: Handler, link: Link<R>, ends: &Ends) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
{
    match serve_server_with_ct(handler, link, ends.service.clone()).await {
        Ok(service) => match service.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => {
                Err(ServeError::Failed(Box::new(error)))
            }
            Ok(_) => Ok(()),
        },
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(_) if ends.gone.is_cancelled() => Ok(()),
        Err(error) => Err(ServeError::Failed(Box::new(error))),
    }
}

/// Waits for a reason to stop, then ends the listeners and the service, and gives the client time
/// to read.
async fn stop(connection: &Connection, stopped: &CancellationToken, ends: &Ends) {
    let at_once = async {
        tokio::select! {
            () = stopped.cancelled() => {}
            () = ends.gone.cancelled() => {}
        }
    };
    let mut at_once = std::pin::pin!(at_once);
    let has_time = tokio::select! {
        () = ends.cancel.cancelled() => true,
        () = &mut at_once => false,
    };
    connection.close();
    if has_time {
        // The link waits for the requests under way, and the service ends with it.
        tokio::select! {
            () = tokio::time::sleep(link::DRAIN) => {}
            () = at_once => {}
        }
    }
    connection.listens_ended().await;
    ends.service.cancel();
    tokio::time::sleep(FAREWELL).await;
}

/// Writes notices, answers and refusals until the connection is over and all of them are written.
/// Cancels `gone` if the output fails.
async fn write(
    connection: Arc<Connection>,
    writer: LineWriter,
    output: impl AsyncWrite + Unpin,
    gone: CancellationToken,
    over: CancellationToken,
) {
    let notices = async {
        tell(&connection, &writer, &over).await;
        // Order: the last notices are sent before the last line is.
        over.cancelled().await;
        writer.finish();
    };
    let writing = async {
        if let Err(error) = writer.run(output).await {
            debug!(%error, "the output failed");
            gone.cancel();
        }
    };
    let last_lines = async {
        over.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(notices, writing) } => {}
        () = last_lines => debug!("the client did not read the last lines"),
    }
}

/// Sends the notices of a legacy session, if the client opens one, until its outbox is closed.
async fn tell(connection: &Connection, writer: &LineWriter, over: &CancellationToken) {
    let outbox = tokio::select! {
        // Order: notices before the end are sent, even if both are ready by now.
        biased;
        outbox = connection.opened() => outbox,
        () = over.cancelled() => return,
    };
    let reader = outbox.attach();
    while let Next::Frames(frames) = outbox.next(reader).await {
        if !writer.write(frames).await {
            break;
        }
    }
}
