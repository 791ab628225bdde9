//! An event in a few words.

use tidings_workspace::{Change, Connection};

use crate::present::text::{count, size};

/// Characters of a hash that are printed.
const HASH: usize = 12;

/// The change and its subject.
pub(super) fn words(change: &Change) -> String {
    match change {
        Change::BlobStored { hash, mime_type, size } => {
            format!("{}, {mime_type}, {}", short(hash), bytes(*size))
        }
        Change::BlobsCollected { hashes } => count(hashes.len(), "blob", "blobs"),
        Change::Created(created) => format!("{} {}", created.artifact, created.title),
        Change::Tagged { artifact, tags } => format!("{artifact} +{}", tags.join(" +")),
        Change::Untagged { artifact, tags } => format!("{artifact} -{}", tags.join(" -")),
        Change::Annotated { artifact, message, .. } => format!("{artifact} {message}"),
        Change::Archived { artifact } | Change::Restored { artifact } => artifact.clone(),
        Change::Bound { identity, name, losers, .. } if losers.is_empty() => {
            format!("{identity} is {name}")
        }
        Change::Bound { identity, name, losers, .. } => {
            format!("{identity} is {name}, and has hints of {}", losers.join(", "))
        }
        Change::IdentityTagged { identity, added, removed } => {
            let added = added.iter().map(|tag| format!(" +{tag}"));
            let removed = removed.iter().map(|tag| format!(" -{tag}"));
            format!("{identity}{}", added.chain(removed).collect::<String>())
        }
        Change::Unbound { identity, .. } => identity.clone(),
        Change::Connected(connection) | Change::Disconnected(connection) => ends(connection),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

fn ends(it: &Connection) -> String {
    let kind = if it.transport.is_empty() { String::new() } else { format!(", {}", it.transport) };
    format!("{} {} → {} {}{kind}", it.from, it.from_port, it.to, it.to_port)
}

fn short(hash: &str) -> &str {
    hash.get(..HASH).unwrap_or(hash)
}

pub(super) fn bytes(number: u64) -> String {
    size(usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(words(&serde_json::from_str(json).unwrap()), expected);
    }

    #[test]
    fn an_event_is_said_in_a_few_words() {
        check(
            r#"{"type":"blob.stored","hash":"0123456789abcdef","mimeType":"text/plain","size":5}"#,
            "0123456789ab, text/plain, 5 bytes",
        );
        check(r#"{"type":"artifact.tagged","artifact":"a","tags":["x","y"]}"#, "a +x +y");
        check(r#"{"type":"artifact.untagged","artifact":"a","tags":["x"]}"#, "a -x");
        check(
            r#"{"type":"identity.tagged","identity":"a","added":["x"],"removed":["y"]}"#,
            "a +x -y",
        );
        check(
            r#"{"type":"connection.made","from":"a","from_port":"out","to":"b","to_port":"in","transport":"midi"}"#,
            "a out → b in, midi",
        );
    }
}
