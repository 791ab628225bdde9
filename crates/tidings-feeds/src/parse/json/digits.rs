//! Numbers with more digits than a machine number.

/// The same JSON with quotation marks around every number that is not whole or has too many digits,
/// so that its spelling is kept.
pub(super) fn kept(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    let begins = |letter: char| matches!(letter, '"' | '-') || letter.is_ascii_digit();
    while let Some(start) = rest.find(begins) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let is_string = rest.starts_with('"');
        let length = if is_string { string(rest) } else { number(rest) };
        let (part, after) = rest.split_at(length);
        if is_string || part.parse::<i64>().is_ok() || part.parse::<u64>().is_ok() {
            out.push_str(part);
        } else {
            out.extend(["\"", part, "\""]);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of the string at the beginning of a text.
fn string(text: &str) -> usize {
    let mut is_escaped = true;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        // The first quotation mark is skipped as if it were escaped.
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}

/// The length of the number at the beginning of a text.
fn number(text: &str) -> usize {
    let fits =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    text.bytes().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(kept(text), expected);
    }

    #[test]
    fn only_what_would_be_rounded_is_quoted() {
        check("[1, -2, 18446744073709551615]", "[1, -2, 18446744073709551615]");
        check(r#"{"a":18446744073709551616}"#, r#"{"a":"18446744073709551616"}"#);
        check("[1.50,-1e5]", r#"["1.50","-1e5"]"#);
        check(r#"["1.5 \" 2.5", "\\",3.5]"#, r#"["1.5 \" 2.5", "\\","3.5"]"#);
    }
}
