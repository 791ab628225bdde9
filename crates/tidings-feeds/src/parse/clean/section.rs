//! CDATA sections without an end.

use super::name;

pub(super) const BEGIN: &str = "<![CDATA[";

/// Elements of feeds that contain sections, or contain such elements.
const AROUND: [&str; 6] = ["content", "content:encoded", "description", "entry", "item", "summary"];

/// The end of a section without one of its own: before the end of the last element that began, or
/// of one that may contain it. Elements that open in it are part of it.
pub(super) fn lost_end(inner: &str, element: &str) -> Option<usize> {
    let mut names = [element; 7];
    names[1..].copy_from_slice(&AROUND);
    let mut open = [0_usize; 7];
    for (at, _) in inner.match_indices('<') {
        let tag = &inner[at + 1..];
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let name = name(tag);
        let which = names.iter().position(|known| !name.is_empty() && *known == name);
        let Some(which) = which else { continue };
        if is_end && !tag[name.len()..].trim_start().starts_with('>') {
            continue;
        }
        match (is_end, open[which]) {
            (true, 0) => return Some(at),
            (true, _) => open[which] -= 1,
            (false, _) => open[which] += 1,
        }
    }
    None
}

/// A text without a mistyped end of the section: `]]`, `]>` or `]] >`.
pub(super) fn without_rest(text: &str) -> &str {
    let is_rest = |letter: char| matches!(letter, ']' | '>') || letter.is_whitespace();
    let rest = &text[text.trim_end_matches(is_rest).len()..];
    let Some(at) = rest.find("]]").or_else(|| rest.find("]>")) else { return text };
    &text[..text.len() - rest.len() + at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inner: &str, expected: Option<&str>) {
        let found = lost_end(inner, "title").map(|end| without_rest(&inner[..end]));
        assert_eq!(found, expected, "{inner}");
    }

    #[test]
    fn a_section_ends_with_its_element() {
        check("x]]</title><link>", Some("x"));
        check("x]] ></title>", Some("x"));
        check("<b>x</b>]></title>", Some("<b>x</b>"));
        check("a[1]</title>", Some("a[1]"));
        check("x</item><item>", Some("x"));
        check("a[b[1]]</code> <title>x</title> y", None);
        check("x", None);
    }
}
