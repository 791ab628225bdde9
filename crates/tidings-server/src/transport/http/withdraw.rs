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
