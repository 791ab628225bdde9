//! Texts that are not shown, and where tokens come from.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this takes care of it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

type TokenFuture = Pin<Box<dyn Future<Output = Option<Secret>> + Send>>;

/// Asks for the current bearer token.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> TokenFuture + Send + Sync>);

impl TokenSource {
    /// A function that gives the token as it is now: it may read a file, or ask somebody.
    pub fn new<F>(source: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Secret>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(source())))
    }

    /// A token that never changes.
    #[must_use]
    pub fn fixed(token: Secret) -> Self {
        Self::new(move || std::future::ready(Some(token.clone())))
    }

    pub(crate) async fn token(&self) -> Option<Secret> {
        (self.0)().await
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenSource(…)")
    }
}

/// The token that one mirror used last; none at first.
#[derive(Debug, Default)]
pub(crate) struct TokenMemory(Mutex<Option<Secret>>);

impl TokenMemory {
    /// Notes the token that is used from now on; says whether it is another one than before.
    pub(crate) fn is_other(&self, token: Option<&Secret>) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = last.as_ref() != token;
        *last = token.cloned();
        is_other
    }
}
