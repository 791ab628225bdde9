//! Elements that end where another begins, without an end tag.

use super::level::is_inline;

/// Elements that end a paragraph.
const BLOCKS: [&str; 35] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "center",
    "details",
    "dir",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "ul",
    "dd",
    "dt",
    "li",
];
const CELLS: [&str; 2] = ["td", "th"];
const ROWS: [&str; 3] = ["td", "th", "tr"];
const PARTS: [&str; 8] = ["caption", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr"];

/// How many open elements stay open where one of this name begins.
pub(crate) fn open_before(name: &str, open: &[String]) -> usize {
    let in_item = |name: &str| is_inline(name) || matches!(name, "address" | "div" | "p");
    let in_row = |name: &str| !matches!(name, "table" | "tr");
    let in_table = |name: &str| name != "table";
    let left = match name {
        "li" => outermost(open, &["li"], in_item),
        "dt" | "dd" => outermost(open, &["dt", "dd"], in_item),
        "td" | "th" => outermost(open, &CELLS, in_row),
        "tr" => outermost(open, &ROWS, in_table),
        "option" => outermost(open, &["option"], is_inline),
        "tbody" | "thead" | "tfoot" => outermost(open, &PARTS, in_table),
        _ => open.len(),
    };
    if is_block(name) { outermost(&open[..left], &["p"], is_inline) } else { left }
}

/// Whether an element is a block, which ends a paragraph.
pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

/// How many elements are outside the outermost that is ended.
fn outermost(open: &[String], ended: &[&str], is_passed: impl Fn(&str) -> bool) -> usize {
    let mut left = open.len();
    for (at, name) in open.iter().enumerate().rev() {
        if ended.contains(&name.as_str()) {
            left = at;
        } else if !is_passed(name) {
            break;
        }
    }
    left
}
