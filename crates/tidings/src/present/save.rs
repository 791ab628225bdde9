//! Content as files, with descriptive names that never contain a path from the server.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;

/// Decodes base64, the form of binary content.
pub(crate) fn decoded(text: &str) -> Result<Vec<u8>> {
    // Some servers break lines, some omit the padding.
    let plain: String = text.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let plain = plain.trim_end_matches('=');
    base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(plain)
        .context("the server's binary content is not base64")
}

/// Saves bytes under a free name, and returns it.
pub(crate) fn save(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let saving = || format!("saving `{name}` in `{}`", folder.display());
    std::fs::create_dir_all(folder).with_context(saving)?;
    let (stem, ending) = name.rsplit_once('.').map_or((name, ""), |(stem, ending)| (stem, ending));
    let dot = if ending.is_empty() { "" } else { "." };
    for number in 1.. {
        let path = folder.join(match number {
            1 => name.to_owned(),
            _ => format!("{stem}-{number}{dot}{ending}"),
        });
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                std::io::Write::write_all(&mut file, bytes).with_context(saving)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(saving),
        }
    }
    unreachable!("one of all numbers is free")
}

/// A file name for a resource: the end of its URI, if that names a file.
pub(crate) fn resource_name(uri: &str, mime: Option<&str>) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    let last = path.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let name = file_name(last, "resource");
    if name.contains('.') { name } else { format!("{name}.{}", ending(mime)) }
}

/// A name of letters without a meaning to file systems.
pub(crate) fn file_name(text: &str, otherwise: &str) -> String {
    let plain = |letter: char| {
        if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' }
    };
    let name: String = text.chars().map(plain).take(100).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

/// The usual extension for a media type.
pub(crate) fn ending(mime: Option<&str>) -> &'static str {
    let mime = mime.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match mime {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "video/mp4" => "mp4",
        "application/json" => "json",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "text/html" => "html",
        "text/markdown" => "md",
        "text/csv" => "csv",
        _ if mime.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(uri: &str, mime: Option<&str>, expected: &str) {
        assert_eq!(resource_name(uri, mime), expected);
    }

    #[test]
    fn names_come_from_uris_and_types() {
        check("file:///a/photo.jpg", Some("image/jpeg"), "photo.jpg");
        check("station://module/iris", Some("application/json"), "iris.json");
        check("a:b?c=d/e.png", None, "b.bin");
        check("x:///", Some("text/plain; charset=utf-8"), "resource.txt");
    }

    #[test]
    fn a_server_cannot_choose_where_a_file_goes() {
        check("file:///..", None, "resource.bin");
        check("file:///a/..%2f..%2fetc", None, "2f..-2fetc");
        assert_eq!(file_name("../../etc/passwd", "x"), "etc-passwd");
    }

    #[test]
    fn base64_is_read_in_any_dress() {
        assert_eq!(decoded("aGk=").unwrap(), b"hi");
        assert_eq!(decoded("aG\nk").unwrap(), b"hi");
        assert!(decoded("!").is_err());
    }
}
