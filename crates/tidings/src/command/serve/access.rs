//! Who may use the HTTP endpoint: the one token of `--token-file` or the environment, and the named
//! tokens of a file, which is followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_server::Identity;
use tidings_server::http::{Token, TokenEntry, TokenHash, Tokens};
use tracing::{error, info, warn};

use crate::args::Serve;
use crate::follow::FollowedFile;
use crate::report::{self, Hint};
use crate::tokens::{self, StoredToken};

/// A file that was refused is tried again this often: its permissions may change without an event.
const RETRY: Duration = Duration::from_secs(2);

/// A file that is the same after this time is complete.
const REST: Duration = Duration::from_millis(20);
/// How often that is tried.
const RESTS: u32 = 20;

/// The tokens of a server, and where they come from.
pub(super) struct Access {
    token_file: Option<PathBuf>,
    tokens_file: Option<PathBuf>,
    allow_anyone: bool,
    /// What the server uses.
    tokens: Tokens,
    /// The last valid tokens. Written by `reload`, from one task.
    known: Mutex<Known>,
}

/// The last valid state.
#[derive(Default)]
struct Known {
    shared: Option<Token>,
    named: Vec<StoredToken>,
    /// Why the file of the named tokens was refused, if it was.
    refused: Option<String>,
}

impl Access {
    /// Reads the tokens for the first time. The file is to be [followed](Self::follow).
    ///
    /// # Errors
    ///
    /// They cannot be read: a server must not start with fewer or more clients than it should have.
    pub(super) fn open(
        args: &Serve,
        in_file: Option<&Path>,
    ) -> Result<(Self, Option<FollowedFile>)> {
        // Over stdio, the client starts the server itself.
        let in_file = in_file.filter(|_| !args.stdio);
        let tokens_file = match &args.tokens {
            Some(file) => Some(tokens::place(file.as_deref().or(in_file))?),
            None => in_file.map(Path::to_owned),
        };
        // Order: followed before it is read, so that no change is missed.
        let followed = tokens_file.as_deref().map(FollowedFile::new);
        let access = Self {
            token_file: args.token_file.clone(),
            tokens_file,
            allow_anyone: args.allow_anyone,
            tokens: Tokens::default(),
            known: Mutex::default(),
        };
        let shared = access.read_shared()?;
        let named = access.tokens_file.as_deref().map(read_named).transpose()?;
        let is_needed = shared.is_some() || named.is_some();
        *access.known() = Known { shared, named: named.unwrap_or_default(), refused: None };
        if is_needed {
            access.apply();
        }
        Ok((access, followed))
    }

    /// The tokens, shared with the server.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Whether clients without a token are served beside those with named ones.
    pub(super) fn admits_anyone(&self) -> bool {
        self.allow_anyone && self.tokens_file.is_some()
    }

    /// Whether nobody is served without a token.
    pub(super) fn needs_token(&self) -> bool {
        self.tokens.are_needed() && !self.admits_anyone()
    }

    /// Follows the file of the named tokens; never ends.
    pub(super) async fn follow(&self, file: Option<FollowedFile>) {
        let Some(mut file) = file else { return std::future::pending().await };
        loop {
            let is_refused = self.known().refused.is_some();
            if is_refused {
                drop(tokio::time::timeout(RETRY, file.changed()).await);
            } else {
                file.changed().await;
            }
            at_rest(file.path()).await;
            self.reload_named(file.path());
        }
    }

    /// Reads everything again. What cannot be read stays as it was.
    pub(super) fn reload(&self) {
        match self.read_shared() {
            // A server with a token must not start serving everybody by accident.
            Ok(None) if self.known().shared.is_some() => {
                error!("the token is missing: keeping the last one");
            }
            Ok(None) => {}
            Ok(shared) => {
                self.known().shared = shared;
                self.apply();
                info!("token reloaded");
            }
            Err(error) => {
                let error = report::line(&error);
                error!(%error, "the token could not be read: keeping the last one");
            }
        }
        if let Some(file) = &self.tokens_file {
            self.reload_named(file);
        }
    }

    fn reload_named(&self, path: &Path) {
        let named = match read_named(path) {
            Ok(named) => named,
            Err(error) => {
                let error = report::line(&error);
                let before = self.known().refused.replace(error.clone());
                if before.as_ref() != Some(&error) {
                    error!(%error, "the tokens could not be read: keeping the last ones");
                }
                return;
            }
        };
        let before = {
            let mut known = self.known();
            known.refused = None;
            std::mem::replace(&mut known.named, named.clone())
        };
        if before == named {
            return;
        }
        self.apply();
        for (name, change) in changes(&before, &named) {
            info!(token = name, "token {change}");
        }
    }

    /// Gives the server what is known.
    fn apply(&self) {
        let known = self.known();
        let shared = known.shared.as_ref().map(TokenHash::of);
        let shared = shared.map(|hash| TokenEntry::new(hash, Identity::anonymous()));
        self.tokens.replace(
            shared.into_iter().chain(known.named.iter().map(StoredToken::entry)).collect(),
        );
    }

    fn read_shared(&self) -> Result<Option<Token>> {
        let text = match &self.token_file {
            Some(file) => {
                if let Some(mode) = tokens::others_may_read(file) {
                    warn!(
                        file = %file.display(), mode = %format!("{mode:o}"),
                        "other users can read the token: run `chmod 600` on its file"
                    );
                }
                Some(
                    std::fs::read_to_string(file)
                        .with_context(|| format!("reading the token from {}", file.display()))?,
                )
            }
            None => std::env::var("TIDINGS_TOKEN").ok(),
        };
        text.map(|text| Token::new(&text).context("reading the token")).transpose()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a save in several steps is complete: the first half of a file is valid, too.
async fn at_rest(path: &Path) {
    let mut last = std::fs::read(path).ok();
    for _ in 0..RESTS {
        tokio::time::sleep(REST).await;
        let now = std::fs::read(path).ok();
        if now == last {
            return;
        }
        last = now;
    }
}

/// The valid tokens of a file. Others are logged.
fn read_named(path: &Path) -> Result<Vec<StoredToken>> {
    let file = path.display();
    let loaded = match tokens::load(path) {
        Err(error) if !path.exists() => {
            let hint = format!("`tidings token new NAME --tokens {file}` creates it");
            return Err(error.context(Hint(hint)));
        }
        loaded => loaded?,
    };
    for problem in &loaded.problems {
        warn!(%file, %problem, "a token is refused");
    }
    if let Some(mode) = loaded.readable {
        let mode = format!("{mode:o}");
        warn!(%file, mode, "other users can read the tokens: run `chmod 600` on their file");
    }
    Ok(loaded.tokens)
}

/// The names of tokens that differ, and how.
fn changes<'t>(
    before: &'t [StoredToken],
    after: &'t [StoredToken],
) -> Vec<(&'t str, &'static str)> {
    let by_name = |tokens: &'t [StoredToken]| -> BTreeMap<_, _> {
        tokens.iter().map(|token| (token.name.as_str(), token)).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let removed = removed.map(|name| (*name, "removed"));
    let moved = after.iter().filter_map(|(name, token)| match before.get(name) {
        None => Some((*name, "added")),
        Some(old) if old != token => Some((*name, "changed")),
        Some(_) => None,
    });
    removed.chain(moved).collect()
}
