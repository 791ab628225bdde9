//! The size limit of an answer: models pay for what they read.

use serde::Serialize;

/// The bytes of a token, about, in most languages.
const BYTES: u64 = 4;
/// The minimum in tokens: room for one short item, twice.
pub(super) const LEAST: u64 = 1_000;
/// The default.
pub(super) const USUAL: u64 = 8_000;
/// The maximum.
pub(super) const MOST: u64 = 200_000;
/// Reserved for the frame of an answer.
const FRAME: usize = 500;

/// A size limit as JSON. An answer of a tool has two halves: a structure, and a text that is not
/// longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self::of_tokens(USUAL)
    }
}

impl Budget {
    pub(crate) fn of_tokens(tokens: u64) -> Self {
        Self(usize::try_from(tokens.clamp(LEAST, MOST) * BYTES).unwrap_or(usize::MAX))
    }

    pub(crate) fn bytes(self) -> usize {
        self.0
    }

    /// An equal part of it for each of several.
    pub(crate) fn shared(self, parts: usize) -> Self {
        Self((self.0 / parts.max(1)).max(2 * FRAME))
    }

    /// The rest of it after this many bytes.
    pub(crate) fn without(self, bytes: usize) -> Self {
        Self(self.0.saturating_sub(bytes).max(2 * FRAME))
    }

    /// Room for things that are added one by one.
    pub(crate) fn room(self) -> Room {
        Room { left: self.0 - FRAME }
    }
}

/// The rest of a budget.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
}

impl Room {
    /// Unlimited room.
    pub(crate) fn boundless() -> Self {
        Self { left: usize::MAX }
    }

    /// Takes the room of a thing as JSON; false if it does not fit.
    pub(crate) fn take(&mut self, thing: &impl Serialize) -> bool {
        self.take_of(self.left, thing)
    }

    /// The same for a thing that may take half of the rest.
    pub(crate) fn take_half(&mut self, thing: &impl Serialize) -> bool {
        self.take_of(self.left / 2, thing)
    }

    fn take_of(&mut self, most: usize, thing: &impl Serialize) -> bool {
        let length = serde_json::to_string(thing).map_or(usize::MAX, |text| text.len() + 1);
        let fits = length <= most;
        if fits {
            self.left -= length;
        }
        fits
    }
}

/// What did not fit, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) count: u64,
    pub(crate) how: String,
}

impl LeftOut {
    /// This many that were left out, if any.
    pub(crate) fn new(count: u64, how: impl FnOnce() -> String) -> Option<Self> {
        (count > 0).then(|| Self { count, how: how() })
    }

    /// The same as a line for the end of a text.
    pub(crate) fn line(left_out: Option<&Self>) -> String {
        left_out.map_or_else(String::new, |it| format!("\n{} more: {}\n", it.count, it.how))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_taken_until_nothing_does() {
        let mut room = Budget::of_tokens(0).shared(2).room();
        let things = std::iter::repeat_with(|| room.take(&"a".repeat(97)));
        assert_eq!(things.take_while(|taken| *taken).count(), 15);
        assert!(!room.take(&"b"));
        assert_eq!(Budget::default().bytes(), 32_000);
    }

    #[test]
    fn a_thing_that_is_too_long_takes_nothing() {
        let mut room = Budget::of_tokens(LEAST).shared(2).room();
        assert!(!room.take(&"a".repeat(3000)));
        assert!(room.take(&"a".repeat(1000)));
    }

    #[test]
    fn nothing_left_out_is_not_told() {
        assert_eq!(LeftOut::new(0, String::new), None);
        let left_out = LeftOut::new(2, || "ask again".to_owned());
        assert_eq!(LeftOut::line(left_out.as_ref()), "\n2 more: ask again\n");
    }
}
