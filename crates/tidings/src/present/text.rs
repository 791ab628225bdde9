//! Text for a terminal: its width, wrapping, cutting, and removing control characters.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text in one line: white space becomes one space, and control characters are removed.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    harmless(&words.join(" "))
}

/// A text without control characters, so that a server's text cannot control the terminal.
pub(crate) fn harmless(text: &str) -> String {
    // Overrides of the writing direction can disguise a text.
    let steers = |letter: char| {
        (letter.is_control() && letter != '\n' && letter != '\t')
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace("\r\n", "\n")
        .chars()
        .map(|letter| if steers(letter) { '\u{fffd}' } else { letter })
        .collect()
}

/// A text cut to a width, with a mark where it was cut.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let mut taken = 0;
    let mut shown = String::new();
    for letter in text.chars() {
        taken += letter.width().unwrap_or(0);
        if taken > columns.saturating_sub(1) {
            break;
        }
        shown.push(letter);
    }
    shown.truncate(shown.trim_end().len());
    if columns > 0 {
        shown.push('…');
    }
    shown.into()
}

/// A text wrapped at a width, between words.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.width() + 1 + word.width() > columns {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
    }
    lines
}

/// A number and its noun.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// A size in a readable unit.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => count(bytes, "byte", "bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(width("日本"), 4);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("ab cd", 4), "ab…");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn a_server_cannot_steer_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\tc\r\nd"), "a\u{fffd}[2Jb\tc\nd");
        assert_eq!(one_line("a\n  b\u{7}"), "a b\u{fffd}");
        assert_eq!(harmless("x\u{202e}y"), "x\u{fffd}y");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three\n\nfour", 8), ["one two", "three", "", "four"]);
    }
}
