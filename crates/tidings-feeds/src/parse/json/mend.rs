//! JSON that is nearly JSON: cut off in the middle, or with what some writers get wrong.

/// How deep values may lie in each other; what comes after one that is deeper is not read.
const DEPTH: usize = 100;

/// What could be made of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mended {
    pub(super) text: String,
    /// Whether something at the end was left out, because it had not ended.
    pub(super) is_cut: bool,
}

/// Writes a text as it should be: control characters in strings and wrong escapes are escaped, commas
/// before an end are left out. Of a text that is cut off, what is whole stays: members of the object
/// itself, and elements of lists in it. `None` if nothing is.
pub(super) fn mend(text: &str) -> Option<Mended> {
    let mut mender =
        Mender { rest: text, out: String::with_capacity(text.len()), ..Mender::default() };
    while !mender.rest.is_empty() {
        match mender.step() {
            Step::On => {}
            Step::Done => return Some(Mended { text: mender.out, is_cut: false }),
            Step::Stuck => break,
        }
    }
    let (length, depth) = mender.whole?;
    let mut text = mender.out;
    text.truncate(length);
    text.extend(mender.open[..depth].iter().rev());
    Some(Mended { text, is_cut: true })
}

enum Step {
    On,
    /// The object has ended.
    Done,
    /// There is no way on.
    Stuck,
}

#[derive(Debug, Default)]
struct Mender<'a> {
    rest: &'a str,
    out: String,
    /// What ends each of the values that are open.
    open: Vec<char>,
    /// A comma that is written when something follows it.
    comma: bool,
    /// Up to where everything is whole, and how many values are open there. Invariant: they are the
    /// first of those that are open now.
    whole: Option<(usize, usize)>,
}

impl Mender<'_> {
    fn step(&mut self) -> Step {
        let Some(letter) = self.rest.chars().next() else { return Step::Stuck };
        if letter != '"' {
            self.rest = &self.rest[letter.len_utf8()..];
        }
        match letter {
            '"' => {
                self.write_comma();
                if self.string().is_none() {
                    return Step::Stuck;
                }
            }
            '{' | '[' => {
                self.write_comma();
                if self.open.len() == DEPTH {
                    return Step::Stuck;
                }
                self.open.push(if letter == '{' { '}' } else { ']' });
                self.out.push(letter);
            }
            '}' | ']' => {
                self.comma = false;
                if self.open.last() != Some(&letter) {
                    return Step::Stuck;
                }
                self.open.pop();
                self.out.push(letter);
                if self.open.is_empty() {
                    return Step::Done;
                }
                self.mark();
            }
            ',' => {
                if !self.comma {
                    self.mark();
                }
                self.comma = true;
            }
            _ if letter.is_whitespace() || letter.is_control() => self.out.push(' '),
            _ => {
                self.write_comma();
                self.out.push(letter);
            }
        }
        Step::On
    }

    fn write_comma(&mut self) {
        if std::mem::take(&mut self.comma) {
            self.out.push(',');
        }
    }

    /// All that was written is whole, if it is a member of the object or an element of a list in it.
    fn mark(&mut self) {
        if matches!(*self.open, [_] | [_, ']']) {
            self.whole = Some((self.out.len(), self.open.len()));
        }
    }

    /// A string; `None` if it does not end.
    fn string(&mut self) -> Option<()> {
        self.out.push('"');
        self.rest = &self.rest[1..];
        loop {
            let is_special = |letter: char| matches!(letter, '"' | '\\') || letter < ' ';
            let (plain, rest) = self.rest.split_at(self.rest.find(is_special)?);
            self.out.push_str(plain);
            let letter = rest.chars().next()?;
            self.rest = &rest[1..];
            match letter {
                '"' => {
                    self.out.push('"');
                    return Some(());
                }
                '\\' => self.escape()?,
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                '\r' => self.out.push_str("\\r"),
                // As in XML, where nobody may write it either.
                _ => {}
            }
        }
    }

    /// What follows a backslash; `None` if nothing does.
    fn escape(&mut self) -> Option<()> {
        let letter = self.rest.chars().next()?;
        let second = || self.rest[5..].strip_prefix('\\').and_then(unit);
        let length = match letter {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => 1,
            'u' => match unit(self.rest) {
                Some(0xd800..=0xdbff) if matches!(second(), Some(0xdc00..=0xdfff)) => 11,
                // Half of a character.
                Some(0xd800..=0xdfff) => {
                    self.out.push(char::REPLACEMENT_CHARACTER);
                    self.rest = &self.rest[5..];
                    return Some(());
                }
                Some(_) => 5,
                None => 0,
            },
            _ => 0,
        };
        // Another sign is not escaped by it; then the backslash is one.
        self.out.push_str(if length == 0 { "\\\\" } else { "\\" });
        self.out.push_str(&self.rest[..length]);
        self.rest = &self.rest[length..];
        Some(())
    }
}

/// The number of `u` and four digits.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if are_digits { u16::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mended = mend(text).map_or_else(|| "nothing".to_owned(), |mended| mended.text);
        assert_eq!(mended, expected);
        assert!(expected == "nothing" || serde_json::from_str::<Value>(&mended).is_ok());
    }

    #[test]
    fn a_cut_leaves_what_is_whole() {
        check(r#"{"a":"b","c":"d"#, r#"{"a":"b"}"#);
        check(r#"{"a":12,"c":34"#, r#"{"a":12}"#);
        check(r#"{"a":[{"b":[1,2]},{"b":[1,"#, r#"{"a":[{"b":[1,2]}]}"#);
        check(r#"{"a":{"b":1,"c":"#, "nothing");
        check(r#"{"a":1,"b":[1],"c":{"#, r#"{"a":1,"b":[1]}"#);
        check("{", "nothing");
        check(r#"{"a":1,"b":]"#, r#"{"a":1}"#);
    }

    #[test]
    fn what_writers_get_wrong_is_mended() {
        check(r#"{"a":[1,2,],,"b":{},}"#, r#"{"a":[1,2],"b":{}}"#);
        check("{\"a\":\"x\n\ty\u{1}\"}", r#"{"a":"x\n\ty"}"#);
        check(r#"{"a":"\x\'\u12"}"#, r#"{"a":"\\x\\'\\u12"}"#);
        check(
            r#"{"a":"\ud83d\ude00\ud83d \ude00"}"#,
            "{\"a\":\"\\ud83d\\ude00\u{fffd} \u{fffd}\"}",
        );
        check(r#"{"a":1} junk"#, r#"{"a":1}"#);
    }

    proptest! {
        #[test]
        fn what_is_fine_stays(text in r#"[\u{0}-\u{ffff}"\\]{0,20}"#, number: i32) {
            let value = serde_json::json!({ "a": text, "b": [{ text.clone(): number }, null, []] });
            let mended = mend(&value.to_string()).unwrap();
            prop_assert!(!mended.is_cut);
            prop_assert_eq!(serde_json::from_str::<Value>(&mended.text).unwrap(), value);
        }

        #[test]
        fn any_text_ends_somewhere(text in r#"[{}\[\]",:\\u0-9d é\n]{0,60}"#) {
            let _ = mend(&text);
            let _ = mend(&format!("{{\"a\":[{text}"));
        }
    }
}
