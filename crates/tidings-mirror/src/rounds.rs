//! Rounds of input, driven by the user of this library in place of handlers.

use rmcp::model::{InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;

/// What one round of a request came to.
#[derive(Clone, Debug)]
pub enum Once<T> {
    /// The result.
    Done(T),
    /// The server wants to know something first.
    Asked(Round),
}

impl<T> Once<T> {
    /// The result, if there is one.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(result) => Some(result),
            Self::Asked(_) => None,
        }
    }

    /// The same with another result.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Once<U> {
        match self {
            Self::Done(result) => Once::Done(change(result)),
            Self::Asked(round) => Once::Asked(round),
        }
    }
}

/// What a server of the modern era wants to know before it goes on with a request.
///
/// Answer the questions, and make the same request again with the [`answers`](Self::answers). A
/// server may ask again and again; whoever drives the rounds decides when that is enough.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// The questions by their keys. There may be none: then the server wants the same request again.
    pub questions: InputRequests,
    /// What the server wants back as it is.
    state: Option<String>,
}

impl Round {
    pub(crate) fn new(asked: InputRequiredResult) -> Self {
        let questions = asked.input_requests.unwrap_or_default();
        Self { questions, state: asked.request_state }
    }

    /// Answers to this round, none of them given yet. They carry what the server wants back.
    #[must_use]
    pub fn answers(&self) -> Answers {
        Answers { responses: InputResponses::new(), state: self.state.clone() }
    }
}

/// Answers to the questions of a [`Round`]; without any for the first round of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    responses: InputResponses,
    state: Option<String>,
}

impl Answers {
    /// For the first round: nothing was asked yet.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Answers the question with this key: the result that its method has, as JSON. That is an
    /// [`ElicitResult`](crate::model::ElicitResult), a
    /// [`CreateMessageResult`](crate::model::CreateMessageResult) or a
    /// [`ListRootsResult`](crate::model::ListRootsResult).
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, answer: impl Into<Value>) -> Self {
        self.responses.insert(key.into(), answer.into());
        self
    }

    /// What goes into the request.
    pub(crate) fn into_parts(self) -> (Option<InputResponses>, Option<String>) {
        ((!self.responses.is_empty()).then_some(self.responses), self.state)
    }
}

/// Who answers what a server asks in the course of a request.
pub(crate) enum Drive {
    /// The handlers, for as many rounds as it takes.
    Handlers,
    /// The caller: these are the answers to the round before.
    Caller(Answers),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_carry_the_state_of_the_server() {
        let asked = InputRequiredResult::new(None, Some("sealed".to_owned()));
        let round = Round::new(asked);
        assert!(round.questions.is_empty());
        let answers = round.answers().with("who", json!({ "action": "decline" }));
        let (responses, state) = answers.into_parts();
        assert_eq!(responses.unwrap()["who"]["action"], "decline");
        assert_eq!(state.as_deref(), Some("sealed"));
        assert_eq!(Answers::none().into_parts(), (None, None));
    }
}
