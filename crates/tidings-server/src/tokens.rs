//! The bearer tokens that a server takes: who each one is, and when they change.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use http::Extensions;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::sync::watch;

use crate::identity::Identity;

/// A shorter token can be guessed.
const SHORTEST: usize = 16;
/// A longer one is not a token: hashing it would be work for nothing.
const LONGEST: usize = 4096;

/// A bearer token. It is never shown.
#[derive(Clone)]
pub struct Token(String);

/// Why a text is not a token.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is empty.
    #[error("the token is empty")]
    Empty,
    /// It can be guessed.
    #[error("the token has less than 16 characters; make one with `openssl rand -hex 32`")]
    Short,
    /// It is too long.
    #[error("the token has more than 4096 characters")]
    Long,
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
    /// It is empty, shorter than 16 characters, too long, or cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        match text.len() {
            ..SHORTEST => Err(TokenError::Short),
            SHORTEST..=LONGEST => Ok(Self(text.to_owned())),
            _ => Err(TokenError::Long),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// The BLAKE3 hash of a token, which can be stored where the token cannot. It is written as 64
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

/// Why a text is not the hash of a token.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hash of a token has 64 hexadecimal digits")]
pub struct TokenHashError;

impl TokenHash {
    /// The hash of a token.
    #[must_use]
    pub fn of(token: &Token) -> Self {
        Self::of_bytes(token.0.as_bytes())
    }

    /// The hash that is written in a text.
    ///
    /// # Errors
    ///
    /// The text does not have 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, TokenHashError> {
        let hash = blake3::Hash::from_hex(text.trim()).map_err(|_| TokenHashError)?;
        Ok(Self(*hash.as_bytes()))
    }

    fn of_bytes(token: &[u8]) -> Self {
        Self(*blake3::hash(token).as_bytes())
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenHash(…)")
    }
}

/// One token: its hash, and who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenEntry {
    /// The hash of the secret.
    pub hash: TokenHash,
    /// Who has it.
    pub identity: Identity,
}

impl TokenEntry {
    /// A token with this hash.
    #[must_use]
    pub fn new(hash: TokenHash, identity: Identity) -> Self {
        Self { hash, identity }
    }
}

/// The tokens that a server takes. Clones share them, so an operator can replace them while the
/// server runs. Then streams and sessions of tokens that are gone end, and those of the others have
/// the labels that their token has now.
///
/// By default no token is needed. After [`Tokens::replace`] one is, even if the list is empty.
#[derive(Clone, Debug)]
pub struct Tokens {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `None` while no token is needed.
    entries: RwLock<Option<Arc<[TokenEntry]>>>,
    /// Counts the replacements.
    changed: watch::Sender<u64>,
}

impl Default for Tokens {
    fn default() -> Self {
        let (entries, changed) = (RwLock::new(None), watch::Sender::new(0));
        Self { shared: Arc::new(Shared { entries, changed }) }
    }
}

impl Tokens {
    /// Takes these tokens from now on, and no others.
    pub fn replace(&self, entries: Vec<TokenEntry>) {
        self.set(Some(entries.into()));
    }

    /// Needs no token from now on.
    pub fn open(&self) {
        self.set(None);
    }

    /// Whether clients need a token.
    #[must_use]
    pub fn are_needed(&self) -> bool {
        self.entries().is_some()
    }

    /// How many of `limit` one token may use: half, so that something is left for the others if there
    /// are any.
    pub(crate) fn share(&self, limit: usize) -> usize {
        let are_several = self.entries().is_some_and(|entries| entries.len() > 1);
        if are_several { (limit / 2).max(1) } else { limit }
    }

    /// The entry of a secret, unless it has expired. Every entry is compared, in constant time.
    pub(crate) fn find(&self, secret: &[u8]) -> Option<TokenEntry> {
        let entries = self.entries()?;
        if secret.len() > LONGEST {
            return None;
        }
        self::find(&entries, &TokenHash::of_bytes(secret))
    }

    /// The identity that a token has now; nothing if it was withdrawn or has expired.
    pub(crate) fn current(&self, hash: &TokenHash) -> Option<Identity> {
        self::find(&self.entries()?, hash).map(|entry| entry.identity)
    }

    /// Says when the tokens were replaced.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// When the next token expires.
    pub(crate) fn next_expiry(&self, now: SystemTime) -> Option<SystemTime> {
        let entries = self.entries()?;
        let expiries = entries.iter().filter_map(|entry| entry.identity.expires);
        expiries.filter(|expires| *expires > now).min()
    }

    fn set(&self, entries: Option<Arc<[TokenEntry]>>) {
        *self.shared.entries.write().unwrap_or_else(PoisonError::into_inner) = entries;
        self.shared.changed.send_modify(|count| *count += 1);
    }

    fn entries(&self) -> Option<Arc<[TokenEntry]>> {
        self.shared.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FromIterator<TokenEntry> for Tokens {
    fn from_iter<I: IntoIterator<Item = TokenEntry>>(entries: I) -> Self {
        let tokens = Self::default();
        tokens.replace(entries.into_iter().collect());
        tokens
    }
}

/// One token without a name.
impl From<Token> for Tokens {
    fn from(token: Token) -> Self {
        [TokenEntry::new(TokenHash::of(&token), Identity::anonymous())].into_iter().collect()
    }
}

fn find(entries: &[TokenEntry], hash: &TokenHash) -> Option<TokenEntry> {
    let (mut found, mut at) = (Choice::from(0), 0);
    for (index, entry) in (0_u64..).zip(entries) {
        let is_it = entry.hash.0.ct_eq(&hash.0);
        at = u64::conditional_select(&at, &index, is_it);
        found |= is_it;
    }
    let entry = entries.get(usize::try_from(at).ok()?).filter(|_| found.into())?;
    (!entry.identity.is_expired(SystemTime::now())).then(|| entry.clone())
}

/// Who asks: the identity, and the token that proves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) identity: Identity,
    /// Nothing if no token was needed.
    pub(crate) token: Option<TokenHash>,
}

impl Admitted {
    /// Who sent the request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::labels::Labels;

    const ADA: &[u8] = b"0123456789abcdef";
    const BOB: &[u8] = b"fedcba9876543210";

    fn entry(name: &str, secret: &[u8]) -> TokenEntry {
        TokenEntry::new(TokenHash::of_bytes(secret), Identity::new(name, Labels::NONE))
    }

    fn name(entry: Option<TokenEntry>) -> Option<String> {
        entry.and_then(|entry| entry.identity.name).map(|name| name.to_string())
    }

    #[test]
    fn a_token_is_found_by_its_secret_alone() {
        let tokens: Tokens = [entry("ada", ADA), entry("bob", BOB)].into_iter().collect();
        assert_eq!(name(tokens.find(ADA)).as_deref(), Some("ada"));
        assert_eq!(name(tokens.find(BOB)).as_deref(), Some("bob"));
        for wrong in [&b""[..], b"ada", &ADA[1..], &[b'x'; LONGEST + 1]] {
            assert_eq!(tokens.find(wrong), None);
        }
    }

    #[test]
    fn a_withdrawn_or_expired_token_is_not_found() {
        let mut late = entry("late", BOB);
        late.identity.expires = Some(SystemTime::now() - Duration::from_secs(1));
        let tokens: Tokens = [entry("ada", ADA), late].into_iter().collect();
        assert_eq!(tokens.find(BOB), None);
        assert!(tokens.current(&TokenHash::of_bytes(ADA)).is_some());
        tokens.replace(Vec::new());
        assert_eq!(tokens.current(&TokenHash::of_bytes(ADA)), None);
        assert!(tokens.are_needed(), "an empty list lets nobody in");
    }

    #[test]
    fn replacing_tokens_is_said_to_who_follows_them() {
        let tokens = Tokens::default();
        let changes = tokens.changes();
        tokens.replace(vec![entry("ada", ADA)]);
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn a_hash_is_written_and_read() {
        let hash = TokenHash::of(&Token::new("0123456789abcdef").unwrap());
        assert_eq!(TokenHash::parse(&format!(" {hash}\n")), Ok(hash));
        assert_eq!(TokenHash::parse("00"), Err(TokenHashError));
        assert_eq!(format!("{hash:?}"), "TokenHash(…)");
    }

    #[test]
    fn a_token_is_never_shown() {
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef").unwrap()), "Token(…)");
        assert_eq!(Token::new("secret").unwrap_err(), TokenError::Short);
        assert_eq!(Token::new(" \n").unwrap_err(), TokenError::Empty);
        assert_eq!(Token::new("a b").unwrap_err(), TokenError::Characters);
        assert_eq!(Token::new(&"x".repeat(LONGEST + 1)).unwrap_err(), TokenError::Long);
    }
}
