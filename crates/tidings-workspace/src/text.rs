//! Validation of texts from outside.

use crate::{Refusal, WorkspaceLimits};

/// Whether a text may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    One,
    Many,
}

/// Refuses a text that is empty, too long, or has control characters. Texts of several lines may
/// have line breaks and tabs.
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

/// Refuses anything but a MIME type: `type/subtype`, optionally with parameters.
pub(crate) fn mime_type(text: &str, limit: usize) -> Result<(), Refusal> {
    check("mime_type", text, limit, Lines::One)?;
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_name = |name: &str| {
        // As RFC 6838 allows them.
        name.starts_with(|it: char| it.is_ascii_alphanumeric())
            && name.chars().all(|it| it.is_ascii_alphanumeric() || "!#$&-^_.+".contains(it))
    };
    let is_type = essence
        .trim()
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype));
    if is_type && (parameters.trim().is_empty() || are_parameters(parameters)) {
        return Ok(());
    }
    Err(Refusal::MimeType(text.to_owned()))
}

/// Whether a text is one or more `name=value`, separated by `;`.
fn are_parameters(text: &str) -> bool {
    let is_token = |it: char| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it);
    let Some((name, rest)) = text.split_once('=') else { return false };
    let name = name.trim();
    if name.is_empty() || !name.chars().all(is_token) {
        return false;
    }
    let rest = rest.trim_start();
    let rest = if let Some(quoted) = rest.strip_prefix('"') {
        let mut is_escaped = false;
        let end = quoted.find(|it| {
            let is_end = it == '"' && !is_escaped;
            is_escaped = it == '\\' && !is_escaped;
            is_end
        });
        let Some(end) = end else { return false };
        &quoted[end + 1..]
    } else {
        let rest_of_token = rest.trim_start_matches(is_token);
        if rest_of_token.len() == rest.len() {
            return false;
        }
        rest_of_token
    };
    match rest.trim_start().strip_prefix(';') {
        Some(more) => more.trim().is_empty() || are_parameters(more),
        None => rest.trim().is_empty(),
    }
}

/// Whether valid UTF-8 is served as text: not if its type is never text, as a short piece of music
/// may happen to be UTF-8.
pub(crate) fn is_text(mime_type: &str, text: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_binary = match essence.split_once('/') {
        Some(("image", subtype)) => subtype != "svg+xml",
        Some((kind, _)) => matches!(kind, "audio" | "video" | "font"),
        None => false,
    };
    !is_binary && !text.contains('\0')
}

/// The tags of an identity, sorted and without duplicates: each is `namespace:value`.
pub(crate) fn identity_tags(
    given: &[String],
    limits: &WorkspaceLimits,
) -> Result<Vec<String>, Refusal> {
    let tags = tags(given, limits)?;
    let is_whole = |tag: &&String| {
        tag.split_once(':')
            .is_some_and(|(space, value)| !space.trim().is_empty() && !value.trim().is_empty())
    };
    match tags.iter().find(|tag| !is_whole(tag)) {
        Some(tag) => Err(Refusal::IdentityTag(tag.clone())),
        None => Ok(tags),
    }
}

/// Tags, sorted and without duplicates.
pub(crate) fn tags(tags: &[String], limits: &WorkspaceLimits) -> Result<Vec<String>, Refusal> {
    // Checked first, because there may be very many.
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
    fn a_mime_type_is_a_type_and_a_subtype() {
        for right in [
            "text/plain",
            "x/y",
            "application/vnd.api+json",
            "image/svg+xml",
            "text/html; charset=utf-8",
            "text/html;charset=\"a; \\\" b\" ; x=y;",
        ] {
            assert_eq!(mime_type(right, 200), Ok(()), "{right}");
        }
        for wrong in [
            "not a mime type",
            "text",
            "/plain",
            "text/",
            "text/pl ain",
            "text/plain/more",
            "*/*",
            "text/plain; charset",
            "text/plain; charset=",
            "text/plain; charset=\"open",
            "text/plain; a=b c",
        ] {
            assert_eq!(mime_type(wrong, 200), Err(Refusal::MimeType(wrong.to_owned())), "{wrong}");
        }
        assert!(matches!(mime_type("a\nb/c", 200), Err(Refusal::Control { .. })));
    }

    #[test]
    fn music_and_pictures_are_no_text_whatever_their_bytes() {
        for (mime, text) in [
            ("audio/midi", "MThd"),
            ("IMAGE/x-portable-bitmap; a=b", "P1"),
            ("font/ttf", "x"),
            ("text/plain", "a\0b"),
        ] {
            assert!(!is_text(mime, text), "{mime}");
        }
        for mime in ["text/plain", "image/svg+xml", "application/octet-stream", "odd"] {
            assert!(is_text(mime, "<svg/>"), "{mime}");
        }
    }

    #[test]
    fn a_tag_of_an_identity_has_a_namespace() {
        let limits = WorkspaceLimits::default();
        let tags = |tag: &str| identity_tags(&[tag.to_owned()], &limits);
        assert_eq!(tags("role:synth:lead").unwrap(), ["role:synth:lead"]);
        for plain in ["plain", ":value", "space:", "space: "] {
            assert_eq!(tags(plain), Err(Refusal::IdentityTag(plain.to_owned())));
        }
    }

    #[test]
    fn tags_are_in_order_and_there_once() {
        let given = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(tags(&given, &WorkspaceLimits::default()).unwrap(), ["a", "b"]);
        let many = vec!["a".to_owned(); 10_000];
        assert!(matches!(tags(&many, &WorkspaceLimits::default()), Err(Refusal::TooMany { .. })));
    }
}
