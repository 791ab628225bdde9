//! Addresses that the fetcher refuses, and headers that it does not forward.

use std::sync::Mutex;

use super::server::{Server, answer, redirect};
use super::*;
use crate::fetch::resolve::ResolvedAddress;

/// A fetcher on the internet, as far as it knows: names are what the function says.
fn outside(look_up: impl Fn(&str) -> Vec<ResolvedAddress> + Send + Sync + 'static) -> Fetcher {
    let config = Config { allow_private: false, ..config() };
    Fetcher::with_directory(config, Directory::Told(Arc::new(look_up))).unwrap()
}

#[track_caller]
fn check_private(fetched: Result<Fetched, FetchError>, expected: (&str, &str)) {
    let Err(FetchError::Private { host, address }) = fetched else { panic!("{fetched:?}") };
    assert_eq!((host.as_str(), address.to_string().as_str()), expected);
}

#[tokio::test]
async fn a_private_address_is_not_asked() {
    let server = Server::start(|_| answer(200, &[], "secret")).await;
    let fetcher = Fetcher::new(Config { allow_private: false, ..config() }).unwrap();
    let fetched = fetcher.fetch(request(server.url("/"))).await;
    check_private(fetched, ("127.0.0.1", "127.0.0.1"));
    let named = server.url("/").replace("127.0.0.1", "localhost");
    let fetched = fetcher.fetch(request(named)).await;
    assert!(matches!(fetched, Err(FetchError::Private { .. })), "{fetched:?}");
    assert!(server.hits().is_empty());
}

#[tokio::test]
async fn a_name_with_a_private_address_is_not_asked() {
    let server = Arc::new(Server::start(|_| answer(200, &[], "secret")).await);
    for address in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::ffff:127.0.0.1", "fd00::1"] {
        let known = server.clone();
        let fetcher = outside(move |_| known.found_at(address));
        check_private(
            fetcher.fetch(request("http://feed.example/")).await,
            ("feed.example", address),
        );
    }
    assert!(server.hits().is_empty());
}

#[tokio::test]
async fn a_redirect_does_not_lead_inside() {
    let inside = Arc::new(Server::start(|_| answer(200, &[], "secret")).await);
    let literal = inside.url("/");
    let front = Server::start(move |hit| {
        redirect(302, if hit.path == "/literal" { &literal } else { "http://inside.example/" })
    });
    let front = Arc::new(front.await);
    let (known, hidden) = (front.clone(), inside.clone());
    let fetcher = outside(move |host| match host {
        "feed.example" => known.found_at("93.184.215.14"),
        _ => hidden.found_at("192.168.1.1"),
    });
    let fetched = fetcher.fetch(request("http://feed.example/literal")).await;
    check_private(fetched, ("127.0.0.1", "127.0.0.1"));
    let fetched = fetcher.fetch(request("http://feed.example/name")).await;
    check_private(fetched, ("inside.example", "192.168.1.1"));
    assert_eq!(front.paths(), ["/literal", "/name"]);
    assert!(inside.hits().is_empty());
}

/// The name server says one thing when it is checked and another afterwards.
#[tokio::test]
async fn a_name_that_changes_its_address_is_looked_up_once_for_each_connection() {
    let server = Server::start(|_| answer(200, &[("connection", "close")], "found")).await;
    let server = Arc::new(server);
    let asked = Arc::new(Mutex::new(0));
    let (known, count) = (server.clone(), asked.clone());
    let fetcher = outside(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        known.found_at(if *count == 1 { "93.184.215.14" } else { "127.0.0.1" })
    });
    assert_eq!(body(fetcher.fetch(request("http://feed.example/")).await), "found");
    assert_eq!(*asked.lock().unwrap(), 1, "what was checked is what was connected to");
    let fetched = fetcher.fetch(request("http://feed.example/")).await;
    check_private(fetched, ("feed.example", "127.0.0.1"));
    assert_eq!(server.hits().len(), 1);
}

#[tokio::test]
async fn of_several_addresses_only_the_public_ones_are_used() {
    let server = Arc::new(Server::start(|_| answer(200, &[], "found")).await);
    let inside = Arc::new(Server::start(|_| answer(200, &[], "secret")).await);
    let (known, hidden) = (server.clone(), inside.clone());
    let fetcher =
        outside(move |_| [hidden.found_at("127.0.0.1"), known.found_at("93.184.215.14")].concat());
    assert_eq!(body(fetcher.fetch(request("http://feed.example/")).await), "found");
    assert!(inside.hits().is_empty());
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failure_that_may_pass() {
    let error = outside(|_| Vec::new()).fetch(request("http://feed.example/")).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect(_)) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn own_headers_do_not_leave_their_origin() {
    let other = Server::start(|_| answer(200, &[], "found")).await;
    let elsewhere = other.url("/end");
    let server = Server::start(move |hit| {
        redirect(302, if hit.path == "/first" { "/second" } else { &elsewhere })
    })
    .await;
    let headers = vec![("Authorization".to_owned(), "Bearer secret".to_owned())];
    let validators = Validators { etag: Some("\"1\"".into()), last_modified: None };
    let request = Request { validators, headers, ..request(server.url("/first")) };
    assert_eq!(body(fetcher().fetch(request).await), "found");
    let sent: Vec<_> = server.hits().iter().map(|hit| hit.header("authorization").len()).collect();
    assert_eq!(sent, [13, 13]);
    assert_eq!(other.hits()[0].header("authorization"), "");
    assert_eq!(other.hits()[0].header("if-none-match"), "\"1\"");
}

#[tokio::test]
async fn a_header_that_is_none_is_refused_without_its_value() {
    for (name, value) in [("X-Key", "secret\r\nHost: other"), ("Host", "secret"), ("a b", "secret")]
    {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let request = Request { headers, ..request("http://127.0.0.1/") };
        let error = fetcher().fetch(request).await.unwrap_err();
        assert!(matches!(&error, FetchError::Header(refused) if refused == name));
        assert!(!format!("{error:?}").contains("secret"));
    }
}
