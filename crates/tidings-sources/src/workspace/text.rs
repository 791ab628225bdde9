//! Texts from outside: which are taken.

use crate::workspace::{Limits, Refusal};

/// Whether a text may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    One,
    Many,
}

/// Refuses a text that is empty, too long, or has control characters in it. Line breaks and tabs
/// are none in a text of many lines.
pub(crate) fn check(
    what: &'static str,
    text: &str,
    limit: usize,
    lines: Lines,
) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Empty { what });
    }
    if text.len() > limit {
        return Err(Refusal::TooLong { what, length: text.len(), limit });
    }
    let breaks = |it: char| lines == Lines::Many && matches!(it, '\n' | '\r' | '\t');
    match text.chars().find(|it| it.is_control() && !breaks(*it)) {
        Some(control) => Err(Refusal::Control { what, code: u32::from(control) }),
        None => Ok(()),
    }
}

/// Tags in order, none twice.
pub(crate) fn tags(tags: &[String], limits: &Limits) -> Result<Vec<String>, Refusal> {
    // Before they are looked at one by one: there may be very many.
    if tags.len() > limits.tags {
        let (count, limit) = (tags.len(), limits.tags);
        return Err(Refusal::TooMany { what: "tags", count, limit });
    }
    for tag in tags {
        check("tag", tag, limits.tag, Lines::One)?;
    }
    let mut tags = tags.to_vec();
    tags.sort();
    tags.dedup();
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_control_characters_is_taken() {
        assert_eq!(check("title", "Gr\u{fc}n / 100 %", 100, Lines::One), Ok(()));
        assert_eq!(check("message", "a\n\tb", 100, Lines::Many), Ok(()));
    }

    #[test]
    fn what_cannot_be_shown_is_refused() {
        let control = |code| Err(Refusal::Control { what: "title", code });
        assert_eq!(check("title", "a\0b", 100, Lines::One), control(0));
        assert_eq!(check("title", "a\nb", 100, Lines::One), control(10));
        assert_eq!(check("title", "a\u{9b}b", 100, Lines::Many), control(0x9b));
        assert_eq!(check("title", " ", 100, Lines::One), Err(Refusal::Empty { what: "title" }));
        let long = Refusal::TooLong { what: "title", length: 5, limit: 4 };
        assert_eq!(check("title", "12345", 4, Lines::One), Err(long));
    }

    #[test]
    fn tags_are_in_order_and_there_once() {
        let given = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(tags(&given, &Limits::default()).unwrap(), ["a", "b"]);
        let many = vec!["a".to_owned(); 10_000];
        assert!(matches!(tags(&many, &Limits::default()), Err(Refusal::TooMany { .. })));
    }
}
