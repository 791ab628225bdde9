//! Running one program to its end; independent of the protocol.

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

/// How long a program may take to exit after it was asked to, and a client to read the remaining
/// signs.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A program with everything it gets.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// The whole environment: nothing is inherited.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) patience: Patience,
    /// Bytes it may print.
    pub(crate) output_limit: usize,
    /// See [`GRACE`].
    pub(crate) grace: Duration,
    /// A link to `/dev/stderr` that leads to the program's standard error while it runs, even for
    /// child processes with another standard error.
    pub(crate) stream: Option<PathBuf>,
    /// Ends the program if this process is killed.
    pub(crate) keeper: Option<Keeper>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It exited with this code.
    Code(i32),
    /// It was ended by a signal that was not ours.
    Signal(i32),
    /// We ended it: its time was up.
    TimedOut(Reason),
    /// We ended it: it printed too much.
    TooMuchOutput,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) ending: Ending,
    /// Its standard output; incomplete if we ended it.
    pub(crate) output: Vec<u8>,
    /// The end of its standard error, without signs.
    pub(crate) errors: String,
}

/// Runs a program to its end. Signs are delivered in order, and before this returns; the program's
/// output is read meanwhile. When this returns, the program's process group is gone. Dropping the
/// future ends the group at once.
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
