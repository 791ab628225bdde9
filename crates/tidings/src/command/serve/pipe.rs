//! Detects that the reader of standard output has gone.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Waits until nobody can read standard output any more.
///
/// If that cannot be detected, as for a file, this waits for ever; a write fails instead.
pub(super) async fn reader_gone() {
    // A separate thread: the safe ways to watch this in the runtime make the output non-blocking,
    // also for other programs that share it.
    if !matches!(tokio::task::spawn_blocking(wait).await, Ok(true)) {
        std::future::pending::<()>().await;
    }
}

/// Waits until the reader has gone; false if that cannot be detected.
fn wait() -> bool {
    let output = std::io::stdout();
    // A hang-up is reported without asking for events.
    let mut watched = [PollFd::new(&output, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Ok(_) => return watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
