//! Rounds of input, driven by the user of this library instead of handlers.

use rmcp::model::{InputRequests, InputRequiredResult, InputResponses};
use serde_json::Value;

/// The outcome of one round of a request.
#[derive(Clone, Debug)]
pub enum Once<T> {
    /// The result.
    Done(T),
    /// The server asks questions first.
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

    /// The same with a converted result.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Once<U> {
        match self {
            Self::Done(result) => Once::Done(change(result)),
            Self::Asked(round) => Once::Asked(round),
        }
    }
}

/// The questions of a modern server during a request.
///
/// Answer them, and repeat the request with the [`answers`](Self::answers). A server may ask again;
/// the caller decides when to stop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// The questions by their keys. If there are none, the server wants the same request again.
    pub questions: InputRequests,
    /// The server's state, to be returned unchanged.
    state: Option<String>,
}

impl Round {
    pub(crate) fn new(asked: InputRequiredResult) -> Self {
        let questions = asked.input_requests.unwrap_or_default();
        Self { questions, state: asked.request_state }
    }

    /// Answers to this round, still empty. They carry the server's state.
    #[must_use]
    pub fn answers(&self) -> Answers {
        Answers { responses: InputResponses::new(), state: self.state.clone() }
    }
}

/// Answers to the questions of a [`Round`]; empty for the first round of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    responses: InputResponses,
    state: Option<String>,
}

impl Answers {
    /// For the first round, which has no questions.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Answers the question with this key: the result of its method, as JSON. That is an
    /// [`ElicitResult`](crate::model::ElicitResult), a
    /// [`CreateMessageResult`](crate::model::CreateMessageResult) or a
    /// [`ListRootsResult`](crate::model::ListRootsResult).
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, answer: impl Into<Value>) -> Self {
        self.responses.insert(key.into(), answer.into());
        self
    }

    /// The parameters for the request.
    pub(crate) fn into_parts(self) -> (Option<InputResponses>, Option<String>) {
        ((!self.responses.is_empty()).then_some(self.responses), self.state)
    }
}

/// Who answers the server's questions during a request.
pub(crate) enum Drive {
    /// The handlers, for as many rounds as needed.
    Handlers,
    /// The caller: these are the answers to the last round.
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
