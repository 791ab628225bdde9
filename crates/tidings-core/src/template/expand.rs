//! Expands a template with values.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::template::Part;

/// The characters encoded in most expressions: all but the `unreserved` of RFC 3986.
const NOT_UNRESERVED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The `reserved` of RFC 3986.
const RESERVED: &[u8] = b":/?#[]@!$&'()*+,;=";

/// The characters encoded in `{+a}`, `{#a}` and literals.
const NOT_IN_URI: AsciiSet = {
    let (mut set, mut at) = (NOT_UNRESERVED, 0);
    while at < RESERVED.len() {
        set = set.remove(RESERVED[at]);
        at += 1;
    }
    set
};

/// The operator after an opening brace: the table in appendix A of RFC 6570.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Matrix,
    Query,
    Continuation,
}

impl Operator {
    pub(super) fn from_char(character: char) -> Option<Self> {
        Some(match character {
            '+' => Self::Reserved,
            '#' => Self::Fragment,
            '.' => Self::Label,
            '/' => Self::Path,
            ';' => Self::Matrix,
            '?' => Self::Query,
            '&' => Self::Continuation,
            _ => return None,
        })
    }

    /// Written before the first value.
    pub(super) fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Matrix => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// Written between two values.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Matrix => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    /// Whether values are written with their names.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Matrix | Self::Query | Self::Continuation)
    }

    /// Whether reserved characters are written unencoded.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

pub(super) fn expand(
    parts: &[Part],
    names: &[Box<str>],
    values: &BTreeMap<String, String>,
) -> String {
    let mut output = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => output.push_str(text),
            Part::Expression { operator, variables } => {
                let present = variables.iter().filter_map(|variable| {
                    let name = &*names[*variable];
                    Some((name, values.get(name)?))
                });
                for (index, (name, value)) in present.enumerate() {
                    output.push_str(if index == 0 {
                        operator.first()
                    } else {
                        operator.separator()
                    });
                    push_value(&mut output, *operator, name, value);
                }
            }
        }
    }
    output
}

fn push_value(output: &mut String, operator: Operator, name: &str, value: &str) {
    if operator.is_named() {
        output.push_str(name);
        if operator == Operator::Matrix && value.is_empty() {
            return;
        }
        output.push('=');
    }
    if operator.keeps_reserved() {
        push_keeping_reserved(output, value);
    } else {
        output.extend(utf8_percent_encode(value, &NOT_UNRESERVED));
    }
}

/// Encodes characters that a URI cannot contain, except in encoded text.
pub(super) fn push_keeping_reserved(output: &mut String, mut text: &str) {
    while let Some(at) = text.find('%') {
        output.extend(utf8_percent_encode(&text[..at], &NOT_IN_URI));
        let end = if is_triplet_at(text.as_bytes(), at) {
            output.push_str(&text[at..at + 3]);
            at + 3
        } else {
            output.push_str("%25");
            at + 1
        };
        text = &text[end..];
    }
    output.extend(utf8_percent_encode(text, &NOT_IN_URI));
}

/// Whether a percent sign and two hexadecimal digits start here.
pub(super) fn is_triplet_at(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..at + 3), Some([b'%', high, low])
        if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

pub(super) fn is_reserved(byte: u8) -> bool {
    RESERVED.contains(&byte)
}
