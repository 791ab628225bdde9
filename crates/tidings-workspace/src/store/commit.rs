//! Group commit: writers share one transaction and one sync.
//!
//! Writers queue their work. If nobody is writing, the writer that comes takes the queue,
//! commits it in one transaction and wakes the others. Work that fails is rolled back alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tidings_store::date::Moment;

use crate::change::{Change, Event};
use crate::config::Role;
use crate::store::{Blobs, Store, apply, event, schema};
use crate::{WorkspaceError, WorkspaceLimits};

/// The largest batch: enough to share a sync, few enough that the first writer does not wait long.
const BATCH: usize = 256;

/// The queue of writers, and the one connection that writes.
pub(super) struct WriteQueue {
    queue: Mutex<PendingWork>,
    /// Notified when a batch is done.
    turn: Condvar,
    writer: Mutex<Connection>,
}

#[derive(Default)]
struct PendingWork {
    waiting: Vec<Arc<dyn QueuedWork>>,
    /// Whether a batch is being committed.
    is_taken: bool,
}

/// What work can use while it runs.
pub(super) struct Ledger<'a> {
    pub(super) connection: &'a Connection,
    pub(super) blobs: &'a Blobs,
    pub(super) limits: &'a WorkspaceLimits,
    now: Moment,
    events: Vec<u64>,
}

impl Ledger<'_> {
    /// Logs an event and applies it; returns its number.
    pub(super) fn record(&mut self, actor: &str, change: Change) -> Result<u64, WorkspaceError> {
        let number = event::append(self.connection, self.now, actor, &change)?;
        let event = Event { number, time: self.now, actor: actor.to_owned(), change };
        apply::apply(self.connection, self.blobs, &event)?;
        self.events.push(number);
        Ok(number)
    }
}

/// Work in the queue, with any result.
trait QueuedWork: Send + Sync {
    /// Runs the work.
    fn run(&self, ledger: &mut Ledger<'_>) -> Result<(), WorkspaceError>;
    /// Stores an error, because the work was rolled back or never run.
    fn fail(&self, error: WorkspaceError);
    /// Marks the result as final: the work is durable, or has failed.
    fn settle(&self);
}

type Task<T> = Box<dyn FnOnce(&mut Ledger<'_>) -> Result<T, WorkspaceError> + Send>;

struct QueuedTask<T> {
    task: Mutex<Option<Task<T>>>,
    result: Mutex<Option<Result<T, WorkspaceError>>>,
    is_settled: AtomicBool,
}

impl<T: Send> QueuedWork for QueuedTask<T> {
    fn run(&self, ledger: &mut Ledger<'_>) -> Result<(), WorkspaceError> {
        let task = lock(&self.task).take().ok_or(WorkspaceError::Interrupted)?;
        let result = task(ledger);
        let done = result.as_ref().map(drop).map_err(WorkspaceError::clone);
        *lock(&self.result) = Some(result);
        done
    }

    fn fail(&self, error: WorkspaceError) {
        let mut result = lock(&self.result);
        // The work's own refusal matters more than the failure of the batch.
        if !matches!(&*result, Some(Err(_))) {
            *result = Some(Err(error));
        }
    }

    fn settle(&self) {
        self.is_settled.store(true, Ordering::Release);
    }
}

impl WriteQueue {
    pub(super) fn new(writer: Connection) -> Self {
        Self { queue: Mutex::default(), turn: Condvar::new(), writer: Mutex::new(writer) }
    }
}

impl Store {
    /// Runs work in a transaction: all of it is durable when this returns, or nothing is written.
    pub(super) fn write<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Ledger<'_>) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let task: Task<T> = Box::new(task);
        let (task, result) = (Mutex::new(Some(task)), Mutex::new(None));
        let queued = Arc::new(QueuedTask { task, result, is_settled: AtomicBool::new(false) });
        let mut queue = lock(&self.write_queue.queue);
        queue.waiting.push(queued.clone());
        while !queued.is_settled.load(Ordering::Acquire) {
            if queue.is_taken {
                queue = self.write_queue.turn.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_taken = true;
            let size = queue.waiting.len().min(BATCH);
            let items = queue.waiting.drain(..size).collect();
            drop(queue);
            let batch = Batch { write_queue: &self.write_queue, items, is_done: false };
            self.do_all(&lock(&self.write_queue.writer), batch);
            queue = lock(&self.write_queue.queue);
        }
        drop(queue);
        let result = lock(&queued.result).take();
        let result = result.unwrap_or(Err(WorkspaceError::Interrupted));
        result.map_err(|error| schema::damaged(&self.file, error))
    }

    /// Runs work on the writing connection that is not a change of the workspace.
    #[cfg(test)]
    pub(super) fn exclusively<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        work(&lock(&self.write_queue.writer))
    }

    fn do_all(&self, writer: &Connection, mut batch: Batch<'_>) {
        match self.try_all(writer, &batch.items) {
            Ok(Some(last)) => self.reached(last),
            Ok(None) => {}
            Err(error) => {
                for work in &batch.items {
                    work.fail(error.clone());
                }
            }
        }
        batch.is_done = true;
    }

    /// Runs a batch in one transaction; returns the number of its last event, if there is one.
    fn try_all(
        &self,
        writer: &Connection,
        batch: &[Arc<dyn QueuedWork>],
    ) -> Result<Option<u64>, WorkspaceError> {
        let transaction = OpenTransaction::begin(writer)?;
        let mut ledger = Ledger {
            connection: writer,
            blobs: &self.blobs,
            limits: &self.config.limits,
            now: Moment::now(),
            events: Vec::new(),
        };
        for work in batch {
            let before = ledger.events.len();
            writer.prepare_cached("SAVEPOINT work")?.execute([])?;
            if let Err(error) = work.run(&mut ledger) {
                if writer.is_autocommit() {
                    // The database rolled back the whole transaction, for example because the disk
                    // is full.
                    return Err(error);
                }
                writer.prepare_cached("ROLLBACK TO work")?.execute([])?;
                ledger.events.truncate(before);
            }
            writer.prepare_cached("RELEASE work")?.execute([])?;
        }
        let last = ledger.events.last().copied();
        // Only the server knows how many events to keep.
        if let Some(last) = last.filter(|_| self.config.role == Role::Server) {
            event::drop_old(writer, last, self.config.events_kept, ledger.events.len())?;
        }
        transaction.commit()?;
        Ok(last)
    }
}

/// Work that is committed together. Dropping it settles every item, whatever happened.
struct Batch<'a> {
    write_queue: &'a WriteQueue,
    items: Vec<Arc<dyn QueuedWork>>,
    is_done: bool,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.write_queue.queue);
        for work in &self.items {
            if !self.is_done {
                // An item panicked; the transaction is rolled back.
                work.fail(WorkspaceError::Interrupted);
            }
            work.settle();
        }
        queue.is_taken = false;
        drop(queue);
        self.write_queue.turn.notify_all();
    }
}

/// A transaction that is rolled back unless it is committed.
struct OpenTransaction<'a>(&'a Connection);

impl<'a> OpenTransaction<'a> {
    fn begin(connection: &'a Connection) -> Result<Self, WorkspaceError> {
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> Result<(), WorkspaceError> {
        self.0.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            drop(self.0.execute_batch("ROLLBACK"));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic leaves half done is rolled back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
