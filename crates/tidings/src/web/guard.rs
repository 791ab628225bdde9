//! Who may use the page: this machine's browser, the page itself, and only with the token.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

/// The bytes of a token.
const TOKEN: usize = 32;

/// Only our own scripts and styles run, nothing is loaded from elsewhere, and no text becomes
/// markup: what a server sends stays text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob:; media-src blob:; connect-src 'self'; frame-src blob:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";

/// The address of the page and the token for its API.
#[derive(Clone)]
pub(crate) struct Guard {
    host: String,
    /// The path of the page, with a slash at both ends.
    base: &'static str,
    token: String,
}

impl Guard {
    /// A guard with a new token, for a page at this path.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub(crate) fn new(host: String, base: &'static str) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; TOKEN];
        getrandom::fill(&mut bytes)?;
        Ok(Self { host, base, token: URL_SAFE_NO_PAD.encode(bytes) })
    }

    /// The link to the page. The token is in the fragment, which a browser never sends.
    pub(crate) fn link(&self) -> String {
        format!("http://{}{}#token={}", self.host, self.base, self.token)
    }

    /// Why a request is refused.
    fn refuses(&self, path: &str, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name: &HeaderName| headers.get(name).map(|it| it.to_str().unwrap_or("?"));
        let forbidden = |why| Some((StatusCode::FORBIDDEN, why));
        if text(&header::HOST) != Some(&self.host) {
            return forbidden("this is not the address of the console");
        }
        let origin = format!("http://{}", self.host);
        if text(&header::ORIGIN).is_some_and(|given| given != origin) {
            return forbidden("requests of other pages are refused");
        }
        let fetch = |name: &'static str| text(&HeaderName::from_static(name));
        if fetch("sec-fetch-dest")
            .is_some_and(|it| ["iframe", "frame", "embed", "object"].contains(&it))
        {
            return forbidden("the console is not shown in a frame");
        }
        // A link in a mail or a file may open the page, which holds nothing by itself.
        let is_visit = path == "/" && fetch("sec-fetch-mode") == Some("navigate");
        let site = fetch("sec-fetch-site");
        if !is_visit && site.is_some_and(|site| site != "same-origin" && site != "none") {
            return forbidden("requests of other pages are refused");
        }
        if path.starts_with("/api/") {
            let given = text(&header::AUTHORIZATION).and_then(|it| it.strip_prefix("Bearer "));
            let given = given.unwrap_or_default().as_bytes();
            if !bool::from(given.ct_eq(self.token.as_bytes())) {
                return Some((StatusCode::UNAUTHORIZED, "the token is missing or wrong"));
            }
        }
        None
    }
}

/// Checks a request, and adds the headers that protect the page.
pub(crate) async fn check(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let mut response = match guard.refuses(&path, request.headers()) {
        Some((status, why)) => (status, why).into_response(),
        None => next.run(request).await,
    };
    let is_api = path.starts_with("/api/");
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CACHE_CONTROL, if is_api { "no-store" } else { "no-cache" }),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, given: &[(&'static str, &str)], expected: Option<u16>) {
        let (host, token) = ("127.0.0.1:7".to_owned(), "secret".to_owned());
        let guard = Guard { host, base: "/", token };
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let status = guard.refuses(path, &headers).map(|(status, _)| status.as_u16());
        assert_eq!(status, expected, "{path} {given:?}");
    }

    #[test]
    fn only_the_page_itself_may_ask_and_only_with_the_token() {
        let host = ("host", "127.0.0.1:7");
        let token = ("authorization", "Bearer secret");
        check("/", &[host], None);
        check("/", &[], Some(403));
        check("/", &[("host", "127.0.0.1:8")], Some(403));
        check("/", &[("host", "evil.example:7")], Some(403));
        check("/", &[host, ("origin", "http://evil.example")], Some(403));
        check("/", &[host, ("origin", "http://127.0.0.1:7")], None);
        check("/", &[host, ("sec-fetch-site", "cross-site")], Some(403));
        let visit = [host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        check("/", &visit, None);
        check("/api/state", &visit, Some(403));
        let frame = [host, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        check("/", &frame, Some(403));
        check("/api/state", &[host], Some(401));
        check("/api/state", &[host, ("authorization", "Bearer secre")], Some(401));
        check("/api/state", &[host, ("authorization", "secret")], Some(401));
        check("/api/state", &[host, token], None);
        check("/api/state", &[host, token, ("sec-fetch-site", "same-site")], Some(403));
    }

    #[test]
    fn each_token_is_new_and_long() {
        let [one, other] = [(); 2].map(|()| Guard::new("h".to_owned(), "/console/").unwrap());
        assert_ne!(one.token, other.token);
        assert_eq!(one.token.len(), 43);
        assert!(one.link().starts_with("http://h/console/#token="));
    }
}
