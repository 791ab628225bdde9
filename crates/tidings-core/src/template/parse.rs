//! Parses a template into its parts.

use crate::template::expand::{Operator, is_triplet_at, push_keeping_reserved};
use crate::template::{Part, Template};

/// Why a text is not a template.
///
/// Positions are bytes from the start of the template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// More bytes than [`Template::MAX_LENGTH`].
    #[error("the template has {length} bytes and may have at most {}", Template::MAX_LENGTH)]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// More uses of variables than [`Template::MAX_VARIABLES`].
    #[error("the template uses more than {} variables", Template::MAX_VARIABLES)]
    TooManyVariables,
    /// An opening brace without its closing one.
    #[error("the `{{` at byte {at} is never closed")]
    Unclosed {
        /// The position of the brace.
        at: usize,
    },
    /// A closing brace without its opening one.
    #[error("the `}}` at byte {at} closes nothing; write `%7D` for the character itself")]
    Unopened {
        /// The position of the brace.
        at: usize,
    },
    /// An operator that RFC 6570 reserves.
    #[error(
        "the expression at byte {at} starts with `{operator}`, which has no meaning yet; \
         the operators are `+`, `#`, `.`, `/`, `;`, `?` and `&`"
    )]
    UnknownOperator {
        /// The character.
        operator: char,
        /// The start of the expression.
        at: usize,
    },
    /// A modifier of level 4: `:` with a length, or `*`.
    #[error(
        "the variable `{variable}` has the modifier `{modifier}`, which is not supported; \
         write `{{+{variable}}}` for a value with slashes in it"
    )]
    Modifier {
        /// The name without its modifier.
        variable: String,
        /// The modifier as written.
        modifier: String,
    },
    /// A name in braces that is invalid or empty.
    #[error(
        "`{name}` in the expression at byte {at} is not a variable name; \
         use letters, digits and `_`, with single dots between them"
    )]
    BadName {
        /// The text in place of a name.
        name: String,
        /// The start of the expression.
        at: usize,
    },
    /// A character between expressions that a URI cannot have.
    #[error("{character:?} at byte {at} cannot be in a URI; percent-encode it")]
    BadCharacter {
        /// The character.
        character: char,
        /// Its position.
        at: usize,
    },
    /// A percent sign between expressions without two hexadecimal digits.
    #[error(
        "the `%` at byte {at} is not followed by two hexadecimal digits; \
         write `%25` for the character itself"
    )]
    BadPercent {
        /// Its position.
        at: usize,
    },
}

/// The parts of a template, and its distinct names in order of first use.
pub(super) fn parse(source: &str) -> Result<(Vec<Part>, Vec<Box<str>>), TemplateError> {
    if source.len() > Template::MAX_LENGTH {
        return Err(TemplateError::TooLong { length: source.len() });
    }
    let (mut parts, mut names, mut uses, mut at) = (Vec::new(), Vec::new(), 0, 0);
    while at < source.len() {
        let rest = &source[at..];
        if rest.starts_with('{') {
            let end = rest.find('}').ok_or(TemplateError::Unclosed { at })?;
            let (operator, variables) = parse_expression(&rest[1..end], at, &mut names)?;
            uses += variables.len();
            if uses > Template::MAX_VARIABLES {
                return Err(TemplateError::TooManyVariables);
            }
            parts.push(Part::Expression { operator, variables });
            at += end + 1;
        } else {
            let literal = &rest[..rest.find('{').unwrap_or(rest.len())];
            check_literal(literal, at)?;
            let mut encoded = String::with_capacity(literal.len());
            push_keeping_reserved(&mut encoded, literal);
            parts.push(Part::Literal(encoded));
            at += literal.len();
        }
    }
    Ok((parts, names))
}

fn parse_expression(
    inside: &str,
    at: usize,
    names: &mut Vec<Box<str>>,
) -> Result<(Operator, Vec<usize>), TemplateError> {
    let (operator, list) = match inside.chars().next() {
        Some(operator @ ('=' | ',' | '!' | '@' | '|')) => {
            return Err(TemplateError::UnknownOperator { operator, at });
        }
        Some(first) => match Operator::from_char(first) {
            Some(operator) => (operator, &inside[1..]),
            None => (Operator::Simple, inside),
        },
        None => (Operator::Simple, inside),
    };
    let mut variables = Vec::new();
    for name in list.split(',') {
        let (name, modifier) = name.split_at(name.find([':', '*']).unwrap_or(name.len()));
        if !is_name(name) {
            return Err(TemplateError::BadName { name: name.to_owned(), at });
        }
        if !modifier.is_empty() {
            let (variable, modifier) = (name.to_owned(), modifier.to_owned());
            return Err(TemplateError::Modifier { variable, modifier });
        }
        let known = names.iter().position(|known| **known == *name);
        variables.push(known.unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        }));
    }
    Ok((operator, variables))
}

/// Whether this is a `varname` of RFC 6570.
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    // The start of a name is like the position after a dot: a dot may not come next.
    let mut is_after_dot = true;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'.' if is_after_dot => return false,
            b'%' if !is_triplet_at(bytes, at) => return false,
            b'.' | b'%' | b'_' => {}
            byte if byte.is_ascii_alphanumeric() => {}
            _ => return false,
        }
        is_after_dot = *byte == b'.';
        at += if *byte == b'%' { 3 } else { 1 };
    }
    !is_after_dot
}

/// Checks text between expressions against the `literals` of RFC 6570.
///
/// An apostrophe is accepted: its omission from the grammar is a known erratum.
fn check_literal(literal: &str, start: usize) -> Result<(), TemplateError> {
    for (offset, character) in literal.char_indices() {
        let at = start + offset;
        match character {
            '}' => return Err(TemplateError::Unopened { at }),
            '%' if !is_triplet_at(literal.as_bytes(), offset) => {
                return Err(TemplateError::BadPercent { at });
            }
            '"' | '<' | '>' | '\\' | '^' | '`' | '|' => {
                return Err(TemplateError::BadCharacter { character, at });
            }
            character if character.is_control() || character.is_whitespace() => {
                return Err(TemplateError::BadCharacter { character, at });
            }
            _ => {}
        }
    }
    Ok(())
}
