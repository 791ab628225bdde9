//! Tests of the blob routes, without a socket.

use futures_util::{Stream, StreamExt as _, stream};
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::*;
use crate::Config;

struct WebFixture {
    directory: TempDir,
    workspace: Workspace,
}

impl WebFixture {
    fn new(limit: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::new(directory.path());
        config.limits.blob = limit;
        Self { workspace: Workspace::open(config).unwrap(), directory }
    }

    fn with(bytes: &[u8], kind: &str) -> (Self, String) {
        let fixture = Self::new(1 << 20);
        let blob = fixture.workspace.put_blob(bytes, Some(kind), "tester").unwrap();
        (fixture, blob.hash)
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let (parts, body) = self.workspace.routes().oneshot(request).await.unwrap().into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, parts.headers, bytes.to_vec())
    }

    async fn get(&self, hash: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        self.ask("GET", &format!("/blob/{hash}"), headers, Body::empty()).await
    }

    async fn put(&self, body: impl Into<Body>, headers: &[(&str, &str)]) -> (StatusCode, String) {
        let (status, _, body) = self.ask("PUT", "/blob", headers, body.into()).await;
        (status, String::from_utf8(body).unwrap())
    }

    /// The number of files below a part of the directory.
    fn files(&self, part: &str) -> usize {
        fn count(path: &std::path::Path) -> usize {
            std::fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .map(|path| if path.is_dir() { count(&path) } else { 1 })
                .sum()
        }
        count(&self.directory.path().join(part))
    }
}

fn chunks<const N: usize>(
    chunks: [&'static str; N],
) -> impl Stream<Item = std::io::Result<&'static str>> {
    stream::iter(chunks.map(Ok))
}

#[tokio::test]
async fn a_blob_is_given_with_all_that_is_known_of_it_and_is_never_a_page() {
    let (fixture, hash) = WebFixture::with(b"<script>alert(1)</script>", "text/html");
    let (status, headers, body) = fixture.get(&hash, &[]).await;
    assert_eq!((status, body.as_slice()), (StatusCode::OK, &b"<script>alert(1)</script>"[..]));
    for (name, value) in [
        ("etag", format!("\"{hash}\"").as_str()),
        ("content-type", "text/html"),
        ("content-length", "25"),
        ("accept-ranges", "bytes"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    let (status, headers, body) = fixture
        .ask("HEAD", &format!("/blob/{hash}"), &[("range", "bytes=0-1")], Body::empty())
        .await;
    assert_eq!((status, body.len()), (StatusCode::OK, 0));
    assert_eq!(headers["content-length"], "25");
}

#[tokio::test]
async fn a_part_is_given_to_whom_asks_for_one() {
    let (fixture, hash) = WebFixture::with(b"0123456789", "text/plain");
    let (status, headers, body) = fixture.get(&hash, &[("range", "bytes=2-4")]).await;
    assert_eq!((status, body.as_slice()), (StatusCode::PARTIAL_CONTENT, &b"234"[..]));
    assert_eq!(headers["content-range"], "bytes 2-4/10");
    assert_eq!(headers["content-length"], "3");
    let (status, headers, body) = fixture.get(&hash, &[("range", "bytes=-2")]).await;
    assert_eq!((status, body.as_slice()), (StatusCode::PARTIAL_CONTENT, &b"89"[..]));
    assert_eq!(headers["content-range"], "bytes 8-9/10");
    let (status, headers, _) = fixture.get(&hash, &[("range", "bytes=10-")]).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(headers["content-range"], "bytes */10");
}

#[tokio::test]
async fn a_part_is_of_the_same_bytes_or_all_of_them_are_given() {
    let (fixture, hash) = WebFixture::with(b"0123456789", "text/plain");
    let tag = format!("\"{hash}\"");
    let range = ("range", "bytes=1-1");
    let (status, ..) = fixture.get(&hash, &[range, ("if-range", &tag)]).await;
    assert_eq!(status, StatusCode::PARTIAL_CONTENT);
    for other in ["\"other\"", &format!("W/{tag}"), "Mon, 16 Nov 2026 00:00:00 GMT"] {
        let (status, _, body) = fixture.get(&hash, &[range, ("if-range", other)]).await;
        assert_eq!((status, body.len()), (StatusCode::OK, 10), "{other}");
    }
}

#[tokio::test]
async fn who_has_the_bytes_is_not_given_them_again() {
    let (fixture, hash) = WebFixture::with(b"0123456789", "text/plain");
    let tag = format!("W/\"{hash}\"");
    let (status, headers, body) =
        fixture.get(&hash, &[("if-none-match", "\"a\""), ("if-none-match", &tag)]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(headers["etag"], format!("\"{hash}\"").as_str());
    let (status, ..) = fixture.get(&hash, &[("if-none-match", "\"a\"")]).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_what_is_no_hash_is_said() {
    let fixture = WebFixture::new(100);
    let (status, _, body) = fixture.get(&"0".repeat(64), &[]).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(String::from_utf8(body).unwrap().contains("there is no blob"));
    for wrong in ["abc", "..%2f..%2fworkspace.sqlite"] {
        let (status, ..) = fixture.get(wrong, &[]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    for (method, path, expected, allowed) in [
        ("DELETE", "/blob/x", 405, Some("GET, HEAD")),
        ("GET", "/blob", 405, Some("PUT")),
        ("GET", "/blob/", 404, None),
        ("PUT", "/blob/", 404, None),
    ] {
        let (status, headers, body) = fixture.ask(method, path, &[], Body::empty()).await;
        assert_eq!(status, expected, "{method} {path}");
        assert_eq!(headers.get("allow").map(|it| it.to_str().unwrap()), allowed);
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(answer["error"].as_str().unwrap().contains("PUT /blob"), "{answer}");
    }
}

#[tokio::test]
async fn a_sender_can_say_who_it_is() {
    let fixture = WebFixture::new(100);
    let newest = || fixture.workspace.newest_events(1).unwrap().remove(0).actor;
    fixture.put("one", &[]).await;
    assert_eq!(newest(), "http");
    fixture.put("two", &[("tidings-actor", "J\u{fc}rgen")]).await;
    assert_eq!(newest(), "J\u{fc}rgen");
    for wrong in ["", "a\tb", &"x".repeat(501)] {
        let (status, answer) = fixture.put("six", &[("tidings-actor", wrong)]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        assert!(answer.contains("Tidings-Actor"), "{answer}");
    }
    assert_eq!(fixture.files("objects"), 2);
}

#[tokio::test]
async fn some_of_what_is_refused_is_read_so_that_the_answer_arrives() {
    let fixture = WebFixture::new(8);
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let body = |pieces: usize| {
        let count = count.clone();
        Body::from_stream(stream::iter(0..pieces).map(move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok::<_, std::io::Error>(vec![0; 1 << 20])
        }))
    };
    let read = || count.swap(0, std::sync::atomic::Ordering::Relaxed);
    let announced = ("content-length", "209715200");
    assert_eq!(fixture.put(body(4), &[announced]).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(read(), 4);
    fixture.put(body(200), &[announced]).await;
    assert_eq!(read(), 129);
    // A sender that waits for `100 Continue` is refused before it sends.
    fixture.put(body(4), &[announced, ("expect", "100-continue")]).await;
    assert_eq!(read(), 0);
    // After `100 Continue` it sends everything.
    fixture.put(body(4), &[("expect", "100-continue")]).await;
    assert_eq!(read(), 4);
}

#[tokio::test]
async fn bytes_that_are_sent_are_a_blob_of_their_kind() {
    let fixture = WebFixture::new(100);
    let hash = blake3::hash(b"hello").to_hex();
    let body = Body::from_stream(chunks(["hel", "", "lo"]));
    let (status, answer) = fixture.put(body, &[("content-type", "text/markdown")]).await;
    assert_eq!(status, StatusCode::CREATED);
    let expected = format!("{{\"hash\":\"{hash}\",\"mimeType\":\"text/markdown\",\"size\":5}}\n");
    assert_eq!(answer, expected);
    let (_, headers, body) = fixture.get(&hash, &[]).await;
    assert_eq!(
        (&headers["content-type"], body.as_slice()),
        (&HeaderValue::from_static("text/markdown"), &b"hello"[..])
    );
    // Without a type it is guessed; an empty blob has one too.
    assert!(fixture.put("", &[]).await.1.contains("text/plain"));
    assert_eq!((fixture.files("objects"), fixture.files("incoming")), (2, 0));
}

#[tokio::test]
async fn more_than_the_limit_is_refused_announced_or_not_and_nothing_stays() {
    let fixture = WebFixture::new(8);
    let (status, answer) = fixture.put("123456789", &[("content-length", "9")]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(answer.starts_with("{\"error\":\"a blob may have 8 bytes at most; "), "{answer}");
    let (status, _) = fixture.put(Body::from_stream(chunks(["12345678", "9"])), &[]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let endless = stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(CHUNK)));
    let (status, _) = fixture.put(Body::from_stream(endless), &[]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!((fixture.files("objects"), fixture.files("incoming")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_stalls_is_given_up_and_nothing_stays() {
    let fixture = WebFixture::new(1 << 20);
    let body = chunks(["half"]).chain(stream::pending());
    let (status, answer) = fixture.put(Body::from_stream(body), &[]).await;
    assert_eq!((status, answer.contains("10 seconds")), (StatusCode::REQUEST_TIMEOUT, true));
    assert_eq!((fixture.files("objects"), fixture.files("incoming")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_is_too_slow_for_its_bytes_is_given_up() {
    let fixture = WebFixture::new(1 << 20);
    let every = |pause: u64, bytes: usize| {
        Body::from_stream(stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            Ok::<_, std::io::Error>("x".repeat(bytes))
        }))
    };
    let begun = tokio::time::Instant::now();
    let (status, answer) = fixture.put(every(9, 1), &[]).await;
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert_eq!((status, answer.contains("too slowly")), (StatusCode::REQUEST_TIMEOUT, true));
    assert_eq!((fixture.files("objects"), fixture.files("incoming")), (0, 0));
    // At the least speed it goes on until the blob is too large.
    let (status, _) = fixture.put(every(2, 2 * (16 << 10)), &[]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn bytes_that_are_cut_off_leave_nothing() {
    let fixture = WebFixture::new(1 << 20);
    let cut = chunks(["half"]).chain(stream::iter([Err(std::io::Error::other("gone"))]));
    let (status, _) = fixture.put(Body::from_stream(cut), &[]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!((fixture.files("objects"), fixture.files("incoming")), (0, 0));
}

#[tokio::test]
async fn what_would_be_stored_as_something_else_is_refused() {
    let fixture = WebFixture::new(100);
    let (status, _) = fixture.put("x", &[("content-encoding", "gzip")]).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let (status, _) = fixture.put("x", &[("content-range", "bytes 0-0/2")]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    for (kind, expected) in [(&*"x".repeat(1000), "mime_type"), ("not a type", "not a MIME type")] {
        let (status, answer) = fixture.put("x", &[("content-type", kind)]).await;
        assert_eq!(
            (status, answer.contains(expected)),
            (StatusCode::BAD_REQUEST, true),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn more_senders_than_there_are_places_come_again_later() {
    let fixture = WebFixture::new(100);
    let routes = fixture.workspace.routes_for(1);
    let send = |body: Body| {
        let request = Request::builder().method("PUT").uri("/blob").body(body).unwrap();
        routes.clone().oneshot(request)
    };
    let mut first = Box::pin(send(Body::from_stream(stream::pending::<std::io::Result<&str>>())));
    assert!(futures_util::poll!(&mut first).is_pending());
    let refused = send("x".into()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    drop(first);
    assert_eq!(send("x".into()).await.unwrap().status(), StatusCode::CREATED);
}

#[tokio::test]
async fn a_blob_that_is_damaged_on_disk_ends_before_its_end() {
    let (fixture, hash) = WebFixture::with(b"0123456789", "text/plain");
    let path = fixture.directory.path().join("objects").join(&hash[..2]).join(&hash);
    std::fs::write(path, "0123").unwrap();
    let request = Request::builder().uri(format!("/blob/{hash}")).body(Body::empty()).unwrap();
    let answer = fixture.workspace.routes().oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-length"], "10");
    let body = axum::body::to_bytes(answer.into_body(), 100).await.unwrap();
    assert_eq!(body.len(), 4);
}
