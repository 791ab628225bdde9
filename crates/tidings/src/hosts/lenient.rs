//! JSON as people keep it in settings: with comments and commas too many.

/// The same text without comments and without commas before a closing bracket.
///
/// Line breaks stay where they are, so that errors name the right line.
pub(super) fn json(text: &str) -> String {
    let plain = without_comments(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut result = String::with_capacity(plain.len());
    let mut quoted = Quoted::default();
    for (place, letter) in plain.char_indices() {
        let inside = quoted.step(letter);
        let next = || plain[place + 1..].trim_start().chars().next();
        if !inside && letter == ',' && matches!(next(), Some('}' | ']')) {
            continue;
        }
        result.push(letter);
    }
    result
}

fn without_comments(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut quoted = Quoted::default();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if !quoted.inside && rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        if !quoted.inside && rest.starts_with("/*") {
            let end = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
            result.extend(rest[..end].chars().filter(|letter| *letter == '\n'));
            rest = &rest[end..];
            continue;
        }
        quoted.step(letter);
        result.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    result
}

/// Whether we are inside a text.
#[derive(Default)]
struct Quoted {
    inside: bool,
    escaped: bool,
}

impl Quoted {
    fn step(&mut self, letter: char) -> bool {
        match letter {
            _ if self.escaped => self.escaped = false,
            '\\' if self.inside => self.escaped = true,
            '"' => self.inside = !self.inside,
            _ => {}
        }
        self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(json(text), expected);
    }

    #[test]
    fn comments_and_spare_commas_go() {
        check("{\"a\": 1, // one\n}", "{\"a\": 1 \n}");
        check("[1, /* two\nlines */ 2,]", "[1, \n 2]");
        check("/* open", "");
    }

    #[test]
    fn texts_stay_as_they_are() {
        check(r#"{"url": "http://a/b", "c": "\",}"}"#, r#"{"url": "http://a/b", "c": "\",}"}"#);
        check(r#"["é\\", ",]"]"#, r#"["é\\", ",]"]"#);
    }
}
