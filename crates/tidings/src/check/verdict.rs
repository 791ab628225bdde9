//! Verdicts: what a check found in one era, and the trace of messages that shows it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tidings_mirror::Era;
use tokio::time::Instant;

use super::client::Meter;
use super::table::{self, Mode, Rule};

/// Lines of the trace that are kept.
const TRACE: usize = 4000;
/// Lines of the trace that a finding shows, from its beginning and from its end.
const SHOWN: (usize, usize) = (4, 8);

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fail,
    NotTried,
    NotOffered,
    Pass,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::NotTried => "not tried",
            Self::NotOffered => "not offered",
            Self::Pass => "pass",
        }
    }
}

/// How bad a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// A MUST of the protocol is broken, or a promised notice is lost.
    Error,
    /// A SHOULD is broken, or clients are worse off than they need be.
    Warning,
    /// Worth knowing.
    Advice,
}

impl Severity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Advice => "note",
        }
    }
}

/// What one check found in one era.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) check: &'static Rule,
    /// The era, unless the check compares both.
    pub(crate) era: Option<Era>,
    pub(crate) verdict: Verdict,
    pub(crate) severity: Severity,
    /// What was seen, or what to give so that the check can be tried.
    pub(crate) said: String,
    /// What was sent and received, with times; of failures only.
    pub(crate) evidence: Vec<String>,
}

/// The messages of all clients, with times; the oldest are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    began: Instant,
    lines: Arc<Mutex<(usize, VecDeque<String>)>>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), lines: Arc::default() }
    }

    /// Adds a line with the present time.
    pub(crate) fn line(&self, text: &str) {
        let at = self.began.elapsed().as_secs_f64() * 1e3;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.1.len() == TRACE {
            lines.1.pop_front();
            lines.0 += 1;
        }
        lines.1.push_back(format!("{at:.1} ms  {text}"));
    }

    fn mark(&self) -> usize {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.0 + lines.1.len()
    }

    /// The first line that has this text, and the lines around it.
    pub(crate) fn around(&self, text: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = lines.1.iter().position(|line| line.contains(text)) else {
            return Vec::new();
        };
        lines.1.iter().skip(place.saturating_sub(2)).take(5).cloned().collect()
    }

    fn since(&self, mark: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let from = mark.saturating_sub(lines.0);
        let found: Vec<_> = lines.1.iter().skip(from).cloned().collect();
        if found.len() <= SHOWN.0 + SHOWN.1 {
            return found;
        }
        let left = found.len() - SHOWN.0 - SHOWN.1;
        let mut shown = found[..SHOWN.0].to_vec();
        shown.push(format!("… {left} more"));
        shown.extend_from_slice(&found[found.len() - SHOWN.1..]);
        shown
    }
}

/// The findings of one run. Each check has at most one in each era; the first failure stays.
#[derive(Debug)]
pub(crate) struct Findings {
    found: BTreeMap<(usize, Option<u8>), Finding>,
    trace: Trace,
    mark: usize,
    meter: Arc<Meter>,
}

impl Findings {
    pub(crate) fn new(trace: Trace, meter: Arc<Meter>) -> Self {
        Self { found: BTreeMap::new(), trace, mark: 0, meter }
    }

    /// From here on the trace belongs to the next check.
    pub(crate) fn begin(&mut self) {
        self.mark = self.trace.mark();
    }

    pub(crate) fn pass(&mut self, id: &str, era: Era, said: impl Into<String>) {
        self.add(id, Some(era), Verdict::Pass, None, said.into());
    }

    pub(crate) fn fail(&mut self, id: &str, era: Era, said: impl Into<String>) {
        self.add(id, Some(era), Verdict::Fail, None, said.into());
    }

    /// A failure that is more or less severe than the check's usual one.
    pub(crate) fn fail_as(
        &mut self,
        id: &str,
        era: Era,
        severity: Severity,
        said: impl Into<String>,
    ) {
        self.add(id, Some(era), Verdict::Fail, Some(severity), said.into());
    }

    pub(crate) fn not_offered(&mut self, id: &str, era: Era, said: impl Into<String>) {
        self.add(id, Some(era), Verdict::NotOffered, None, said.into());
    }

    pub(crate) fn not_tried(&mut self, id: &str, era: Era, said: impl Into<String>) {
        self.add(id, Some(era), Verdict::NotTried, None, said.into());
    }

    /// Fails with this text, or passes with the other.
    pub(crate) fn judge(
        &mut self,
        id: &str,
        era: Era,
        failure: Option<String>,
        passed: impl Into<String>,
    ) {
        match failure {
            Some(said) => self.fail(id, era, said),
            None => self.pass(id, era, passed),
        }
    }

    /// Shows other messages with a failure than those since its check began.
    pub(crate) fn show(&mut self, id: &str, era: Era, evidence: Vec<String>) {
        if let Some(finding) = self.found.get_mut(&(table::place(id), Some(number(era))))
            && finding.verdict == Verdict::Fail
        {
            finding.evidence = evidence;
        }
    }

    /// A finding about both eras together.
    pub(crate) fn across(&mut self, id: &str, verdict: Verdict, said: impl Into<String>) {
        self.add(id, None, verdict, None, said.into());
    }

    fn add(
        &mut self,
        id: &str,
        era: Option<Era>,
        verdict: Verdict,
        severity: Option<Severity>,
        said: String,
    ) {
        // Without requests, nothing was seen, so nothing failed and nothing passed.
        let is_judged = matches!(verdict, Verdict::Fail | Verdict::Pass);
        let (verdict, said) = if is_judged && self.meter.is_spent() {
            (Verdict::NotTried, SPENT.to_owned())
        } else {
            (verdict, said)
        };
        let place = table::place(id);
        let check = &table::CHECKS[place];
        let severity = severity.unwrap_or(check.severity);
        let failed = verdict == Verdict::Fail;
        let evidence = if failed { self.trace.since(self.mark) } else { Vec::new() };
        let finding = Finding { check, era, verdict, severity, said, evidence };
        let key = (place, era.map(number));
        // What was tried says more than what was not, and a failure more than anything.
        let rank = |verdict: Verdict| match verdict {
            Verdict::Fail => 0,
            Verdict::Pass => 1,
            Verdict::NotOffered => 2,
            Verdict::NotTried => 3,
        };
        let keeps = self.found.get(&key).is_some_and(|old| rank(old.verdict) <= rank(verdict));
        if !keeps {
            self.found.insert(key, finding);
        }
    }

    /// All findings: every check has one in each era that it concerns and that was asked for.
    pub(crate) fn finish(mut self, eras: &[Era]) -> Vec<Finding> {
        for check in &table::CHECKS {
            if check.id == "caps.eras-agree" && self.meter.is_spent() {
                self.across(check.id, Verdict::NotTried, SPENT);
                continue;
            }
            if check.id == "caps.eras-agree" {
                self.across(check.id, Verdict::NotTried, "needs both eras: leave out `--protocol`");
                continue;
            }
            for era in eras.iter().filter(|era| check.concerns(**era)) {
                let said = match check.mode {
                    _ if self.meter.is_spent() => SPENT,
                    Mode::Passive => "the run ended before it",
                    Mode::Change => GIVE_CHANGE,
                    Mode::Restart => "give `--restart`, or `--restart-exec COMMAND` for a URL",
                };
                self.not_tried(check.id, *era, said);
            }
        }
        self.found.into_values().collect()
    }
}

/// What to give so that a check can be tried that needs a change.
pub(crate) const GIVE_CHANGE: &str = "nothing was changed, which proves little: give \
     `--change 'TOOL key=value'` or `--exec COMMAND`";
/// What to give so that a subscriber is left idle.
pub(crate) const GIVE_LONG: &str = "give `--long`: a subscriber is then left idle for six minutes";
/// Why nothing more can be tried.
pub(crate) const SPENT: &str =
    "the run used up its requests or its time: raise `--max-requests` or `--max-time`";

fn number(era: Era) -> u8 {
    match era {
        Era::Legacy => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn findings(requests: usize) -> Findings {
        Findings::new(Trace::new(), Arc::new(Meter::new(requests, Duration::from_mins(1))))
    }

    #[tokio::test]
    async fn a_check_that_did_not_run_is_never_a_pass() {
        let findings = findings(1).finish(&[Era::Legacy, Era::Modern]);
        assert!(findings.iter().all(|finding| finding.verdict == Verdict::NotTried));
        for check in &table::CHECKS {
            assert!(findings.iter().any(|finding| finding.check.id == check.id), "{}", check.id);
        }
    }

    #[tokio::test]
    async fn a_failure_is_not_replaced_by_a_later_pass() {
        let mut findings = findings(1);
        findings.fail("read.stable", Era::Legacy, "first");
        findings.pass("read.stable", Era::Legacy, "second");
        let found = findings.finish(&[Era::Legacy]);
        let found = found.iter().find(|finding| finding.check.id == "read.stable").unwrap();
        assert_eq!((found.verdict, found.said.as_str()), (Verdict::Fail, "first"));
    }

    #[tokio::test]
    async fn a_run_without_requests_judges_nothing() {
        let mut findings = findings(0);
        findings.fail("read.stable", Era::Legacy, "no answer");
        findings.pass("read.notfound", Era::Legacy, "no answer");
        let found = findings.finish(&[Era::Legacy]);
        assert!(found.iter().all(|finding| finding.verdict == Verdict::NotTried));
    }
}
