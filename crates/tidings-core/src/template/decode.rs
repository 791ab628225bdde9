//! Reads percent-encoded text one character at a time.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, utf8_percent_encode};

use crate::template::expand::{is_reserved, is_triplet_at, is_unreserved};

/// The characters that values contain unencoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// The `unreserved` of RFC 3986.
    Unreserved,
    /// Both its `unreserved` and its `reserved`.
    Any,
}

impl Alphabet {
    fn contains(self, byte: u8) -> bool {
        is_unreserved(byte) || self == Self::Any && is_reserved(byte)
    }

    /// The end of the character of a value that starts here, or `None` if there is none.
    ///
    /// A percent-encoded character is taken whole, however many bytes it has, so that no value ends
    /// within one.
    pub(super) fn character_end(self, text: &[u8], at: usize) -> Option<usize> {
        match *text.get(at)? {
            b'%' => encoded_character(text, at).map(|(_, end)| end),
            byte => self.contains(byte).then_some(at + 1),
        }
    }

    /// Decodes the text of a value.
    ///
    /// Only characters that expansion encodes are decoded, so that expanding the value gives the
    /// same text. With reserved characters, `%2F` stays, and so does `%25` where the decoded `%`
    /// and the text after it would look encoded.
    pub(super) fn decode(self, text: &[u8]) -> String {
        let (mut value, mut at) = (String::with_capacity(text.len()), 0);
        while let Some(byte) = text.get(at) {
            let Some((character, end)) = encoded_character(text, at) else {
                value.push(char::from(*byte));
                at += 1;
                continue;
            };
            let is_kept = self == Self::Any
                && match u8::try_from(character) {
                    Ok(b'%') => matches!(text.get(end..end + 2), Some([high, low])
                        if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()),
                    Ok(byte) => self.contains(byte),
                    Err(_) => false,
                };
            if is_kept {
                value.extend(text[at..end].iter().copied().map(char::from));
            } else {
                value.push(character);
            }
            at = end;
        }
        value
    }
}

/// The text with every character outside ASCII encoded, or `None` if a percent sign does not start
/// an encoded byte.
pub(super) fn to_ascii(text: &str) -> Option<Cow<'_, str>> {
    let mut percents = text.bytes().enumerate().filter(|(_, byte)| *byte == b'%');
    let is_well_encoded = percents.all(|(at, _)| is_triplet_at(text.as_bytes(), at));
    is_well_encoded.then(|| utf8_percent_encode(text, &AsciiSet::EMPTY).into())
}

/// Whether the text continues with these bytes, ignoring the case of encoded bytes.
///
/// The expected bytes must be well encoded.
pub(super) fn starts_with(text: &[u8], expected: &[u8]) -> bool {
    let Some(text) = text.get(..expected.len()) else { return false };
    // How many of the next bytes are digits of an encoded byte.
    let mut digits = 0_u8;
    text.iter().zip(expected).all(|(byte, expected)| {
        let is_same =
            if digits > 0 { byte.eq_ignore_ascii_case(expected) } else { byte == expected };
        digits = if *expected == b'%' { 2 } else { digits.saturating_sub(1) };
        is_same
    })
}

/// The percent-encoded UTF-8 character that starts here, and where it ends.
fn encoded_character(text: &[u8], start: usize) -> Option<(char, usize)> {
    let digit = |at: usize| char::from(text[at]).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let (mut bytes, mut at) = ([0; 4], start);
    for index in 0..bytes.len() {
        if !is_triplet_at(text, at) {
            return None;
        }
        bytes[index] = digit(at + 1)? << 4 | digit(at + 2)?;
        at += 3;
        if let Ok(decoded) = str::from_utf8(&bytes[..=index]) {
            return decoded.chars().next().map(|character| (character, at));
        }
    }
    None
}
