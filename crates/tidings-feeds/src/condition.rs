//! The condition of a feed: one word, shared by the schedule, the store and people.

use serde::{Deserialize, Serialize};

/// The condition of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Condition {
    /// The last fetch succeeded.
    #[serde(alias = "fine")]
    Good,
    /// It was never fetched.
    New,
    /// The last fetch failed; it is retried, less and less often.
    Failing,
    /// It failed so often that it is retried once a day.
    #[serde(alias = "open")]
    Resting,
    /// It is paused.
    Paused,
    /// Its server reported that it is gone for ever.
    Gone,
    /// It belongs to an earlier configuration. Its stored items stay, in case it returns.
    Unserved,
}

impl Condition {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Good,
        Self::New,
        Self::Failing,
        Self::Resting,
        Self::Paused,
        Self::Gone,
        Self::Unserved,
    ];

    /// Its word.
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

    /// Whether it is fetched by itself at some time.
    #[must_use]
    pub fn is_asked(self) -> bool {
        !matches!(self, Self::Paused | Self::Gone | Self::Unserved)
    }

    /// Whether it needs attention.
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
