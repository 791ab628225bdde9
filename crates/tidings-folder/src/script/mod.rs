//! Runs one program and says how it went; knows nothing of the protocol.

mod attendant;
mod clock;
mod group;
mod keeper;
mod lines;
mod outbox;
mod sign;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use self::attendant::Attendant;
use self::group::Group;
use self::outbox::Outbox;
use crate::offer::{Patience, Program};

pub(crate) use self::clock::Reason;
pub(crate) use self::group::SpawnError;
pub use self::keeper::{Keeper, keep};
pub(crate) use self::sign::Sign;

/// How long a program may take to end once it is asked to, and a client to hear the rest of what
/// it said.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A program, and all it gets.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// All of it: nothing is inherited.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What it can read on its standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) patience: Patience,
    /// Bytes it may print.
    pub(crate) output_limit: usize,
    /// See [`GRACE`].
    pub(crate) grace: Duration,
    /// A link to `/dev/stderr`, which leads to the standard error of the program while it runs, also
    /// for commands of it that have another.
    pub(crate) stream: Option<PathBuf>,
    /// Who ends it if we are killed.
    pub(crate) keeper: Option<Keeper>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// We ended it: its time was up.
    TimedOut(Reason),
    /// We ended it: it printed more than it may.
    TooMuchOutput,
}

/// What is left of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ending: Ending,
    /// What it printed; all of it, unless we ended it.
    pub(crate) output: Vec<u8>,
    /// The end of what it wrote on standard error, without the signs.
    pub(crate) errors: String,
}

/// Runs a program to its end. Signs are told in order and before this returns; while telling takes
/// its time the program is read on. When this returns nothing of the program's process group is
/// left, and dropping the future ends the group at once.
///
/// # Errors
///
/// The program could not be started.
pub(crate) async fn run<F: Future<Output = ()>>(
    job: Job,
    tell: impl FnMut(Sign) -> F,
) -> Result<Run, SpawnError> {
    let (group, pipes) = Group::start(&job).await?;
    let (outbox, grace) = (Outbox::default(), job.grace);
    let attending = async {
        let run = Attendant::new(group, pipes, job, &outbox).run().await;
        outbox.close();
        run
    };
    let (run, ()) = tokio::join!(attending, outbox.tell(grace, tell));
    Ok(run)
}
