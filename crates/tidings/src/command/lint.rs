//! `tidings lint`: reports the problems of a folder, and repairs some.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;
use tidings_core::ListKinds;
use tidings_folder::{Folder, Problem, Severity};
use tidings_mirror::List;

use crate::args;
use crate::folder::advice::advised;
use crate::folder::inside::{self, Register};
use crate::folder::{existing, mend};
use crate::present::Output;
use crate::present::text::{count, harmless, one_line};
use crate::report::Hint;
use crate::session;

pub(crate) async fn run(args: &args::Lint) -> Result<()> {
    let root = existing(&args.folder)?;
    let output = Output::new(args.json);
    let register = Register::when(args.allow_register);
    let mut folder = open(&root, &args.folder, register).await?;
    if args.fix && mend_all(&root, &folder.problems(), &output)? {
        folder = open(&root, &args.folder, register).await?;
    }
    let problems = folder.problems();
    for problem in &problems {
        if args.json {
            output.object(&object(problem, false))?;
        } else {
            output.raw(&words(problem, &output))?;
        }
    }
    if problems.iter().all(|problem| problem.severity == Severity::Note) {
        let offered = offered(folder, &args.folder, output).await?;
        let summary = format!("no problems: {offered}");
        return conclude(&summary, &output);
    }
    verdict(args, &problems, &output)
}

async fn open(root: &Path, shown: &Path, register: Register) -> Result<Folder> {
    let mut config = inside::config(root, &[], register);
    // Checking a folder runs only programs that were allowed.
    config.checks = false;
    let opened = Folder::open(config).await;
    opened.with_context(|| format!("reading `{}`", shown.display()))
}

/// Repairs what can be repaired; returns whether anything was.
fn mend_all(root: &Path, problems: &[Problem], output: &Output) -> Result<bool> {
    let mut any = false;
    for problem in problems {
        match mend::mend(root, problem) {
            Ok(None) => {}
            Ok(Some(_)) if output.json => output.object(&object(problem, true))?,
            Ok(Some(what)) => {
                let file = one_line(&problem.file.to_string_lossy());
                output.raw(&format!("{file}: repaired: {what}"))?;
            }
            // Problems that cannot be repaired are reported below.
            Err(error) => output.remark(&format!("warning: {error:#}")),
        }
        any |= problem.fix.is_some();
    }
    Ok(any)
}

fn verdict(args: &args::Lint, problems: &[Problem], output: &Output) -> Result<()> {
    let number = |severity| problems.iter().filter(|it| it.severity == severity).count();
    let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
    let summary = [(errors, "error", "errors"), (warnings, "warning", "warnings")];
    let summary = summary.into_iter().filter(|(number, ..)| *number > 0);
    let summary: Vec<_> = summary.map(|(number, one, many)| count(number, one, many)).collect();
    let summary = summary.join(", ");
    if errors == 0 && !args.strict {
        return conclude(&summary, output);
    }
    let error = anyhow!("`{}` has {summary}", args.folder.display());
    let fixable = problems.iter().filter(|problem| problem.fix.is_some()).count();
    if fixable == 0 || args.fix {
        return Err(error);
    }
    Err(error.context(Hint(format!("`--fix` repairs {fixable} of them"))))
}

/// The last line, which is not data.
fn conclude(summary: &str, output: &Output) -> Result<()> {
    if !output.json {
        return output.raw(summary);
    }
    output.remark(summary);
    Ok(())
}

fn object(problem: &Problem, mended: bool) -> serde_json::Value {
    let problem = advised(problem);
    json!({
        "file": problem.file.to_string_lossy(), "line": problem.line,
        "severity": severity(&problem), "reason": problem.reason, "advice": problem.advice,
        "fixable": problem.fix.is_some(), "mended": mended,
    })
}

fn severity(problem: &Problem) -> &'static str {
    match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// One line in the format of compilers, then the advice.
fn words(problem: &Problem, output: &Output) -> String {
    let problem = advised(problem);
    let file = one_line(&problem.file.to_string_lossy());
    let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
    let severity = match problem.severity {
        Severity::Error => output.paint.red("error"),
        Severity::Warning => output.paint.yellow("warning"),
        Severity::Note => "note".to_owned(),
    };
    let mut text = format!("{file}{line}: {severity}: {}\n", one_line(&problem.reason));
    if !problem.advice.is_empty() {
        let advice = harmless(&problem.advice).replace('\n', "\n    ");
        _ = writeln!(text, "  hint: {advice}");
    }
    text
}

/// The items that a client would see.
async fn offered(folder: Folder, shown: &Path, output: Output) -> Result<String> {
    let mut config = session::defaults();
    config.list_changed = ListKinds::EMPTY;
    inside::serve(folder, inside::place(shown), config, output, async |session, _| {
        let mirror = &session.mirror;
        for list in List::ALL {
            session.loaded(list)?;
        }
        let mut counts = vec![
            count(mirror.tools().len(), "tool", "tools"),
            count(mirror.prompts().len(), "prompt", "prompts"),
            count(mirror.resources().len(), "resource", "resources"),
        ];
        let templates = mirror.templates().len();
        if templates > 0 {
            counts.push(count(templates, "template", "templates"));
        }
        Ok(counts.join(", "))
    })
    .await
}
