//! Secret texts, and sources of tokens.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. The caller keeps it secret.
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

/// Returns the current bearer token.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> TokenFuture + Send + Sync>);

impl TokenSource {
    /// A function that returns the current token: it may read a file or ask a service.
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

    /// The current token.
    pub async fn token(&self) -> Option<Secret> {
        (self.0)().await
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenSource(…)")
    }
}

/// The last token of one mirror.
#[derive(Debug, Default)]
pub(crate) struct TokenMemory(Mutex<Option<Secret>>);

impl TokenMemory {
    /// Sets the current token; returns whether it changed.
    pub(crate) fn is_other(&self, token: Option<&Secret>) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = last.as_ref() != token;
        *last = token.cloned();
        is_other
    }
}
