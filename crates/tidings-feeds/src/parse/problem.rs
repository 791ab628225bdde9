//! Problems of feeds that could be read.

use std::fmt;

/// A problem of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes are not in the declared encoding.
    Encoding {
        /// The declared encoding.
        declared: String,
        /// The encoding it was read in.
        used: &'static str,
    },
    /// No encoding is declared, and it is not the usual one; the encoding it was read in.
    UnnamedEncoding(&'static str),
    /// Some bytes are invalid in this encoding of the document.
    Bytes(&'static str),
    /// An unknown encoding.
    UnknownEncoding(String),
    /// Forbidden characters were dropped.
    ControlCharacters,
    /// Invalid markup was repaired.
    Markup,
    /// A tag was closed that was not open, or not closed.
    Nesting,
    /// The document was cut off.
    Truncated,
    /// There are more items than the limit, which is this.
    TooManyItems(usize),
    /// A text was longer than the limit and was cut.
    LongText,
    /// Elements were nested too deeply, and the inner ones dropped.
    TooDeep,
    /// An element has more attributes than are read.
    TooManyAttributes,
    /// The document declares too many entities, or they expand without end.
    Entities,
    /// A date of an item, or of the feed, is invalid.
    Date(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding { declared, used } => {
                write!(formatter, "the declared encoding is {declared}, but it was read as {used}")
            }
            Self::UnnamedEncoding(used) => {
                write!(
                    formatter,
                    "no encoding is declared, and it is not utf-8; it was read as {used}"
                )
            }
            Self::Bytes(used) => {
                write!(formatter, "some bytes are invalid in {used}; U+FFFD replaces them")
            }
            Self::UnknownEncoding(name) => write!(formatter, "the encoding {name} is unknown"),
            Self::ControlCharacters => {
                formatter.write_str("characters that XML forbids were dropped")
            }
            Self::Markup => formatter.write_str("invalid markup was repaired"),
            Self::Nesting => {
                formatter.write_str("tags are not closed in the order they were opened")
            }
            Self::Truncated => formatter.write_str("the document ends before its end"),
            Self::TooManyItems(count) => {
                write!(formatter, "only the first {count} items were read")
            }
            Self::LongText => formatter.write_str("a text was too long and was cut"),
            Self::TooDeep => formatter.write_str("elements nested too deeply were dropped"),
            Self::TooManyAttributes => {
                formatter.write_str("an element has too many attributes; the first were read")
            }
            Self::Entities => {
                formatter.write_str("not all entities of the document type were expanded")
            }
            Self::Date(text) => write!(formatter, "`{text}` is not a date"),
        }
    }
}

/// Problems as they are found: one of each kind.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    /// Notes a problem, unless there is one of its kind.
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
