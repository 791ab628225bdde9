//! Standard output as a pipe: notices that its reader is gone.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Waits until nobody can read standard output any more.
///
/// Where that cannot be seen, as for a file, this waits for ever; there a write fails instead.
pub(super) async fn reader_gone() {
    // A thread of its own: the safe ways to watch this in the runtime make writes fail that would
    // have to wait, also those of other programs that have the same output.
    if !matches!(tokio::task::spawn_blocking(wait).await, Ok(true)) {
        std::future::pending::<()>().await;
    }
}

/// Waits until the reader is gone; false if that cannot be seen.
fn wait() -> bool {
    let output = std::io::stdout();
    // That the other side is gone is told without asking for it.
    let mut watched = [PollFd::new(&output, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Ok(_) => return watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
