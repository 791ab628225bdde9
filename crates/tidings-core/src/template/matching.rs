//! Finds the values with which a template expands to a URI.
//! This is a backtracking search, as in a regular expression engine. It is linear because no step
//! is tried twice at the same place. Between two uses of one variable that shortcut would be wrong,
//! so the number of attempts is limited there.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::template::decode::{self, Alphabet};
use crate::template::expand::Operator;
use crate::template::program::{Program, Step};
use crate::uri::ResourceUri;

/// The limit of attempts between two uses of one variable, in steps and compared bytes.
///
/// It is enough for any template with two such variables on a URI of ordinary length, and takes a
/// few milliseconds.
const MAX_ATTEMPTS: usize = 1 << 18;

impl Program {
    pub(super) fn matches(
        &self,
        uri: &str,
        names: &[Box<str>],
    ) -> Option<BTreeMap<String, String>> {
        if uri.len() > ResourceUri::MAX_LENGTH {
            return None;
        }
        let text = decode::to_ascii(uri)?;
        let bound = Search::new(self, names, text.as_bytes()).run()?;
        let values = names.iter().zip(bound).filter_map(|(name, written)| {
            Some((name.to_string(), written?.decode(text.as_bytes())))
        });
        Some(values.collect())
    }
}

/// The place of a value in the text, and its encoding.
#[derive(Clone, Debug)]
struct EncodedValue {
    range: Range<usize>,
    alphabet: Alphabet,
}

impl EncodedValue {
    fn decode(&self, text: &[u8]) -> String {
        self.alphabet.decode(&text[self.range.clone()])
    }
}

/// A step to try or to undo.
enum Task {
    /// The step at this place.
    Try { step: usize, at: usize },
    /// The value may end here or continue.
    Extend(Value),
    /// The value ends here.
    Bind(Value),
    /// More parameters of the step, without those seen.
    Parameters { step: usize, at: usize, seen: VariableSet },
    /// The variable has no value again.
    Unbind { variable: usize },
}

/// A value that is being matched.
#[derive(Clone, Copy)]
struct Value {
    step: usize,
    start: usize,
    end: usize,
    /// For a parameter: its index in the step, and the parameters before it.
    parameter: Option<(usize, VariableSet)>,
}

/// A set of indices into the variables of one expression.
#[derive(Clone, Copy)]
struct VariableSet(u64);

const _: () = assert!(crate::Template::MAX_VARIABLES <= u64::BITS as usize);

struct Search<'a> {
    program: &'a Program,
    names: &'a [Box<str>],
    text: &'a [u8],
    /// The next step is at the end, so that the latest choice is revised first.
    tasks: Vec<Task>,
    /// For each variable, its value under the choices made so far.
    bound: Vec<Option<EncodedValue>>,
    tried: Tried,
    attempts: usize,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, names: &'a [Box<str>], text: &'a [u8]) -> Self {
        Self {
            program,
            names,
            text,
            tasks: vec![Task::Try { step: 0, at: 0 }],
            bound: vec![None; names.len()],
            tried: Tried::new(2 * program.steps.len(), text.len() + 1),
            attempts: 0,
        }
    }

    fn run(mut self) -> Option<Vec<Option<EncodedValue>>> {
        while let Some(task) = self.tasks.pop() {
            if self.attempts > MAX_ATTEMPTS {
                return None;
            }
            match task {
                Task::Try { step, at } => {
                    if matches!(self.program.steps[step], Step::End) && at == self.text.len() {
                        return Some(self.bound);
                    }
                    self.try_step(step, at);
                }
                Task::Extend(value) => self.extend(value),
                Task::Bind(value) => self.bind(value),
                Task::Parameters { step, at, seen } => self.try_parameters(step, at, seen),
                Task::Unbind { variable } => self.bound[variable] = None,
            }
        }
        None
    }

    fn try_step(&mut self, step: usize, at: usize) {
        if self.program.depends_on_past[step] {
            self.attempts += 1;
        } else if !self.tried.insert(2 * step, at) {
            return;
        }
        match &self.program.steps[step] {
            Step::Literal(expected) => {
                if decode::starts_with(&self.text[at..], expected.as_bytes()) {
                    self.tasks.push(Task::Try { step: step + 1, at: at + expected.len() });
                }
            }
            Step::Value { alphabet, extent, .. } => {
                let end = if extent.may_be_empty {
                    Some(at)
                } else {
                    alphabet.character_end(self.text, at)
                };
                let value = end.map(|end| Value { step, start: at, end, parameter: None });
                self.tasks.extend(value.map(Task::Extend));
            }
            Step::Maybe { otherwise } => {
                self.tasks.push(Task::Try { step: *otherwise, at });
                self.tasks.push(Task::Try { step: step + 1, at });
            }
            Step::Jump { to } => self.tasks.push(Task::Try { step: *to, at }),
            Step::Parameters { .. } => {
                self.tasks.push(Task::Parameters { step, at, seen: VariableSet(0) });
            }
            Step::End => {}
        }
    }

    fn extend(&mut self, value: Value) {
        let (variable, alphabet, is_lazy) = self.describe(value);
        if self.program.depends_on_past[value.step] || self.program.is_repeated[variable] {
            self.attempts += 1;
        } else if value.parameter.is_none() && !self.tried.insert(2 * value.step + 1, value.end) {
            // Parameters are not looked up, because the rest depends on which were seen. They need
            // not be: where a list starts, its text can be divided in one way only.
            return;
        }
        let longer = alphabet.character_end(self.text, value.end);
        let longer = longer.map(|end| Task::Extend(Value { end, ..value }));
        if is_lazy {
            self.tasks.extend(longer);
            self.tasks.push(Task::Bind(value));
        } else {
            self.tasks.push(Task::Bind(value));
            self.tasks.extend(longer);
        }
    }

    fn bind(&mut self, value: Value) {
        let (variable, alphabet, _) = self.describe(value);
        let written = EncodedValue { range: value.start..value.end, alphabet };
        if let Some(earlier) = &self.bound[variable] {
            self.attempts += written.range.len() + earlier.range.len();
            if written.decode(self.text) != earlier.decode(self.text) {
                return;
            }
        } else {
            self.bound[variable] = Some(written);
            self.tasks.push(Task::Unbind { variable });
        }
        let at = value.end;
        self.tasks.push(match value.parameter {
            Some((index, VariableSet(seen))) => {
                Task::Parameters { step: value.step, at, seen: VariableSet(seen | 1 << index) }
            }
            None => Task::Try { step: value.step + 1, at },
        });
    }

    fn try_parameters(&mut self, step: usize, at: usize, seen: VariableSet) {
        self.tasks.push(Task::Try { step: step + 1, at });
        let Step::Parameters { operator, variables } = &self.program.steps[step] else { return };
        let separator = if seen.0 == 0 { operator.first() } else { operator.separator() };
        let Some(rest) = self.text[at..].strip_prefix(separator.as_bytes()) else { return };
        let is_seen = |index: usize| seen.0 & 1 << index != 0;
        for (index, variable) in variables.iter().enumerate() {
            // Of several unseen parameters with one name, the first stands for all.
            let is_same = |other: usize| !is_seen(other) && variables[other] == *variable;
            let name = self.names[*variable].as_bytes();
            if is_seen(index) || (0..index).any(is_same) || !rest.starts_with(name) {
                continue;
            }
            let end = at + separator.len() + name.len();
            let value = |start| Value { step, start, end: start, parameter: Some((index, seen)) };
            if *operator == Operator::Matrix {
                self.tasks.push(Task::Bind(value(end)));
            }
            if self.text.get(end) == Some(&b'=') {
                self.tasks.push(Task::Extend(value(end + 1)));
            }
        }
    }

    /// The variable of a value, its encoding, and whether a short value is preferred.
    fn describe(&self, value: Value) -> (usize, Alphabet, bool) {
        match (&self.program.steps[value.step], value.parameter) {
            (Step::Value { variable, alphabet, extent }, _) => {
                (*variable, *alphabet, extent.is_lazy)
            }
            (Step::Parameters { variables, .. }, Some((index, _))) => {
                (variables[index], Alphabet::Unreserved, false)
            }
            _ => unreachable!("only these steps have values"),
        }
    }
}

/// The states that were tried at each place of the text.
struct Tried {
    bits: Vec<u64>,
    places: usize,
}

impl Tried {
    fn new(states: usize, places: usize) -> Self {
        Self { bits: vec![0; (states * places).div_ceil(64)], places }
    }

    /// Adds a state; returns whether it is new.
    fn insert(&mut self, state: usize, place: usize) -> bool {
        let index = state * self.places + place;
        let (word, bit) = (&mut self.bits[index / 64], 1 << (index % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
