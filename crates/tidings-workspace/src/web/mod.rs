//! Bytes over plain HTTP, for those too big for JSON: `GET /blob/{hash}` and `PUT /blob`.

mod range;
#[cfg(test)]
mod tests;

use std::io::{Seek as _, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{any, get, put};
use futures_util::TryStreamExt as _;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::io::ReaderStream;
use tracing::error;

use self::range::Part;
use crate::text::{self, Lines};
use crate::{Blob, BlobFile, BlobWriter, Limits, Refusal, Workspace, WorkspaceError};

/// Who is in the log for bytes that came this way, if nobody is named.
const ACTOR: &str = "http";
/// A blob ends within this time, or so many of its bytes come in each such time, 16 KiB a second:
/// whoever is slow holds one of few places.
const WINDOW: Duration = Duration::from_secs(10);
const LEAST: u64 = 160 << 10;
/// How many may send bytes at once, so that half a blob of each fits on any disk.
const UPLOADS: usize = 64;
/// How much is read from the disk, or gathered for it, at once.
const CHUNK: usize = 1 << 18;

/// How much is read of bytes that are refused, and forgotten: twice the usual blob.
const DRAINED: usize = 128 << 20;
/// How long that may take.
const DRAINING: Duration = Duration::from_secs(5);
/// What names who is in the log for bytes.
const ACTOR_HEADER: HeaderName = HeaderName::from_static("tidings-actor");

/// What the routes share.
#[derive(Clone)]
struct Web {
    workspace: Workspace,
    uploads: Arc<Semaphore>,
}

impl Workspace {
    /// The routes of the bytes: `GET` and `HEAD /blob/{hash}`, `PUT /blob`. Whoever can ask gets an
    /// answer: a server puts its own checks before them.
    pub fn routes(&self) -> Router {
        self.routes_for(UPLOADS)
    }

    fn routes_for(&self, uploads: usize) -> Router {
        let uploads = Arc::new(Semaphore::new(uploads));
        Router::new()
            .route("/blob", put(upload).fallback(only_put))
            .route("/blob/", any(nameless))
            .route("/blob/{hash}", get(download).fallback(only_get))
            .with_state(Web { workspace: self.clone(), uploads })
    }
}

async fn only_put() -> Response {
    other_method("PUT", "`PUT /blob` stores bytes, `GET /blob/{hash}` gives them")
}

async fn only_get() -> Response {
    other_method("GET, HEAD", "`GET /blob/{hash}` gives bytes, `PUT /blob` stores them")
}

fn other_method(allowed: &str, details: &str) -> Response {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, details);
    put_header(&mut response, header::ALLOW, allowed);
    response
}

async fn nameless() -> Response {
    let details = "there is no hash; `GET /blob/{hash}` gives bytes, `PUT /blob` stores them";
    refuse(StatusCode::NOT_FOUND, details)
}

async fn download(State(web): State<Web>, Path(hash): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match blob(web.workspace, hash, &parts.method, &parts.headers).await {
        Ok(response) => response,
        Err(error) => refused(&error),
    }
}

async fn blob(
    workspace: Workspace,
    hash: String,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, WorkspaceError> {
    let wanted = hash.clone();
    let Some(file) = blocking(move || workspace.open_blob(&wanted)).await? else {
        return Ok(refuse(StatusCode::NOT_FOUND, &format!("there is no blob `{hash}`")));
    };
    let (tag, size) = (range::tag(&hash), file.blob().size);
    if header_text(headers, &header::IF_NONE_MATCH).is_some_and(|tags| range::names(&tags, &tag)) {
        return Ok(described(StatusCode::NOT_MODIFIED, &tag));
    }
    // Of a part of other bytes the rest would be no use.
    let is_same = header_text(headers, &header::IF_RANGE).is_none_or(|it| it == tag);
    let asked = header_text(headers, &header::RANGE).filter(|_| is_same && method == Method::GET);
    let part = range::part(asked.as_deref(), size);
    let mut response = match &part {
        Part::Whole => described(StatusCode::OK, &tag),
        Part::Of(_) => described(StatusCode::PARTIAL_CONTENT, &tag),
        Part::Beyond => {
            let mut response =
                refuse(StatusCode::RANGE_NOT_SATISFIABLE, &format!("the blob has {size} bytes"));
            put_header(&mut response, header::CONTENT_RANGE, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    let range = match part {
        Part::Of(range) => {
            let said = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            put_header(&mut response, header::CONTENT_RANGE, &said);
            range
        }
        Part::Whole | Part::Beyond => 0..size,
    };
    put_header(&mut response, header::CONTENT_TYPE, &file.blob().mime_type);
    put_header(&mut response, header::CONTENT_LENGTH, &(range.end - range.start).to_string());
    if method != Method::HEAD {
        *response.body_mut() = body(file, range.start, range.end - range.start).await?;
    }
    Ok(response)
}

/// An answer about a blob. It is never a page: whatever the bytes are, no browser runs them.
fn described(status: StatusCode, tag: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    for (name, value) in [
        (header::ETAG, tag),
        (header::ACCEPT_RANGES, "bytes"),
        // What is under a hash never changes.
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ] {
        put_header(&mut response, name, value);
    }
    response
}

async fn body(file: BlobFile, start: u64, length: u64) -> Result<Body, WorkspaceError> {
    let file = blocking(move || {
        let hash = file.blob().hash.clone();
        let mut file = file.into_file();
        file.seek(SeekFrom::Start(start)).map_err(|error| WorkspaceError::path(hash, error))?;
        Ok(file)
    })
    .await?;
    let bytes = tokio::fs::File::from_std(file).take(length);
    Ok(Body::from_stream(ReaderStream::with_capacity(bytes, CHUNK)))
}

async fn upload(State(web): State<Web>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (mut chunks, mut has_begun) = (body.into_data_stream(), false);
    let response = if let Ok(_place) = web.uploads.try_acquire() {
        match receive(&web.workspace, &parts.headers, &mut chunks, &mut has_begun).await {
            Ok(blob) => return stored(&blob),
            Err(UploadFailure::Workspace(error)) => refused(&error),
            Err(UploadFailure::Request(status, details)) => refuse(status, details),
        }
    } else {
        let details = "as many as may are sending bytes; try again in a moment";
        let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, details);
        put_header(&mut response, header::RETRY_AFTER, "1");
        response
    };
    // Who still waits to be told to go on has sent nothing, and too slow a sender has been waited
    // for.
    let is_waiting = parts.headers.contains_key(header::EXPECT) && !has_begun;
    if !is_waiting && response.status() != StatusCode::REQUEST_TIMEOUT {
        drain(&mut chunks).await;
    }
    response
}

/// Reads some of what is not wanted: a connection that is closed before takes the answer with it,
/// and its sender never learns why.
async fn drain(chunks: &mut BodyDataStream) {
    let mut read = 0;
    let rest = async {
        while let Ok(Some(chunk)) = chunks.try_next().await {
            read += chunk.len();
            if read > DRAINED {
                break;
            }
        }
    };
    drop(tokio::time::timeout(DRAINING, rest).await);
}

/// Why bytes that were sent are not a blob.
enum UploadFailure {
    Workspace(WorkspaceError),
    Request(StatusCode, &'static str),
}

impl From<WorkspaceError> for UploadFailure {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

/// Takes bytes as they come. Cancel-safe: what came is gone if this is dropped.
async fn receive(
    workspace: &Workspace,
    headers: &HeaderMap,
    chunks: &mut BodyDataStream,
    has_begun: &mut bool,
) -> Result<Blob, UploadFailure> {
    if headers.contains_key(header::CONTENT_RANGE) {
        let details = "a blob is sent whole; leave Content-Range out";
        return Err(UploadFailure::Request(StatusCode::BAD_REQUEST, details));
    }
    if header_text(headers, &header::CONTENT_ENCODING).is_some_and(|it| it != "identity") {
        let details = "bytes are stored as they come; send them without Content-Encoding";
        return Err(UploadFailure::Request(StatusCode::UNSUPPORTED_MEDIA_TYPE, details));
    }
    let limit = workspace.config().limits.blob;
    let announced =
        header_text(headers, &header::CONTENT_LENGTH).and_then(|it| it.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(WorkspaceError::from(Refusal::BlobTooLarge { limit }).into());
    }
    let kind = header_text(headers, &header::CONTENT_TYPE);
    let limits = &workspace.config().limits;
    if let Some(kind) = &kind {
        text::mime_type(kind, limits.tag).map_err(WorkspaceError::from)?;
    }
    let actor = sender(headers, limits)?;
    let opener = workspace.clone();
    let mut writer = blocking(move || opener.blob_writer()).await?;
    let (mut gathered, mut received) = (Vec::new(), 0);
    let (mut deadline, mut before) = (Instant::now() + WINDOW, 0);
    // Who waited to be told to go on is told when the first bytes are wanted.
    *has_begun = true;
    loop {
        let Ok(chunk) = tokio::time::timeout_at(deadline, chunks.try_next()).await else {
            if received - before >= LEAST {
                (deadline, before) = (deadline + WINDOW, received);
                continue;
            }
            let details = "the bytes came too slowly; send at least 160 KiB every 10 seconds";
            return Err(UploadFailure::Request(StatusCode::REQUEST_TIMEOUT, details));
        };
        let Ok(chunk) = chunk else {
            return Err(UploadFailure::Request(StatusCode::BAD_REQUEST, "the bytes were cut off"));
        };
        let is_end = chunk.is_none();
        let chunk = chunk.unwrap_or_default();
        received += chunk.len() as u64;
        gathered.extend_from_slice(&chunk);
        if gathered.len() >= CHUNK || is_end {
            writer = write(writer, std::mem::take(&mut gathered)).await?;
        }
        if is_end {
            return Ok(blocking(move || writer.finish(kind.as_deref(), &actor)).await?);
        }
    }
}

/// Who is in the log for bytes that are sent.
fn sender(headers: &HeaderMap, limits: &Limits) -> Result<String, UploadFailure> {
    let Some(value) = headers.get(ACTOR_HEADER) else { return Ok(ACTOR.to_owned()) };
    let Ok(name) = std::str::from_utf8(value.as_bytes()) else {
        let details = "`Tidings-Actor` must be UTF-8";
        return Err(UploadFailure::Request(StatusCode::BAD_REQUEST, details));
    };
    text::check("Tidings-Actor", name, limits.name, Lines::One).map_err(WorkspaceError::from)?;
    Ok(name.to_owned())
}

async fn write(mut writer: BlobWriter, bytes: Vec<u8>) -> Result<BlobWriter, WorkspaceError> {
    blocking(move || {
        writer.write(&bytes)?;
        Ok(writer)
    })
    .await
}

fn stored(blob: &Blob) -> Response {
    let text = json!({ "hash": blob.hash, "mimeType": blob.mime_type, "size": blob.size });
    let mut response = reply(StatusCode::CREATED, &text);
    put_header(&mut response, header::LOCATION, &format!("/blob/{}", blob.hash));
    put_header(&mut response, header::ETAG, &range::tag(&blob.hash));
    response
}

/// Does what may wait for the disk on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(WorkspaceError::Interrupted))
}

fn refused(error: &WorkspaceError) -> Response {
    let status = match error {
        WorkspaceError::Refused(Refusal::BlobTooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        WorkspaceError::Refused(_) => StatusCode::BAD_REQUEST,
        WorkspaceError::Full => StatusCode::INSUFFICIENT_STORAGE,
        // Where the workspace is concerns nobody outside.
        WorkspaceError::Damaged { .. } => {
            error!(%error, "a blob could not be read or stored");
            let details = "the workspace is damaged; who runs the server must restore a backup";
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, details);
        }
        _ => {
            error!(%error, "a blob could not be read or stored");
            return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the workspace cannot be used now");
        }
    };
    refuse(status, &error.to_string())
}

fn refuse(status: StatusCode, details: &str) -> Response {
    reply(status, &json!({ "error": details }))
}

fn reply(status: StatusCode, body: &serde_json::Value) -> Response {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = status;
    put_header(&mut response, header::CONTENT_TYPE, "application/json");
    response
}

fn put_header(response: &mut Response, name: HeaderName, value: &str) {
    // Whatever a kind of bytes is called, it is what it was stored as or plain bytes.
    let value = HeaderValue::from_str(value)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    response.headers_mut().insert(name, value);
}

/// The lines of a header as one.
fn header_text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<_> =
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}
