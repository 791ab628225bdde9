//! Embedded files: a tool lists them in a file, and they become part of its result.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tidings_server::model::{ContentBlock, ResourceContents};
use tokio::io::AsyncReadExt as _;
use tracing::warn;

use super::roots::file_uri;
use crate::offer::ToolScript;
use crate::workshop::Workshop;

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedFile {
    path: PathBuf,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

/// Why a file is not embedded.
#[derive(Debug, thiserror::Error)]
enum EmbedError {
    #[error("it is outside the folder")]
    Outside,
    #[error("it is not a plain file")]
    Special,
    #[error("the files of one result may have {0} bytes in all")]
    TooLarge(u64),
    #[error("could not read it: {0}")]
    Read(#[from] io::Error),
}

/// The content blocks of the listed files. A file that cannot be embedded is logged and left out.
pub(super) async fn blocks(
    workshop: &Workshop,
    script: &ToolScript,
    list: &Path,
) -> Vec<ContentBlock> {
    let tool = script.tool.name.as_ref();
    let text = match read(list, workshop.limits.description).await.map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => {
            warn!(tool, %error, "a tool's list of files is not text");
            return Vec::new();
        }
        Err(error) => {
            warn!(tool, %error, "a tool's list of files cannot be read");
            return Vec::new();
        }
    };
    let (mut blocks, mut left) = (Vec::new(), workshop.limits.resource);
    for named in parse(&text) {
        match embed(&workshop.root, &script.directory, &named, left).await {
            Ok((contents, size)) => {
                left -= size;
                blocks.push(ContentBlock::resource(contents));
            }
            Err(error) => {
                let file = named.path.display();
                warn!(tool, %file, %error, "a file of a tool is not embedded");
            }
        }
    }
    blocks
}

/// A JSON array, or one line for each file: the path, then optionally type and URI after tabs.
fn parse(text: &str) -> Vec<NamedFile> {
    if text.trim_start().starts_with(['[', '{']) {
        return match serde_json::from_str::<Vec<serde_json::Value>>(text) {
            Ok(entries) => entries
                .into_iter()
                .filter_map(|entry| {
                    serde_json::from_value(entry)
                        .inspect_err(
                            |error| warn!(%error, "an entry of a tool's list of files is invalid"),
                        )
                        .ok()
                })
                .collect(),
            Err(error) => {
                warn!(%error, "a tool's list of files is not a JSON array");
                Vec::new()
            }
        };
    }
    let given = |field: Option<&str>| field.filter(|text| !text.is_empty()).map(str::to_owned);
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let mut fields = line.split('\t');
            let path = PathBuf::from(fields.next().unwrap_or_default());
            NamedFile { path, mime_type: given(fields.next()), uri: given(fields.next()) }
        })
        .collect()
}

async fn embed(
    root: &Path,
    directory: &Path,
    named: &NamedFile,
    limit: u64,
) -> Result<(ResourceContents, u64), EmbedError> {
    // Compare the real path: a link may lead out of the folder.
    let path = tokio::fs::canonicalize(directory.join(&named.path)).await?;
    if !path.starts_with(root) {
        return Err(EmbedError::Outside);
    }
    let bytes = read(&path, limit).await?;
    let size = bytes.len() as u64;
    let uri = named.uri.clone().filter(|uri| !uri.is_empty()).unwrap_or_else(|| file_uri(&path));
    let guessed = || mime_guess::from_path(&path).first_raw();
    let mime_type = |otherwise: &str| {
        let given = named.mime_type.clone().filter(|given| !given.is_empty());
        given.unwrap_or_else(|| guessed().unwrap_or(otherwise).to_owned())
    };
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri).with_mime_type(mime_type("text/plain")),
        Err(binary) => ResourceContents::blob(STANDARD.encode(binary.into_bytes()), uri)
            .with_mime_type(mime_type("application/octet-stream")),
    };
    Ok((contents, size))
}

/// A plain file of at most `limit` bytes.
async fn read(path: &Path, limit: u64) -> Result<Vec<u8>, EmbedError> {
    // Checked before it is opened, because opening a FIFO waits for its other end.
    if !tokio::fs::metadata(path).await?.is_file() {
        return Err(EmbedError::Special);
    }
    let file = tokio::fs::File::open(path).await?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > limit { Err(EmbedError::TooLarge(limit)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, mime_type: Option<&str>, uri: Option<&str>) -> NamedFile {
        let (mime_type, uri) = (mime_type.map(str::to_owned), uri.map(str::to_owned));
        NamedFile { path: path.into(), mime_type, uri }
    }

    #[test]
    fn files_are_named_in_json_or_in_lines() {
        let json = r#"[{"path":"a","mimeType":"text/x","uri":null},{"no":1},{"path":"b"}]"#;
        assert_eq!(parse(json), [named("a", Some("text/x"), None), named("b", None, None)]);
        let lines = "a b\ttext/x\tx://1\n\nc\nd\t\tx://2\n";
        assert_eq!(
            parse(lines),
            [
                named("a b", Some("text/x"), Some("x://1")),
                named("c", None, None),
                named("d", None, Some("x://2")),
            ]
        );
        assert_eq!(parse(r#"[{"path":"#), []);
    }

    #[tokio::test]
    async fn what_is_outside_too_large_or_no_file_is_not_embedded() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("../secret"), "x").unwrap();
        std::fs::write(root.join("note.md"), "# x").unwrap();
        std::fs::write(root.join("blob"), b"\xff\x00").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let try_one = async |path: &str| embed(&root, &root, &named(path, None, None), 3).await;
        for path in ["../secret", "link", "/etc/passwd"] {
            assert!(matches!(try_one(path).await, Err(EmbedError::Outside)), "{path}");
        }
        assert!(matches!(try_one(".").await, Err(EmbedError::Special)));
        assert!(matches!(try_one("none").await, Err(EmbedError::Read(_))));
        let (note, size) = try_one("note.md").await.unwrap();
        assert_eq!(size, 3);
        let uri = file_uri(&root.join("note.md"));
        assert_eq!(note, ResourceContents::text("# x", uri).with_mime_type("text/markdown"));
        let (blob, _) = try_one("blob").await.unwrap();
        assert!(
            matches!(blob, ResourceContents::BlobResourceContents { blob, .. } if blob == "/wA=")
        );
        std::fs::write(root.join("note.md"), "# xy").unwrap();
        assert!(matches!(try_one("note.md").await, Err(EmbedError::TooLarge(3))));
    }
}
