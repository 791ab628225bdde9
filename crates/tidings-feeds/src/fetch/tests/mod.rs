//! The fetcher against a server on this machine: what is sent, what comes back, what is followed.

mod guard;
pub(crate) mod server;
mod trouble;

use std::time::Duration;

use async_compression::tokio::write::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::*;
use server::{Hit, Server, answer, redirect};

/// Everything allowed, and no time lost.
fn config() -> Config {
    Config { allow_private: true, apart: Duration::ZERO, ..Config::default() }
}

fn fetcher() -> Fetcher {
    Fetcher::new(config()).unwrap()
}

fn request(url: impl Into<String>) -> Request {
    Request { url: url.into(), ..Request::default() }
}

async fn get(server: &Server, path: &str) -> Result<Fetched, FetchError> {
    fetcher().fetch(request(server.url(path))).await
}

/// The body of what must be a document.
fn body(fetched: Result<Fetched, FetchError>) -> String {
    let Ok(Fetched::Document { bytes, .. }) = fetched else { panic!("{fetched:?}") };
    String::from_utf8(bytes).unwrap()
}

async fn packed<W: AsyncWrite + Unpin>(
    mut encoder: W,
    content: &[u8],
    unwrap: impl FnOnce(W) -> Vec<u8>,
) -> Vec<u8> {
    encoder.write_all(content).await.unwrap();
    encoder.shutdown().await.unwrap();
    unwrap(encoder)
}

/// The same content in every packing that is understood.
async fn all_packings(content: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("gzip", packed(GzipEncoder::new(Vec::new()), content, GzipEncoder::into_inner).await),
        ("br", packed(BrotliEncoder::new(Vec::new()), content, BrotliEncoder::into_inner).await),
        ("zstd", packed(ZstdEncoder::new(Vec::new()), content, ZstdEncoder::into_inner).await),
        ("deflate", packed(ZlibEncoder::new(Vec::new()), content, ZlibEncoder::into_inner).await),
    ]
}

/// Answers each path with the packing of that name.
async fn packing_server(content: &[u8]) -> Server {
    let packings = all_packings(content).await;
    Server::start(move |hit| {
        let (name, bytes) = packings.iter().find(|(name, _)| hit.path[1..] == **name).unwrap();
        assert!(hit.header("accept-encoding").contains(name));
        answer(200, &[("content-encoding", name)], bytes.clone())
    })
    .await
}

#[tokio::test]
async fn a_document_comes_with_all_that_was_said_about_it() {
    let server = Server::start(|_| {
        let headers = [
            ("content-type", "text/html; charset=windows-1252"),
            ("etag", "W/\"a b\""),
            ("last-modified", "yesterday, more or less"),
            ("cache-control", "max-age=600"),
        ];
        answer(200, &headers, "<rss/>")
    })
    .await;
    let url = server.url("/feed");
    let expected = Fetched::Document {
        bytes: b"<rss/>".to_vec(),
        content_type: Some("text/html; charset=windows-1252".into()),
        validators: Validators {
            etag: Some("W/\"a b\"".into()),
            last_modified: Some("yesterday, more or less".into()),
        },
        url: url.clone(),
        moved: None,
        hints: Hints { max_age: Some(Duration::from_mins(10)), ..Hints::default() },
        link: None,
        end: End::Whole,
    };
    assert_eq!(fetcher().fetch(request(url)).await.unwrap(), expected);
    let hits = server.hits();
    assert!(hits[0].header("user-agent").starts_with("Tidings/"));
    assert!(hits[0].header("user-agent").contains("(+https://"));
    assert!(hits[0].header("accept").contains("application/rss+xml"));
    assert_eq!(hits[0].header("if-none-match"), "");
}

#[tokio::test]
async fn validators_are_sent_back_letter_for_letter() {
    let server = Server::start(|hit| {
        let is_known = hit.header("if-none-match") == "W/\"a b\""
            && hit.header("if-modified-since") == "yesterday, more or less";
        answer(if is_known { 304 } else { 200 }, &[("expires", "0")], "")
    })
    .await;
    let validators = Validators {
        etag: Some("W/\"a b\"".into()),
        last_modified: Some("yesterday, more or less".into()),
    };
    let request = Request { validators, ..request(server.url("/feed")) };
    let fetched = fetcher().fetch(request).await.unwrap();
    assert_eq!(fetched, Fetched::NotModified { moved: None, hints: Hints::default() });
    assert_eq!(server.hits().len(), 1);
}

#[tokio::test]
async fn not_modified_is_no_answer_to_who_has_nothing() {
    let server = Server::start(|_| answer(304, &[], "")).await;
    assert!(matches!(get(&server, "/").await, Err(FetchError::Status(304))));
}

#[tokio::test]
async fn every_packing_is_unpacked() {
    let content = "<item>words</item>".repeat(1000);
    let server = packing_server(content.as_bytes()).await;
    for name in ["gzip", "br", "zstd", "deflate"] {
        assert_eq!(body(get(&server, &format!("/{name}")).await), content, "{name}");
    }
}

#[tokio::test]
async fn packings_that_are_said_otherwise_are_unpacked_too() {
    let content = "<item>words</item>".repeat(1000);
    let once = all_packings(content.as_bytes()).await.swap_remove(0).1;
    let twice = all_packings(&once).await.swap_remove(0).1;
    let mixed = all_packings(&once).await.swap_remove(1).1;
    let encoder = DeflateEncoder::new(Vec::new());
    let bare = packed(encoder, content.as_bytes(), DeflateEncoder::into_inner).await;
    let plain = content.clone().into_bytes();
    for (name, bytes) in [
        ("deflate", bare),
        ("gzip", plain.clone()),
        ("br", plain.clone()),
        ("zstd", plain.clone()),
        ("deflate", plain),
        ("gzip, gzip", twice),
        ("gzip,gzip", once.clone()),
        ("gzip, br", mixed),
        ("identity, X-GZIP", once),
    ] {
        let server =
            Server::start(move |_| answer(200, &[("content-encoding", name)], bytes.clone()));
        assert_eq!(body(get(&server.await, "/").await), content, "{name}");
    }
}

/// Little becomes much and little again.
#[tokio::test]
async fn the_limit_holds_on_the_way_too() {
    let inner = all_packings(b"").await.swap_remove(0).1.repeat(200_000);
    let outer = all_packings(&inner).await.swap_remove(0).1;
    let server =
        Server::start(move |_| answer(200, &[("content-encoding", "gzip, gzip")], outer.clone()))
            .await;
    let fetcher = Fetcher::new(Config { body_limit: 1 << 20, ..config() }).unwrap();
    let error = fetcher.fetch(request(server.url("/"))).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge(_)), "{error:?}");
}

/// The first was once taken for the whole.
#[tokio::test]
async fn a_body_packed_in_several_members_is_unpacked_to_its_end() {
    let one = all_packings(b"one ").await.swap_remove(0).1;
    let two = all_packings(b"two").await.swap_remove(0).1;
    let members = [one, two].concat();
    let server =
        Server::start(move |_| answer(200, &[("content-encoding", "gzip")], members.clone()));
    assert_eq!(body(get(&server.await, "/").await), "one two");
}

fn chain(hit: &Hit) -> axum::response::Response {
    match hit.path.as_str() {
        "/first" => redirect(301, "second"),
        "/second" => redirect(308, "/third?a=b"),
        "/mixed" => redirect(302, "/second"),
        "/late" => redirect(301, "/mixed"),
        "/nowhere" => answer(302, &[], ""),
        "/loop" => redirect(302, "/loop"),
        _ => answer(200, &[], "found"),
    }
}

/// Where a document was in the end, and where it moved for good.
async fn trail(server: &Server, path: &str) -> (String, Option<String>) {
    let fetched = get(server, path).await.unwrap();
    let Fetched::Document { url, moved, .. } = fetched else { panic!("{fetched:?}") };
    (url, moved)
}

#[tokio::test]
async fn a_feed_moved_only_if_every_redirect_says_so() {
    let server = Server::start(chain).await;
    let end = server.url("/third?a=b");
    assert_eq!(trail(&server, "/first").await, (end.clone(), Some(end.clone())));
    assert_eq!(trail(&server, "/mixed").await, (end.clone(), None));
    assert_eq!(trail(&server, "/late").await, (end, None));
    assert_eq!(trail(&server, "/plain").await, (server.url("/plain"), None));
}

#[tokio::test]
async fn redirects_are_followed_only_so_far() {
    let server = Server::start(chain).await;
    assert!(matches!(get(&server, "/loop").await, Err(FetchError::Redirects(5))));
    assert_eq!(server.hits().len(), 6, "the request and five redirects");
    assert!(matches!(get(&server, "/nowhere").await, Err(FetchError::Location)));
}

#[tokio::test]
async fn clones_share_one_queue() {
    let server = Server::start(|_| answer(200, &[], "found")).await;
    let apart = Duration::from_millis(50);
    let fetcher = Fetcher::new(Config { apart, ..config() }).unwrap();
    let other = fetcher.clone();
    let began = Instant::now();
    let (one, two) = tokio::join!(
        fetcher.fetch(request(server.url("/1"))),
        other.fetch(request(server.url("/2")))
    );
    assert!(one.is_ok() && two.is_ok());
    assert!(began.elapsed() >= apart);
}
