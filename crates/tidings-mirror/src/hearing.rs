//! Signals and notices of a connection, passed on to the machine and the events.

// The level of a log message is deprecated and still sent.
#![expect(deprecated, reason = "servers of every revision are listened to")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::ServerNotification;
use serde_json::Value;
use tidings_core::ListKind;

use crate::connect::Signal;
use crate::engine::Engine;
use crate::events::{Event, Progress, Warning};
use crate::machine::Input;

/// Handles a signal.
impl Engine {
    pub(crate) fn signal(&self, epoch: u64, signal: Signal) {
        if self.epoch.load(Ordering::SeqCst) != epoch {
            return;
        }
        match signal {
            Signal::Notice(notice, number) => self.notice(*notice, number),
            Signal::StreamLost => self.step(Input::StreamLost),
            Signal::StreamBack => self.step(Input::StreamBack),
            Signal::NoStream(reason) => self.no_stream(reason),
            Signal::Ended(reason) => {
                // The first reason is the right one.
                self.ended.send_if_modified(|ended| {
                    let is_news = ended.0 != epoch;
                    if is_news {
                        *ended = (epoch, reason);
                    }
                    is_news
                });
            }
            Signal::Garbage(line) => self.warn(Warning::Garbage { line }),
            Signal::Stderr(line) => self.events.emit(Event::Stderr { line }),
            Signal::Reauthorized => self.step(Input::Reauthorized),
            // The code that connects handles it.
            Signal::LateModern => {}
        }
    }

    fn notice(&self, notice: ServerNotification, number: Option<u64>) {
        match notice {
            ServerNotification::ToolListChangedNotification(_) => {
                self.step(Input::ListNotice(ListKind::Tools, number));
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.step(Input::ListNotice(ListKind::Resources, number));
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.step(Input::ListNotice(ListKind::Prompts, number));
            }
            ServerNotification::ResourceUpdatedNotification(notice) => {
                self.step(Input::Updated(notice.params.uri.into(), number));
            }
            ServerNotification::LoggingMessageNotification(notice) => {
                let params = notice.params;
                let (level, logger) = (params.level, params.logger);
                let data = bounded(params.data);
                self.events.emit(Event::Log { level, logger, data });
            }
            ServerNotification::ProgressNotification(notice) => {
                let params = notice.params;
                if self.link().is_ok_and(|link| link.progressed(&params)) {
                    return;
                }
                let request =
                    self.link().ok().and_then(|link| link.request_of(&params.progress_token));
                let (progress, total, message) = (params.progress, params.total, params.message);
                self.events.emit(Event::Progress(Progress { request, progress, total, message }));
            }
            ServerNotification::CustomNotification(notice) => {
                self.step(Input::Unknown(notice.method.into()));
            }
            _ => {}
        }
    }

    pub(crate) fn no_stream(&self, reason: Arc<str>) {
        self.step(Input::NoStream);
        self.warn(Warning::NoStream { reason });
    }

    pub(crate) fn warn(&self, warning: Warning) {
        self.events.emit(Event::Warning(warning));
    }
}

/// A log message waits for every receiver of events, so a huge one is cut.
fn bounded(data: Value) -> Value {
    const MOST: usize = 64 << 10;
    let text = match &data {
        Value::Null | Value::Bool(_) | Value::Number(_) => return data,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().map(|(place, _)| place).find(|place| *place >= MOST) {
        Some(end) => Value::String(format!("{}…", &text[..end])),
        None => data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_log_message_is_cut_and_others_are_left_alone() {
        let small = serde_json::json!({ "a": [1, 2, 3] });
        assert_eq!(bounded(small.clone()), small);
        let cut = bounded(Value::String("ä".repeat(1 << 20)));
        assert!(cut.as_str().unwrap().len() < 70_000);
    }
}
