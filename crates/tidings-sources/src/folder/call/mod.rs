//! One call of a tool that is a program: arguments checked, its turn awaited, run, and its output
//! made a result.

mod brief;
mod embed;
#[cfg(test)]
mod live;
mod outcome;
mod roots;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;
use tidings_server::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use tidings_server::{AnswerError, Exchange};
use tracing::warn;

use self::brief::{Desk, Request};
use crate::folder::offer::ToolScript;
use crate::folder::script::{self, Ending, Sign};
use crate::folder::workshop::Workshop;

/// Calls a tool. Whatever the tool does wrong is a result with `isError`, so that a model can read
/// it and do better. Dropping the future, or the client's giving up, ends the tool with all it
/// started.
///
/// # Errors
///
/// The client gave up.
pub(crate) async fn call(
    workshop: &Workshop,
    script: &ToolScript,
    request: CallToolRequestParams,
    exchange: &Exchange,
) -> Result<CallToolResponse, AnswerError> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    if let Some(refusal) = outcome::refusal(script, &arguments) {
        return Ok(refusal.into());
    }
    let answer = async {
        let request = Request {
            arguments: arguments.to_string(),
            meta: serde_json::to_string(exchange.meta()).unwrap_or_else(|_| "{}".to_owned()),
            progress_token: exchange.progress_token().map(|token| token.0.to_string()),
            roots: roots::of(&workshop.root, exchange).await,
        };
        // Waiting for a turn is not counted as running.
        match workshop.queue.enter(&exchange.caller()).await {
            Ok(_permit) => perform(workshop, script, request, |sign| tell(exchange, sign)).await,
            Err(full) => outcome::error(full.to_string()),
        }
    };
    tokio::select! {
        biased;
        () = exchange.cancelled() => Err(AnswerError::Failed("cancelled".to_owned())),
        result = answer => Ok(result.into()),
    }
}

/// Removes what calls of processes that were killed left in a directory for private files.
pub(crate) fn sweep(scratch: &Path) {
    Desk::sweep(scratch);
}

/// Everything of a call but the client.
async fn perform<F: Future<Output = ()>>(
    workshop: &Workshop,
    script: &ToolScript,
    request: Request,
    hear: impl FnMut(Sign) -> F,
) -> CallToolResult {
    let no_room = |error: std::io::Error| {
        // The error names a path of this machine, which is for the operator alone.
        warn!(tool = %script.tool.name, %error, "a call has no room for private files");
        outcome::error(format!("no room for private files: {}", error.kind()))
    };
    let desk = match Desk::new(workshop) {
        Ok(desk) => desk,
        Err(error) => return no_room(error),
    };
    let job = match brief::job(workshop, script, request, &desk) {
        Ok(job) => job,
        Err(error) => return no_room(error),
    };
    let run = match script::run(job, hear).await {
        Ok(run) => run,
        Err(error) => return outcome::error(error.within(&workshop.root).to_string()),
    };
    let succeeded = run.ending == Ending::Code(0);
    let mut result = outcome::result(script, run, workshop.limits.output);
    if succeeded && desk.has_resources() {
        result.content.extend(embed::blocks(workshop, script, &desk.resources()).await);
    }
    result
}

async fn tell(exchange: &Exchange, sign: Sign) {
    match sign {
        Sign::Progress { done, total, message } => {
            exchange.progress(done, total, message.as_deref()).await;
        }
        Sign::Log { level, logger, data } => {
            exchange.log_as(logger.as_deref(), level, data).await;
        }
    }
}
