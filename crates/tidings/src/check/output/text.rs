//! The report as text that fits a terminal: the worst first, what passed last.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::{Judged, effort, era};
use crate::check::table::{DOCUMENTATION, Eras};
use crate::check::verdict::{Finding, Severity, Verdict};
use crate::present::Output;
use crate::present::text::{cut, harmless, wrapped};

/// The width of a report that no terminal shows.
const WIDTH: usize = 100;

/// The whole report.
pub(crate) fn report(judged: &Judged<'_>, output: &Output) -> String {
    let width = output.width.unwrap_or(WIDTH).clamp(40, 120);
    let paint = output.paint;
    let mut text = format!("{}\n", paint.bold(&harmless(&judged.report.server)));
    for (era, why) in &judged.report.unspoken {
        let said = format!("does not speak the {era} era: {}", harmless(why));
        text += &indented(&said, 2, width);
    }
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
        add(&mut text, format_args!("  {}\n", paint.faint(&finding.check.link(finding.era))));
    }
    for stale in judged.stale() {
        add(&mut text, format_args!("\n{} {}\n", paint.red("FAIL"), paint.bold("baseline")));
        let said = format!("`{stale}` is a known failure, but it passes: remove the entry");
        text += &indented(&said, 2, width);
    }
    text += &others(judged, output, width);
    let measured = judged.report.measures.lines();
    if !measured.is_empty() {
        add(&mut text, format_args!("\n{}\n", paint.bold("measured")));
        for line in measured {
            text += &indented(&line, 2, width);
        }
    }
    text + &last_lines(judged, output, width)
}

/// What was not tried, not offered, known or passed.
fn others(judged: &Judged<'_>, output: &Output, width: usize) -> String {
    let mut text = String::new();
    let by_check = judged.by_check();
    let checks = |verdict: Verdict| by_check.iter().filter(move |(_, worst, _)| *worst == verdict);
    let findings = judged.report.findings.iter();
    let not_tried: Vec<_> =
        findings.clone().filter(|finding| finding.verdict == Verdict::NotTried).collect();
    // Of an era that is not spoken, nothing needs to be said twice.
    let is_spoken = |finding: &&&Finding| {
        let unspoken = &judged.report.unspoken;
        unspoken.iter().all(|(era, _)| finding.era != Some(*era))
    };
    let not_offered: Vec<_> = checks(Verdict::NotOffered)
        .flat_map(|(_, _, findings)| {
            let spoken: Vec<_> = findings.iter().filter(is_spoken).copied().collect();
            if spoken.is_empty() { findings.clone() } else { spoken }
        })
        .collect();
    for (title, findings) in [("not tried", not_tried), ("not offered", not_offered)] {
        if findings.is_empty() {
            continue;
        }
        add(&mut text, format_args!("\n{}\n", output.paint.bold(title)));
        for (said, findings) in grouped(&findings) {
            let (names, said) = (names(judged, &findings), harmless(&said));
            if names.width() + said.width() + 4 <= width {
                add(&mut text, format_args!("  {names}: {}\n", output.paint.faint(&said)));
            } else {
                text += &indented(&names, 2, width);
                text += &output.paint.faint(&indented(&said, 6, width));
            }
        }
    }
    let passed: Vec<_> = checks(Verdict::Pass).map(|(check, ..)| check.id).collect();
    if !passed.is_empty() {
        add(&mut text, format_args!("\n{}\n", output.paint.bold("passed")));
        text += &indented(&passed.join(", "), 2, width);
    }
    let is_known =
        |finding: &&Finding| finding.verdict == Verdict::Fail && judged.baseline.knows(finding);
    let known: Vec<_> = findings.filter(is_known).collect();
    if !known.is_empty() {
        add(&mut text, format_args!("\n{}\n", output.paint.bold("known failures")));
        text += &indented(&names(judged, &known), 2, width);
    }
    text
}

/// The checks of findings; the era is named where the other era came to another end.
fn names(judged: &Judged<'_>, findings: &[&Finding]) -> String {
    let is_one = judged.report.eras().len() == 1;
    let mut names: Vec<String> = Vec::new();
    for finding in findings {
        let id = finding.check.id;
        let others = findings.iter().filter(|other| other.check.id == id).count();
        let is_all =
            is_one || others == 2 || finding.check.eras != Eras::Both || finding.era.is_none();
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

fn last_lines(judged: &Judged<'_>, output: &Output, width: usize) -> String {
    let mut lines = wrapped(&format!("{}: {}", verdict(judged), judged.counts().words()), width);
    if let Some(first) = lines.first_mut() {
        let word = verdict(judged);
        let painted = match word {
            "fine" => output.paint.green(word),
            "incomplete" => output.paint.yellow(word),
            _ => output.paint.red(word),
        };
        *first = first.replacen(word, &painted, 1);
    }
    lines.extend(wrapped(&effort(judged.report), width));
    format!("\n{}\n{}\n", lines.join("\n"), output.paint.faint(DOCUMENTATION))
}

fn verdict(judged: &Judged<'_>) -> &'static str {
    match judged.failure() {
        Some(_) => "failed",
        None if judged.report.is_cut_short => "incomplete",
        None => "fine",
    }
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
