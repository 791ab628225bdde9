//! `tidings watch`: follows a server, a line for each change, through restarts of the server.

mod exec;

use std::collections::BTreeSet;
use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;
use tidings_core::ListKinds;
use tidings_mirror::events::ConnectionState;
use tidings_mirror::{Backoff, Event, Events, List, SubscribeError};
use tokio::time::{Instant, sleep_until};

use crate::args;
use crate::command::watch::exec::Exec;
use crate::present::event::{Story, is_change, list_name, milliseconds, object, warning_object};
use crate::present::text::{count, harmless};
use crate::report::Hint;
use crate::session::{self, Interrupted, Session};

/// Follows until it is told to end.
pub(crate) async fn run(args: &args::Watch) -> Result<()> {
    let (place, uris) = args.connection.place(&args.words)?;
    let lists = args.lists || uris.is_empty();
    let mut config = session::config(&args.connection);
    config.reconnect = Some(Backoff::default());
    if !lists {
        config.lists.clear();
        config.list_changed = ListKinds::EMPTY;
    }
    let followed = session::with(&args.connection, place, config, async |session, events| {
        let watcher = Watcher {
            session,
            lists,
            story: Story::new(session.output.paint),
            exec: args.exec.as_deref().map(Exec::new),
            until: args.until,
            changes: 0,
        };
        let end = args.duration.map(|duration| Instant::now() + duration);
        watcher.run(events, uris, end).await
    });
    match followed.await {
        Err(error) if error.is::<Interrupted>() => Ok(()),
        other => other,
    }
}

struct Watcher<'a> {
    session: &'a Session,
    /// Whether the lists are followed.
    lists: bool,
    story: Story,
    exec: Option<Exec>,
    until: Option<u64>,
    /// How many changes were told.
    changes: u64,
}

impl Watcher<'_> {
    async fn run(
        mut self,
        mut events: Events,
        uris: &[String],
        end: Option<Instant>,
    ) -> Result<()> {
        self.begin(&mut events)?;
        self.subscribe(uris).await?;
        while !self.is_done() {
            tokio::select! {
                event = events.next() => {
                    self.hear(&event.context("the connection has ended")?)?;
                }
                warning = Exec::ended(&mut self.exec) => self.warn_if(warning)?,
                () = wait(end) => break,
            }
        }
        // What was told is also done: a command that waits is still run.
        while self.exec.as_ref().is_some_and(Exec::is_busy) {
            let warning = Exec::ended(&mut self.exec).await;
            self.warn_if(warning)?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.until.is_some_and(|until| self.changes >= until)
    }

    /// Tells what happened while connecting. The first sight of a list is no change.
    fn begin(&mut self, events: &mut Events) -> Result<()> {
        let mut seen = BTreeSet::new();
        while let Some(event) = events.try_next() {
            let first = list_name(&event).is_some_and(|name| seen.insert(name));
            if !(first && is_change(&event)) {
                self.hear(&event)?;
            }
        }
        if self.lists && !self.session.output.json {
            let mirror = &self.session.mirror;
            let counts = [
                (mirror.tools().len(), List::Tools),
                (mirror.resources().len(), List::Resources),
                (mirror.templates().len(), List::Templates),
                (mirror.prompts().len(), List::Prompts),
            ];
            let words = counts.map(|(number, list)| {
                let many = list.as_str();
                count(number, &many[..many.len() - 1], many)
            });
            let line = self.story.say("watching", &words.join(", "), SystemTime::now());
            self.session.output.raw(&line)?;
        }
        Ok(())
    }

    /// Reads what is to be watched, so that there is something to compare with, and watches it.
    async fn subscribe(&mut self, uris: &[String]) -> Result<()> {
        if uris.is_empty() {
            return Ok(());
        }
        for uri in uris {
            if let Err(error) = self.session.mirror.read_resource(uri).await {
                // It may come later.
                self.warn(&format!("`{uri}` could not be read: {error}"))?;
            }
        }
        let wanted: Vec<_> = uris.iter().map(String::as_str).collect();
        let error = match self.session.mirror.subscribe(&wanted).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let some = match &error {
            SubscribeError::Refused { refused } => refused.len() < uris.len(),
            _ => false,
        };
        if some || self.lists {
            return self.warn(&error.to_string());
        }
        let hint = match &error {
            SubscribeError::NotOffered => Some("without a URI the lists are watched".to_owned()),
            SubscribeError::Refused { .. } => {
                let line = self.session.place.line("resources", &[]);
                Some(format!("`{line}` lists the resources there are"))
            }
            _ => None,
        };
        let error = anyhow::Error::new(error).context("nothing can be watched");
        Err(match hint {
            Some(hint) => error.context(Hint(hint)),
            None => error,
        })
    }

    fn hear(&mut self, event: &Event) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let now = SystemTime::now();
        let told = object(event, now);
        self.tell(event, told.as_ref(), now)?;
        if let Event::Connection(ConnectionState::Closed { reason }) = event {
            return Err(anyhow!("{}", harmless(reason)).context("the connection ended for good"));
        }
        if !is_change(event) {
            return Ok(());
        }
        self.changes += 1;
        let refusal = match (&mut self.exec, told) {
            (Some(exec), Some(told)) => exec.offer(told),
            _ => None,
        };
        self.warn_if(refusal)
    }

    fn tell(&mut self, event: &Event, told: Option<&Value>, now: SystemTime) -> Result<()> {
        let output = &self.session.output;
        if output.json {
            return told.map_or(Ok(()), |told| output.object(told));
        }
        match self.story.tell(event, now) {
            Some(line) => output.raw(&line),
            None => Ok(()),
        }
    }

    fn warn_if(&self, warning: Option<String>) -> Result<()> {
        warning.map_or(Ok(()), |warning| self.warn(&warning))
    }

    fn warn(&self, message: &str) -> Result<()> {
        let now = SystemTime::now();
        let output = &self.session.output;
        if output.json {
            let mut object = warning_object(message);
            object["at_ms"] = milliseconds(now).into();
            return output.object(&object);
        }
        output.raw(&self.story.say("warning", message, now))
    }
}

async fn wait(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}
