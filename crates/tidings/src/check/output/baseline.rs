//! The baseline: failures that are known. An entry whose check passes is stale.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::check::table::CHECKS;
use crate::check::verdict::{Finding, Verdict};
use crate::report::Usage;

/// The known failures.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    entries: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    id: String,
    /// Any era, if it is left out.
    era: Option<String>,
}

impl Baseline {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let text = std::fs::read_to_string(file)
            .with_context(|| Usage::new(format!("cannot read `{shown}`")))?;
        Self::parse(&text).map_err(|why| Usage::new(format!("`{shown}`: {why}")).into())
    }

    /// One entry a line: a check, and an era if it is known in one only.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(id) = words.next() else { continue };
            let number = index + 1;
            if !CHECKS.iter().any(|check| check.id == id) {
                return Err(format!("line {number}: there is no check `{id}`"));
            }
            let era = words.next();
            if !matches!(era, None | Some("legacy" | "modern")) || words.next().is_some() {
                return Err(format!(
                    "line {number}: write `CHECK`, `CHECK legacy` or `CHECK modern`"
                ));
            }
            entries.push(Known { id: id.to_owned(), era: era.map(str::to_owned) });
        }
        Ok(Self { entries })
    }

    pub(crate) fn knows(&self, finding: &Finding) -> bool {
        self.entries.iter().any(|entry| entry.covers(finding))
    }

    /// The entries whose checks pass. A check that was not tried, or is not offered in this run, may
    /// still fail in another.
    pub(crate) fn stale(&self, findings: &[Finding]) -> Vec<String> {
        let is_stale = |entry: &&Known| {
            let covered = || findings.iter().filter(|finding| entry.covers(finding));
            covered().any(|finding| finding.verdict == Verdict::Pass)
                && !covered()
                    .any(|finding| matches!(finding.verdict, Verdict::Fail | Verdict::NotTried))
        };
        self.entries.iter().filter(is_stale).map(Known::to_string).collect()
    }
}

impl Known {
    fn covers(&self, finding: &Finding) -> bool {
        let era = finding.era.map(|era| era.to_string());
        self.id == finding.check.id && (self.era.is_none() || self.era == era)
    }
}

impl std::fmt::Display for Known {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.era {
            Some(era) => write!(formatter, "{} {era}", self.id),
            None => formatter.write_str(&self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_names_checks_that_exist() {
        assert!(Baseline::parse("notice.once legacy # why\n\n# nothing\nread.stable").is_ok());
        for bad in ["notice.twice", "notice.once sometimes", "notice.once legacy too"] {
            assert!(Baseline::parse(bad).unwrap_err().starts_with("line 1: "), "{bad}");
        }
    }
}
