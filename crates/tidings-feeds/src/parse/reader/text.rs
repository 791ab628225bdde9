//! The reader's handling of text between tags.

use std::borrow::Cow;

use super::Reader;
use crate::parse::Problem;
use crate::parse::clean::escape;
use crate::parse::entity::bare;

/// How long one text may be.
const LONGEST: usize = 4 << 20;

impl Reader<'_, '_> {
    /// Whether the text of the innermost element may still grow.
    pub(super) fn has_room(&mut self) -> bool {
        let start = match self.rich {
            Some((at, _)) => self.stack.get(at).map_or(0, |frame| frame.start),
            None => self.stack.last().map_or(0, |frame| frame.start),
        };
        let has_room = self.text.len() - start < LONGEST;
        if !has_room {
            self.problems.add(Problem::LongText);
        }
        has_room
    }

    fn wants_text(&mut self) -> bool {
        // Of elements too deep in a text, the words are kept.
        let is_wanted = self.rich.is_some()
            || !self.stack.is_deeper() && self.stack.last().is_some_and(|frame| frame.wanted);
        is_wanted && self.has_room()
    }

    /// Whether references without a semicolon are resolved: not in addresses, nor in HTML, which
    /// has its own rules for them.
    fn takes_bare(&self) -> bool {
        match self.rich {
            Some((_, rich)) => rich.takes_bare(),
            None => self.stack.last().is_some_and(|frame| frame.element.is_name()),
        }
    }

    /// Text outside sections, in which an ampersand may begin a reference.
    pub(super) fn push_words(&mut self, text: &str) {
        if text.starts_with('&') && self.takes_bare() {
            self.push(&bare::resolved(text));
        } else {
            self.push(text);
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        if !self.wants_text() {
            return;
        }
        let text = if text.len() > LONGEST {
            self.problems.add(Problem::LongText);
            &text[..text.floor_char_boundary(LONGEST)]
        } else {
            text
        };
        if self.rich.is_some_and(|(_, rich)| rich.escapes) {
            self.text.push_str(&escape(text));
        } else {
            self.text.push_str(text);
        }
    }

    pub(super) fn reference(&mut self, name: &str) {
        if !self.wants_text() {
            return;
        }
        let start = self.text.len();
        // An unknown reference may have a semicolon of a later text: `&copy a; b`.
        let is_bare = !self.entities.resolve(name, &mut self.text) && self.takes_bare();
        let escapes = self.rich.is_some_and(|(_, rich)| rich.escapes);
        if is_bare || escapes {
            let text = self.text.split_off(start);
            let text = if is_bare { bare::resolved(&text) } else { Cow::Borrowed(text.as_str()) };
            self.text.push_str(&if escapes { escape(&text) } else { text });
        }
    }
}
