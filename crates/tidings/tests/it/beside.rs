//! Routes beside the endpoint are for those who may use the endpoint.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, StatusCode};
use tidings_server::Hub;
use tidings_server::http::{self as server, HttpConfig, Token};
use tower::ServiceExt as _;

async fn ask(method: &str, path: &str, headers: &[(&str, &str)]) -> http::Response<Body> {
    let mut config = HttpConfig::default();
    config.tokens = Token::new("0123456789abcdef").unwrap().into();
    config.beside = Some(Router::new().route("/more", get(async || "here")));
    let hub = Hub::new("beside", "1");
    let router = server::router(&hub, config);
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn who_knows_the_token_is_let_through() {
    let (host, token) = (("host", "localhost"), ("authorization", "Bearer 0123456789abcdef"));
    let answer = ask("GET", "/more", &[host, token]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(ask("GET", "/more", &[host]).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(ask("GET", "/nothing", &[host, token]).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn strange_hosts_and_pages_are_refused() {
    let token = ("authorization", "Bearer 0123456789abcdef");
    let answer = ask("GET", "/more", &[("host", "evil.example"), token]).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let host = ("host", "localhost");
    let answer = ask("GET", "/more", &[host, ("origin", "https://evil.example"), token]).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_page_may_ask_before_it_asks() {
    let page = [("host", "localhost"), ("origin", "http://localhost:5173")];
    let answer = ask("OPTIONS", "/more", &page).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    assert_eq!(answer.headers()["access-control-allow-origin"], "http://localhost:5173");
    let methods = answer.headers()["access-control-allow-methods"].to_str().unwrap();
    assert!(methods.contains("PUT"), "{methods}");
    let headers = answer.headers()["access-control-allow-headers"].to_str().unwrap();
    assert!(headers.contains("Tidings-Actor"), "{headers}");
    let answer = ask("OPTIONS", "/mcp", &page).await;
    assert_eq!(answer.headers()["access-control-allow-methods"], "GET, POST, DELETE");
}
