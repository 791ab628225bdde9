//! Questions of servers, on their way to the inbox.

#![expect(deprecated, reason = "servers ask for samples until the protocol no longer has it")]

use std::sync::{Arc, PoisonError};

use serde_json::Value;
use tidings_mirror::model::{CreateMessageResult, ElicitResult};
use tidings_mirror::{Asking, During, Handlers, Question};

use crate::console::ConsoleState;
use crate::console::inbox::Kind;

/// Handlers that put the questions of a server into the inbox.
pub(super) fn handlers(inner: &Arc<ConsoleState>, id: u64) -> Handlers {
    // Weak: a connection does not keep its console.
    let asked = Arc::downgrade(inner);
    let sampled = asked.clone();
    Handlers::default()
        .elicit(move |params, asking| {
            let inner = asked.upgrade();
            async move {
                let answer = ask(inner, id, Kind::Elicitation, &params, asking).await?;
                serde_json::from_value::<ElicitResult>(answer).map_err(|error| error.to_string())
            }
        })
        .sample(move |params, asking| {
            let inner = sampled.upgrade();
            async move {
                let answer = ask(inner, id, Kind::Sampling, &params, asking).await?;
                if answer.is_null() {
                    return Err("the user declined".to_owned());
                }
                let answer = serde_json::from_value::<CreateMessageResult>(answer);
                answer.map_err(|error| error.to_string())
            }
        })
}

/// Puts a question into the inbox, and says in the timeline which call it belongs to.
async fn ask(
    inner: Option<Arc<ConsoleState>>,
    id: u64,
    kind: Kind,
    params: &(impl serde::Serialize + Sync),
    asking: Asking,
) -> Result<Value, String> {
    let inner = inner.ok_or("the console ends")?;
    let asked = serde_json::to_value(params).map_err(|error| error.to_string())?;
    let server = inner.servers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
    if let (Some(server), Question::Request(question), Some(During::Call { tool, .. })) =
        (server, &asking.question, &asking.during)
    {
        let mut facts = server.facts();
        let revision = inner.revisions.touch(&[&server.keys.log]);
        facts.log.belongs(&question.to_string(), tool, revision);
    }
    let inbox = inner.inbox.clone();
    drop(inner);
    inbox.ask(id, kind, asked, asking).await
}
