//! [`Template`]: a family of resources, as an RFC 6570 URI template.

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
    /// The distinct names, in order of first use.
    names: Vec<Box<str>>,
    program: Program,
    /// The length of the part of the source that every matching URI starts with.
    prefix: usize,
}

impl Template {
    /// The longest template that is accepted, in bytes.
    pub const MAX_LENGTH: usize = 8192;

    /// How many variables a template may use, counting each use.
    pub const MAX_VARIABLES: usize = 64;

    /// Parses a template.
    ///
    /// It need not be an absolute URI: `log-{day}.txt` is a template too.
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
    /// If the braces do not pair up, an expression is not one of levels 1 to 3, the text between
    /// expressions cannot be in a URI, or the template exceeds the limits.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let (parts, names) = parse::parse(source)?;
        let program = Program::new(&parts, &names);
        // Percent-encoded text and characters outside ASCII have several spellings in a URI.
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
    /// It is the text before the first expression, up to a character that can be written both
    /// percent-encoded and not.
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
    /// As in RFC 6570, a variable without a value is left out, together with its operator. So every
    /// set of values has an expansion, but without a value for `{a}` or `{+a}` it may not match
    /// back. Unknown variables are ignored.
    ///
    /// `{+a}` and `{#a}` keep percent-encoded text in values, so the values `%20` and a space
    /// expand alike there.
    #[must_use]
    pub fn expand(&self, values: &BTreeMap<String, String>) -> String {
        expand::expand(&self.parts, &self.names, values)
    }

    /// The values with which this template expands to this URI, or `None` if there are none.
    ///
    /// A value in `{a}` and `{+a}` has one or more characters. After an operator (`#`, `.`, `/`,
    /// `;`, `?`, `&`) it may be empty, and the variable may be missing. A variable used twice has
    /// one value.
    ///
    /// Values are decoded. In `{+a}` and `{#a}`, `%2F` stays encoded, because `/` would have
    /// another meaning there; so do all characters that these expressions do not encode.
    ///
    /// The match is lenient, because people type URIs and programs assemble them: the parameters of
    /// `{?a,b}`, `{&a,b}` and `{;a,b}` may come in any order (but not twice, and no unknown ones);
    /// a character outside ASCII may be written unencoded; and `%c3` equals `%C3`. Text that is not
    /// valid encoded UTF-8 is never part of a value.
    ///
    /// If several sets of values match, a variable takes as much as it can, earlier ones first.
    /// Before an optional expression it takes as little as it can; otherwise `{+path}{?line}` would
    /// never find a line.
    ///
    /// The work is bounded by the product of both lengths. Between two uses of one variable it
    /// could grow further, so `None` is returned after a fixed number of attempts. A URI longer
    /// than [`ResourceUri::MAX_LENGTH`] does not match.
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

/// Templates are equal if their texts are.
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
    /// Text as it appears in the expansion, encoded.
    Literal(String),
    /// An expression; its variables are indices into the template's names.
    Expression { operator: Operator, variables: Vec<usize> },
}
