//! Changes of tokens: sessions and streams of withdrawn and expired ones end, and the others get the
//! new labels.

use std::sync::Weak;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::app::App;

/// The longest time between two checks of an expiry, because the clock may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

/// Ends streams and sessions with their tokens, while there is a server that has them.
pub(super) async fn follow(app: Weak<App>, closing: CancellationToken) {
    let Some(mut changes) = app.upgrade().map(|app| app.config.tokens.changes()) else { return };
    loop {
        let Some(tokens) = app.upgrade().map(|app| app.config.tokens.clone()) else { return };
        let now = SystemTime::now();
        let expiry = tokens.next_expiry(now).map(|at| at.duration_since(now).unwrap_or_default());
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
        let Some(app) = app.upgrade() else { return };
        app.follow_tokens();
    }
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
    use crate::tokens::{Token, TokenEntry, TokenHash, Tokens};
    use crate::transport::guard::Admitted;
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
}
