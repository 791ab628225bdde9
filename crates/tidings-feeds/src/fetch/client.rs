//! The HTTP client below the fetcher: its trust and its limits.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::ClientConfig;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use rustls_platform_verifier::BuilderVerifierExt as _;

use super::Config;
use super::resolve::{Directory, Resolver};

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The operating system has no trusted certificates.
    #[error("could not set up TLS")]
    Trust(#[from] rustls::Error),
    /// The client refused its settings.
    #[error("could not set up the HTTP client")]
    Settings(#[from] reqwest::Error),
}

/// A client that connects only to addresses that the resolver admits.
pub(super) fn build(config: &Config, directory: Directory) -> Result<reqwest::Client, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = ClientConfig::builder_with_details(provider, Arc::new(Clock))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let resolver = Resolver { directory, allow_private: config.allow_private };
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(trust)
        .user_agent(config.user_agent.as_str())
        .dns_resolver(resolver)
        // A proxy is found in the environment and would resolve names by itself.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(config.connect_timeout)
        // Connections are not kept: a feed is fetched too rarely to be worth a file descriptor, and
        // thousands of hosts would hold thousands of them. TLS sessions are still resumed.
        .pool_max_idle_per_host(0)
        // We decompress bodies, even if another part of the program enables it in the client.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .build()?;
    Ok(client)
}

/// The time for checking certificates. Without it there is no connection: the library's own clock
/// panics before 1970.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        known(SystemTime::now())
    }
}

fn known(time: SystemTime) -> Option<UnixTime> {
    time.duration_since(SystemTime::UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_before_1970_is_no_time_for_certificates() {
        assert_eq!(known(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), None);
        assert!(known(SystemTime::UNIX_EPOCH).is_some());
    }
}
