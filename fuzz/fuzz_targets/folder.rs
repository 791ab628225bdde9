//! Any bytes as any description of a folder: it is served or told to be wrong, and a second look at
//! the same bytes says the same. Nothing of the folder is run.

#![no_main]

use std::os::unix::fs::PermissionsExt as _;

use libfuzzer_sys::fuzz_target;
use tidings_folder::{Config, Folder};

/// Where the bytes may stand; the first byte of the input chooses.
const PLACES: [&str; 12] = [
    "tools/a/tool.meta.json",
    "tools/a/tool.meta.toml",
    "tools/b.sh",
    "prompts/c.md",
    "prompts/d.meta.json",
    "resources/e.meta.json",
    "resources/f",
    "server.d/register.json",
    "server.d/policy.toml",
    "server.d/server.meta.json",
    "server.d/server.instructions.md",
    ".tidingsignore",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((place, bytes)) = bytes.split_first() else { return };
    let place = PLACES[usize::from(*place) % PLACES.len()];
    let folder = tempfile::tempdir().expect("a folder");
    let beside = [("tools/a/tool.sh", "#!/bin/sh\n"), ("prompts/d.txt", "{{x}}"), ("resources/e.txt", "e")];
    let all = beside.map(|(path, text)| (path, text.as_bytes()));
    for (path, bytes) in all.into_iter().chain([(place, bytes)]) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(&path, bytes).expect("a file");
        if path.extension().is_some_and(|ending| ending == "sh") {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).expect("a program");
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut config = Config::new(folder.path().to_owned());
        config.checks = false;
        // Nobody waits for the system's word here.
        config.poll = Some(std::time::Duration::from_secs(3600));
        let first = Folder::open(config.clone()).await.expect("a folder").problems();
        let second = Folder::open(config).await.expect("a folder").problems();
        assert_eq!(first, second);
    });
});
