//! `/blob` over a real socket, for those who may use the server.

use reqwest::StatusCode;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{Listening, Place};
use crate::support::demo::{http, within};

#[tokio::test]
async fn large_bytes_go_in_and_come_out_in_parts() {
    let place = Place::new();
    let server = Listening::start(&place, "", None).await;
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| number.to_le_bytes()[0] ^ 0xa5).collect();
    let chunks: Vec<_> =
        bytes.chunks(100_000).map(|it| Ok::<_, std::io::Error>(it.to_vec())).collect();
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let put = http().put(format!("{}/blob", server.url)).header("content-type", "audio/x-raw");
    let answer = within(put.body(body).send()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let stored: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!((&stored["size"], &stored["mimeType"]), (&3_000_000.into(), &"audio/x-raw".into()));
    let url = format!("{}/blob/{}", server.url, stored["hash"].as_str().unwrap());
    let whole = within(http().get(&url).send()).await.unwrap();
    assert_eq!(whole.headers()["content-type"], "audio/x-raw");
    assert!(whole.bytes().await.unwrap() == bytes);
    let part = http().get(&url).header("range", "bytes=-1000").send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert!(part.bytes().await.unwrap() == bytes[2_999_000..]);
    let head = http().head(&url).send().await.unwrap();
    assert_eq!(head.headers()["content-length"], "3000000");
    let tag = head.headers()["etag"].clone();
    let known = http().get(&url).header("if-none-match", tag).send().await.unwrap();
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(place.lines("log").await[0]["type"], "blob.stored");
}

#[tokio::test]
async fn only_who_may_use_the_server_gets_and_sends_bytes() {
    let place = Place::new();
    let server = Listening::start(&place, "", Some("0123456789abcdef")).await;
    let url = format!("{}/blob", server.url);
    let send = |token: Option<&str>, origin: Option<&str>| {
        let mut request = http().put(&url).body("hello");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.send()
    };
    assert_eq!(send(None, None).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(send(Some("wrong"), None).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let foreign = send(Some("0123456789abcdef"), Some("https://evil.example")).await.unwrap();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    assert_eq!(place.files("objects"), 0);
    let answer = send(Some("0123456789abcdef"), None).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let path = answer.headers()["location"].to_str().unwrap().to_owned();
    let get = || http().get(format!("{}{path}", server.url));
    assert_eq!(get().send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let bytes = get().bearer_auth("0123456789abcdef").send().await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes, "hello");
}

#[tokio::test]
async fn more_than_the_limit_is_refused_announced_or_not() {
    let place = Place::new();
    let server = Listening::start(&place, "--blob-limit 1kB", None).await;
    let put = || http().put(format!("{}/blob", server.url));
    let announced = put().body("x".repeat(1001)).send().await.unwrap();
    assert_eq!(announced.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let chunks = ["x".repeat(600), "x".repeat(600)].map(Ok::<_, std::io::Error>);
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    assert_eq!(put().body(body).send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    // The answer arrives also where the sender has much more to send.
    let large = put().body("x".repeat(10_000_000)).send().await.unwrap();
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!((place.files("objects"), place.files("incoming")), (0, 0));
    assert_eq!(put().body("x".repeat(1000)).send().await.unwrap().status(), StatusCode::CREATED);
}

#[tokio::test]
async fn a_sender_that_goes_away_leaves_nothing() {
    let place = Place::new();
    let mut server = Listening::start(&place, "", None).await;
    let mut socket = within(TcpStream::connect(server.address())).await.unwrap();
    let head = "PUT /blob HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&vec![b'x'; 500_000]).await.unwrap();
    let until = async |files: usize| {
        within(async {
            while place.files("incoming") != files {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    until(1).await;
    drop(socket);
    until(0).await;
    assert_eq!(place.files("objects"), 0);
    server.child.kill().await.unwrap();
    assert_eq!(place.run("verify").await.output, "0 blobs of 0 bytes, 0 artifacts, 0 events\n");
}
