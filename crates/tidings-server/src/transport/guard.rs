//! Who may speak to the HTTP server: host, origin and token, before anything else is looked at.

use std::net::IpAddr;

use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use tracing::warn;

use crate::tokens::{Admitted, Tokens};
use crate::transport::http::HttpConfig;
use crate::transport::reply;
use crate::transport::seldom::Seldom;

/// The rules of one server.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    tokens: Tokens,
    /// Whether clients without a token are served, too.
    anonymous: bool,
    refusals: Seldom,
}

impl Guard {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self {
            hosts: lower(&config.hosts),
            origins: lower(&config.origins),
            tokens: config.tokens.clone(),
            anonymous: config.anonymous,
            refusals: Seldom::default(),
        }
    }

    /// Refuses a page from elsewhere that reached us through a name of its own (DNS rebinding).
    /// Returns the origin of the page that asks, if a page does. Loopback names count only from
    /// loopback: anybody else can claim to have meant `localhost`.
    pub(crate) fn check_source<B>(
        &self,
        peer: Option<IpAddr>,
        request: &Request<B>,
    ) -> Result<Option<HeaderValue>, Box<Response>> {
        let headers = request.headers();
        let is_near = peer.is_none_or(|peer| peer.to_canonical().is_loopback());
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().map(HeaderValue::to_str);
        if hosts.next().is_some() {
            return bad_request("a request has one Host header");
        }
        let authority = request.uri().authority().map(Authority::as_str);
        if let (Some(authority), Some(Ok(host))) = (authority, &host)
            && !authority.eq_ignore_ascii_case(host)
        {
            return bad_request("the Host header differs from the host of the request line");
        }
        let host = match host {
            Some(host) => host.ok(),
            None => authority,
        };
        if !host.is_some_and(|host| self.allows_host(is_near, host)) {
            let details = "this Host is not served here; the operator can allow it";
            return Err(Box::new(self.refuse(peer, StatusCode::FORBIDDEN, details)));
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(None) };
        if origin.to_str().is_ok_and(|origin| self.allows_origin(is_near, origin)) {
            return Ok(Some(origin.clone()));
        }
        let details = "pages of this Origin may not use this server; the operator can allow it";
        Err(Box::new(self.refuse(peer, StatusCode::FORBIDDEN, details)))
    }

    /// Who asks. Refuses a wrong token, and none if one is needed.
    pub(crate) fn identify(
        &self,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<Admitted, Box<Response>> {
        if self.anonymous && !headers.contains_key(header::AUTHORIZATION) {
            return Ok(Admitted::default());
        }
        self.identify_by_token(peer, headers)
    }

    /// As [`Self::identify`], but where tokens are needed, nobody is served without one.
    pub(crate) fn identify_by_token(
        &self,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Result<Admitted, Box<Response>> {
        if !self.tokens.are_needed() {
            return Ok(Admitted::default());
        }
        let given = headers.get(header::AUTHORIZATION);
        let given = given.map(HeaderValue::as_bytes).unwrap_or_default();
        let given = match given.split_at_checked(7) {
            Some((scheme, given)) if scheme.eq_ignore_ascii_case(b"bearer ") => given,
            _ => &[],
        };
        if let Some(entry) = self.tokens.find(given) {
            return Ok(Admitted { identity: entry.identity, token: Some(entry.hash) });
        }
        let details = "this server wants its bearer token";
        let mut response = self.refuse(peer, StatusCode::UNAUTHORIZED, details);
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Err(Box::new(response))
    }

    fn refuse(&self, peer: Option<IpAddr>, status: StatusCode, details: &str) -> Response {
        if let Some(left_out) = self.refusals.now() {
            let client = peer.map(tracing::field::display);
            warn!(client, status = status.as_u16(), left_out, details, "a request was refused");
        }
        reply::refuse(status, details)
    }

    fn allows_host(&self, is_near: bool, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let Ok(authority) = Authority::try_from(host.as_str()) else { return false };
        let name = authority.host();
        (is_near && is_loopback(name))
            || self.hosts.iter().any(|allowed| *allowed == host || *allowed == name)
    }

    fn allows_origin(&self, is_near: bool, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        // A page that a loopback server or an allowed host served is no stranger.
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri
                .authority()
                .is_some_and(|authority| self.allows_host(is_near, authority.as_str()))
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Lets the browser give an answer to the page that asked for it.
pub(crate) fn admit(origin: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let shown = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
}

/// What a browser asks before it lets a page ask. It comes without the token, and says nothing
/// that needs one.
pub(crate) fn preflight(methods: &'static str) -> Response {
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    let allowed = "Authorization, Content-Type, If-None-Match, If-Range, Last-Event-ID, \
                   Mcp-Method, Mcp-Name, MCP-Protocol-Version, Mcp-Session-Id, Range, Tidings-Actor";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn bad_request<T>(details: &str) -> Result<T, Box<Response>> {
    Err(Box::new(reply::refuse(StatusCode::BAD_REQUEST, details)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Token;

    fn config() -> HttpConfig {
        HttpConfig {
            hosts: vec!["Hub.example:8080".into(), "plain.example".into()],
            origins: vec!["https://app.example".into()],
            tokens: Token::new("0123456789abcdef\n").unwrap().into(),
            ..HttpConfig::default()
        }
    }

    fn guard() -> Guard {
        Guard::new(&config())
    }

    fn request(uri: &str, headers: &[(header::HeaderName, &str)]) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = uri.parse().unwrap();
        for (name, value) in headers {
            request.headers_mut().append(name, value.parse().unwrap());
        }
        request
    }

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, served: bool) {
        let mut headers = vec![(header::HOST, host)];
        headers.extend(origin.map(|origin| (header::ORIGIN, origin)));
        let verdict = guard().check_source(None, &request("/mcp", &headers));
        assert_eq!(verdict.is_ok(), served, "{host} {origin:?}");
    }

    #[test]
    fn loopback_names_count_only_from_loopback() {
        let asked = |peer: &str, host: &str, origin: Option<&str>| {
            let mut headers = vec![(header::HOST, host)];
            headers.extend(origin.map(|origin| (header::ORIGIN, origin)));
            let peer = Some(peer.parse().unwrap());
            guard().check_source(peer, &request("/mcp", &headers)).is_ok()
        };
        assert!(asked("127.0.0.1", "localhost", None));
        assert!(asked("::1", "localhost", None));
        assert!(asked("::ffff:127.0.0.1", "localhost", None));
        assert!(!asked("192.0.2.1", "localhost", None));
        assert!(!asked("192.0.2.1", "127.0.0.1:8484", None));
        assert!(asked("192.0.2.1", "plain.example", None));
        assert!(!asked("192.0.2.1", "plain.example", Some("http://localhost:5173")));
        assert!(asked("192.0.2.1", "plain.example", Some("http://plain.example")));
    }

    #[test]
    fn a_request_names_one_host() {
        let status = |uri: &str, hosts: &[&str]| {
            let headers: Vec<_> = hosts.iter().map(|host| (header::HOST, *host)).collect();
            let verdict = guard().check_source(None, &request(uri, &headers));
            verdict.map_or_else(|refusal| refusal.status().as_u16(), |_| 200)
        };
        assert_eq!(status("/mcp", &["localhost", "localhost"]), 400);
        assert_eq!(status("/mcp", &["localhost", "evil.example"]), 400);
        assert_eq!(status("http://evil.example/mcp", &["localhost"]), 400);
        assert_eq!(status("http://localhost/mcp", &["localhost"]), 200);
        assert_eq!(status("http://evil.example/mcp", &[]), 403);
        assert_eq!(status("/mcp", &[]), 403);
    }

    #[test]
    fn loopback_and_allowed_hosts_are_served() {
        check("127.0.0.1:9", None, true);
        check("localhost", None, true);
        check("[::1]:80", None, true);
        check("hub.example:8080", None, true);
        check("hub.example:81", None, false);
        check("plain.example:81", None, true);
        check("evil.example", None, false);
        check("localhost.evil.example", None, false);
        check("127.0.0.1.evil.example", None, false);
        check("", None, false);
    }

    #[test]
    fn strange_origins_are_refused() {
        check("localhost", Some("http://localhost:5173"), true);
        check("localhost", Some("https://app.example"), true);
        check("localhost", Some("http://app.example"), false);
        check("localhost", Some("http://evil.example"), false);
        check("localhost", Some("null"), false);
        check("localhost", Some("file://"), false);
    }

    #[test]
    fn the_token_is_wanted_exactly() {
        let given = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            guard().identify(None, &headers).is_ok()
        };
        assert!(given("Bearer 0123456789abcdef"));
        assert!(given("bearer 0123456789abcdef"));
        assert!(!given("Bearer 0123456789abcde"));
        assert!(!given("Bearer 0123456789abcdefg"));
        assert!(!given("Basic 0123456789abcdef"));
        assert!(!given("Bearer"));
        assert!(guard().identify(None, &HeaderMap::new()).is_err());
    }

    #[test]
    fn who_comes_without_a_token_is_anonymous_where_that_is_allowed() {
        let mut config = config();
        config.anonymous = true;
        let guard = Guard::new(&config);
        assert_eq!(guard.identify(None, &HeaderMap::new()).unwrap(), Admitted::default());
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer wrong"));
        assert!(guard.identify(None, &headers).is_err(), "a wrong token is not none");
    }
}
