//! `tidings call`: calls a tool with typed arguments and prints its result.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Map, json};
use tidings_mirror::cache::ToolOutcome;
use tidings_mirror::events::Progress;
use tidings_mirror::model::{JsonObject, Tool};
use tidings_mirror::{Event, Events, Item, List, Mirror, RequestOptions};

use crate::args;
use crate::present::content;
use crate::present::event::{log_words, progress_words};
use crate::present::text::{cut, harmless};
use crate::report::{Hint, Usage};
use crate::schema::Fields;
use crate::session::{self, Session};
use crate::values::{self, Pair, nearest};

/// Columns of the progress bar.
const BAR: usize = 24;

pub(crate) async fn run(args: &args::Call) -> Result<()> {
    let (place, rest) = args.connection.place(&args.words)?;
    let Some((name, words)) = rest.split_first() else {
        return Err(Usage::new("TOOL is missing").hint("`tidings tools` lists the tools").into());
    };
    let pairs = values::pairs(words)?;
    let base = args.args.as_deref().map(values::object).transpose()?.unwrap_or_default();
    let save = args.save.as_deref();
    let options = args.meta.options();
    let call = ToolCall { name, base, pairs: &pairs, save, logs: Logs::Hidden, options };
    session::once(&args.connection, place, &[List::Tools], async |session| call.make(session).await)
        .await
}

/// One call of a tool.
pub(crate) struct ToolCall<'a> {
    pub(crate) name: &'a str,
    /// Arguments given as JSON.
    pub(crate) base: Map<String, serde_json::Value>,
    /// Arguments given as words.
    pub(crate) pairs: &'a [Pair<'a>],
    /// The folder for images, audio and embedded resources.
    pub(crate) save: Option<&'a Path>,
    pub(crate) logs: Logs,
    /// Options of the request.
    pub(crate) options: RequestOptions,
}

/// Whether the server's log messages are printed on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logs {
    Hidden,
    Shown,
}

impl ToolCall<'_> {
    /// Calls the tool, prints its result, and fails if the tool did.
    pub(crate) async fn make(self, session: &Session) -> Result<()> {
        let name = self.name;
        let tool = find(session, name)?;
        let fields = Fields::of(&tool.input_schema);
        let arguments = values::arguments(&fields, self.base, self.pairs)?;
        if self.logs == Logs::Shown {
            ask_for_logs(session).await?;
        }
        let mirror = session.mirror.with(self.options);
        let outcome = follow(&mirror, name, arguments, session.output.json, self.logs).await?;
        let result = match &outcome.result {
            Ok(result) => result,
            Err(reason) => return Err(anyhow!("{reason}").context(format!("calling `{name}`"))),
        };
        // Content is saved with JSON output too.
        let parts = (result, outcome.odd.as_slice());
        let words = content::result(name, parts, self.save, &session.output)?;
        if session.output.json {
            let took = u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX);
            let result = outcome.raw();
            session.output.object(&json!({ "tool": name, "took_ms": took, "result": result }))?;
        } else {
            session.output.raw(&words)?;
        }
        if outcome.is_success() {
            Ok(())
        } else {
            Err(anyhow!("the tool `{name}` reported a failure"))
        }
    }
}

fn find(session: &Session, name: &str) -> Result<Arc<Item<Tool>>> {
    session.loaded(List::Tools)?;
    let tools = session.mirror.tools();
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Ok(tool.clone());
    }
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`{}` lists the tools", session.place.line("tools", &[])),
    };
    Err(anyhow!("the server has no tool `{name}`").context(Hint(hint)))
}

#[expect(deprecated, reason = "tools log until the protocol no longer has it")]
async fn ask_for_logs(session: &Session) -> Result<()> {
    let level = tidings_mirror::model::LoggingLevel::Debug;
    session.mirror.set_log_level(level).await.context("asking for the log")
}

/// Calls the tool, and shows its progress.
async fn follow(
    mirror: &Mirror,
    name: &str,
    arguments: JsonObject,
    json: bool,
    logs: Logs,
) -> Result<Arc<ToolOutcome>> {
    let mut events = mirror.events();
    let mut bar = Bar::new(json, logs);
    let outcome = {
        let call = mirror.call_tool(name, arguments);
        tokio::pin!(call);
        loop {
            tokio::select! {
                outcome = &mut call => break outcome,
                event = next(&mut events) => bar.hear(&event),
            }
        }
    };
    while let Some(event) = events.try_next() {
        bar.hear(&event);
    }
    bar.clear();
    outcome.with_context(|| format!("calling `{name}`"))
}

/// The next event; waits for ever after the last.
async fn next(events: &mut Events) -> Event {
    match events.next().await {
        Some(event) => event,
        None => std::future::pending().await,
    }
}

/// A progress bar on standard error, if that is a terminal; warnings in any case.
struct Bar {
    shown: bool,
    drawn: bool,
    logs: Logs,
}

impl Bar {
    fn new(json: bool, logs: Logs) -> Self {
        Self { shown: !json && std::io::stderr().is_terminal(), drawn: false, logs }
    }

    fn hear(&mut self, event: &Event) {
        match event {
            Event::Progress(progress) if self.shown => {
                let line = bar(progress);
                self.write(&format!("\r\u{1b}[K{}", cut(&line, 79)));
                self.drawn = true;
            }
            Event::Warning(warning) => {
                self.clear();
                self.write(&format!("warning: {}\n", harmless(&warning.to_string())));
            }
            Event::Log { level, logger, data } if self.logs == Logs::Shown => {
                self.clear();
                let words = log_words(level, logger.as_deref(), data);
                self.write(&format!("log: {words}\n"));
            }
            _ => {}
        }
    }

    fn clear(&mut self) {
        if self.drawn {
            self.write("\r\u{1b}[K");
            self.drawn = false;
        }
    }

    #[expect(clippy::unused_self, reason = "the bar is what writes")]
    fn write(&self, text: &str) {
        let mut stderr = std::io::stderr();
        drop(stderr.write_all(text.as_bytes()));
        drop(stderr.flush());
    }
}

fn bar(progress: &Progress) -> String {
    let words = progress_words(progress);
    let Some(total) = progress.total.filter(|total| *total > 0.0) else { return words };
    let share = (progress.progress / total).clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to BAR")]
    let full = (share * BAR as f64).round() as usize;
    format!("{}{} {:3.0} %  {words}", "█".repeat(full), "░".repeat(BAR - full), share * 100.0)
}
