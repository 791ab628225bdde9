//! Tool calls: check the arguments, wait for a turn, run the program, and turn its output into a
//! result.

mod brief;
mod embed;
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

use self::brief::{CallFiles, CallRequest};
use crate::offer::{Dialect, ToolScript};
use crate::script::{self, Ending, Run, Sign};
use crate::withheld;
use crate::workshop::Workshop;

/// The JSON-RPC code for invalid arguments.
const INVALID: i64 = -32602;

/// Calls a tool. A failing tool is a result with `isError`, so that a model can read the reason. If
/// the future is dropped or the client cancels, the tool and everything it started are ended.
///
/// # Errors
///
/// The client cancelled, or a tool of `mcp-bash` reported invalid arguments.
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
        let request = CallRequest {
            arguments: arguments.to_string(),
            meta: serde_json::to_string(context.meta()).unwrap_or_else(|_| "{}".to_owned()),
            progress_token: context.progress_token().map(|token| token.0.to_string()),
            roots,
        };
        // Waiting for a turn does not count towards the time limit.
        match workshop.queue.enter(&context.caller()).await {
            Ok(_permit) => perform(workshop, script, request, |sign| forward(context, sign)).await,
            Err(full) => Ok(outcome::error(full.to_string())),
        }
    };
    tokio::select! {
        biased;
        () = context.cancelled() => Err(AnswerError::Failed("cancelled".to_owned())),
        result = answer => result.map(Into::into),
    }
}

/// Removes private files of killed processes.
pub(crate) fn sweep(scratch: &Path) {
    CallFiles::sweep(scratch);
}

/// The part of a call that does not involve the client.
async fn perform<F: Future<Output = ()>>(
    workshop: &Workshop,
    script: &ToolScript,
    request: CallRequest,
    hear: impl FnMut(Sign) -> F,
) -> Result<CallToolResult, AnswerError> {
    let no_room = |error: std::io::Error| {
        // The error contains a local path, which only the operator may see.
        warn!(tool = %script.tool.name, %error, "a call has no room for private files");
        outcome::error(format!("no room for private files: {}", error.kind()))
    };
    let arguments = request.arguments.clone();
    let files = match CallFiles::new(workshop) {
        Ok(files) => files,
        Err(error) => return Ok(no_room(error)),
    };
    let job = match brief::job(workshop, script, request, &files) {
        Ok(job) => job,
        Err(error) => return Ok(no_room(error)),
    };
    let run = match script::run(job, hear).await {
        Ok(run) => run,
        Err(error) => return Ok(outcome::error(error.within(&workshop.root).to_string())),
    };
    let succeeded = run.ending == Ending::Code(0);
    if let Some(failure) = files.failure().filter(|it| !succeeded && it.code == INVALID) {
        return Err(invalid(&arguments, failure.message));
    }
    let missed = (!succeeded).then(|| missed_variable(workshop, &run)).flatten();
    let mut result = outcome::result(script, run, workshop.limits.output);
    if let Some(variable) = missed {
        let hint = format!("hint: {}", (workshop.withheld_hint)(variable));
        result.content.push(ContentBlock::text(hint));
    }
    if succeeded && files.has_resources() {
        result.content.extend(embed::blocks(workshop, script, &files.resources()).await);
    }
    Ok(result)
}

fn invalid(arguments: &str, details: String) -> AnswerError {
    AnswerError::invalid("arguments", arguments, details)
}

/// The withheld variable that a failed program names.
fn missed_variable<'a>(workshop: &'a Workshop, run: &Run) -> Option<&'a str> {
    let printed = String::from_utf8_lossy(&run.output);
    let named = |text: &str| withheld::named_in(text, &workshop.withheld);
    named(&run.errors).or_else(|| named(&printed))
}

async fn forward(context: &Context, sign: Sign) {
    match sign {
        Sign::Progress { done, total, message } => {
            context.progress(done, total, message.as_deref()).await;
        }
        Sign::Log { level, logger, data } => {
            context.log_as(logger.as_deref(), level, data).await;
        }
    }
}
