//! The HTTP client of a connection: redirects, timeouts, certificates.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::ConnectError;

/// Time to open a connection to the server.
const CONNECT: Duration = Duration::from_secs(10);
/// A peer that is silent at the TCP level for this long counts as gone.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// A client for one server. TLS is set up only if the URL needs it, because it is costly.
pub(crate) fn client(url: &reqwest::Url) -> Result<reqwest::Client, ConnectError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(trust(url.scheme() == "https")?)
        .connect_timeout(CONNECT)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_nodelay(true)
        .redirect(redirects(url));
    let is_local = match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    if is_local {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| ConnectError::Transport(innermost(&error)))
}

/// A redirect must neither carry our headers to another server nor turn a POST into a GET.
fn redirects(url: &reqwest::Url) -> reqwest::redirect::Policy {
    let origin = url.origin();
    reqwest::redirect::Policy::custom(move |attempt| {
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        if keeps_method && attempt.url().origin() == origin && attempt.previous().len() < 5 {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Only the last cause: those before it contain the URL, which may be secret.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The TLS configuration. A connection without TLS trusts nobody: loading the system's certificates
/// takes longer than a whole exchange on loopback.
fn trust(is_used: bool) -> Result<ClientConfig, ConnectError> {
    let failed = |error: rustls::Error| ConnectError::Transport(format!("TLS: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(Clock))
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    if is_used {
        return Ok(builder.with_platform_verifier().map_err(failed)?.with_no_client_auth());
    }
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// The time for checking certificates. Without it there is no connection: the library's own clock
/// panics before 1970.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.ok().map(UnixTime::since_unix_epoch)
    }
}
