//! Problems in a folder, with advice on how to solve them.

use std::path::PathBuf;

/// A problem in a folder. The rest of the folder is still served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Problem {
    /// The file or directory, relative to the folder.
    pub file: PathBuf,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// How bad it is.
    pub severity: Severity,
    /// The reason, in words.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
    /// How a program can fix it without changing any meaning.
    pub fix: Option<Fix>,
    /// The setting that would help. The program that serves the folder knows how to change
    /// it.
    pub setting: Option<Setting>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is not served, or not as it was written.
    Error,
    /// Everything is served, but could be better.
    Warning,
    /// Nothing is wrong, but the operator should know.
    Note,
}

/// A safe, automatic fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fix {
    /// Make the file executable.
    MakeExecutable,
    /// Remove the byte order mark at the start of the file.
    DropByteOrderMark,
}

/// A setting of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Setting {
    /// A variable that programs get ([`Config::environment`](crate::Config::environment)), this one
    /// if it is known which.
    Variable(Option<String>),
    /// Whether a registration may be run ([`Config::register`](crate::Config::register)).
    Register,
    /// Rescanning the whole folder regularly ([`Config::poll`](crate::Config::poll)).
    Poll,
}

impl Problem {
    /// A problem that keeps something from being served.
    pub(crate) fn error(
        file: impl Into<PathBuf>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            line: None,
            severity: Severity::Error,
            reason: reason.into(),
            advice: advice.into(),
            fix: None,
            setting: None,
        }
    }

    /// A problem of something that is served.
    pub(crate) fn warning(
        file: impl Into<PathBuf>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, reason, advice) }
    }

    /// A fact the operator should know.
    pub(crate) fn note(
        file: impl Into<PathBuf>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Note, ..Self::error(file, reason, advice) }
    }

    /// The same problem, at this line.
    pub(crate) fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// The same problem, with an automatic fix.
    pub(crate) fn mended_by(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }

    /// The same problem, with the setting that would help.
    pub(crate) fn for_want_of(self, setting: Setting) -> Self {
        Self { setting: Some(setting), ..self }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.reason)?;
        if !self.advice.is_empty() {
            write!(formatter, "; {}", self.advice)?;
        }
        Ok(())
    }
}
