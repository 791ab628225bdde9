//! Connections of single clients: with `isolate`, each session has its own server for calls, prompts
//! and questions. It is started on first use, and ends when it is idle or with the session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_core::ListKinds;
use tidings_mirror::{Handlers, List, Mirror, Target};
use tidings_server::{AnswerError, Context, Session};
use tokio::time::Instant;

use crate::config::Config;
use crate::failure::Failures;
use crate::house::{reason, settings};

/// A room that was not used for so long ends.
const IDLE: Duration = Duration::from_mins(5);
/// Rooms of one upstream.
const MOST: usize = 256;

/// The connections of single clients.
pub(crate) struct Rooms {
    target: Target,
    settings: tidings_mirror::Config,
    failures: Failures,
    open: Mutex<HashMap<String, Room>>,
}

struct Room {
    mirror: Mirror,
    session: Option<Session>,
    used: Instant,
    /// Held by those who use it.
    guard: Arc<()>,
}

/// A room in use.
pub(crate) struct Guest {
    pub(crate) mirror: Mirror,
    _guard: Arc<()>,
}

impl Rooms {
    pub(crate) fn new(config: &Config, handlers: Handlers, failures: Failures) -> Self {
        let mut settings = settings(config, handlers);
        // Lists and watches are those of the shared connection. Over HTTP a server may want some
        // arguments of a tool in headers too, and the tool says which.
        settings.lists = match &config.target {
            Target::Http(_) => vec![List::Tools],
            _ => Vec::new(),
        };
        settings.list_changed = ListKinds::EMPTY;
        Self {
            target: failures.guarded(config.target.clone()),
            settings,
            failures,
            open: Mutex::default(),
        }
    }

    /// The room of a client, with a connection.
    pub(crate) async fn enter(&self, context: &Context) -> Result<Guest, AnswerError> {
        let guest = self.guest(context)?;
        let patience = self.settings.connect_timeout;
        match tokio::time::timeout(patience, guest.mirror.ready()).await {
            Ok(Ok(())) => Ok(guest),
            _ => Err(self.failures.down(&reason(&guest.mirror.connection()))),
        }
    }

    fn guest(&self, context: &Context) -> Result<Guest, AnswerError> {
        let caller = context.caller();
        let mut rooms = self.lock();
        if !rooms.contains_key(&caller) && rooms.len() >= MOST {
            return Err(self.failures.down("too many clients have a connection of their own"));
        }
        let room = rooms.entry(caller).or_insert_with(|| {
            let (mirror, _) = Mirror::supervise(self.target.clone(), self.settings.clone());
            let (session, guard) = (context.session(), Arc::new(()));
            Room { mirror, session, used: Instant::now(), guard }
        });
        room.used = Instant::now();
        Ok(Guest { mirror: room.mirror.clone(), _guard: room.guard.clone() })
    }

    /// Takes the rooms that nobody needs any more; they must be closed.
    pub(crate) fn leavers(&self) -> Vec<Mirror> {
        let now = Instant::now();
        let mut rooms = self.lock();
        for room in rooms.values_mut() {
            if Arc::strong_count(&room.guard) > 1 {
                room.used = now;
            }
        }
        let is_over = |room: &mut Room| {
            let is_left = room.session.as_ref().is_some_and(Session::is_over);
            is_left || now.duration_since(room.used) >= IDLE
        };
        rooms.extract_if(|_, room| is_over(room)).map(|(_, room)| room.mirror).collect()
    }

    /// All rooms, at the end.
    pub(crate) fn all(&self) -> Vec<Mirror> {
        self.lock().drain().map(|(_, room)| room.mirror).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Room>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
