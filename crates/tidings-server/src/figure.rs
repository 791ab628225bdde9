//! Figures of a source, which operators read among the metrics of the hub.

/// A number that a source tells operators.
///
/// The hub adds the label `source` with the name of the source, and prefixes the name with `tidings_`.
/// All texts are part of the program, so the number of series is bounded.
///
/// ```
/// use tidings_server::Figure;
///
/// let looks = Figure::counter("example_looks", "Reads made to find changes", 7.0);
/// let state = Figure::gauge("example_state", "1 for the state it is in", 1.0).label("state", "ready");
/// assert_ne!(looks, state);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: FigureKind,
    pub(crate) label: Option<(&'static str, &'static str)>,
    pub(crate) value: f64,
}

/// Whether a figure can become smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureKind {
    Gauge,
    Counter,
}

impl Figure {
    /// A number of now.
    #[must_use]
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: FigureKind::Gauge, label: None, value }
    }

    /// A number that only grows. `_total` is added to its name.
    #[must_use]
    pub fn counter(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: FigureKind::Counter, label: None, value }
    }

    /// The same, as one of several with a label of this key.
    #[must_use]
    pub fn label(mut self, key: &'static str, value: &'static str) -> Self {
        self.label = Some((key, value));
        self
    }
}
