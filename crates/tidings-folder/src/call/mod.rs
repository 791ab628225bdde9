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
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
};
use tidings_server::{AnswerError, Context};
use tracing::warn;

use self::brief::{Desk, Request};
use crate::offer::{Dialect, ToolScript};
use crate::script::{self, Ending, Run, Sign};
use crate::withheld;
use crate::workshop::Workshop;

/// The code of JSON-RPC for arguments that do not fit.
const INVALID: i64 = -32602;

/// Calls a tool. Whatever the tool does wrong is a result with `isError`, so that a model can read
/// it and do better. Dropping the future, or the client's giving up, ends the tool with all it
/// started.
///
/// # Errors
///
/// The client gave up, or a tool of `mcp-bash` says that its arguments are invalid.
pub(crate) async fn call(
    workshop: &Workshop,
    script: &ToolScript,
    request: CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, AnswerError> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    if let Some(refusal) = outcome::refusal(script, &arguments) {
        return match script.dialect {
            Dialect::Own => Ok(outcome::error(refusal).into()),
            Dialect::McpBash => Err(invalid(&arguments.to_string(), refusal)),
        };
    }
    let answer = async {
        let roots = match roots::of(workshop, context).await {
            Ok(roots) => roots,
            Err(reason) => return Ok(outcome::error(reason)),
        };
        let request = Request {
            arguments: arguments.to_string(),
            meta: serde_json::to_string(context.meta()).unwrap_or_else(|_| "{}".to_owned()),
            progress_token: context.progress_token().map(|token| token.0.to_string()),
            roots,
        };
        // Waiting for a turn is not counted as running.
        match workshop.queue.enter(&context.caller()).await {
            Ok(_permit) => perform(workshop, script, request, |sign| tell(context, sign)).await,
            Err(full) => Ok(outcome::error(full.to_string())),
        }
    };
    tokio::select! {
        biased;
        () = context.cancelled() => Err(AnswerError::Failed("cancelled".to_owned())),
        result = answer => result.map(Into::into),
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
) -> Result<CallToolResult, AnswerError> {
    let no_room = |error: std::io::Error| {
        // The error names a path of this machine, which is for the operator alone.
        warn!(tool = %script.tool.name, %error, "a call has no room for private files");
        outcome::error(format!("no room for private files: {}", error.kind()))
    };
    let arguments = request.arguments.clone();
    let desk = match Desk::new(workshop) {
        Ok(desk) => desk,
        Err(error) => return Ok(no_room(error)),
    };
    let job = match brief::job(workshop, script, request, &desk) {
        Ok(job) => job,
        Err(error) => return Ok(no_room(error)),
    };
    let run = match script::run(job, hear).await {
        Ok(run) => run,
        Err(error) => return Ok(outcome::error(error.within(&workshop.root).to_string())),
    };
    let succeeded = run.ending == Ending::Code(0);
    if let Some(failure) = desk.failure().filter(|it| !succeeded && it.code == INVALID) {
        return Err(invalid(&arguments, failure.message));
    }
    let missed = (!succeeded).then(|| missed_variable(workshop, &run)).flatten();
    let mut result = outcome::result(script, run, workshop.limits.output);
    if let Some(variable) = missed {
        let hint = format!("hint: {}", (workshop.withheld_hint)(variable));
        result.content.push(ContentBlock::text(hint));
    }
    if succeeded && desk.has_resources() {
        result.content.extend(embed::blocks(workshop, script, &desk.resources()).await);
    }
    Ok(result)
}

fn invalid(arguments: &str, details: String) -> AnswerError {
    AnswerError::invalid("arguments", arguments, details)
}

/// The withheld variable that a failed program complains of.
fn missed_variable<'a>(workshop: &'a Workshop, run: &Run) -> Option<&'a str> {
    let printed = String::from_utf8_lossy(&run.output);
    let named = |text: &str| withheld::named_in(text, &workshop.withheld);
    named(&run.errors).or_else(|| named(&printed))
}

async fn tell(context: &Context, sign: Sign) {
    match sign {
        Sign::Progress { done, total, message } => {
            context.progress(done, total, message.as_deref()).await;
        }
        Sign::Log { level, logger, data } => {
            context.log_as(logger.as_deref(), level, data).await;
        }
    }
}
