//! Faults below a workspace: permissions, damage, a full disk.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use super::{Place, create};
use crate::support::demo::{PROGRAM, ended, within};
use crate::support::piped::Server;

/// The user that owns nothing.
const NOBODY: u32 = 65534;

/// Gives all that is there to the user that owns nothing.
fn give(path: &std::path::Path) {
    std::os::unix::fs::chown(path, Some(NOBODY), None).unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        give(&entry.unwrap().path());
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_looked_at_and_else_refused_by_name() {
    let place = Place::new();
    let id = place.import("a", "").await;
    let directory = place.path("w");
    let rights = |mode| std::fs::Permissions::from_mode(mode);
    let is_root = std::fs::metadata(&directory).unwrap().uid() == 0;
    let mut binary = PROGRAM.to_owned();
    if is_root {
        // Root may write anywhere: the program runs as another, to whom the directory belongs.
        binary = place.path("tidings").display().to_string();
        std::fs::copy(PROGRAM, &binary).unwrap();
        std::fs::set_permissions(&binary, rights(0o755)).unwrap();
        std::fs::set_permissions(place.0.path(), rights(0o755)).unwrap();
        give(&directory);
        std::fs::create_dir(place.path("out")).unwrap();
        give(&place.path("out"));
    }
    drop(std::fs::remove_file(directory.join("server.lock")));
    std::fs::set_permissions(&directory, rights(0o555)).unwrap();
    let run = async |words: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(words).current_dir(place.0.path()).kill_on_drop(true);
        if is_root {
            command.uid(NOBODY);
        }
        ended(command).await
    };
    // Who only looks needs no more than to read.
    for words in [vec!["ls"], vec!["show", &id], vec!["log"], vec!["verify"], vec!["export", "out"]]
    {
        let looked = run(&[&["workspace", "w"], words.as_slice()].concat()).await;
        assert_eq!(looked.code, Some(0), "{words:?}: {looked:?}");
        assert!(!looked.output.is_empty(), "{words:?}: {looked:?}");
    }
    for words in [
        vec!["serve", "--workspace", "w", "--http", "127.0.0.1:0"],
        vec!["workspace", "w", "tag", "x", "y"],
        vec!["workspace", "w", "import", "a"],
    ] {
        let refused = run(&words).await;
        assert_eq!(refused.code, Some(1), "{words:?}: {refused:?}");
        assert!(refused.errors.starts_with("error: opening the workspace `w`\n"), "{refused:?}");
        let says = ["Permission denied", "readonly", "unable to open"];
        assert!(says.iter().any(|word| refused.errors.contains(word)), "{words:?}: {refused:?}");
        assert!(refused.errors.contains("hint: the directory and its files"), "{refused:?}");
    }
    std::fs::set_permissions(&directory, rights(0o755)).unwrap();
    assert_eq!(place.run("verify").await.code, Some(0));
}

#[tokio::test]
async fn a_damaged_database_is_refused_with_how_to_restore() {
    let place = Place::new();
    place.import("a", "--title Kept").await;
    place.run("backup copy").await;
    let database = place.path("w/workspace.sqlite");
    std::fs::write(&database, "this is no database at all, and long enough to be looked at")
        .unwrap();
    for name in ["w/workspace.sqlite-wal", "w/workspace.sqlite-shm"] {
        drop(std::fs::remove_file(place.path(name)));
    }
    let server = ended(place.command("serve --workspace w --http 127.0.0.1:0")).await;
    let commands = [server, place.run("ls").await, place.run("verify").await];
    for refused in commands {
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.errors.contains("is damaged (file is not a database)"), "{refused:?}");
        assert!(refused.errors.contains("`tidings workspace DIR restore FILE`"), "{refused:?}");
    }
    // As it says.
    std::fs::rename(place.path("w"), place.path("aside")).unwrap();
    assert_eq!(place.run("restore copy").await.code, Some(0));
    assert_eq!(place.lines("ls").await[0]["title"], "Kept");
}

#[tokio::test]
async fn a_workspace_of_a_later_release_is_left_alone() {
    let place = Place::new();
    place.import("a", "").await;
    // Where a SQLite file keeps the version its owner gave it.
    let mut database = std::fs::read(place.path("w/workspace.sqlite")).unwrap();
    database[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(place.path("w/workspace.sqlite"), &database).unwrap();
    let server = ended(place.command("serve --workspace w --http 127.0.0.1:0")).await;
    for refused in [server, place.run("ls").await, place.run("import a").await] {
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.errors.contains("workspace.sqlite` has version 99"), "{refused:?}");
        assert!(refused.errors.contains("update Tidings"), "{refused:?}");
    }
    assert!(std::fs::read(place.path("w/workspace.sqlite")).unwrap() == database);
}

#[tokio::test]
async fn damage_deep_in_the_database_is_found() {
    let place = Place::new();
    for number in 0..20 {
        place.write(&format!("many/{number}"), "x");
    }
    assert_eq!(place.run("import many").await.code, Some(0));
    let mut database =
        std::fs::File::options().write(true).open(place.path("w/workspace.sqlite")).unwrap();
    let length = database.metadata().unwrap().len();
    assert!(length > 40_960, "{length}");
    database.seek(SeekFrom::Start(4096 * 4)).unwrap();
    database.write_all(&vec![0xff; 4096 * 5]).unwrap();
    drop(database);
    for words in ["verify", "ls", "import many/1", "backup copy"] {
        let found = place.run(words).await;
        assert_eq!(found.code, Some(1), "{words}: {found:?}");
        let says = "workspace.sqlite` is damaged (";
        assert!(found.errors.contains(says), "{words}: {found:?}");
        assert!(
            found.errors.contains("`tidings workspace DIR restore FILE`"),
            "{words}: {found:?}"
        );
    }
    assert!(!place.path("copy").exists());
}

#[tokio::test]
async fn a_database_that_was_cut_or_lost_takes_no_blob_with_it() {
    let place = Place::new();
    place.import("a", "").await;
    assert_eq!(place.run("backup copy").await.code, Some(0));
    std::fs::write(place.path("w/workspace.sqlite"), "").unwrap();
    for words in ["ls", "verify", "gc --older-than 0s", "import a"] {
        let refused = place.run(words).await;
        assert_eq!(refused.code, Some(1), "{words}: {refused:?}");
        assert!(refused.errors.contains("but `objects` has blobs"), "{words}: {refused:?}");
        assert!(refused.errors.contains("restore FILE"), "{words}: {refused:?}");
    }
    assert_eq!(place.files("objects"), 1);
    std::fs::remove_file(place.path("w/workspace.sqlite")).unwrap();
    let refused = place.run("import a").await;
    assert!(refused.errors.contains("but `objects` has blobs"), "{refused:?}");
    assert_eq!(place.run("restore copy").await.code, Some(0));
    assert_eq!(place.lines("ls").await.len(), 1);
}

/// A disk of its own, which only the program sees; a file on it is removed when it is told to.
const SMALL_DISK: &str = "mount -t tmpfs -o size=3m tmpfs disk || exit 7
    head -c 1000000 /dev/zero > disk/ballast
    (cat pipe; rm disk/ballast) >/dev/null 2>&1 </dev/null &
    exec \"$0\" serve --stdio --silent --workspace disk/w";

/// Files that cannot grow beyond 64 KiB, or twice that: shells count in blocks of two sizes.
const SMALL_FILES: &str = "trap '' XFSZ; ulimit -f 128
    exec \"$0\" serve --stdio --silent --workspace w";

fn shell(place: &Place, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(place.0.path()).env_remove("TIDINGS_TOKEN");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true);
    command
}

/// A server on a disk that becomes full: what does not fit is refused and said, what was there is
/// read, and when there is room again it goes on. Where no disk can be made, files that cannot
/// grow must do.
#[tokio::test]
async fn a_full_disk_refuses_what_does_not_fit_and_nothing_else() {
    let place = Place::new();
    std::fs::create_dir(place.path("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=3m tmpfs disk";
    let mut attempt = shell(&place, &["unshare", "-rm", "sh", "-c", mount]);
    if !within(attempt.status()).await.is_ok_and(|status| status.success()) {
        return refuses_what_cannot_grow(&place).await;
    }
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = ["unshare", "-rm", "sh", "-c", SMALL_DISK, PROGRAM];
    let mut server = Server::of(shell(&place, &words)).await;
    let kilobytes = "x".repeat(100_000);
    let mut made = 0;
    let refused = loop {
        let answer = create(&mut server, "Large", &format!("{made} {kilobytes}"), &["large"]).await;
        if answer["isError"] == json!(true) {
            break answer["content"][0]["text"].as_str().unwrap().to_owned();
        }
        made += 1;
        assert!(made < 100, "the disk is not small");
    };
    assert!(made > 0 && refused.contains("the disk is full"), "{made}: {refused}");
    assert_eq!(server.read("artifacts://by-tag/large").await["total"], made);
    let still = create(&mut server, "Large", &format!("{made} {kilobytes}"), &["large"]).await;
    assert_eq!(still["isError"], true);
    std::fs::write(&pipe, "now").unwrap();
    within(async {
        while create(&mut server, "Again", &kilobytes, &["again"]).await["isError"] == json!(true) {
        }
    })
    .await;
    assert_eq!(server.read("artifacts://by-tag/again").await["total"], 1);
}

#[tokio::test]
async fn a_file_that_cannot_grow_is_refused_and_nothing_of_it_stays() {
    refuses_what_cannot_grow(&Place::new()).await;
}

async fn refuses_what_cannot_grow(place: &Place) {
    // The database is there before files are small.
    place.import("first", "").await;
    let mut server = Server::of(shell(place, &["sh", "-c", SMALL_FILES, PROGRAM])).await;
    let refused = create(&mut server, "Large", &"x".repeat(300_000), &["large"]).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!((place.files("objects"), place.files("incoming")), (1, 0));
    assert_eq!(server.read("artifacts://by-tag/large").await["total"], 0);
    assert_eq!(server.read("artifacts://recent").await["total"], 1);
}

#[tokio::test]
async fn a_server_warns_of_a_data_directory_that_others_can_read() {
    let place = Place::new();
    for (options, directory) in [("--workspace w", "w"), ("--feeds --offline --data f", "f")] {
        let words = format!("serve --stdio {options}");
        // The directory is made for its owner.
        let quiet = ended(place.command(&words)).await;
        assert!(!quiet.errors.contains("chmod"), "{quiet:?}");
        let rights = |mode| std::fs::Permissions::from_mode(mode);
        let mode = std::fs::metadata(place.path(directory)).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "{directory}");
        std::fs::set_permissions(place.path(directory), rights(0o755)).unwrap();
        let warned = ended(place.command(&words)).await;
        assert_eq!(warned.code, Some(0), "{warned:?}");
        let hint = format!("chmod 700 {directory}");
        assert_eq!(warned.errors.matches(&hint).count(), 1, "{warned:?}");
    }
}
