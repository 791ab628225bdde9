//! The canonical form of JSON text: the keys of each object sorted by their bytes, strings in one
//! spelling, numbers unchanged.

use std::borrow::Cow;

use super::text::name_of;
use crate::weight::string_end;

/// The canonical form of a JSON text without white space between its values. It is written in one
/// pass without building values, so its memory is in proportion to the text.
pub(super) fn of(text: &str) -> String {
    let mut writer = CanonicalWriter { text, at: 0, out: String::with_capacity(text.len()) };
    writer.value();
    writer.out
}

struct CanonicalWriter<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

/// The position of a member in the output: its key, then its value. A raw text is shorter than 4
/// GiB, and so is its canonical form.
#[derive(Clone, Copy)]
struct MemberSpan {
    start: u32,
    key_end: u32,
    end: u32,
}

impl CanonicalWriter<'_> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Writes a character of the text unchanged.
    fn copy(&mut self, character: char) {
        self.out.push(character);
        self.at += 1;
    }

    fn value(&mut self) {
        match self.next() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string(),
            _ => self.scalar(),
        }
    }

    fn array(&mut self) {
        self.copy('[');
        while !matches!(self.next(), Some(b']') | None) {
            if self.next() == Some(b',') {
                self.copy(',');
            }
            self.value();
        }
        self.copy(']');
    }

    fn object(&mut self) {
        self.copy('{');
        let first = self.out.len();
        let mut members = Vec::new();
        while self.next() == Some(b'"') {
            let start = self.out.len();
            self.string();
            let key_end = self.out.len();
            self.copy(':');
            self.value();
            let [start, key_end, end] = [start, key_end, self.out.len()]
                .map(|at| u32::try_from(at).expect("a raw text has less than 4 GiB"));
            members.push(MemberSpan { start, key_end, end });
            if self.next() == Some(b',') {
                self.copy(',');
            }
        }
        if !members.is_sorted_by(|one, other| self.key(one) <= self.key(other)) {
            members.sort_by(|one, other| self.key(one).cmp(&self.key(other)));
            let sorted: Vec<&str> = members
                .iter()
                .map(|member| &self.out[member.start as usize..member.end as usize])
                .collect();
            let sorted = sorted.join(",");
            self.out.truncate(first);
            self.out.push_str(&sorted);
        }
        self.copy('}');
    }

    fn key(&self, member: &MemberSpan) -> Cow<'_, str> {
        name_of(&self.out[member.start as usize..member.key_end as usize])
    }

    fn string(&mut self) {
        let end = (string_end(self.text.as_bytes(), self.at + 1) + 1).min(self.text.len());
        let written = &self.text[self.at..end];
        self.at = end;
        // Half of a surrogate pair is not a character; it stays unchanged.
        let decoded =
            written.contains('\\').then(|| serde_json::from_str::<String>(written).ok()).flatten();
        match decoded {
            Some(text) => self.out.push_str(&serde_json::Value::String(text).to_string()),
            None => self.out.push_str(written),
        }
    }

    fn scalar(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.find([',', ']', '}']).unwrap_or(rest.len());
        self.out.push_str(&rest[..length]);
        self.at += length;
    }
}
