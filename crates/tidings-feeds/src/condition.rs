//! How a feed does: one word for it, shared by the schedule, the store and people.

use serde::{Deserialize, Serialize};

/// How a feed does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Condition {
    /// It was fetched the last time.
    #[serde(alias = "fine")]
    Good,
    /// It was never asked.
    New,
    /// It could not be fetched; it is tried again, less and less often.
    Failing,
    /// It failed so often that it is tried once a day.
    #[serde(alias = "open")]
    Resting,
    /// Somebody does not want it to be asked.
    Paused,
    /// Its server says that it will not come back.
    Gone,
    /// It is of an earlier configuration. What is kept of it stays, for when it comes back.
    Unserved,
}

impl Condition {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 7] = [
        Self::Good,
        Self::New,
        Self::Failing,
        Self::Resting,
        Self::Paused,
        Self::Gone,
        Self::Unserved,
    ];

    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::New => "new",
            Self::Failing => "failing",
            Self::Resting => "resting",
            Self::Paused => "paused",
            Self::Gone => "gone",
            Self::Unserved => "unserved",
        }
    }

    /// Whether it is asked by itself, sooner or later.
    #[must_use]
    pub fn is_asked(self) -> bool {
        !matches!(self, Self::Paused | Self::Gone | Self::Unserved)
    }

    /// Whether it is not as it should be.
    #[must_use]
    pub fn is_trouble(self) -> bool {
        matches!(self, Self::Failing | Self::Resting | Self::Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_as_its_word_and_earlier_words_are_read() {
        for condition in Condition::ALL {
            let word = serde_json::to_value(condition).unwrap();
            assert_eq!(word, condition.word());
            assert_eq!(serde_json::from_value::<Condition>(word).unwrap(), condition);
        }
        for (word, condition) in [("fine", Condition::Good), ("open", Condition::Resting)] {
            assert_eq!(serde_json::from_value::<Condition>(word.into()).unwrap(), condition);
        }
    }
}
