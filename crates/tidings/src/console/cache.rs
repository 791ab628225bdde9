//! The cache of a server as a viewer sees it: entries, how long they are fresh, and totals.

use serde_json::{Value, json};
use tidings_mirror::cache::{Freshness, Reader};
use tidings_mirror::events::{ContentKey, DropCause};

use crate::console::log::millis;

/// The most bytes of the contents of one server.
pub(crate) const BYTES: usize = 64_000_000;
/// The most contents of one server.
pub(crate) const KEPT: usize = 10_000;
/// The most entries that are sent at once.
const ENTRIES: usize = 2_000;

/// All entries and the usage of the cache.
pub(crate) fn json(cache: &Reader) -> Value {
    let entries = cache.entries();
    let usage = cache.statistics();
    let rows: Vec<_> = entries
        .iter()
        .take(ENTRIES)
        .map(|kept| {
            let (kind, key) = named(&kept.what);
            let (fresh, left) = match kept.freshness {
                Freshness::UntilNotice => ("until a notice", None),
                Freshness::For(left) => ("for", Some(left.as_secs_f64() * 1e3)),
                _ => ("no", None),
            };
            json!({ "kind": kind, "key": key, "bytes": kept.bytes, "at": millis(kept.read_at),
                "fresh": fresh, "left": left })
        })
        .collect();
    json!({
        "rows": rows, "entries": usage.entries, "bytes": usage.bytes, "hits": usage.hits,
        "misses": usage.misses, "evictions": usage.evictions,
        "limits": { "bytes": BYTES, "entries": KEPT },
    })
}

/// The kind and the name of an entry.
pub(crate) fn named(key: &ContentKey) -> (&'static str, &str) {
    match key {
        ContentKey::Resource(key) => ("resource", key),
        ContentKey::Template(key) => ("template", key),
        ContentKey::Prompt(key) => ("prompt", key),
        ContentKey::Tool(key) => ("tool", key),
        _ => ("content", ""),
    }
}

/// Why an entry was dropped, in words.
pub(crate) fn why(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Cleared => "cleared",
        DropCause::Gone => "not offered any more",
        DropCause::Evicted => "no room",
        DropCause::Disconnected => "the connection ended",
        DropCause::OtherAuthorization => "private to another authorisation",
        _ => "dropped",
    }
}

/// Clears one entry, or all without a kind. Returns whether there is such a kind.
pub(crate) fn clear(cache: &Reader, kind: &str, key: &str) -> bool {
    match kind {
        "" => cache.clear_all(),
        "resource" => cache.clear_resource(key),
        "template" => cache.clear_template(key),
        "prompt" => cache.clear_prompt(key),
        "tool" => cache.clear_tool_result(key),
        _ => return false,
    }
    true
}
