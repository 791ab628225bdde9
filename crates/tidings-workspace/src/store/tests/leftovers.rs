//! Tests of leftovers of killed processes, beside files that are in use.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Files that a killed process was writing.
const LEFT: [&str; 2] = ["incoming/part-dead01", ".tidings-copy-dead01/workspace.sqlite"];

fn leave(directory: &Path) {
    for name in LEFT {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "half").unwrap();
    }
}

#[track_caller]
fn swept(directory: &Path) {
    for name in LEFT {
        assert!(!directory.join(name).exists(), "{name} is still there");
    }
    assert!(!directory.join(".tidings-copy-dead01").exists());
}

#[test]
fn what_a_killed_process_left_is_removed_at_the_next_start_and_by_gc() {
    let (directory, store) = fresh();
    drop(store);
    leave(directory.path());
    let store = Store::open(Config::new(directory.path())).unwrap();
    swept(directory.path());
    leave(directory.path());
    store.collect(Duration::from_hours(1), "t").unwrap();
    swept(directory.path());
    // Earlier releases do not lock uploads: only their age counts.
    let young = directory.path().join("incoming/.tmpabcdef");
    std::fs::write(&young, "half").unwrap();
    store.collect(Duration::ZERO, "t").unwrap();
    assert!(young.exists());
}

#[test]
fn bytes_that_another_process_sends_stay_when_a_server_starts_or_collects() {
    let (directory, server) = fresh();
    let beside = Store::open(Config::beside(directory.path())).unwrap();
    let mut incoming = beside.incoming().unwrap();
    incoming.write(b"slow ").unwrap();
    server.collect(Duration::ZERO, "t").unwrap();
    drop(server);
    let server = Store::open(Config::new(directory.path())).unwrap();
    incoming.write(b"bytes").unwrap();
    let blob = beside.put(incoming.finish().unwrap(), None, "t").unwrap();
    assert!(server.has_blob(&blob.hash).unwrap());
}

#[test]
fn the_next_backup_removes_what_a_killed_one_left_beside_it() {
    let (_directory, store) = fresh();
    let place = tempfile::tempdir().unwrap();
    leave(place.path());
    store.backup(&place.path().join("backup")).unwrap();
    assert!(!place.path().join(".tidings-copy-dead01").exists());
    assert!(place.path().join("incoming/part-dead01").exists(), "this is no workspace");
}

#[test]
fn a_new_workspace_is_for_its_owner_only() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("new");
    let _store = Store::open(Config::new(&directory)).unwrap();
    for path in [directory.clone(), directory.join("objects"), directory.join("incoming")] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{path:?}");
    }
}
