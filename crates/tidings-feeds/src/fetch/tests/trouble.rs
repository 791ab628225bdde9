//! Servers that answer with something other than a document.

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::server::{Never, Server, answer};
use super::*;

/// Short enough that a test does not take long; nothing on this machine takes as long.
const SHORT: Duration = Duration::from_millis(250);

/// A body that begins and never ends, as one that is slow to the utmost.
fn stalled() -> Body {
    let begin = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"<rss>"))]);
    Body::from_stream(begin.chain(stream::pending()))
}

fn endless() -> Body {
    Body::from_stream(stream::repeat_with(|| {
        Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 4096]))
    }))
}

#[tokio::test]
async fn answers_that_are_no_document_are_told_apart() {
    let server = Server::start(|hit| answer(hit.path[1..].parse().unwrap(), &[], "sorry")).await;
    assert!(matches!(get(&server, "/410").await, Err(FetchError::Gone)));
    assert!(matches!(get(&server, "/404").await, Err(FetchError::Missing)));
    for (status, is_transient) in
        [(500, true), (502, true), (408, true), (401, false), (403, false), (204, false)]
    {
        let error = get(&server, &format!("/{status}")).await.unwrap_err();
        assert!(matches!(error, FetchError::Status(found) if found == status), "{error:?}");
        assert_eq!(error.is_transient(), is_transient, "{status}");
    }
    let error = get(&server, "/503").await.unwrap_err();
    assert!(matches!(error, FetchError::Refused { status: 503, retry_after: None }));
}

/// Asks twice; the second time nobody may be asked.
async fn check_refused(status: u16, retry_after: &'static str) {
    let server = Server::start(move |_| {
        let date = ("date", "Mon, 16 Nov 2026 00:00:00 GMT");
        answer(status, &[("retry-after", retry_after), date], "not now")
    })
    .await;
    let fetcher = fetcher();
    let error = fetcher.fetch(request(server.url("/1"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Refused { status: found, .. } if found == status));
    assert_eq!(error.retry_after(), Some(Duration::from_mins(2)));
    let error = fetcher.fetch(request(server.url("/2"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Paused { .. }), "{error:?}");
    assert!(error.retry_after().unwrap() > Duration::from_secs(110));
    assert_eq!(server.paths(), ["/1"], "the whole host is left alone");
}

#[tokio::test]
async fn a_host_that_wants_to_be_left_alone_is() {
    check_refused(429, "120").await;
    check_refused(429, "Mon, 16 Nov 2026 00:02:00 GMT").await;
    check_refused(503, "120").await;
}

#[tokio::test]
async fn a_host_that_does_not_say_for_how_long_is_left_alone_for_a_minute() {
    for status in [429, 503] {
        let server = Server::start(move |_| answer(status, &[], "not now")).await;
        let fetcher = fetcher();
        let error = fetcher.fetch(request(server.url("/1"))).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused { retry_after: None, .. }), "{error:?}");
        let error = fetcher.fetch(request(server.url("/2"))).await.unwrap_err();
        assert!(matches!(error, FetchError::Paused { .. }), "{error:?}");
        assert!(error.retry_after().unwrap() > Duration::from_secs(50));
        assert_eq!(server.paths(), ["/1"]);
    }
}

#[tokio::test]
async fn a_bomb_is_stopped_at_the_limit_in_every_packing() {
    let server = packing_server(&vec![b' '; 1024 * 1024]).await;
    let fetcher = Fetcher::new(Config { body_limit: 64 * 1024, ..config() }).unwrap();
    for name in ["gzip", "br", "zstd", "deflate"] {
        let fetched = fetcher.fetch(request(server.url(&format!("/{name}")))).await;
        assert!(matches!(fetched, Err(FetchError::TooLarge(65_536))), "{name}: {fetched:?}");
    }
}

/// Were it unpacked before it is measured, this would not end.
#[tokio::test]
async fn a_bomb_without_end_is_stopped_while_it_is_unpacked() {
    let mut encoder = GzipEncoder::new(Vec::new());
    let mut ends = Vec::new();
    for _ in 0..2 {
        encoder.write_all(&[b' '; 16 * 1024]).await.unwrap();
        encoder.flush().await.unwrap();
        ends.push(encoder.get_ref().len());
    }
    // What follows the same content is the same again, as often as one likes.
    let begin = Bytes::copy_from_slice(&encoder.get_ref()[..ends[0]]);
    let more = Bytes::copy_from_slice(&encoder.get_ref()[ends[0]..]);
    let server = Server::start(move |_| {
        let pieces = stream::iter([begin.clone()]).chain(stream::repeat(more.clone()));
        let body = Body::from_stream(pieces.map(Ok::<_, std::io::Error>));
        answer(200, &[("content-encoding", "gzip")], body)
    })
    .await;
    let fetcher = Fetcher::new(Config { body_limit: 100_000, ..config() }).unwrap();
    let fetched = fetcher.fetch(request(server.url("/"))).await;
    assert!(matches!(fetched, Err(FetchError::TooLarge(100_000))), "{fetched:?}");
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit_and_no_larger() {
    let server = Server::start(|hit| match hit.path.as_str() {
        "/endless" => answer(200, &[], endless()),
        size => answer(200, &[], vec![b' '; size[1..].parse().unwrap()]),
    })
    .await;
    let fetcher = Fetcher::new(Config { body_limit: 10_000, ..config() }).unwrap();
    assert_eq!(body(fetcher.fetch(request(server.url("/10000"))).await).len(), 10_000);
    for path in ["/10001", "/endless"] {
        let fetched = fetcher.fetch(request(server.url(path))).await;
        assert!(matches!(fetched, Err(FetchError::TooLarge(10_000))), "{path}: {fetched:?}");
    }
}

#[tokio::test]
async fn a_slow_server_is_given_up_and_its_place_is_free_again() {
    let server = Server::start(|hit| match hit.path.as_str() {
        "/head" => {
            let mut response = answer(200, &[], "");
            response.extensions_mut().insert(Never);
            response
        }
        "/body" => answer(200, &[], stalled()),
        _ => answer(200, &[], "found"),
    })
    .await;
    let fetcher = Fetcher::new(Config { timeout: SHORT, ..config() }).unwrap();
    for path in ["/head", "/body"] {
        let error = fetcher.fetch(request(server.url(path))).await.unwrap_err();
        assert!(matches!(error, FetchError::Timeout(SHORT)) && error.is_transient(), "{error:?}");
    }
    assert_eq!(body(fetcher.fetch(request(server.url("/"))).await), "found");
}

#[tokio::test]
async fn a_fetch_that_is_dropped_frees_its_place() {
    let server = Server::start(|hit| match hit.path.as_str() {
        "/body" => answer(200, &[], stalled()),
        _ => answer(200, &[], "found"),
    })
    .await;
    let fetcher = Fetcher::new(Config { at_once: 1, ..config() }).unwrap();
    let fetch = fetcher.fetch(request(server.url("/body")));
    assert!(tokio::time::timeout(SHORT, fetch).await.is_err());
    assert_eq!(body(fetcher.fetch(request(server.url("/"))).await), "found");
}

/// A server that says how much comes, and closes the connection before it came.
async fn cut_off(head: &str, content: &[u8]) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n{head}\r\n");
    let answer = [head.as_bytes(), content].concat();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        // Closing with something unread would take back what was written.
        let _ = socket.read(&mut [0; 4096]).await.unwrap();
        socket.write_all(&answer).await.unwrap();
    });
    (url, tasks)
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_taken_for_a_document() {
    let gzip = gzip().await;
    let servers = [
        cut_off("", b"<rss>").await,
        cut_off("Content-Encoding: gzip\r\n", &gzip[..40]).await,
        cut_off("Content-Encoding: gzip\r\n", &gzip).await,
    ];
    for (url, _tasks) in servers {
        let request = Request { accept: Accept::Page, ..request(url) };
        let error = fetcher().fetch(request).await.unwrap_err();
        assert!(matches!(error, FetchError::Broken(_)) && error.is_transient(), "{error:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_packed_as_it_says_is_not_taken_for_a_document() {
    let gzip = gzip().await;
    let server = Server::start(move |hit| match hit.path.as_str() {
        "/other" => answer(200, &[("content-encoding", "compress")], "packed"),
        "/short" => answer(200, &[("content-encoding", "gzip")], gzip[..40].to_vec()),
        "/often" => answer(200, &[("content-encoding", "gzip, gzip, gzip, gzip")], gzip.clone()),
        _ => answer(200, &[("content-encoding", "br")], "not packed at all"),
    })
    .await;
    for path in ["/short", "/other", "/often", "/lie"] {
        let request = Request { accept: Accept::Page, ..request(server.url(path)) };
        let error = fetcher().fetch(request).await.unwrap_err();
        assert!(matches!(error, FetchError::Decode(_)) && !error.is_transient(), "{error:?}");
    }
}

/// Items whose text is not all the same, so that a part of the packed bytes holds a part of them.
fn long_feed() -> String {
    let words = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let items =
        (0..10_000_u64).map(|number| format!("<item><title>{:x}</title></item>", words(number)));
    format!("<rss><channel>{}</channel></rss>", items.collect::<String>())
}

/// How many items there are in what came of a feed, and whether it can be asked for again whole.
async fn came(url: String) -> Option<usize> {
    let fetched = fetcher().fetch(request(url)).await;
    let Ok(Fetched::Document { bytes, validators, .. }) = fetched else { return None };
    assert_eq!(validators, Validators::default());
    let document = parse::parse(&bytes, &parse::Hints::default()).unwrap();
    assert!(document.truncated);
    Some(document.items.len())
}

#[tokio::test]
async fn a_feed_that_breaks_off_gives_what_came_of_it() {
    let feed = long_feed();
    let (url, _tasks) = cut_off("ETag: \"1\"\r\n", &feed.as_bytes()[..900]).await;
    assert!(came(url).await.is_some_and(|count| count > 10));
    for (name, packed) in all_packings(feed.as_bytes()).await {
        let half = packed.len() / 2;
        let server = Server::start(move |_| {
            answer(200, &[("content-encoding", name), ("etag", "\"1\"")], packed[..half].to_vec())
        });
        let count = came(server.await.url("/")).await;
        assert!(count.is_some_and(|count| count > 500), "{name} {count:?}");
    }
    // Where nothing came of it, it broke off and is tried again.
    let (url, _tasks) = cut_off("", b"<rss><channel><item><title>x").await;
    let error = fetcher().fetch(request(url)).await.unwrap_err();
    assert!(matches!(error, FetchError::Broken(_)) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn what_is_damaged_is_not_taken_for_what_is_cut() {
    let encoder = GzipEncoder::new(Vec::new());
    let mut packed = packed(encoder, long_feed().as_bytes(), GzipEncoder::into_inner).await;
    let padded = [packed.clone(), b"padding".to_vec()].concat();
    let half = packed.len() / 2;
    packed[half..half + 64].fill(0xff);
    let server = Server::start(move |hit| {
        let body = if hit.path == "/padded" { padded.clone() } else { packed.clone() };
        answer(200, &[("content-encoding", "gzip"), ("etag", "\"1\"")], body)
    })
    .await;
    let damaged = get(&server, "/").await;
    assert!(matches!(damaged, Err(FetchError::Decode(_))), "{damaged:?}");
    let padded = get(&server, "/padded").await;
    // All of it came, so that it need not come again.
    let Ok(Fetched::Document { validators, .. }) = &padded else { panic!("{padded:?}") };
    assert_eq!(validators.etag.as_deref(), Some("\"1\""));
    assert_eq!(body(padded), long_feed());
}

async fn gzip() -> Vec<u8> {
    let content = "<item>words</item>".repeat(1000);
    all_packings(content.as_bytes()).await.swap_remove(0).1
}

#[tokio::test]
async fn nobody_at_home_is_a_failure_that_may_pass() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let url = server.url("/secret");
    drop(server);
    let error = fetcher().fetch(request(url)).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect(_)) && error.is_transient(), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "the address is not repeated: {error:?}");
}

#[tokio::test]
async fn no_connection_is_kept_when_a_feed_was_fetched() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/feed", listener.local_addr().unwrap());
    let fetcher = fetcher();
    let fetch = fetcher.fetch(request(url));
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = [0; 4096];
        assert!(stream.read(&mut asked).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<rss/>").await.unwrap();
        // The server would keep it for ever.
        stream.read(&mut asked).await.unwrap()
    };
    let (fetched, rest) =
        tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(fetch, serve) })
            .await
            .expect("the connection is closed");
    assert_eq!((body(fetched).as_str(), rest), ("<rss/>", 0));
}

#[tokio::test]
async fn names_that_nobody_looks_up_mean_that_there_is_no_network() {
    let config = Config { apart: Duration::ZERO, ..Config::default() };
    let fetcher = Fetcher::with_directory(config, Directory::Silent).unwrap();
    let mut errors = Vec::new();
    for host in ["a", "b", "c", "d"] {
        let error = fetcher.fetch(request(format!("https://{host}.example/"))).await.unwrap_err();
        errors.push(error.to_string());
    }
    assert_eq!(errors[0], "could not look up `a.example`: the name server did not answer");
    assert_eq!(errors[2..], ["this machine has no network"; 2]);
}

/// It once was dropped whole, and no option helped.
#[tokio::test]
async fn of_a_feed_that_is_too_long_the_beginning_is_read() {
    let item = "<item><title>a</title></item>".repeat(50);
    let text = format!("<rss><channel><title>T</title>{item}</channel></rss>");
    let served = text.clone();
    let server = Server::start(move |_| answer(200, &[("etag", "x")], served.clone())).await;
    let config = Config { body_limit: 500, ..config() };
    let fetched = Fetcher::new(config).unwrap().fetch(request(server.url("/"))).await.unwrap();
    let Fetched::Document { bytes, end, validators, .. } = fetched else { panic!() };
    assert_eq!((bytes.as_slice(), end), (&text.as_bytes()[..500], End::Long));
    assert_eq!(validators.etag.as_deref(), Some("x"), "it is asked for again when it changed");
}
