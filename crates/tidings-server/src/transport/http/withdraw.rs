//! Changes of tokens: sessions and streams of withdrawn and expired ones end, and the others get the
//! new labels.

use std::sync::Weak;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::app::App;
use crate::tokens::Tokens;

/// The longest time between two checks of an expiry, because the clock may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

/// Ends streams and sessions with their tokens, while there is a server that has them. The changes
/// are of its tokens, from before this begins.
pub(super) async fn follow(
    app: Weak<App>,
    mut changes: watch::Receiver<u64>,
    closing: CancellationToken,
) {
    loop {
        let Some(server) = app.upgrade() else { return };
        // Order: the time first, so that a token that expires during the check is checked again.
        let checked = SystemTime::now();
        server.follow_tokens();
        let expiry = until_expiry(&server.config.tokens, checked);
        drop(server);
        let expired = async {
            match expiry {
                // A moment later, as the two clocks may differ by a little.
                Some(after) => {
                    tokio::time::sleep(after.min(LONGEST) + Duration::from_millis(1)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closing.cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
            () = expired => {}
        }
    }
}

/// How long it is until the first token expires of those that had not when they were checked.
fn until_expiry(tokens: &Tokens, checked: SystemTime) -> Option<Duration> {
    let expiry = tokens.next_expiry(checked)?;
    Some(expiry.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::model::{RequestId, Tool};
    use tidings_core::{ListKind, ListKinds};

    use super::*;
    use crate::about::About;
    use crate::hub::Hub;
    use crate::identity::Identity;
    use crate::labels::Labels;
    use crate::notice::Wire;
    use crate::outbox::{Next, Outbox};
    use crate::pipeline::Listener;
    use crate::tokens::Admitted;
    use crate::tokens::{Token, TokenEntry, TokenHash};
    use crate::transport::http::{HttpConfig, ListenPlace};

    fn ada() -> TokenEntry {
        let hash = TokenHash::of(&Token::new("0123456789abcdef").unwrap());
        TokenEntry::new(hash, Identity::new("ada", Labels::NONE))
    }

    /// A server that knows one token.
    fn server(hub: &Hub) -> (Arc<App>, Tokens) {
        let config = HttpConfig { tokens: [ada()].into_iter().collect(), ..HttpConfig::default() };
        let tokens = config.tokens.clone();
        (App::new(hub, config).0, tokens)
    }

    /// A listen request of the token for the list of tools.
    fn listen(app: &Arc<App>) -> (ListenPlace, Arc<Outbox>) {
        let TokenEntry { hash, identity } = ada();
        let admitted = Admitted { identity: identity.clone(), token: Some(hash) };
        let mut place = app.listen_place(None, &admitted).unwrap();
        let viewer = app.pipeline.viewers.request(identity);
        let wire = Wire::modern(&RequestId::Number(1));
        let listener = Listener::new(&app.pipeline, wire, About::nobody(), Some(viewer));
        listener.follow_lists([ListKind::Tools].into_iter().collect::<ListKinds>());
        let outbox = listener.outbox().clone();
        place.take(listener);
        (place, outbox)
    }

    async fn next(outbox: &Outbox) -> Next {
        let reader = outbox.attach();
        tokio::time::timeout(Duration::from_secs(10), outbox.next(reader)).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_a_withdrawn_token_ends_without_what_waits() {
        let hub = Hub::new("withdrawn", "1");
        let shelf = hub.source("tools").unwrap();
        let (app, tokens) = server(&hub);
        let (_place, outbox) = listen(&app);
        let add = |name: &'static str| {
            shelf.add(Tool::new(name, "a tool", serde_json::Map::new())).unwrap();
        };
        add("one");
        while outbox.waiting() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokens.replace(Vec::new());
        app.follow_tokens();
        assert_eq!(next(&outbox).await, Next::Closed);
        add("two");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(next(&outbox).await, Next::Closed);
        // One that comes too late never begins.
        let (_late, outbox) = listen(&app);
        assert_eq!(next(&outbox).await, Next::Closed);
    }

    #[tokio::test]
    async fn a_token_that_is_withdrawn_before_it_is_followed_is_not_missed() {
        let hub = Hub::new("early", "1");
        let (app, tokens) = server(&hub);
        let (_place, outbox) = listen(&app);
        // No task has run yet.
        tokens.replace(Vec::new());
        assert_eq!(next(&outbox).await, Next::Closed);
    }

    #[test]
    fn a_token_that_expires_during_a_check_is_checked_again_at_once() {
        let checked = SystemTime::now() - Duration::from_secs(2);
        let mut ada = ada();
        ada.identity.expires = Some(checked + Duration::from_secs(1));
        let tokens: Tokens = [ada].into_iter().collect();
        assert_eq!(until_expiry(&tokens, checked), Some(Duration::ZERO));
        assert_eq!(until_expiry(&tokens, SystemTime::now()), None);
    }
}
