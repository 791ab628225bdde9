//! Tests of links inside the folder, as people and mounts have them.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::StockFixture;
use crate::offer::Kind;

#[test]
fn files_behind_a_link_to_a_directory_are_served_and_followed() {
    let mut fixture = StockFixture::new(&[("common/a.md", "x"), ("resources/plain.md", "x")]);
    let at = |fixture: &StockFixture, path: &str| fixture.directory.path().join(path);
    symlink("../common", at(&fixture, "resources/link")).unwrap();
    fixture.stock.rescan_paths(&[PathBuf::from("resources/link")].into(), &mut |_| {});
    let served = fixture.offers(Kind::Resource);
    assert_eq!(served, ["file:///resources/link/a.md", "file:///resources/plain.md"]);
    // The system may report the change under either name.
    for heard in ["common/a.md", "resources/link/a.md"] {
        let affected = fixture.change(heard, "y");
        let link = PathBuf::from("resources/link/a.md");
        assert!(affected.files.contains(&link), "{heard}: {affected:?}");
    }
    fixture.change("common/b.md", "new");
    assert_eq!(fixture.offers(Kind::Resource).len(), 3);
    fixture.remove("common/b.md");
    assert_eq!(fixture.offers(Kind::Resource).len(), 2);
    fixture.put("server.d/policy.toml", "[paths]\ndeny = [\"common/**\"]");
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(fixture.offers(Kind::Resource), ["file:///resources/plain.md"]);
}

/// A mount of Kubernetes: each file is a link through `..data`, which is replaced in one step.
#[test]
fn files_of_a_mount_are_served_and_replaced_together() {
    let mut fixture = StockFixture::new(&[
        ("resources/..2026_01/a.md", "old"),
        ("resources/..2026_01/b.md", "old"),
        ("resources/.env", "secret"),
    ]);
    let at = |path: &str| fixture.directory.path().join("resources").join(path);
    symlink("..2026_01", at("..data")).unwrap();
    for name in ["a.md", "b.md"] {
        symlink(format!("..data/{name}"), at(name)).unwrap();
    }
    symlink(".env", at("env.md")).unwrap();
    fixture.stock.rescan(&mut |_| {});
    let served = ["file:///resources/a.md", "file:///resources/b.md"];
    assert_eq!(fixture.offers(Kind::Resource), served);
    fixture.put("resources/..2026_02/a.md", "newer");
    fixture.put("resources/..2026_02/b.md", "newer");
    let at = |path: &str| fixture.directory.path().join("resources").join(path);
    symlink("..2026_02", at("..data_tmp")).unwrap();
    std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
    std::fs::remove_dir_all(at("..2026_01")).unwrap();
    let affected =
        fixture.stock.rescan_paths(&[PathBuf::from("resources/..data")].into(), &mut |_| {});
    for name in ["resources/a.md", "resources/b.md"] {
        assert!(affected.files.contains(&PathBuf::from(name)), "{affected:?}");
    }
    assert_eq!(fixture.offers(Kind::Resource), served);
}
