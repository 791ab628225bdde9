//! The open elements, and the search for their ends.

use std::collections::HashMap;
use std::ops::Deref;

use super::build::Subject;
use super::element::Element;
use super::rich::is_void;

/// The maximum depth of elements. Invariant: it fits the counts of names.
const DEPTH: usize = 200;
/// How many kinds of names are distinguished.
const KINDS: usize = 64;

/// An open element.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) name: &'a str,
    pub(super) element: Element,
    /// The subject of the element, and of its children.
    pub(super) outer: Subject,
    pub(super) inner: Subject,
    /// The beginning of its text.
    pub(super) start: usize,
    /// How many prefixes were declared before it.
    pub(super) bindings: usize,
    /// Whether it has a base of its own.
    pub(super) has_base: bool,
    /// Whether its text is of interest.
    pub(super) wanted: bool,
}

/// The open elements, the innermost last.
#[derive(Debug)]
pub(super) struct Stack<'a> {
    frames: Vec<Frame<'a>>,
    /// The number of open elements of each kind of name, to recognise an end tag without a start.
    open: [u8; KINDS],
    /// The elements beyond the maximum depth: how many of each name, in lower case. Invariant:
    /// there are some only while the stack is full.
    deeper: HashMap<String, usize>,
}

impl Default for Stack<'_> {
    fn default() -> Self {
        Self { frames: Vec::new(), open: [0; KINDS], deeper: HashMap::new() }
    }
}

impl<'a> Deref for Stack<'a> {
    type Target = [Frame<'a>];

    fn deref(&self) -> &Self::Target {
        &self.frames
    }
}

impl<'a> Stack<'a> {
    pub(super) fn push(&mut self, frame: Frame<'a>) {
        self.open[kind(frame.name)] += 1;
        self.frames.push(frame);
    }

    pub(super) fn pop(&mut self) -> Option<Frame<'a>> {
        let frame = self.frames.pop()?;
        self.open[kind(frame.name)] -= 1;
        if !self.deeper.is_empty() {
            // Not only emptied: that would take time for everything it ever held.
            self.deeper = HashMap::new();
        }
        Some(frame)
    }

    /// The innermost element of a name, ignoring case.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        if self.open[kind(name)] == 0 {
            return None;
        }
        let exact = self.iter().rposition(|frame| frame.name == name);
        exact.or_else(|| self.iter().rposition(|it| it.name.eq_ignore_ascii_case(name)))
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= DEPTH
    }

    /// Whether an element beyond the maximum depth is open.
    pub(super) fn is_deeper(&self) -> bool {
        !self.deeper.is_empty()
    }

    /// An element begins beyond the maximum depth; it is counted, so that its end is recognised.
    pub(super) fn begin_deeper(&mut self, name: &str, is_empty: bool) {
        let name = name.to_ascii_lowercase();
        if !is_empty && !is_void(&name) {
            *self.deeper.entry(name).or_default() += 1;
        }
    }

    /// The end of an element beyond the maximum depth, if one of its name was counted.
    pub(super) fn end_deeper(&mut self, name: &str) -> bool {
        if self.deeper.is_empty() {
            return false;
        }
        let name = name.to_ascii_lowercase();
        let Some(count) = self.deeper.get_mut(&name) else { return false };
        *count -= 1;
        if *count == 0 {
            self.deeper.remove(&name);
        }
        true
    }
}

/// The kind of a name; names that differ only in case are of one kind.
fn kind(name: &str) -> usize {
    let letter = |byte: Option<&u8>| usize::from(byte.map_or(0, |byte| byte | 0x20));
    let bytes = name.as_bytes();
    (bytes.len() + 5 * letter(bytes.first()) + 11 * letter(bytes.last())) % KINDS
}
