//! What is wrong in a folder, in words a person can act on.

use std::path::PathBuf;

/// Something wrong in a folder. The rest of the folder is served all the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Problem {
    /// The file or directory, relative to the folder.
    pub file: PathBuf,
    /// The line, from 1, where there is one.
    pub line: Option<usize>,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
    /// How a program can mend it without changing what anything means.
    pub fix: Option<Fix>,
    /// What would help if it were set. How that is done is for the program to say that serves the
    /// folder.
    pub setting: Option<Setting>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is not served, or not as it was written.
    Error,
    /// It is served, and could be better.
    Warning,
    /// Nothing is wrong; the operator should know it all the same.
    Note,
}

/// What can be mended safely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fix {
    /// Give the file its execute permission.
    MakeExecutable,
    /// Take the byte order mark off the file's beginning.
    DropByteOrderMark,
}

/// Something that can be set for a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Setting {
    /// A variable that programs get ([`Config::environment`](crate::Config::environment)), this one
    /// if it is known which.
    Variable(Option<String>),
    /// Whether a registration may be run ([`Config::register`](crate::Config::register)).
    Register,
    /// Looking at the whole folder now and then ([`Config::poll`](crate::Config::poll)).
    Poll,
}

impl Problem {
    /// Something that is not served.
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

    /// Something that could be better.
    pub(crate) fn warning(
        file: impl Into<PathBuf>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(file, reason, advice) }
    }

    /// Something the operator should know.
    pub(crate) fn note(
        file: impl Into<PathBuf>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Note, ..Self::error(file, reason, advice) }
    }

    /// At this line.
    pub(crate) fn at(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// That a program can mend.
    pub(crate) fn mended_by(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }

    /// That would not be one if this were set.
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
