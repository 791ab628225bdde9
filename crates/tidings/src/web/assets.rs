//! The files of the page, as they are in the program.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use tidings_core::Fingerprint;

/// One file.
struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    tag: String,
    packed: Bytes,
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../web/", $path)) as &[u8])),*]
    };
}

/// Every file of the page. The first is the page itself.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let files = files![
        "index.html",
        "icon.svg",
        "app.css",
        "app.js",
        "api.js",
        "store.js",
        "keys.js",
        "words.js",
        "part/diff.js",
        "part/doctor.js",
        "part/form.js",
        "part/lanes.js",
        "part/list.js",
        "part/markdown.js",
        "part/spark.js",
        "part/split.js",
        "part/tree.js",
        "vendor/preact.js",
        "view/cache.js",
        "view/call.js",
        "view/help.js",
        "view/hub.js",
        "view/inbox.js",
        "view/items.js",
        "view/overview.js",
        "view/palette.js",
        "view/result.js",
        "view/servers.js",
        "view/timeline.js",
        "view/watched.js",
    ];
    files.into_iter().map(|(path, bytes)| Asset::new(path, bytes)).collect()
});

impl Asset {
    fn new(path: &'static str, bytes: &'static [u8]) -> Self {
        let kind = match path.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        };
        let tag = format!("\"{}\"", Fingerprint::of_bytes(bytes));
        Self { path, kind, bytes, tag, packed: packed(bytes) }
    }
}

fn packed(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    drop(encoder.write_all(bytes));
    encoder.finish().unwrap_or_default().into()
}

/// Answers with the file at a path. `root` is a folder that is read instead, to edit the page.
pub(super) fn answer(path: &str, headers: &HeaderMap, root: Option<&PathBuf>) -> Response<Body> {
    let name = path.strip_prefix('/').filter(|name| !name.is_empty()).unwrap_or("index.html");
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    if let Some(root) = root {
        return match std::fs::read(root.join(asset.path)) {
            Ok(bytes) => ([(header::CONTENT_TYPE, asset.kind)], bytes).into_response(),
            Err(error) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
        };
    }
    let has = |name, value: &str| {
        let given = headers.get(name).and_then(|it| it.to_str().ok());
        given.is_some_and(|given| given.split(',').any(|part| part.trim() == value))
    };
    let head = [(header::CONTENT_TYPE, asset.kind), (header::ETAG, &*asset.tag)];
    if has(header::IF_NONE_MATCH, &asset.tag) {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    if has(header::ACCEPT_ENCODING, "gzip") {
        let encoding = [(header::CONTENT_ENCODING, "gzip"), (header::VARY, "accept-encoding")];
        return (head, encoding, asset.packed.clone()).into_response();
    }
    (head, asset.bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The most bytes of the page before anything is shown, and of all of it, compressed.
    const FIRST: usize = 45_000;
    const ALL: usize = 90_000;

    fn files(folder: &Path, found: &mut BTreeSet<String>, root: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found, root);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_in_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let mut found = BTreeSet::new();
        files(&root, &mut found, &root);
        let known: BTreeSet<_> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(known, found);
    }

    /// What the page names is loaded before it is shown.
    #[test]
    fn the_page_is_small() {
        let page = String::from_utf8_lossy(ASSETS[0].bytes);
        let is_first = |asset: &&Asset| asset.path == "index.html" || page.contains(asset.path);
        let first: usize = ASSETS.iter().filter(is_first).map(|asset| asset.packed.len()).sum();
        let all: usize = ASSETS.iter().map(|asset| asset.packed.len()).sum();
        assert!(first <= FIRST && all <= ALL, "{first} bytes first, {all} in all");
    }

    /// The content-security policy would refuse these; a reader should not wonder.
    #[test]
    fn no_text_becomes_markup_and_nothing_comes_from_elsewhere() {
        for asset in ASSETS.iter().filter(|asset| !asset.path.starts_with("vendor/")) {
            let text = String::from_utf8_lossy(asset.bytes);
            let refused =
                ["innerHTML", "outerHTML", "eval(", "Function(", "style=\"", "https:", "setHTML"];
            for word in refused {
                assert!(!text.contains(word), "{} has {word}", asset.path);
            }
            let lines = text.lines().count();
            let is_view = asset.path.starts_with("view/") || asset.path.starts_with("part/");
            assert!(!is_view || lines <= 200, "{} has {lines} lines", asset.path);
        }
    }

    #[test]
    fn a_file_is_sent_packed_and_only_once() {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, "br, gzip".parse().unwrap());
        let answered = answer("/app.css", &headers, None);
        assert_eq!(answered.headers()[header::CONTENT_ENCODING], "gzip");
        let tag = answered.headers()[header::ETAG].clone();
        headers.insert(header::IF_NONE_MATCH, tag);
        assert_eq!(answer("/app.css", &headers, None).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer("/../Cargo.toml", &headers, None).status(), StatusCode::NOT_FOUND);
    }
}
