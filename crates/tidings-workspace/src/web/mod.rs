//! HTTP routes for blobs that are too large for JSON: `GET /blob/{hash}` and `PUT /blob`.

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
use tidings_server::Identity;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::io::ReaderStream;
use tracing::error;

use self::range::BlobPart;
use crate::text::{self, Lines};
use crate::{Blob, BlobFile, BlobWriter, Refusal, Workspace, WorkspaceError, WorkspaceLimits};

/// The actor in the log if the sender names none.
const ACTOR: &str = "http";
/// The least speed: an upload ends within this time, or sends 16 KiB a second on average in each
/// such window. A slow sender would block one of few slots.
const WINDOW: Duration = Duration::from_secs(10);
const LEAST: u64 = 160 << 10;
/// How many uploads may run at once, so that half a blob of each fits on any disk.
const UPLOADS: usize = 64;
/// How many bytes are read from or collected for the disk at once.
const CHUNK: usize = 1 << 18;

/// How many bytes of a refused upload are read and dropped: twice the usual blob.
const DRAINED: usize = 128 << 20;
/// How long that may take.
const DRAINING: Duration = Duration::from_secs(5);
/// The header that names the actor for the log.
const ACTOR_HEADER: HeaderName = HeaderName::from_static("tidings-actor");

/// State shared by the routes.
#[derive(Clone)]
struct Web {
    workspace: Workspace,
    uploads: Arc<Semaphore>,
}

impl Workspace {
    /// The routes for blobs: `GET` and `HEAD /blob/{hash}`, `PUT /blob`. They have no access
    /// control: a server puts its own in front.
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
    // A part of other bytes would be useless.
    let is_same = header_text(headers, &header::IF_RANGE).is_none_or(|it| it == tag);
    let asked = header_text(headers, &header::RANGE).filter(|_| is_same && method == Method::GET);
    let part = range::part(asked.as_deref(), size);
    let mut response = match &part {
        BlobPart::Whole => described(StatusCode::OK, &tag),
        BlobPart::Of(_) => described(StatusCode::PARTIAL_CONTENT, &tag),
        BlobPart::Beyond => {
            let mut response =
                refuse(StatusCode::RANGE_NOT_SATISFIABLE, &format!("the blob has {size} bytes"));
            put_header(&mut response, header::CONTENT_RANGE, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    let range = match part {
        BlobPart::Of(range) => {
            let said = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            put_header(&mut response, header::CONTENT_RANGE, &said);
            range
        }
        BlobPart::Whole | BlobPart::Beyond => 0..size,
    };
    put_header(&mut response, header::CONTENT_TYPE, &file.blob().mime_type);
    put_header(&mut response, header::CONTENT_LENGTH, &(range.end - range.start).to_string());
    if method != Method::HEAD {
        *response.body_mut() = body(file, range.start, range.end - range.start).await?;
    }
    Ok(response)
}

/// A response for a blob. Browsers never run it as a page, whatever the bytes are.
fn described(status: StatusCode, tag: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    for (name, value) in [
        (header::ETAG, tag),
        (header::ACCEPT_RANGES, "bytes"),
        // The bytes of a hash never change.
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
        let identity = parts.extensions.get().cloned().unwrap_or_default();
        let request = (&identity, &parts.headers);
        match receive(&web.workspace, request, &mut chunks, &mut has_begun).await {
            Ok(blob) => return stored(&blob),
            Err(UploadFailure::Workspace(error)) => refused(&error),
            Err(UploadFailure::Request(status, details)) => refuse(status, details),
        }
    } else {
        let details = "too many uploads are running; try again in a moment";
        let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, details);
        put_header(&mut response, header::RETRY_AFTER, "1");
        response
    };
    // A sender that still waits for `100 Continue` has sent nothing, and a slow sender had its
    // time.
    let is_waiting = parts.headers.contains_key(header::EXPECT) && !has_begun;
    if !is_waiting && response.status() != StatusCode::REQUEST_TIMEOUT {
        drain(&mut chunks).await;
    }
    response
}

/// Reads part of a refused upload: closing the connection earlier would lose the response.
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

/// Why an upload is not stored.
enum UploadFailure {
    Workspace(WorkspaceError),
    Request(StatusCode, &'static str),
}

impl From<WorkspaceError> for UploadFailure {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

/// Refuses uploads of clients that may only read, and those that are not whole blobs.
fn check_upload(
    workspace: &Workspace,
    identity: &Identity,
    headers: &HeaderMap,
) -> Result<(), UploadFailure> {
    let writers = &workspace.config().writers;
    if !writers.is_empty() && !identity.labels.meets(writers) {
        let details = "this client may read blobs, and store none";
        return Err(UploadFailure::Request(StatusCode::FORBIDDEN, details));
    }
    if headers.contains_key(header::CONTENT_RANGE) {
        let details = "a blob is sent whole; leave Content-Range out";
        return Err(UploadFailure::Request(StatusCode::BAD_REQUEST, details));
    }
    if header_text(headers, &header::CONTENT_ENCODING).is_some_and(|it| it != "identity") {
        let details = "bytes are stored as they come; send them without Content-Encoding";
        return Err(UploadFailure::Request(StatusCode::UNSUPPORTED_MEDIA_TYPE, details));
    }
    Ok(())
}

/// Stores bytes as they arrive. Cancel-safe: if it is dropped, they are removed.
async fn receive(
    workspace: &Workspace,
    (identity, headers): (&Identity, &HeaderMap),
    chunks: &mut BodyDataStream,
    has_begun: &mut bool,
) -> Result<Blob, UploadFailure> {
    check_upload(workspace, identity, headers)?;
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
    let actor = match &identity.name {
        Some(name) => name.to_string(),
        None => sender(headers, limits)?,
    };
    let opener = workspace.clone();
    let mut writer = blocking(move || opener.blob_writer()).await?;
    let (mut gathered, mut received) = (Vec::new(), 0);
    let (mut deadline, mut before) = (Instant::now() + WINDOW, 0);
    // The first read sends `100 Continue`.
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

/// The actor for the log.
fn sender(headers: &HeaderMap, limits: &WorkspaceLimits) -> Result<String, UploadFailure> {
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

/// Runs work on a thread that may block.
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
        // Clients must not see where the workspace is.
        WorkspaceError::Damaged { .. } => {
            error!(%error, "a blob could not be read or stored");
            let details = "the workspace is damaged; its operator must restore a backup";
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
    // An invalid MIME type is served as plain bytes.
    let value = HeaderValue::from_str(value)
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    response.headers_mut().insert(name, value);
}

/// The lines of a header, joined.
fn header_text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Vec<_> =
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}
