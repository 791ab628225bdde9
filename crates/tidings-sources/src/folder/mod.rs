//! A directory of scripts, prompts and files as a live source.

#![expect(dead_code, reason = "used once the source is there")]

mod config;
mod offer;
mod problem;
mod queue;
mod script;

pub use self::config::{Config, Limits};
pub use self::problem::{Fix, Problem, Severity};

/// What one look at the folder found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is offered now and was not, as `tool echo`, `prompt review`, `resource notes.md`.
    pub added: Vec<String>,
    /// What is offered as something else than before.
    pub changed: Vec<String>,
    /// What is offered no more.
    pub removed: Vec<String>,
    /// What is wrong and was not before.
    pub problems: Vec<Problem>,
    /// What was wrong before and is not any more.
    pub mended: Vec<Problem>,
}
