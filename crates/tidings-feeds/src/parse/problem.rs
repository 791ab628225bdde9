//! What can be wrong with a feed that is read all the same.

use std::fmt;

/// What was wrong with a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are not in the encoding they are said to be in.
    Encoding {
        /// What was said.
        declared: String,
        /// What it was read as.
        used: &'static str,
    },
    /// No encoding is named, and it is not the usual one; what it was read as.
    UnnamedEncoding(&'static str),
    /// Some bytes mean nothing in the encoding of the document, which is this one.
    Bytes(&'static str),
    /// An encoding nobody knows.
    UnknownEncoding(String),
    /// Characters that no document may have were left out.
    ControlCharacters,
    /// Markup that is not XML was mended.
    Markup,
    /// A tag was closed that was not open, or not closed.
    Nesting,
    /// The document ended before its end.
    Truncated,
    /// More items than are read; so many were.
    TooManyItems(usize),
    /// A text was longer than the limit and was cut.
    LongText,
    /// Elements were nested so deeply that the inner ones were left out.
    TooDeep,
    /// An element had more attributes than are read.
    TooManyAttributes,
    /// The entities that the document declares are more than are read, or expand without end.
    Entities,
    /// A date of an item, or of the feed, is none.
    Date(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding { declared, used } => {
                write!(
                    formatter,
                    "the encoding is said to be {declared}, but it was read as {used}"
                )
            }
            Self::UnnamedEncoding(used) => {
                write!(
                    formatter,
                    "no encoding is named, and it is not utf-8; it was read as {used}"
                )
            }
            Self::Bytes(used) => {
                write!(formatter, "some bytes mean nothing in {used}; U+FFFD is in their place")
            }
            Self::UnknownEncoding(name) => write!(formatter, "the encoding {name} is unknown"),
            Self::ControlCharacters => {
                formatter.write_str("characters that XML forbids were left out")
            }
            Self::Markup => formatter.write_str("markup that is not XML was mended"),
            Self::Nesting => {
                formatter.write_str("tags are not closed in the order they are opened")
            }
            Self::Truncated => formatter.write_str("the document ends before its end"),
            Self::TooManyItems(count) => {
                write!(formatter, "only the first {count} items were read")
            }
            Self::LongText => formatter.write_str("a text was too long and was cut"),
            Self::TooDeep => formatter.write_str("elements nested too deeply were left out"),
            Self::TooManyAttributes => {
                formatter.write_str("an element has too many attributes; the first were read")
            }
            Self::Entities => {
                formatter.write_str("entities of the document type were not all expanded")
            }
            Self::Date(text) => write!(formatter, "`{text}` is no date"),
        }
    }
}

/// Problems as they are found: one of each kind.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Notes a problem, unless one of its kind is there.
    pub(super) fn add(&mut self, problem: Problem) {
        let kind = std::mem::discriminant(&problem);
        if !self.0.iter().any(|other| std::mem::discriminant(other) == kind) {
            self.0.push(problem);
        }
    }

    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.0
    }
}
