//! Who may speak to the HTTP server: host, origin and token, before anything else is looked at.

use std::net::IpAddr;

use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use subtle::ConstantTimeEq;

use crate::transport::reply;

/// A bearer token. It is compared in constant time and never shown.
#[derive(Clone)]
pub struct Token(String);

/// Why a text is no token.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is empty.
    #[error("the token is empty")]
    Empty,
    /// It cannot stand in a header.
    #[error(
        "the token has a character that cannot stand in a header: use printable ASCII without spaces"
    )]
    Characters,
}

impl Token {
    /// A token; white space around it is not part of it.
    ///
    /// # Errors
    ///
    /// It is empty or cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(text.to_owned()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// The rules of one server.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    token: Option<Token>,
}

impl Guard {
    pub(crate) fn new(hosts: Vec<String>, origins: Vec<String>, token: Option<Token>) -> Self {
        let lower =
            |names: Vec<String>| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { hosts: lower(hosts), origins: lower(origins), token }
    }

    /// Refuses a page from elsewhere that reached us through a name of its own (DNS rebinding).
    /// Returns the origin of the page that asks, if a page does.
    pub(crate) fn check_source(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<HeaderValue>, Box<Response>> {
        let host = headers.get(header::HOST).map(HeaderValue::to_str);
        let host = match host {
            Some(Ok(host)) => Some(host.to_owned()),
            Some(Err(_)) => None,
            None => uri.authority().map(ToString::to_string),
        };
        let allowed = host.as_deref().is_some_and(|host| self.allows_host(host));
        if !allowed {
            return refuse("this Host is not served here; the operator can allow it");
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(None) };
        if origin.to_str().is_ok_and(|origin| self.allows_origin(origin)) {
            return Ok(Some(origin.clone()));
        }
        refuse("pages of this Origin may not use this server; the operator can allow it")
    }

    /// Refuses who does not know the token, if there is one.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Box<Response>> {
        let Some(token) = &self.token else { return Ok(()) };
        let given =
            headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let given = match given.split_at_checked(7) {
            Some((scheme, given)) if scheme.eq_ignore_ascii_case(b"bearer ") => given,
            _ => &[],
        };
        if bool::from(given.ct_eq(token.0.as_bytes())) {
            return Ok(());
        }
        let mut response =
            reply::refuse(StatusCode::UNAUTHORIZED, "this server wants its bearer token");
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Err(Box::new(response))
    }

    fn allows_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let Ok(authority) = Authority::try_from(host.as_str()) else { return false };
        let name = authority.host();
        is_loopback(name) || self.hosts.iter().any(|allowed| *allowed == host || *allowed == name)
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        // A page that a loopback server or an allowed host served is no stranger.
        let Ok(uri) = origin.parse::<Uri>() else { return false };
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(|authority| self.allows_host(authority.as_str()))
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

fn refuse<T>(details: &str) -> Result<T, Box<Response>> {
    Err(Box::new(reply::refuse(StatusCode::FORBIDDEN, details)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let token = Token::new("secret\n").unwrap();
        Guard::new(
            vec!["Hub.example:8080".into(), "plain.example".into()],
            vec!["https://app.example".into()],
            Some(token),
        )
    }

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, served: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let verdict = guard().check_source(&Uri::from_static("/mcp"), &headers);
        assert_eq!(verdict.is_ok(), served, "{host} {origin:?}");
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
            guard().check_token(&headers).is_ok()
        };
        assert!(given("Bearer secret"));
        assert!(given("bearer secret"));
        assert!(!given("Bearer secre"));
        assert!(!given("Bearer secrets"));
        assert!(!given("Basic secret"));
        assert!(!given("Bearer"));
        assert!(guard().check_token(&HeaderMap::new()).is_err());
    }

    #[test]
    fn a_token_is_never_shown() {
        assert_eq!(format!("{:?}", Token::new("secret").unwrap()), "Token(…)");
        assert_eq!(Token::new(" \n").unwrap_err(), TokenError::Empty);
        assert_eq!(Token::new("a b").unwrap_err(), TokenError::Characters);
    }
}
