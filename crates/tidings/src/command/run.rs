//! `tidings run`: runs one tool of a folder as a server would, and prints its result.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_core::ListKinds;
use tidings_folder::{Folder, Problem, Severity};
use tidings_mirror::{List, RequestOptions};

use crate::args;
use crate::command::call::{Logs, ToolCall};
use crate::folder::advice::advised;
use crate::folder::existing;
use crate::folder::inside::{self, Register};
use crate::present::Output;
use crate::session;
use crate::values;

/// Time to wait for a result beyond the tool's own limit.
const GRACE: Duration = Duration::from_mins(1);

pub(crate) async fn run(args: &args::Run) -> Result<()> {
    let root = existing(&args.folder)?;
    let pairs = values::pairs(&args.words)?;
    let base = args.args.as_deref().map(values::object).transpose()?.unwrap_or_default();
    let output = Output::new(args.json);
    let config = inside::config(&root, &args.env, Register::when(args.allow_register));
    let mut client = session::defaults();
    client.lists = vec![List::Tools];
    client.list_changed = ListKinds::EMPTY;
    client.request_timeout = args.timeout.unwrap_or(config.limits.timeout_at_most + GRACE);
    let opened = Folder::open(config).await;
    let folder = opened.with_context(|| format!("reading `{}`", args.folder.display()))?;
    let problems = folder.problems();
    let place = inside::place(&args.folder);
    let save = args.save.as_deref();
    let options = RequestOptions::new();
    let call = ToolCall { name: &args.tool, base, pairs: &pairs, save, logs: Logs::Shown, options };
    inside::serve(folder, place, client, output, async |session, _| {
        let offered = session.mirror.tools().iter().any(|tool| tool.name == args.tool);
        for problem in &problems {
            // A tool that is not served may be broken anywhere, so all problems are reported.
            let hides = !offered && problem.severity == Severity::Error;
            if hides || concerns(problem, &args.tool) {
                session.output.remark(&format!("warning: {}", advised(problem)));
            }
        }
        call.make(session).await.map_err(|error| session::with_last_words(error, &[]))
    })
    .await
}

/// Whether a problem is in the files of this tool.
fn concerns(problem: &Problem, tool: &str) -> bool {
    let Ok(rest) = problem.file.strip_prefix("tools") else { return false };
    let first = rest.components().next().and_then(|part| Path::new(part.as_os_str()).to_str());
    first.is_some_and(|name| name == tool || name.split('.').next() == Some(tool))
}
