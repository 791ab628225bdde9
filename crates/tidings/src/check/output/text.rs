//! The report as text that fits a terminal: the worst first, what passed last.

use std::fmt::Write as _;

use super::{Judged, era};
use crate::check::table::{DOCUMENTATION, Eras};
use crate::check::verdict::{Finding, Severity, Verdict};
use crate::present::Output;
use crate::present::text::{count, cut, harmless, wrapped};

/// The width of a report that no terminal shows.
const WIDTH: usize = 100;

/// The whole report.
pub(crate) fn report(judged: &Judged<'_>, output: &Output) -> String {
    let width = output.width.unwrap_or(WIDTH).clamp(40, 120);
    let paint = output.paint;
    let mut text = format!("{}\n", paint.bold(&harmless(&judged.report.server)));
    for finding in judged.failures() {
        let mark = match finding.severity {
            Severity::Error => paint.red("FAIL"),
            Severity::Warning => paint.yellow("WARN"),
            Severity::Advice => paint.cyan("NOTE"),
        };
        add(
            &mut text,
            format_args!("\n{mark} {} ({})\n", paint.bold(finding.check.id), era(finding)),
        );
        text += &indented(&harmless(&finding.said), 2, width);
        for line in &finding.evidence {
            text += &paint.faint(&format!("    {}", cut(&harmless(line), width - 4)));
            text.push('\n');
        }
        text += &indented(&format!("To do: {}", finding.check.remedy), 2, width);
        add(&mut text, format_args!("  {}\n", paint.faint(&finding.check.link())));
    }
    for stale in judged.stale() {
        let said = format!("the baseline has `{stale}`, which passes: remove the entry");
        add(&mut text, format_args!("\n{} {said}\n", paint.red("FAIL")));
    }
    text += &others(judged, output, width);
    let measured = judged.report.measures.lines();
    if !measured.is_empty() {
        add(&mut text, format_args!("\n{}\n", paint.bold("measured")));
        for line in measured {
            add(&mut text, format_args!("  {line}\n"));
        }
    }
    text + &last_line(judged, output)
}

/// What was not tried, not offered, known or passed.
fn others(judged: &Judged<'_>, output: &Output, width: usize) -> String {
    let mut text = String::new();
    let not_tried: Vec<_> = judged
        .report
        .findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::NotTried)
        .collect();
    if !not_tried.is_empty() {
        add(&mut text, format_args!("\n{}\n", output.paint.bold("not tried")));
        for (said, findings) in grouped(&not_tried) {
            text += &indented(&names(&findings), 2, width);
            text += &output.paint.faint(&indented(&harmless(&said), 6, width));
        }
    }
    for (title, verdict) in [("not offered", Verdict::NotOffered), ("passed", Verdict::Pass)] {
        let checks: Vec<_> = judged
            .by_check()
            .into_iter()
            .filter(|(_, worst, _)| *worst == verdict)
            .map(|(check, ..)| check.id)
            .collect();
        if !checks.is_empty() {
            add(&mut text, format_args!("\n{}\n", output.paint.bold(title)));
            text += &indented(&checks.join("  "), 2, width);
        }
    }
    let known = judged
        .report
        .findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Fail && judged.baseline.knows(finding));
    let known: Vec<_> = known.collect();
    if !known.is_empty() {
        add(&mut text, format_args!("\n{}\n", output.paint.bold("known failures")));
        text += &indented(&names(&known), 2, width);
    }
    text
}

/// The checks of findings; the era is named where the other era came to another end.
fn names(findings: &[&Finding]) -> String {
    let mut names: Vec<String> = Vec::new();
    for finding in findings {
        let id = finding.check.id;
        let others = findings.iter().filter(|other| other.check.id == id).count();
        let is_all = others == 2 || finding.check.eras != Eras::Both || finding.era.is_none();
        let name = if is_all { id.to_owned() } else { format!("{id} ({})", era(finding)) };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// Findings with the same reason together, in order.
fn grouped<'a>(findings: &[&'a Finding]) -> Vec<(String, Vec<&'a Finding>)> {
    let mut groups: Vec<(String, Vec<&Finding>)> = Vec::new();
    for finding in findings {
        match groups.iter_mut().find(|(said, _)| *said == finding.said) {
            Some((_, group)) => group.push(finding),
            None => groups.push((finding.said.clone(), vec![finding])),
        }
    }
    groups
}

fn last_line(judged: &Judged<'_>, output: &Output) -> String {
    let counts = judged.counts();
    let mut parts = Vec::new();
    let mut part = |number: usize, one: &str, many: &str| {
        if number > 0 {
            parts.push(count(number, one, many));
        }
    };
    part(counts.errors, "error", "errors");
    part(counts.warnings, "warning", "warnings");
    part(counts.advice, "note", "notes");
    part(counts.known, "known failure", "known failures");
    part(counts.not_tried, "not tried", "not tried");
    part(counts.not_offered, "not offered", "not offered");
    part(counts.passed, "passed", "passed");
    let report = judged.report;
    let seconds = report.elapsed.as_secs_f64();
    let cut_short = if report.is_cut_short { ", cut short by its limits" } else { "" };
    let verdict = if judged.failure().is_some() {
        output.paint.red("failed")
    } else {
        output.paint.green("fine")
    };
    format!(
        "\n{verdict}: {} ({} in {seconds:.1} s{cut_short})\n{}\n",
        parts.join(", "),
        count(report.requests, "request", "requests"),
        output.paint.faint(DOCUMENTATION),
    )
}

fn indented(text: &str, columns: usize, width: usize) -> String {
    let mut lines = String::new();
    for line in wrapped(text, width - columns) {
        add(&mut lines, format_args!("{:columns$}{line}\n", ""));
    }
    lines
}

/// Appends to a text; that cannot fail.
fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}
