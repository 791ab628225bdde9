//! The inbox: what servers ask of the user, until somebody answers or the asker goes away.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};
use tidings_mirror::{Asking, During};
use tokio::sync::oneshot;

use crate::console::form;
use crate::console::log::millis;
use crate::console::revisions::Revisions;
use crate::console::secret::masked;
use crate::console::tree::preview;

/// The questions that are kept; open ones are never dropped for others.
const KEPT: usize = 100;
/// The most open questions; a server that asks more is refused.
const OPEN: usize = 1_000;
/// The key of the inbox.
pub(crate) const KEY: &str = "inbox";

/// The questions of all servers.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    revisions: Arc<Revisions>,
}

#[derive(Debug, Default)]
struct State {
    questions: VecDeque<Asked>,
    last: u64,
    /// The answers that a server gets at once to questions of a kind, if they fit the question.
    rules: BTreeMap<(u64, Kind), Value>,
}

/// One question.
#[derive(Debug)]
struct Asked {
    number: u64,
    server: u64,
    kind: Kind,
    params: Value,
    during: Option<During>,
    at: SystemTime,
    fate: Fate,
}

/// The kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Elicitation,
    Sampling,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
        }
    }
}

#[derive(Debug)]
enum Fate {
    Waits(oneshot::Sender<Value>),
    Answered(String),
    /// The asker went away before there was an answer.
    Late,
}

/// Why an answer was not sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("there is no such question")]
    Unknown,
    #[error("the question is not open any more")]
    Closed,
    #[error("the answer is not valid: {0}")]
    Invalid(String),
}

impl Inbox {
    pub(crate) fn new(revisions: Arc<Revisions>) -> Self {
        Self { state: Mutex::default(), revisions }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the user, and waits for the answer. Dropping this closes the question.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        server: u64,
        kind: Kind,
        asked: Value,
        asking: Asking,
    ) -> Result<Value, String> {
        let (sender, receiver) = oneshot::channel();
        let (number, rule) = {
            let mut state = self.state();
            let is_open = |entry: &&Asked| matches!(entry.fate, Fate::Waits(_));
            if state.questions.iter().filter(is_open).count() >= OPEN {
                return Err("too many questions are open".to_owned());
            }
            state.last += 1;
            let (number, at, fate) = (state.last, SystemTime::now(), Fate::Waits(sender));
            let during = asking.during;
            state.questions.push_back(Asked {
                number,
                server,
                kind,
                params: asked,
                during,
                at,
                fate,
            });
            let is_over = |entry: &Asked| !matches!(entry.fate, Fate::Waits(_));
            while state.questions.len() > KEPT
                && let Some(place) = state.questions.iter().position(is_over)
            {
                state.questions.remove(place);
            }
            (number, state.rules.get(&(server, kind)).cloned())
        };
        self.revisions.touch(&[KEY, "servers"]);
        let _closing = Closing { inbox: self.clone(), number };
        // What does not fit the question waits for somebody like any other.
        if rule.is_some_and(|rule| self.answer(number, &rule).is_ok()) {
            self.note_rule(number);
        }
        receiver.await.map_err(|_| "the user did not answer".to_owned())
    }

    /// Answers a question. `content` is what the protocol expects for its kind.
    pub(crate) fn answer(&self, number: u64, answer: &Value) -> Result<(), AnswerError> {
        let mut state = self.state();
        let entry = state.questions.iter_mut().find(|entry| entry.number == number);
        let entry = entry.ok_or(AnswerError::Unknown)?;
        if !matches!(entry.fate, Fate::Waits(_)) {
            return Err(AnswerError::Closed);
        }
        let (sent, words) = entry.answer(answer)?;
        let kind = (entry.server, entry.kind);
        let fate = std::mem::replace(&mut entry.fate, Fate::Answered(words));
        if let Fate::Waits(sender) = fate
            && sender.send(sent).is_err()
        {
            entry.fate = Fate::Late;
        }
        if answer["always"] == true {
            let mut rule = answer.clone();
            rule["always"] = false.into();
            state.rules.insert(kind, rule);
        }
        drop(state);
        self.revisions.touch(&[KEY, "servers"]);
        Ok(())
    }

    /// Says that a question was answered by a rule.
    fn note_rule(&self, number: u64) {
        let mut state = self.state();
        let entry = state.questions.iter_mut().find(|entry| entry.number == number);
        if let Some(Fate::Answered(words)) = entry.map(|entry| &mut entry.fate) {
            *words = format!("{words} by rule");
        }
    }

    /// Ends a rule. Returns whether there was one.
    pub(crate) fn end_rule(&self, server: u64, kind: &str) -> bool {
        let mut state = self.state();
        let before = state.rules.len();
        state.rules.retain(|(of, it), _| *of != server || it.name() != kind);
        let is_ended = state.rules.len() < before;
        drop(state);
        self.revisions.touch(&[KEY]);
        is_ended
    }

    /// Ends the rules of a server that is removed.
    pub(crate) fn forget(&self, server: u64) {
        self.state().rules.retain(|(of, _), _| *of != server);
        self.revisions.touch(&[KEY]);
    }

    fn close(&self, number: u64) {
        let mut state = self.state();
        let entry = state.questions.iter_mut().find(|entry| entry.number == number);
        if let Some(entry) = entry.filter(|entry| matches!(entry.fate, Fate::Waits(_))) {
            entry.fate = Fate::Late;
            drop(state);
            self.revisions.touch(&[KEY, "servers"]);
        }
    }

    /// The number of open questions of a server.
    pub(crate) fn open(&self, server: u64) -> usize {
        let state = self.state();
        let is_open =
            |entry: &&Asked| entry.server == server && matches!(entry.fate, Fate::Waits(_));
        state.questions.iter().filter(is_open).count()
    }

    /// All questions, the newest first.
    pub(crate) fn json(&self) -> Value {
        let state = self.state();
        let rule = |((server, kind), rule): (&(u64, Kind), &Value)| {
            let content = rule.get("content").map(|content| preview(&masked(content)));
            json!({ "server": server, "kind": kind.name(), "content": content,
                "action": rule["action"].as_str().unwrap_or("accept") })
        };
        json!({
            "questions": state.questions.iter().rev().map(Asked::json).collect::<Vec<_>>(),
            "rules": state.rules.iter().map(rule).collect::<Vec<_>>(),
        })
    }
}

/// Closes a question when nobody waits for its answer any more.
struct Closing {
    inbox: Arc<Inbox>,
    number: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.inbox.close(self.number);
    }
}

impl Asked {
    /// The answer as the protocol has it, and in words.
    fn answer(&self, answer: &Value) -> Result<(Value, String), AnswerError> {
        let action = answer["action"].as_str().unwrap_or("accept");
        match (self.kind, action) {
            (Kind::Elicitation, "accept") => {
                let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
                let problems = form::problems(&self.params["requestedSchema"], &content);
                if let Some(problem) = problems[0]["text"].as_str() {
                    return Err(AnswerError::Invalid(problem.to_owned()));
                }
                Ok((json!({ "action": "accept", "content": content }), "accepted".to_owned()))
            }
            (Kind::Elicitation, "decline" | "cancel") => Ok((
                json!({ "action": action }),
                format!("{action}d").replace("cancel", "cancelle"),
            )),
            (Kind::Sampling, "accept") => {
                let text = answer["content"]["text"].as_str().unwrap_or_default();
                let model = answer["content"]["model"].as_str().unwrap_or("a person");
                let message = json!({
                    "role": "assistant", "content": { "type": "text", "text": text },
                    "model": model, "stopReason": "endTurn",
                });
                Ok((message, "answered".to_owned()))
            }
            // An error tells the server that there is no answer.
            (Kind::Sampling, "decline" | "cancel") => Ok((Value::Null, "declined".to_owned())),
            _ => Err(AnswerError::Invalid(format!("`{action}` is not an action"))),
        }
    }

    fn json(&self) -> Value {
        let fields = self.params["requestedSchema"].as_object().map(form::fields);
        let (fate, words) = match &self.fate {
            Fate::Waits(_) => ("waits", None),
            Fate::Answered(words) => ("answered", Some(words)),
            Fate::Late => ("late", None),
        };
        json!({
            "n": self.number, "server": self.server, "kind": self.kind.name(), "at": millis(self.at),
            "during": self.during, "fate": fate, "words": words, "fields": fields,
            "message": self.params["message"], "url": self.params["url"],
            "messages": self.params["messages"], "system": self.params["systemPrompt"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings_mirror::Question;

    fn asking() -> Asking {
        Asking::new(Question::Input("q".into()), None)
    }

    fn asked() -> Value {
        let schema = json!({ "type": "object", "required": ["port"],
            "properties": { "port": { "type": "integer" } } });
        json!({ "message": "Which port?", "requestedSchema": schema })
    }

    #[tokio::test]
    async fn a_question_waits_for_a_valid_answer() {
        let inbox = Arc::new(Inbox::new(Arc::default()));
        let question = inbox.ask(1, Kind::Elicitation, asked(), asking());
        let answering = async {
            assert_eq!(inbox.open(1), 1);
            let wrong = inbox.answer(1, &json!({ "content": { "port": "x" } }));
            assert!(matches!(wrong, Err(AnswerError::Invalid(_))), "{wrong:?}");
            inbox.answer(1, &json!({ "content": { "port": 2 } })).unwrap();
        };
        let (answer, ()) = tokio::join!(question, answering);
        assert_eq!(answer.unwrap(), json!({ "action": "accept", "content": { "port": 2 } }));
        assert_eq!(inbox.json()["questions"][0]["words"], "accepted");
        assert_eq!(inbox.answer(1, &json!({})), Err(AnswerError::Closed));
        assert_eq!(inbox.answer(9, &json!({})), Err(AnswerError::Unknown));
    }

    #[tokio::test]
    async fn a_rule_answers_what_fits_and_nothing_else() {
        let inbox = Arc::new(Inbox::new(Arc::default()));
        let answer = json!({ "content": { "port": 2 }, "always": true });
        let first = inbox.ask(1, Kind::Elicitation, asked(), asking());
        let (first, answered) = tokio::join!(first, async { inbox.answer(1, &answer) });
        assert!(first.is_ok() && answered.is_ok());
        let again = inbox.ask(1, Kind::Elicitation, asked(), asking()).await;
        assert_eq!(again.unwrap()["content"]["port"], 2);
        assert_eq!(inbox.json()["questions"][0]["words"], "accepted by rule");
        assert_eq!(inbox.json()["rules"][0]["content"], "{port: 2}");
        // Another question, server or kind waits for somebody.
        let mut other = asked();
        other["requestedSchema"]["required"] = json!(["port", "deck"]);
        for (server, kind, asked) in [
            (1, Kind::Elicitation, other),
            (2, Kind::Elicitation, asked()),
            (1, Kind::Sampling, json!({})),
        ] {
            let soon = std::time::Duration::from_millis(1);
            let waits = tokio::time::timeout(soon, inbox.ask(server, kind, asked, asking())).await;
            assert!(waits.is_err(), "{server} {kind:?}");
        }
        assert!(inbox.end_rule(1, "elicitation") && !inbox.end_rule(1, "elicitation"));
    }

    #[tokio::test]
    async fn a_question_whose_asker_is_gone_is_kept_as_late() {
        let inbox = Arc::new(Inbox::new(Arc::default()));
        let ended = tokio::time::timeout(
            std::time::Duration::from_millis(1),
            inbox.ask(1, Kind::Sampling, json!({}), asking()),
        );
        assert!(ended.await.is_err());
        assert_eq!((inbox.open(1), &inbox.json()["questions"][0]["fate"]), (0, &"late".into()));
    }
}
