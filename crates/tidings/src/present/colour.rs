//! Colours, on terminals without `NO_COLOR`.

/// Adds colours, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// No colours.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { on: false };

    /// Colours if this is a terminal and `NO_COLOR` is not set.
    pub(crate) fn when(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { on: terminal && !refused && !dumb }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_text_is_as_it_was() {
        assert_eq!(Paint::PLAIN.red("no"), "no");
        assert_eq!(Paint { on: true }.red("no"), "\u{1b}[31mno\u{1b}[0m");
    }
}
