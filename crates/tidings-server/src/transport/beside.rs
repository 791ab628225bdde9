//! Threads for large messages, beside those that serve everyone.
//!
//! A large message is weighed, parsed, carried out, answered and dropped here, on half of the
//! processors. A client that sends large messages delays only others that do.

use std::num::NonZero;
use std::sync::LazyLock;

use futures_util::FutureExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Longer messages are handled here.
const LARGE: usize = 64 << 10;

/// Never dropped: a runtime must not end inside another. `None` if the system has no threads left.
static THREADS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (processors / 2).max(1);
    let built = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("tidings-large")
        .enable_all()
        .build();
    built.inspect_err(|error| tracing::warn!(%error, "no threads for large messages")).ok()
});

/// Does the work for a message of this length: for a large one, beside the runtime. The work ends
/// when this is dropped.
pub(crate) async fn run<T: Send + 'static>(
    length: usize,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    if length <= LARGE {
        return work.await;
    }
    let Some(threads) = &*THREADS else { return work.await };
    let mut task = JoinSet::new();
    task.spawn_on(std::panic::AssertUnwindSafe(work).catch_unwind(), threads.handle());
    match task.join_next().await.expect("one task was spawned").expect("nobody cancels it") {
        Ok(done) => done,
        // As if it had panicked here.
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn thread_of(length: usize) -> std::thread::ThreadId {
        run(length, async { std::thread::current().id() }).await
    }

    #[tokio::test]
    async fn only_large_messages_have_threads_of_their_own() {
        let here = std::thread::current().id();
        assert_eq!(thread_of(LARGE).await, here);
        assert_ne!(thread_of(LARGE + 1).await, here);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_ends() {
        let (sender, dropped) = tokio::sync::oneshot::channel::<()>();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let work = run(LARGE + 1, async move {
            begins.send(()).unwrap();
            std::future::pending::<()>().await;
            drop(sender);
        });
        tokio::select! {
            () = work => unreachable!("it never ends"),
            begun = begun => begun.unwrap(),
        }
        // The sender went with the work.
        assert!(dropped.await.is_err());
    }
}
