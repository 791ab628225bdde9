//! `tidings watch`: prints a line for each change of a server, across its restarts.

mod exec;
mod reads;

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;
use tidings_core::ListKinds;
use tidings_mirror::events::ConnectionState;
use tidings_mirror::{Backoff, Event, Events, List, SubscribeError};
use tidings_store::date::Moment;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::args;
use crate::command::watch::exec::Exec;
use crate::command::watch::reads::Reads;
use crate::present::event::{Story, is_change, list_name, object, warning_object};
use crate::present::text::{count, harmless};
use crate::report::Hint;
use crate::session::{self, Interrupted, Session};

/// Time to wait for the first reads, which later content is compared with. Slower reads continue in
/// the background.
const HEADWAY: Duration = Duration::from_secs(1);
/// Events that may wait for each watched resource: its first content, and what follows.
const EVENTS_EACH: usize = 4;

/// Watches until its end: a number of changes, a time, Ctrl-C or a closed pipe.
pub(crate) async fn run(args: &args::Watch) -> Result<()> {
    let (place, uris) = args.connection.place(&args.words)?;
    let lists = args.lists || uris.is_empty();
    let mut config = session::config(&args.connection);
    config.reconnect = Some(Backoff::default());
    config.event_capacity += EVENTS_EACH * uris.len();
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
        let end = args.duration.and_then(|duration| Instant::now().checked_add(duration));
        watcher.run(events, uris, end).await
    });
    match followed.await {
        Err(error) if error.is::<Interrupted>() => Ok(()),
        other => other,
    }
}

struct Watcher<'a> {
    session: &'a Session,
    /// Whether the lists are watched.
    lists: bool,
    story: Story,
    exec: Option<Exec>,
    until: Option<u64>,
    /// Changes printed so far.
    changes: u64,
}

impl Watcher<'_> {
    async fn run(mut self, events: Events, uris: &[String], end: Option<Instant>) -> Result<()> {
        tokio::select! {
            followed = self.follow(events, uris) => followed?,
            () = wait(end) => {}
        }
        // A command that waits is still run for every printed change.
        while self.exec.as_ref().is_some_and(Exec::is_busy) {
            let warning = Exec::ended(&mut self.exec).await;
            self.warn_if(warning).await?;
        }
        Ok(())
    }

    async fn follow(&mut self, mut events: Events, uris: &[String]) -> Result<()> {
        self.begin(&mut events).await?;
        let mut unread: HashSet<&str> = uris.iter().map(String::as_str).collect();
        let mut reads = Reads::new(self.session.mirror.clone(), uris);
        let mut subscribing = self.subscribe(uris, &reads);
        while !self.is_done() {
            tokio::select! {
                event = events.next() => {
                    let event = event.context("the connection has ended")?;
                    self.hear(&event).await?;
                    // If the resource could not be read before, the next change can be shown now.
                    if let Event::ResourceUpdated { uri, .. } = &event
                        && self.session.mirror.is_subscribed(uri)
                    {
                        reads.add(uri);
                    }
                }
                (uri, read) = reads.next() => {
                    let is_first = unread.remove(uri.as_str());
                    if let (Err(error), true) = (read, is_first) {
                        // It may appear later.
                        self.warn(&format!("`{uri}` could not be read: {error}")).await?;
                    }
                }
                Some(subscribed) = subscribing.join_next() => {
                    self.subscribed(subscribed.context("subscribing")?, uris).await?;
                }
                warning = Exec::ended(&mut self.exec) => self.warn_if(warning).await?,
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.until.is_some_and(|until| self.changes >= until)
    }

    /// Prints the events of connecting. The first load of a list is not a change.
    async fn begin(&mut self, events: &mut Events) -> Result<()> {
        let mut seen = BTreeSet::new();
        while let Some(event) = events.try_next() {
            let first = list_name(&event).is_some_and(|name| seen.insert(name));
            if !(first && is_change(&event)) {
                self.hear(&event).await?;
            }
        }
        if self.lists && !self.announces_lists() {
            self.warn("the server does not announce changes of its lists").await?;
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
            let line = self.story.say("watching", &words.join(", "), Moment::now());
            self.session.output.send(&line).await?;
        }
        Ok(())
    }

    fn announces_lists(&self) -> bool {
        let Some(server) = self.session.mirror.server() else { return true };
        let capabilities = &server.capabilities;
        let tools = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        let resources = capabilities.resources.as_ref().and_then(|it| it.list_changed);
        let prompts = capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed);
        [tools, resources, prompts].contains(&Some(true))
    }

    /// Reads the resources, then watches them, so that there is content to compare with.
    fn subscribe(&self, uris: &[String], reads: &Reads) -> JoinSet<Result<(), SubscribeError>> {
        let mut subscribing = JoinSet::new();
        if !uris.is_empty() {
            let (mirror, read) = (self.session.mirror.clone(), reads.done());
            let uris = uris.to_vec();
            subscribing.spawn(async move {
                // Slower reads continue in the background.
                let _ = timeout(HEADWAY, read.notified()).await;
                mirror.subscribe(uris).await
            });
        }
        subscribing
    }

    /// Reports resources that are not watched, and fails if none is.
    async fn subscribed(
        &self,
        subscribed: Result<(), SubscribeError>,
        uris: &[String],
    ) -> Result<()> {
        let Err(error) = subscribed else { return Ok(()) };
        let some = match &error {
            SubscribeError::Refused { refused } => refused.len() < uris.len(),
            _ => false,
        };
        if some || self.lists {
            return self.warn(&error.to_string()).await;
        }
        let hint = match &error {
            SubscribeError::NotOffered => Some("without a URI, the lists are watched".to_owned()),
            SubscribeError::Refused { .. } => {
                let line = self.session.place.line("resources", &[]);
                Some(format!("`{line}` lists the resources"))
            }
            _ => None,
        };
        let error = anyhow::Error::new(error).context("nothing can be watched");
        Err(match hint {
            Some(hint) => error.context(Hint(hint)),
            None => error,
        })
    }

    async fn hear(&mut self, event: &Event) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let now = Moment::now();
        let told = object(event, now);
        self.tell(event, told.as_ref(), now).await?;
        if let Event::Connection(ConnectionState::Closed { reason }) = event {
            return Err(
                anyhow!("{}", harmless(reason)).context("the connection ended and is not retried")
            );
        }
        if !is_change(event) {
            return Ok(());
        }
        self.changes += 1;
        let refusal = match (&mut self.exec, told) {
            (Some(exec), Some(told)) => exec.offer(told),
            _ => None,
        };
        self.warn_if(refusal).await
    }

    async fn tell(&mut self, event: &Event, told: Option<&Value>, now: Moment) -> Result<()> {
        let output = &self.session.output;
        let line = if output.json {
            told.map(|told| format!("{told}\n"))
        } else {
            self.story.tell(event, now)
        };
        match line {
            Some(line) => output.send(&line).await,
            None => Ok(()),
        }
    }

    async fn warn_if(&self, warning: Option<String>) -> Result<()> {
        match warning {
            Some(warning) => self.warn(&warning).await,
            None => Ok(()),
        }
    }

    async fn warn(&self, message: &str) -> Result<()> {
        let now = Moment::now();
        let output = &self.session.output;
        if output.json {
            let mut object = warning_object(message);
            object["at_ms"] = now.millis().into();
            return output.send(&format!("{object}\n")).await;
        }
        output.send(&self.story.say("warning", &harmless(message), now)).await
    }
}

async fn wait(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => std::future::pending().await,
    }
}
