//! Labels: what a client is, such as `role:admin`, and whom an item is for.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// A label is no longer than this, in bytes.
const LONGEST: usize = 128;
/// A set has no more labels than this.
const MOST: usize = 64;

/// A set of labels, such as `role:admin` and `user:ada`: those of a client, or the audience of an
/// item.
///
/// Cloning is cheap. A label is a text of at most 128 bytes without spaces, commas and control
/// characters, and a set has at most 64 of them. The hub gives no label a meaning of its own.
///
/// ```
/// use tidings_server::Labels;
///
/// let ada = Labels::parse("role:admin, user:ada")?;
/// assert!(ada.meets(&Labels::parse("role:admin role:pilot")?));
/// assert_eq!(ada.to_string(), "role:admin user:ada");
/// assert!(Labels::parse("role:ad\u{7}min").is_err());
/// # Ok::<(), tidings_server::LabelError>(())
/// ```
#[derive(Clone, Default)]
pub struct Labels {
    /// Sorted, each once. `None` is the empty set, the one of most clients: it costs nothing to
    /// clone or to compare.
    texts: Option<Arc<[Arc<str>]>>,
}

/// Why texts are not a set of labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// There is no label where one is needed.
    #[error("a label is missing: write one such as `role:admin`")]
    Empty,
    /// A label that is too long.
    #[error("the label `{0}…` has more than 128 bytes")]
    Long(String),
    /// A label with a character that it cannot have.
    #[error("the label {0:?} has a space, a comma or a control character")]
    Characters(String),
    /// Too many labels.
    #[error("{0} labels are too many: a set has at most 64")]
    TooMany(usize),
}

impl Labels {
    /// The empty set.
    pub const NONE: Self = Self { texts: None };

    /// The set of these labels; a repeated one counts once.
    ///
    /// # Errors
    ///
    /// A text that is not a label, or too many.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Self, LabelError> {
        let checked: Result<Vec<_>, _> =
            texts.into_iter().map(|text| checked(text.as_ref())).collect();
        Self::of(checked?)
    }

    /// The labels in a text, separated by spaces or commas.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let is_gap = |character: char| character == ',' || character.is_whitespace();
        Self::new(text.split(is_gap).filter(|part| !part.is_empty()))
    }

    /// Whether it is the empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_none()
    }

    /// The number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether this label is one of them.
    #[must_use]
    pub fn contains(&self, label: &str) -> bool {
        self.as_slice().binary_search_by(|known| known.as_ref().cmp(label)).is_ok()
    }

    /// Whether the two sets have a label in common.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let (few, many) = if self.len() < other.len() { (self, other) } else { (other, self) };
        few.iter().any(|label| many.contains(label))
    }

    /// Whether an item with this audience is for a client with these labels: without an audience it
    /// is for everyone.
    pub(crate) fn admits(&self, labels: &Self) -> bool {
        self.is_empty() || self.meets(labels)
    }

    /// The labels, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.as_slice().iter().map(AsRef::as_ref)
    }

    /// The labels of both sets.
    ///
    /// # Errors
    ///
    /// Together they are too many.
    pub fn with(&self, other: &Self) -> Result<Self, LabelError> {
        if self.is_empty() {
            return Ok(other.clone());
        }
        Self::of(self.as_slice().iter().chain(other.as_slice()).cloned().collect())
    }

    /// Those labels that `keep` keeps; without a change the set is shared.
    pub(crate) fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.iter().all(&keep) {
            return self.clone();
        }
        let kept: Vec<_> = self.as_slice().iter().filter(|label| keep(label)).cloned().collect();
        Self { texts: (!kept.is_empty()).then(|| kept.into()) }
    }

    pub(crate) fn as_slice(&self) -> &[Arc<str>] {
        self.texts.as_deref().unwrap_or_default()
    }

    /// As [`Self::new`], of texts that are labels, whatever their number.
    pub(crate) fn of_sorted(texts: std::collections::BTreeSet<Arc<str>>) -> Self {
        Self { texts: (!texts.is_empty()).then(|| texts.into_iter().collect()) }
    }

    fn of(mut texts: Vec<Arc<str>>) -> Result<Self, LabelError> {
        texts.sort_unstable();
        texts.dedup();
        if texts.len() > MOST {
            return Err(LabelError::TooMany(texts.len()));
        }
        Ok(Self { texts: (!texts.is_empty()).then(|| texts.into()) })
    }
}

fn checked(text: &str) -> Result<Arc<str>, LabelError> {
    if text.is_empty() {
        return Err(LabelError::Empty);
    }
    if text.len() > LONGEST {
        return Err(LabelError::Long(text.chars().take(LONGEST / 4).collect()));
    }
    let is_odd =
        |character: char| character == ',' || character.is_whitespace() || character.is_control();
    if text.chars().any(is_odd) {
        return Err(LabelError::Characters(text.to_owned()));
    }
    Ok(text.into())
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        match (&self.texts, &other.texts) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
            _ => false,
        }
    }
}

impl Eq for Labels {}

impl std::hash::Hash for Labels {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl TryFrom<&str> for Labels {
    type Error = LabelError;

    fn try_from(text: &str) -> Result<Self, LabelError> {
        Self::parse(text)
    }
}

impl<const N: usize> TryFrom<[&str; N]> for Labels {
    type Error = LabelError;

    fn try_from(texts: [&str; N]) -> Result<Self, LabelError> {
        Self::new(texts)
    }
}

impl TryFrom<Vec<String>> for Labels {
    type Error = LabelError;

    fn try_from(texts: Vec<String>) -> Result<Self, LabelError> {
        Self::new(texts)
    }
}

impl From<Infallible> for LabelError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, label) in self.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(formatter, "{gap}{label}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, labels: &[&str]) {
        let parsed = Labels::parse(text).unwrap();
        assert_eq!(parsed.iter().collect::<Vec<_>>(), labels, "{text:?}");
    }

    #[test]
    fn labels_are_sorted_and_each_is_there_once() {
        check("", &[]);
        check(" , ", &[]);
        check("b a,b", &["a", "b"]);
        assert_eq!(Labels::parse("x y"), Labels::new(["y", "x", "y"]));
        assert!(Labels::parse("").unwrap().is_empty());
    }

    #[test]
    fn two_sets_meet_in_a_common_label() {
        let set = |text| Labels::parse(text).unwrap();
        assert!(set("a b c").meets(&set("c")));
        assert!(set("c").meets(&set("a b c")));
        assert!(!set("a b").meets(&set("c d e")));
        assert!(!set("").meets(&set("a")));
        assert!(!set("").meets(&set("")));
        assert!(!set("role:adm").meets(&set("role:admin")));
    }

    #[test]
    fn an_error_names_the_label() {
        let error = |texts: &[&str]| Labels::new(texts).unwrap_err().to_string();
        assert_eq!(error(&[""]), "a label is missing: write one such as `role:admin`");
        assert!(error(&["ok", "not ok"]).contains("\"not ok\""));
        assert!(error(&["a\nb"]).contains("\"a\\nb\""));
        assert!(error(&["ö".repeat(65).as_str()]).contains("öööö"));
        assert_eq!(Labels::new(["ö".repeat(64)]).unwrap().len(), 1);
        let many: Vec<_> = (0..65).map(|number| number.to_string()).collect();
        assert_eq!(Labels::new(&many), Err(LabelError::TooMany(65)));
        assert_eq!(Labels::new(&many[1..]).unwrap().len(), 64);
    }

    #[test]
    fn sets_can_be_joined_and_reduced() {
        let (one, other) = (Labels::parse("a b").unwrap(), Labels::parse("b c").unwrap());
        assert_eq!(one.with(&other), Labels::parse("a b c"));
        assert_eq!(one.filtered(|label| label != "a"), Labels::parse("b").unwrap());
        assert_eq!(one.filtered(|_| false), Labels::NONE);
    }
}
