//! Secrets of tokens: random, printed once, and stored as a hash only.

use anyhow::{Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What every secret begins with, so that people and scanners for leaked secrets recognise it.
const PREFIX: &str = "tidings_";
/// 256 bits cannot be guessed. For this reason a fast hash of a secret is enough: a slow one
/// protects passwords that people choose, and would only delay every request here.
const BYTES: usize = 32;

/// A new secret: printable ASCII that needs no quotes in a shell, a header or a URL.
pub(crate) fn secret() -> Result<String> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| anyhow!("the system has no random numbers: {error}"))?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings_server::http::Token;

    #[test]
    fn secrets_are_long_tokens_and_never_the_same() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), PREFIX.len() + 43);
        Token::new(&one).unwrap();
    }
}
