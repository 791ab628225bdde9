//! Bytes to text: byte order marks, declarations and headers, and their precedence.

use std::borrow::Cow;

use chardetng::EncodingDetector;
use encoding_rs::{
    Encoding, MACINTOSH, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252,
    WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, X_MAC_CYRILLIC,
};

use super::Problem;
use super::problem::Problems;

/// How far a declaration is searched; junk may come before it.
const DECLARATION: usize = 2048;

/// The text of a document. Never fails: an undeclared encoding is guessed.
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    problems: &mut Problems,
) -> Cow<'a, str> {
    if let Some(text) = wide(bytes) {
        return text;
    }
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return match UTF_8.decode_without_bom_handling_and_without_replacement(rest) {
            Some(text) => text,
            None => liar(rest, Some("utf-8"), problems),
        };
    }
    let header = content_type.and_then(charset);
    let declared = declaration(bytes);
    let names: Vec<String> = header.into_iter().chain(declared).collect();
    for name in &names {
        let Some(encoding) = by_name(name) else {
            problems.add(Problem::UnknownEncoding(name.clone()));
            continue;
        };
        // It would have been found by its zeros.
        if encoding == UTF_16LE || encoding == UTF_16BE || is_ascii(name) {
            continue;
        }
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return text;
        }
    }
    if let Some(text) = UTF_8.decode_without_bom_handling_and_without_replacement(bytes) {
        if let Some(name) = names.first()
            && !is_ascii(name)
        {
            problems.add(Problem::Encoding { declared: name.clone(), used: "utf-8" });
        }
        return text;
    }
    liar(bytes, names.first().map(String::as_str), problems)
}

/// Bytes in another encoding than declared: UTF-8 with a few wrong bytes, or an older one.
fn liar<'a>(bytes: &'a [u8], declared: Option<&str>, problems: &mut Problems) -> Cow<'a, str> {
    let lossy = String::from_utf8_lossy(bytes);
    let (mut good, mut bad) = (0_usize, 0_usize);
    for letter in lossy.chars().filter(|letter| !letter.is_ascii()) {
        if letter == char::REPLACEMENT_CHARACTER { bad += 1 } else { good += 1 }
    }
    let cut = good > 0 && bad == 1 && lossy.ends_with(char::REPLACEMENT_CHARACTER);
    let (text, used) = if cut || good > 4 * bad {
        (lossy, UTF_8)
    } else {
        let encoding = guess(bytes);
        (encoding.decode_without_bom_handling(bytes).0, encoding)
    };
    let name = if used == UTF_8 { "utf-8" } else { used.name() };
    problems.add(match declared {
        Some(declared) if by_name(declared) != Some(used) => {
            Problem::Encoding { declared: declared.to_owned(), used: name }
        }
        None if used != UTF_8 => Problem::UnnamedEncoding(name),
        Some(declared) if !text.contains(char::REPLACEMENT_CHARACTER) => {
            Problem::Encoding { declared: declared.to_owned(), used: name }
        }
        _ => Problem::Bytes(name),
    });
    text
}

/// The most likely of the older encodings, by the frequency of character pairs in their languages.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new();
    detector.feed(bytes, true);
    detector.guess(None, false)
}

/// UTF-16 and UTF-32, by their mark or by the zeros around the first character.
fn wide(bytes: &[u8]) -> Option<Cow<'static, str>> {
    let head = bytes.get(..4).unwrap_or(bytes);
    match head {
        [0, 0, 0xfe, 0xff] => return Some(utf_32(&bytes[4..], u32::from_be_bytes)),
        [0xff, 0xfe, 0, 0] => return Some(utf_32(&bytes[4..], u32::from_le_bytes)),
        [0, 0, 0, b'<' | b'{'] => return Some(utf_32(bytes, u32::from_be_bytes)),
        [b'<' | b'{', 0, 0, 0] => return Some(utf_32(bytes, u32::from_le_bytes)),
        _ => {}
    }
    let (encoding, rest) = match head {
        [0xfe, 0xff, ..] => (UTF_16BE, &bytes[2..]),
        [0xff, 0xfe, ..] => (UTF_16LE, &bytes[2..]),
        [0, b'<' | b'{', 0, _] => (UTF_16BE, bytes),
        [b'<' | b'{', 0, _, 0] => (UTF_16LE, bytes),
        _ => return None,
    };
    Some(Cow::Owned(encoding.decode_without_bom_handling(rest).0.into_owned()))
}

fn utf_32(bytes: &[u8], number: fn([u8; 4]) -> u32) -> Cow<'static, str> {
    let letters = bytes.chunks_exact(4).map(|four| {
        let code = number([four[0], four[1], four[2], four[3]]);
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    Cow::Owned(letters.collect())
}

/// The `charset` of a media type.
fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty())
            .then(|| value.to_ascii_lowercase())
    })
}

/// The encoding that an XML declaration names.
fn declaration(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION)]);
    let start = head.find("<?xml")?;
    let head = &head[start..];
    let head = &head[..head.find('>')?];
    let value = head[head.find("encoding")? + "encoding".len()..].trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(['"', '\'', '?', ' ']).unwrap_or(value.len());
    (end > 0).then(|| value[..end].trim().to_ascii_lowercase())
}

/// An encoding by any of its names, also in the spelling of other languages.
fn by_name(name: &str) -> Option<&'static Encoding> {
    let dashed = name.replace('_', "-");
    let known = |name: &str| Encoding::for_label_no_replacement(name.as_bytes());
    known(name).or_else(|| known(&dashed)).or_else(|| {
        Some(match dashed.as_str() {
            "u8" | "utf" | "cp65001" => UTF_8,
            "u16" | "utf16" | "ucs-2" | "ucs2" | "iso-10646-ucs-2" | "utf-32" | "utf32" | "u32"
            | "ucs-4" | "iso-10646-ucs-4" | "utf-32le" | "utf-32be" => UTF_16LE,
            "ms-ee" => WINDOWS_1250,
            "ms-cyrl" => WINDOWS_1251,
            "ms-greek" => WINDOWS_1253,
            "ms-turk" => WINDOWS_1254,
            "ms-hebr" => WINDOWS_1255,
            "ms-arab" => WINDOWS_1256,
            "winbaltrim" => WINDOWS_1257,
            "macroman" | "mac-roman" => MACINTOSH,
            "maccyrillic" | "mac-cyrillic" => X_MAC_CYRILLIC,
            "ms-ansi" | "ascii" | "latin-1" | "cp-1252" | "8859-1" => WINDOWS_1252,
            _ => {
                let page = dashed.strip_prefix("cp")?.trim_start_matches('-');
                return known(&format!("windows-{page}")).or_else(|| known(&format!("ibm{page}")));
            }
        })
    })
}

/// A declaration of ASCII says nothing about other bytes.
fn is_ascii(name: &str) -> bool {
    name.contains("ascii") || name == "ansi_x3.4-1968"
}

/// Restores UTF-8 that was read as ISO 8859-1 and encoded as UTF-8 once more.
pub(super) fn undouble(text: String) -> String {
    // In such a text, every longer character became a letter of the first range and one or more
    // others beyond ASCII; the first one decides for nearly every text. `ß` begins such a character
    // too, but of a script that is much rarer than the letter.
    let Some(start) = text.bytes().position(|byte| !byte.is_ascii()) else { return text };
    let mut letters = text[start..].chars();
    let is_first = letters.next().is_some_and(|first| ('\u{c2}'..='\u{f4}').contains(&first));
    let is_second = letters.next().is_some_and(|second| !second.is_ascii());
    if !is_first || !is_second || text.contains('ß') {
        return text;
    }
    let (bytes, _, unmappable) = WINDOWS_1252.encode(&text);
    if unmappable {
        return text;
    }
    match std::str::from_utf8(&bytes) {
        Ok(once) => once.to_owned(),
        Err(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: Option<&str>, expected: &str) {
        let text = decode(bytes, content_type, &mut Problems::default());
        assert_eq!(text.trim_start_matches(|letter| letter != '|'), expected);
    }

    #[test]
    fn marks_are_believed_first() {
        check(b"\xef\xbb\xbf|\xc3\xa9", Some("text/xml; charset=iso-8859-1"), "|é");
        check(b"\xfe\xff\0|\0\xe9", None, "|é");
        check(b"\xff\xfe|\0\xe9\0", None, "|é");
        check(b"\xff\xfe\0\0|\0\0\0\xe9\0\0\0", None, "|é");
        check(b"\0\0\xfe\xff\0\0\0|\0\0\0\xe9", None, "|é");
        check(b"<\0?\0|\0\xe9\0", None, "|é");
    }

    #[test]
    fn the_header_is_believed_before_the_declaration() {
        let bytes = b"<?xml version='1.0' encoding='utf-8'?>|\xe9";
        check(bytes, Some("application/xml; charset=\"ISO-8859-1\""), "|é");
        check(b"<?xml version='1.0' encoding='koi8-r'?>|\xc1", None, "|а");
        check(b"<?xml version='1.0' encoding='cp1251'?>|\xe0", None, "|а");
        check(b"<?xml version='1.0' encoding='gb2312'?>|\xd6\xd0", None, "|中");
        check(b"<?xml version='1.0' encoding='Shift_JIS'?>|\x93\xfa", None, "|日");
    }

    #[test]
    fn encodings_are_known_by_other_names() {
        check(b"<?xml version='1.0' encoding='macroman'?>|\x8e", None, "|é");
        check(b"<?xml version='1.0' encoding='maccyrillic'?>|\xe0", None, "|а");
        check(b"<?xml version='1.0' encoding='ms-cyrl'?>|\xe0", None, "|а");
        check(b"<?xml version='1.0' encoding='cp866'?>|\xa0", None, "|а");
    }

    #[test]
    fn an_unknown_encoding_is_reported_and_the_rest_is_read() {
        let mut problems = Problems::default();
        let bytes = "<?xml version='1.0' encoding='cp437'?>|é".as_bytes();
        assert!(decode(bytes, None, &mut problems).ends_with("|é"));
        assert!(problems.into_vec().contains(&Problem::UnknownEncoding("cp437".to_owned())));
    }

    #[test]
    fn a_lie_is_seen_through() {
        check(b"<?xml version='1.0' encoding='utf-8'?>|caf\xe9", None, "|café");
        check(b"<?xml version='1.0' encoding='utf-16'?>|caf\xc3\xa9", None, "|café");
        check(b"<?xml version='1.0' encoding='us-ascii'?>|caf\xc3\xa9", None, "|café");
        check(b"<?xml version='1.0' encoding='nonsense'?>|caf\xc3\xa9", None, "|café");
        check("<a>|ééééé".as_bytes().split_last().unwrap().1, None, "|éééé\u{fffd}");
    }

    #[test]
    fn what_is_told_of_bytes_is_true() {
        let told = |bytes: &[u8]| {
            let mut problems = Problems::default();
            decode(bytes, None, &mut problems);
            problems.into_vec().first().map(ToString::to_string).unwrap_or_default()
        };
        let declared = "<?xml version='1.0' encoding='utf-8'?>éééééé".as_bytes();
        for text in [declared, "<a>éééééé".as_bytes()] {
            let told = told(&[text, b"\xff"].concat());
            assert_eq!(told, "some bytes are invalid in utf-8; U+FFFD replaces them");
        }
        assert!(told(b"<a>caf\xe9 au lait").starts_with("no encoding is declared"));
        let told = told(b"<?xml version='1.0' encoding='utf-8'?>caf\xe9 au lait");
        assert!(
            told.starts_with("the declared encoding is utf-8, but it was read as windows-1252")
        );
    }

    #[test]
    fn what_was_encoded_twice_is_decoded_twice() {
        assert_eq!(undouble("cafÃ© â€™".to_owned()), "café ’");
        assert_eq!(undouble("café Ã".to_owned()), "café Ã");
    }
}
