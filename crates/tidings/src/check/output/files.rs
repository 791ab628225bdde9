//! Reports for other programs and places: `JUnit`, Markdown, annotations of GitHub.

use std::fmt::Write as _;

use super::{Judged, effort, era};
use crate::check::verdict::{Finding, Severity, Verdict};
use crate::present::text::harmless;

/// The report in the XML of `JUnit`. Warnings are failures only if the run counts them.
pub(crate) fn junit(judged: &Judged<'_>) -> String {
    let report = judged.report;
    let stale = judged.stale();
    let fails = |finding: &Finding| judged.counts_against(finding);
    let failures = report.findings.iter().filter(|finding| fails(finding)).count() + stale.len();
    let skips = |finding: &&Finding| {
        matches!(finding.verdict, Verdict::NotTried | Verdict::NotOffered) && !fails(finding)
    };
    let skipped = report.findings.iter().filter(skips).count();
    let tests = report.findings.len() + stale.len();
    let time = report.elapsed.as_secs_f64();
    let name = escaped(&report.server);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        xml,
        "<testsuites name=\"tidings check\" tests=\"{tests}\" failures=\"{failures}\" time=\"{time:.3}\">\n\
         <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\" time=\"{time:.3}\">"
    );
    for finding in &report.findings {
        let (id, era, said) = (finding.check.id, escaped(&era(finding)), escaped(&finding.said));
        let _ = write!(xml, "<testcase classname=\"{era}\" name=\"{id}\"");
        let _ = match finding.verdict {
            _ if fails(finding) => {
                let more = finding.evidence.join("\n");
                let more = escaped(&format!(
                    "{more}\n{}\n{}",
                    finding.check.remedy,
                    finding.check.link(finding.era)
                ));
                let kind = match finding.verdict {
                    Verdict::Fail => finding.severity.word(),
                    verdict => verdict.word(),
                };
                writeln!(
                    xml,
                    "><failure type=\"{kind}\" message=\"{said}\">{more}</failure></testcase>"
                )
            }
            Verdict::Fail => {
                let word = finding.severity.word();
                writeln!(xml, "><system-out>{word}: {said}</system-out></testcase>")
            }
            Verdict::NotTried | Verdict::NotOffered => {
                let word = finding.verdict.word();
                writeln!(xml, "><skipped message=\"{word}: {said}\"/></testcase>")
            }
            Verdict::Pass => writeln!(xml, "/>"),
        };
    }
    for entry in stale {
        let _ = writeln!(
            xml,
            "<testcase classname=\"baseline\" name=\"{}\"><failure type=\"stale\" \
             message=\"the check passes: remove the entry\"/></testcase>",
            escaped(&entry)
        );
    }
    xml + "</testsuite>\n</testsuites>\n"
}

/// The report in Markdown, to be pasted into an issue.
pub(crate) fn markdown(judged: &Judged<'_>) -> String {
    let report = judged.report;
    let mut text = format!("# `tidings check`: {}\n\n", plain(&report.server));
    // Writing to a string does not fail.
    let _ = writeln!(text, "{} ({}).\n", judged.counts().words(), effort(report));
    for (era, why) in &report.unspoken {
        let _ = writeln!(text, "The server does not speak the {era} era: {}\n", plain(why));
    }
    for finding in judged.failures() {
        let check = finding.check;
        let _ = writeln!(
            text,
            "## {} `{}` ({})\n\n{}\n\n- Rule: {} ([source]({}))\n- To do: {}\n",
            finding.severity.word(),
            check.id,
            era(finding),
            plain(&finding.said),
            check.says,
            check.link(finding.era),
            check.remedy
        );
        if !finding.evidence.is_empty() {
            let lines = finding.evidence.join("\n").replace("```", "'''");
            let _ = writeln!(text, "```text\n{}\n```\n", harmless(&lines));
        }
    }
    let measured = report.measures.lines();
    if !measured.is_empty() {
        let _ = writeln!(text, "## Measured\n\n- {}\n", measured.join("\n- "));
    }
    text += "## All checks\n\n| check | era | verdict | |\n|---|---|---|---|\n";
    for finding in &report.findings {
        let said = plain(&finding.said).replace('|', "\\|");
        let (id, verdict) = (finding.check.id, finding.verdict.word());
        let _ = writeln!(text, "| `{id}` | {} | {verdict} | {said} |", era(finding));
    }
    text
}

/// Lines that GitHub shows beside a run.
pub(crate) fn annotations(judged: &Judged<'_>) -> String {
    let mut text = String::new();
    for finding in judged.failures() {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "notice",
        };
        let said = format!("{}. To do: {}", finding.said, finding.check.remedy);
        let said = said.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
        let _ = writeln!(text, "::{level} title={} ({})::{said}", finding.check.id, era(finding));
    }
    for stale in judged.stale() {
        let _ =
            writeln!(text, "::error title=tidings check::the baseline has `{stale}`, which passes");
    }
    text
}

/// Text for XML, without characters that XML cannot have.
fn escaped(text: &str) -> String {
    harmless(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// One line of Markdown.
fn plain(text: &str) -> String {
    harmless(&text.replace(['\n', '\r'], " ")).replace('<', "&lt;")
}
