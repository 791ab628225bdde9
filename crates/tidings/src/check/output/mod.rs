//! Reports: as text, JSON, `JUnit`, Markdown and annotations; and whether a run is a failure.

pub(crate) mod baseline;
pub(crate) mod files;
pub(crate) mod text;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Report;
use super::output::baseline::Baseline;
use super::table;
use super::verdict::{Finding, Severity, Verdict};
use crate::present::text::count;

/// A run, judged by what the user allows.
pub(crate) struct Judged<'a> {
    pub(crate) report: &'a Report,
    pub(crate) baseline: &'a Baseline,
    /// Whether warnings and what was not tried count.
    pub(crate) strict: bool,
}

/// How many checks came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) notes: usize,
    pub(crate) known: usize,
    pub(crate) not_tried: usize,
    pub(crate) not_offered: usize,
    pub(crate) passed: usize,
}

impl Totals {
    /// The numbers that are not zero, in words.
    pub(crate) fn words(&self) -> String {
        let parts = [
            (self.errors, "error", "errors"),
            (self.warnings, "warning", "warnings"),
            (self.notes, "note", "notes"),
            (self.known, "known failure", "known failures"),
            (self.not_tried, "not tried", "not tried"),
            (self.not_offered, "not offered", "not offered"),
            (self.passed, "passed", "passed"),
        ];
        let parts = parts.into_iter().filter(|(number, ..)| *number > 0);
        parts.map(|(number, one, many)| count(number, one, many)).collect::<Vec<_>>().join(", ")
    }
}

impl Judged<'_> {
    /// Failures that are not in the baseline, the worst first.
    pub(crate) fn failures(&self) -> Vec<&Finding> {
        let is_new =
            |finding: &&Finding| finding.verdict == Verdict::Fail && !self.baseline.knows(finding);
        let mut failures: Vec<_> = self.report.findings.iter().filter(is_new).collect();
        failures.sort_by_key(|finding| finding.severity);
        failures
    }

    /// The entries of the baseline whose checks pass.
    pub(crate) fn stale(&self) -> Vec<String> {
        self.baseline.stale(&self.report.findings)
    }

    /// One verdict for each check, over both eras.
    pub(crate) fn by_check(&self) -> Vec<(&'static table::Rule, Verdict, Vec<&Finding>)> {
        let mut checks: BTreeMap<usize, Vec<&Finding>> = BTreeMap::new();
        for finding in &self.report.findings {
            checks.entry(table::place(finding.check.id)).or_default().push(finding);
        }
        let rank = |verdict: Verdict| match verdict {
            Verdict::Fail => 0,
            Verdict::NotTried => 1,
            Verdict::Pass => 2,
            Verdict::NotOffered => 3,
        };
        let worst = |findings: &[&Finding]| {
            findings.iter().map(|finding| finding.verdict).min_by_key(|verdict| rank(*verdict))
        };
        checks
            .into_iter()
            .filter_map(|(place, findings)| {
                Some((&table::CHECKS[place], worst(&findings)?, findings))
            })
            .collect()
    }

    pub(crate) fn counts(&self) -> Totals {
        let mut counts = Totals::default();
        for (_, verdict, findings) in self.by_check() {
            let failed = findings.iter().filter(|finding| finding.verdict == Verdict::Fail);
            let new = failed.filter(|finding| !self.baseline.knows(finding));
            match (verdict, new.map(|finding| finding.severity).min()) {
                (Verdict::Fail, None) => counts.known += 1,
                (Verdict::Fail, Some(Severity::Error)) => counts.errors += 1,
                (Verdict::Fail, Some(Severity::Warning)) => counts.warnings += 1,
                (Verdict::Fail, Some(Severity::Advice)) => counts.notes += 1,
                (Verdict::NotTried, _) => counts.not_tried += 1,
                (Verdict::NotOffered, _) => counts.not_offered += 1,
                (Verdict::Pass, _) => counts.passed += 1,
            }
        }
        counts
    }

    /// Whether this finding makes the run a failure.
    pub(crate) fn counts_against(&self, finding: &Finding) -> bool {
        let counts = match (finding.verdict, finding.severity) {
            (Verdict::Fail, Severity::Error) => true,
            (Verdict::Fail, Severity::Warning) | (Verdict::NotTried, _) => self.strict,
            _ => false,
        };
        counts && !self.baseline.knows(finding)
    }

    /// Checks that were not tried, without those of the baseline.
    fn untried(&self) -> usize {
        let is_new = |finding: &&Finding| {
            finding.verdict == Verdict::NotTried && !self.baseline.knows(finding)
        };
        let checks = self.by_check().into_iter().filter(|(_, verdict, findings)| {
            *verdict == Verdict::NotTried && findings.iter().any(&is_new)
        });
        checks.count()
    }

    /// Why the run is a failure, if it is one.
    pub(crate) fn failure(&self) -> Option<String> {
        let counts = self.counts();
        let mut reasons = Vec::new();
        let mut add = |number: usize, one: &str, many: &str| {
            if number > 0 {
                reasons.push(count(number, one, many));
            }
        };
        add(counts.errors, "error", "errors");
        if self.strict {
            add(counts.warnings, "warning", "warnings");
            add(self.untried(), "check not tried", "checks not tried");
        }
        add(self.stale().len(), "stale entry in the baseline", "stale entries in the baseline");
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// The findings, one object each, and a summary.
    pub(crate) fn json(&self) -> Vec<Value> {
        let finding = |finding: &Finding| {
            json!({
                "id": finding.check.id,
                "era": finding.era.map(|era| era.to_string()),
                "verdict": finding.verdict.word(),
                "severity": finding.severity.word(),
                "known": finding.verdict == Verdict::Fail && self.baseline.knows(finding),
                "said": finding.said,
                "rule": finding.check.says,
                "clause": finding.check.link(finding.era),
                "remedy": finding.check.remedy,
                "evidence": finding.evidence,
            })
        };
        let counts = self.counts();
        let mut lines: Vec<_> = self.report.findings.iter().map(finding).collect();
        lines.push(json!({
            "summary": {
                "server": self.report.server,
                "eras": self.report.eras(),
                "errors": counts.errors,
                "warnings": counts.warnings,
                "notes": counts.notes,
                "known": counts.known,
                "not_tried": counts.not_tried,
                "not_offered": counts.not_offered,
                "passed": counts.passed,
                "stale": self.stale(),
                "requests": self.report.requests,
                "elapsed_ms": u64::try_from(self.report.elapsed.as_millis()).unwrap_or(u64::MAX),
                "cut_short": self.report.is_cut_short,
                "measured": self.report.measures.json(),
                "failed": self.failure().is_some(),
            }
        }));
        lines
    }
}

/// How much of its limits a run used.
pub(crate) fn effort(report: &Report) -> String {
    let (requests, time) = report.most;
    let cut_short = if report.is_cut_short { ", cut short by these limits" } else { "" };
    format!(
        "{} of at most {requests} requests, {:.1} of at most {:.0} s{cut_short}",
        report.requests,
        report.elapsed.as_secs_f64(),
        time.as_secs_f64()
    )
}

/// The era of a finding, as a word.
pub(crate) fn era(finding: &Finding) -> String {
    finding.era.map_or_else(|| "both eras".to_owned(), |era| era.to_string())
}
