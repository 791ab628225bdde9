//! [`Template`]: the name of a family of resources, as RFC 6570 writes it.

mod decode;
mod expand;
mod matching;
mod parse;
mod program;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use crate::template::parse::TemplateError;

use crate::template::expand::Operator;
use crate::template::program::Program;

/// A URI template: text with expressions in braces, which [expands](Self::expand) to a URI
/// and [matches](Self::matches) one back.
///
/// The templates are those of RFC 6570 up to level 3. The modifiers of level 4, `{name:3}`
/// and `{name*}`, are refused: neither can be matched back to one text per variable.
///
/// | expression | written as      | value                                        | must be there |
/// |------------|-----------------|----------------------------------------------|---------------|
/// | `{a,b}`    | `1,2`           | letters, digits, `-._~`, the rest encoded    | yes           |
/// | `{+a,b}`   | `1,2`           | reserved characters as well, such as `/`     | yes           |
/// | `{#a,b}`   | `#1,2`          | reserved characters as well                  | no            |
/// | `{.a,b}`   | `.1.2`          | as `{a}`                                     | no            |
/// | `{/a,b}`   | `/1/2`          | as `{a}`                                     | no            |
/// | `{;a,b}`   | `;a=1;b=2`      | as `{a}`                                     | no            |
/// | `{?a,b}`   | `?a=1&b=2`      | as `{a}`                                     | no            |
/// | `{&a,b}`   | `&a=1&b=2`      | as `{a}`                                     | no            |
///
/// ```
/// use tidings_core::Template;
///
/// let template = Template::parse("file:///{+path}{?line}")?;
/// let values = template.matches("file:///src/main.rs?line=7").expect("it matches");
/// assert_eq!((&*values["path"], &*values["line"]), ("src/main.rs", "7"));
/// assert_eq!(template.expand(&values), "file:///src/main.rs?line=7");
/// # Ok::<(), tidings_core::TemplateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Template {
    source: Box<str>,
    parts: Vec<Part>,
    /// The distinct names, in the order of their first use.
    names: Vec<Box<str>>,
    program: Program,
    /// How many bytes of the source every matching URI starts with.
    prefix: usize,
}

impl Template {
    /// The longest template that is accepted, in bytes.
    pub const MAX_LENGTH: usize = 8192;

    /// How many variables a template may use, counting each use.
    pub const MAX_VARIABLES: usize = 64;

    /// Reads a template.
    ///
    /// It need not be that of an absolute URI: `log-{day}.txt` is a template too.
    ///
    /// ```
    /// use tidings_core::Template;
    ///
    /// let error = Template::parse("file:///{path*}").unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the variable `path` has the modifier `*`, which is not supported; \
    ///      write `{+path}` for a value with slashes in it"
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// If the braces do not pair up, an expression is not one of levels 1 to 3, the text
    /// between expressions cannot be in a URI, or the template is beyond the limits.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let (parts, names) = parse::parse(source)?;
        let program = Program::new(&parts, &names);
        // What is percent-encoded or outside ASCII can be spelt differently in a URI.
        let prefix =
            source.find(|character| matches!(character, '{' | '%') || !character.is_ascii());
        let prefix = prefix.unwrap_or(source.len());
        Ok(Self { source: source.into(), parts, names, program, prefix })
    }

    /// The template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The distinct names of the variables, in the order of their first use.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// A text that every matching URI starts with, for use in an index.
    ///
    /// It is the text before the first expression, cut short before a character that can be
    /// written both percent-encoded and not.
    ///
    /// ```
    /// use tidings_core::Template;
    ///
    /// assert_eq!(Template::parse("graph://node/{id}")?.literal_prefix(), "graph://node/");
    /// assert_eq!(Template::parse("menu://café/{id}")?.literal_prefix(), "menu://caf");
    /// # Ok::<(), tidings_core::TemplateError>(())
    /// ```
    #[must_use]
    pub fn literal_prefix(&self) -> &str {
        &self.source[..self.prefix]
    }

    /// The text with these values in place of the expressions.
    ///
    /// As RFC 6570 has it, a variable without a value is left out, along with what would have
    /// introduced it. So every set of values has an expansion, but one without a value for
    /// `{a}` or `{+a}` is not sure to match back. Values of variables the template does not
    /// have are ignored.
    ///
    /// `{+a}` and `{#a}` keep what is percent-encoded in a value already, so the values `%20`
    /// and a space expand alike there.
    #[must_use]
    pub fn expand(&self, values: &BTreeMap<String, String>) -> String {
        expand::expand(&self.parts, &self.names, values)
    }

    /// The values with which this template expands to this URI, or `None` if there are none.
    ///
    /// A value is one or more characters in `{a}` and `{+a}`; where an operator introduces
    /// the value (`#`, `.`, `/`, `;`, `?`, `&`) it may be empty, and the variable may be
    /// missing altogether. A variable used twice has one value.
    ///
    /// Values are decoded. In `{+a}` and `{#a}`, `%2F` stays what it is, since `/` would mean
    /// something else there; so do all characters that these expressions do not encode.
    ///
    /// The match is lenient in three ways, because URIs are typed and assembled by others:
    /// the parameters of `{?a,b}`, `{&a,b}` and `{;a,b}` may come in any order (though none
    /// that the template does not name, and none twice); a character outside ASCII may
    /// be written as it is where it would be encoded; and so may `%c3` for `%C3`. What is not
    /// well encoded, or not encoded UTF-8, is never part of a value.
    ///
    /// Where several sets of values would do, a variable takes as much as it can, earlier
    /// ones first. Just before an expression that may be missing it takes as little as it can
    /// instead, or else `{+path}{?line}` would never find a line.
    ///
    /// The work is bounded by the product of both lengths. Only between two uses of the same
    /// variable could it grow beyond; there a fixed number of attempts is made before the
    /// answer is `None`. A URI beyond [`ResourceUri::MAX_LENGTH`] does not match.
    ///
    /// [`ResourceUri::MAX_LENGTH`]: crate::ResourceUri::MAX_LENGTH
    ///
    /// ```
    /// use tidings_core::Template;
    ///
    /// let template = Template::parse("tag://{tag}/posts{?from,to}")?;
    /// let values = template.matches("tag://rock%2Froll/posts?to=2024").expect("it matches");
    /// assert_eq!(values["tag"], "rock/roll");
    /// assert_eq!(values.get("from"), None);
    /// assert_eq!(template.matches("tag://rock/roll/posts"), None);
    /// # Ok::<(), tidings_core::TemplateError>(())
    /// ```
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if uri.starts_with(self.literal_prefix()) {
            self.program.matches(uri, &self.names)
        } else {
            None
        }
    }
}

/// Two templates are equal when they are written alike.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Template {}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.source)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(source: &str) -> Result<Self, TemplateError> {
        Self::parse(source)
    }
}

/// A piece of a template.
#[derive(Clone, Debug)]
enum Part {
    /// Text as it stands in the expansion, which is to say encoded.
    Literal(String),
    /// What was in braces; the variables are indices into the template's names.
    Expression { operator: Operator, variables: Vec<usize> },
}
