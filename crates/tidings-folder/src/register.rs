//! Registrations that are programs: decide whether one may run, and run it.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::offer::{Patience, Program};
use crate::problem::{Problem, Setting};
use crate::script::{self, Ending};
use crate::stock::{REGISTER, Stock};
use crate::tree::Root;
use crate::workshop::Workshop;

/// Time limit of a registration.
const LIMIT: Duration = Duration::from_secs(10);

/// The executable that prints the registration, unless a file contains it.
pub(crate) fn executable(stock: &Stock) -> Option<PathBuf> {
    if stock.files().contains_key(Path::new(REGISTER)) {
        return None;
    }
    let beside = stock.files().range(PathBuf::from("server.d")..);
    beside
        .take_while(|(path, _)| path.starts_with("server.d"))
        .find(|(path, stat)| {
            let named = path.file_stem().is_some_and(|stem| stem == "register");
            named && stat.executable && path.components().count() == 2
        })
        .map(|(path, _)| path.clone())
}

/// The note to the operator if a registration may not be run.
pub(crate) fn unasked(file: &Path) -> Problem {
    let reason = "it is not run, so nothing it registers is offered";
    Problem::note(file, reason, "let it be run, if you trust it").for_want_of(Setting::Register)
}

/// Why a registration is not run: anybody who can write or replace it could run programs as our
/// user.
pub(crate) fn distrust(root: &Root, file: &Path) -> Option<Problem> {
    let ours = rustix::process::geteuid().as_raw();
    for place in file.ancestors() {
        let Ok(metadata) = root.absolute(place).symlink_metadata() else { continue };
        let whose = if metadata.uid() != ours && metadata.uid() != 0 {
            "belongs to somebody else"
        } else if metadata.permissions().mode() & 0o022 != 0 {
            "can be written by others"
        } else {
            continue;
        };
        let place = if place == Path::new("") {
            "the folder".to_owned()
        } else {
            format!("`{}`", place.display())
        };
        let reason = format!("it is not run: {place} {whose}");
        return Some(Problem::error(file, reason, "make it yours, and `chmod go-w` it"));
    }
    None
}

/// Runs the registration and returns its output.
pub(crate) async fn print(workshop: &Workshop, file: &Path) -> Result<String, Problem> {
    let advice = "correct it; its last valid version is used";
    let output_limit = usize::try_from(workshop.limits.description).unwrap_or(usize::MAX);
    let program = Program { path: workshop.root.join(file), interpreter: Vec::new() };
    let mut job = workshop.job(&program, &workshop.root, Patience::fixed(LIMIT));
    job.output_limit = output_limit;
    let run = script::run(job, |_| std::future::ready(()))
        .await
        .map_err(|error| Problem::error(file, error.to_string(), advice))?;
    let last = run.errors.lines().next_back().unwrap_or_default();
    let reason = match run.ending {
        Ending::Code(0) => {
            return String::from_utf8(run.output)
                .map_err(|_| Problem::error(file, "its output is not UTF-8", advice));
        }
        Ending::Code(code) => format!("it ended with code {code}: {last}"),
        Ending::Signal(signal) => format!("it was ended by signal {signal}: {last}"),
        Ending::TimedOut(_) => format!("it took longer than {} s", LIMIT.as_secs()),
        Ending::TooMuchOutput => format!("it printed more than {output_limit} bytes"),
    };
    Err(Problem::error(file, reason, advice))
}
