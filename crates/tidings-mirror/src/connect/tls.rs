//! TLS as this program speaks it: the operating system decides whom to trust.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::mirror::ConnectError;

/// The configuration for a connection. One that is not going to use TLS trusts nobody, which costs
/// nothing: asking the operating system takes longer than a whole exchange on loopback.
pub(super) fn config(is_used: bool) -> Result<ClientConfig, ConnectError> {
    let failed = |error: rustls::Error| ConnectError::Transport(format!("TLS: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    if is_used {
        return Ok(builder.with_platform_verifier().map_err(failed)?.with_no_client_auth());
    }
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}
