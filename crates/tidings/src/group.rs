//! Process groups of programs we start, so that their children end with them.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

/// The process group of a program that leads it. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group of a program that was started with `process_group(0)`.
    pub(crate) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Whether a process of the group still runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    /// Asks its processes to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Lets what is left of the group run.
    pub(crate) fn release(mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
