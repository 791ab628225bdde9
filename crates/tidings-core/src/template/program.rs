//! Compiles the parts of a template into matching steps.

use crate::template::Part;
use crate::template::decode::Alphabet;
use crate::template::expand::Operator;

/// One matching step. By default the next step follows.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// This text, ignoring the case of encoded bytes.
    Literal(String),
    /// A value of one variable.
    Value { variable: usize, alphabet: Alphabet, extent: Extent },
    /// The next step, or else the other step.
    Maybe { otherwise: usize },
    /// Continue with the other step.
    Jump { to: usize },
    /// Any of these parameters, in any order.
    Parameters { operator: Operator, variables: Vec<usize> },
    /// The end of the URI.
    End,
}

/// The length of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) may_be_empty: bool,
    /// Whether to prefer the shortest value.
    pub(super) is_lazy: bool,
}

/// The matching steps, and which of them depend on earlier matches.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    /// For each step, whether a variable used before it is used at it or later.
    ///
    /// At all other steps the rest depends only on the place in the text, so one attempt is enough.
    pub(super) depends_on_past: Vec<bool>,
    /// For each variable, whether it is used more than once.
    pub(super) is_repeated: Vec<bool>,
}

impl Program {
    pub(super) fn new(parts: &[Part], names: &[Box<str>]) -> Self {
        let mut compiler = Compiler::default();
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) => compiler.push(Step::Literal(text.clone())),
                Part::Expression { operator, variables } => {
                    let is_before_optional = matches!(parts.get(index + 1),
                        Some(Part::Expression { operator, .. }) if !operator.first().is_empty());
                    compiler.push_expression(*operator, variables, is_before_optional);
                }
            }
        }
        compiler.push(Step::End);
        compiler.finish(names.len())
    }
}

#[derive(Default)]
struct Compiler {
    steps: Vec<Step>,
    /// For each step, the number of variable uses before it in the template.
    uses_before: Vec<usize>,
    /// The variable of each use so far.
    uses: Vec<usize>,
}

impl Compiler {
    fn push(&mut self, step: Step) {
        self.steps.push(step);
        self.uses_before.push(self.uses.len());
    }

    fn push_expression(&mut self, operator: Operator, variables: &[usize], before_optional: bool) {
        if operator.is_named() {
            self.push(Step::Parameters { operator, variables: variables.to_vec() });
            self.uses.extend(variables);
            return;
        }
        let alphabet = if operator.keeps_reserved() { Alphabet::Any } else { Alphabet::Unreserved };
        let is_optional = !operator.first().is_empty();
        let values: Vec<_> = (1..=variables.len())
            .zip(variables)
            .map(|(count, variable)| {
                let is_last = count == variables.len();
                let is_lazy = if is_last { before_optional } else { is_optional };
                let extent = Extent { may_be_empty: is_optional, is_lazy };
                Step::Value { variable: *variable, alphabet, extent }
            })
            .collect();
        match operator {
            Operator::Fragment => self.push_fragment(variables, values),
            _ if is_optional => {
                for (variable, value) in variables.iter().zip(values) {
                    self.push(Step::Maybe { otherwise: self.steps.len() + 3 });
                    self.push(Step::Literal(operator.first().to_owned()));
                    self.push(value);
                    self.uses.push(*variable);
                }
            }
            _ => {
                for (index, (variable, value)) in variables.iter().zip(values).enumerate() {
                    if index > 0 {
                        self.push(Step::Literal(operator.separator().to_owned()));
                    }
                    self.push(value);
                    self.uses.push(*variable);
                }
            }
        }
    }

    /// Steps for any of the values, the first after `#` and the others after a comma.
    ///
    /// There are two lanes, before and after the first value that is present. Each value is in
    /// both, except the very first, which cannot be a later one:
    ///
    /// ```text
    /// before 0: maybe (else before 1), "#", value 0, jump after 1
    /// before 1: maybe (else before 2), "#", value 1, jump after 2
    /// before 2: jump end
    /// after 1:  maybe (else after 2), ",", value 1
    /// after 2 = end
    /// ```
    fn push_fragment(&mut self, variables: &[usize], values: Vec<Step>) {
        let uses = self.uses.len();
        let after = self.steps.len() + 4 * values.len() + 1;
        let end = after + 3 * (values.len() - 1);
        for (index, value) in values.iter().enumerate() {
            self.push(Step::Maybe { otherwise: self.steps.len() + 4 });
            self.push(Step::Literal("#".to_owned()));
            self.push(value.clone());
            self.uses.push(variables[index]);
            self.push(Step::Jump { to: after + 3 * index });
        }
        self.push(Step::Jump { to: end });
        // The second lane uses the same variables instead of the first, not in addition.
        self.uses.truncate(uses + 1);
        for (value, variable) in values.into_iter().zip(variables).skip(1) {
            self.push(Step::Maybe { otherwise: self.steps.len() + 3 });
            self.push(Step::Literal(",".to_owned()));
            self.push(value);
            self.uses.push(*variable);
        }
    }

    fn finish(self, variables: usize) -> Program {
        let count = |variable: usize| self.uses.iter().filter(|used| **used == variable).count();
        let is_repeated = (0..variables).map(|variable| count(variable) > 1).collect();
        let depends_on_past = |uses_before: &usize| {
            let (before, after) = self.uses.split_at(*uses_before);
            before.iter().any(|variable| after.contains(variable))
        };
        let depends_on_past = self.uses_before.iter().map(depends_on_past).collect();
        Program { steps: self.steps, depends_on_past, is_repeated }
    }
}
