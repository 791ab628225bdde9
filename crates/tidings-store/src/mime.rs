//! MIME types of files, from their extension and first bytes.

use std::path::Path;

/// How many of the first bytes are examined.
pub const HEAD: u64 = 2048;
/// The same number as a length in memory.
pub const HEAD_LENGTH: usize = 2048;
const BINARY: &str = "application/octet-stream";

/// The MIME type of a file.
#[must_use]
pub fn of(path: &Path, head: &[u8]) -> String {
    let ending = mime_guess::from_path(path).first_raw();
    if is_text(head) {
        return match ending {
            // Some extensions stand for both videos and programs: the bytes decide.
            Some(kind) if !is_binary(kind) => kind.to_owned(),
            _ => "text/plain".to_owned(),
        };
    }
    let magic = infer::get(head).map(|kind| kind.mime_type());
    match ending {
        Some(kind) if !kind.starts_with("text/") => kind.to_owned(),
        _ => magic.unwrap_or(BINARY).to_owned(),
    }
}

/// Whether bytes begin like text; the last character may be incomplete.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    whole && !head.contains(&0)
}

fn is_binary(kind: &str) -> bool {
    let image = kind.starts_with("image/") && kind != "image/svg+xml";
    image || kind.starts_with("video/") || kind.starts_with("audio/") || kind == BINARY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, head: &[u8], expected: &str) {
        assert_eq!(of(Path::new(name), head), expected, "{name}");
    }

    #[test]
    fn content_and_ending_decide_together() {
        check("a.md", b"# hi", "text/markdown");
        check("a.json", b"{}", "application/json");
        check("a.ts", b"let x = 1;", "text/plain");
        check("a.png", b"\x89PNG\r\n\x1a\n\0\0", "image/png");
        check("a", b"\x89PNG\r\n\x1a\n\0\0", "image/png");
        check("a.txt", b"\x89PNG\r\n\x1a\n\0\0", "image/png");
        check("a.txt", b"\0\x01\x02", BINARY);
        check("README", b"hello", "text/plain");
        check("cut", "a\u{20ac}".as_bytes().split_last().unwrap().1, "text/plain");
        check("a.svg", b"<svg/>", "image/svg+xml");
        check("empty.bin", b"", "text/plain");
    }
}
