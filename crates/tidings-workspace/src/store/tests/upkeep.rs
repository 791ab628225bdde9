//! Tests of opening, collecting, verifying and backing up.

use super::*;

const NONE: Duration = Duration::ZERO;

#[test]
fn a_second_server_is_refused_and_a_command_is_not() {
    let (directory, store) = fresh();
    let second = Store::open(Config::new(directory.path()));
    assert!(matches!(second, Err(WorkspaceError::Locked { .. })));
    let beside = Store::open(Config::beside(directory.path())).unwrap();
    let id = create(&beside, draft("from beside"));
    assert!(store.artifact(&id).unwrap().is_some());
    let mut news = store.follow();
    assert!(!news.has_changed().unwrap());
    store.find_new_events().unwrap();
    assert!(news.has_changed().unwrap());
    assert_eq!(*news.borrow_and_update(), 2);
    let nowhere = Store::open(Config::beside(directory.path().join("none")));
    assert!(matches!(nowhere, Err(WorkspaceError::Missing(_))));
}

#[test]
fn a_workspace_of_a_later_release_is_refused() {
    let (directory, store) = fresh();
    store.exclusively(|it| Ok(it.pragma_update(None, "user_version", 99)?)).unwrap();
    drop(store);
    let later = Store::open(Config::new(directory.path()));
    assert!(matches!(later, Err(WorkspaceError::Newer { version: 99, .. })));
}

#[test]
fn a_damaged_database_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(DATABASE), "x".repeat(10_000)).unwrap();
    let Err(error) = Store::open(Config::new(directory.path())) else { panic!("it was opened") };
    assert!(matches!(error, WorkspaceError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("restore"), "{error}");
    let bytes = std::fs::read(directory.path().join(DATABASE)).unwrap();
    assert_eq!(bytes, "x".repeat(10_000).as_bytes());
}

#[test]
#[cfg(unix)]
fn a_directory_that_cannot_be_written_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let under_a_file = Store::open(Config::new(directory.path().join("file").join("workspace")));
    assert!(matches!(under_a_file, Err(WorkspaceError::Path { .. })));
}

#[test]
fn a_full_disk_takes_nothing_back_and_leaves_nothing_half_done() {
    let (_directory, store) = fresh();
    create(&store, draft("kept"));
    let before = state(&store);
    let pages = |limit: i64| {
        store.exclusively(|it| {
            Ok(it.query_row(&format!("PRAGMA max_page_count = {limit}"), [], |_| Ok(()))?)
        })
    };
    pages(1).unwrap();
    let mut large = draft("large");
    large.metadata.insert("x".to_owned(), json!("y".repeat(60_000)));
    let whole = whole(&store, b"large");
    let error = store.create_of(whole, large, "tester").unwrap_err();
    assert!(matches!(error, WorkspaceError::Full), "{error:?}");
    assert_eq!(state(&store), before);
    pages(1_000_000).unwrap();
    create(&store, draft("after"));
    assert_eq!(store.verify(|_, _| {}).unwrap().problems, []);
}

#[test]
fn only_what_nobody_uses_is_collected_and_only_when_it_is_old() {
    let (_directory, store) = fresh();
    let used = create(&store, draft("used"));
    let unused = put(&store, b"unused");
    assert_eq!(store.collect(Duration::from_hours(1), "t").unwrap(), Collected::default());
    let collected = store.collect(NONE, "t").unwrap();
    assert_eq!((collected.blobs, collected.bytes), (1, 6));
    assert!(store.open_blob(&unused).unwrap().is_none());
    let hash = store.entry(&used).unwrap().unwrap().hash;
    assert_eq!(store.open_blob(&hash).unwrap().unwrap().bytes().unwrap(), b"used");
    let mut one = draft("one");
    one.hash.clone_from(&unused);
    assert!(store.create(one.clone(), "t").is_err());
    assert_eq!(put(&store, b"unused"), unused);
    store.create(one, "t").unwrap();
    assert_eq!(store.verify(|_, _| {}).unwrap().problems, []);
}

#[test]
fn bytes_that_changed_or_are_gone_are_found() {
    let (_directory, store) = fresh();
    let hashes = ["one", "two", "six"].map(|title| {
        let id = create(&store, draft(title));
        store.entry(&id).unwrap().unwrap().hash
    });
    std::fs::write(store.blobs.path_of(&hashes[0]), "eno").unwrap();
    std::fs::remove_file(store.blobs.path_of(&hashes[1])).unwrap();
    let mut heard = Vec::new();
    let verified = store.verify(|read, all| heard.push((read, all))).unwrap();
    let mut expected = vec![
        IntegrityProblem::Changed { hash: hashes[0].clone() },
        IntegrityProblem::Lost { hash: hashes[1].clone() },
    ];
    expected.sort_by_key(|it| match it {
        IntegrityProblem::Changed { hash } | IntegrityProblem::Lost { hash } => hash.clone(),
        _ => String::new(),
    });
    assert_eq!(verified.problems, expected);
    assert_eq!((verified.blobs, verified.artifacts, heard.last()), (2, 3, Some(&(3, 3))));
}

#[test]
fn a_count_that_is_wrong_is_found() {
    let (_directory, store) = fresh();
    let mut one = draft("one");
    one.tags = texts(["plain", "type:midi"]);
    one.place = Some(SetPlace { set: "songs".to_owned(), index: None });
    create(&store, one);
    let away = create(&store, draft("two"));
    store.archive(&away, true, "t").unwrap();
    store.bind(Bind::new("a", "A"), "t").unwrap();
    let [from, from_port, to, to_port] = ["a", "out", "a", "in"].map(str::to_owned);
    let link = Link { from, from_port, to, to_port, transport: String::new() };
    store.connect(link, "t").unwrap();
    assert_eq!(store.verify(|_, _| {}).unwrap().problems, []);
    let wrong = |sql: &str| {
        let check = |it: &Connection| {
            it.execute_batch("SAVEPOINT wrong")?;
            it.execute_batch(sql)?;
            let found = verify::laws(it)?;
            it.execute_batch("ROLLBACK TO wrong; RELEASE wrong")?;
            Ok(found)
        };
        store.exclusively(check).unwrap()
    };
    for kind in [
        "artifacts",
        "archived",
        "creator",
        "set",
        "tag",
        "category",
        "plain",
        "identities",
        "connections",
    ] {
        let found = wrong(&format!("UPDATE counts SET count = 7 WHERE kind = '{kind}'"));
        assert!(!found.is_empty() && found[0].to_string().contains(kind), "{kind}: {found:?}");
        let found = wrong(&format!("INSERT INTO counts VALUES ('{kind}', 'nobody', 1)"));
        assert_eq!(found.len(), 1, "{kind}: {found:?}");
        let found = wrong(&format!("DELETE FROM counts WHERE kind = '{kind}'"));
        assert!(!found.is_empty(), "{kind}");
    }
}

#[test]
fn a_command_beside_a_server_drops_none_of_the_events_it_keeps() {
    let (directory, store) = fresh();
    let mut config = Config::beside(directory.path());
    config.events_kept = 1;
    let beside = Store::open(config).unwrap();
    for number in 0..10 {
        put(&beside, &[number]);
    }
    assert_eq!(store.events(0, &[], 100).unwrap().events.len(), 10);
}

fn all(blobs: u64) -> Carried {
    Carried { blobs, problems: Vec::new() }
}

#[test]
fn a_backup_is_one_file_and_becomes_the_same_workspace() {
    let (directory, store) = fresh();
    let id = create(&store, draft("kept"));
    store.annotate(&id, "good", "t", "t").unwrap();
    let file = directory.path().join("backup");
    assert_eq!(store.backup(&file).unwrap(), all(1));
    let again = store.backup(&file).unwrap_err();
    assert!(matches!(&again, WorkspaceError::Taken(path) if *path == file), "{again:?}");
    let before = state(&store);
    create(&store, draft("later"));
    let config = Config::new(directory.path().join("again"));
    assert_eq!(backup::restore(&config, &file).unwrap(), all(1));
    assert!(matches!(backup::restore(&config, &file), Err(WorkspaceError::Occupied(_))));
    let again = Store::open(config).unwrap();
    assert_eq!(state(&again), before);
    assert_eq!(again.verify(|_, _| {}).unwrap().problems, []);
    create(&again, draft("goes on"));
}

#[test]
fn nothing_is_restored_where_a_server_is_or_was() {
    let (directory, store) = fresh();
    let file = directory.path().join("backup");
    store.backup(&file).unwrap();
    let served = backup::restore(&Config::new(directory.path()), &file);
    assert!(matches!(served, Err(WorkspaceError::Locked { .. })), "{served:?}");
    let again = directory.path().join("again");
    std::fs::create_dir(&again).unwrap();
    // A starting server has the lock before it has a database.
    let lock = Lock::take(&again).unwrap();
    let started = backup::restore(&Config::new(&again), &file);
    assert!(matches!(started, Err(WorkspaceError::Locked { .. })), "{started:?}");
    drop(lock);
    for ending in ["-wal", "-shm", "-journal"] {
        let stale = again.join(format!("{DATABASE}{ending}"));
        std::fs::write(&stale, "of another").unwrap();
        let beside = backup::restore(&Config::new(&again), &file);
        assert!(matches!(beside, Err(WorkspaceError::Occupied(_))), "{ending}: {beside:?}");
        std::fs::remove_file(stale).unwrap();
    }
    backup::restore(&Config::new(&again), &file).unwrap();
}

#[test]
fn a_blob_that_is_damaged_takes_nothing_else_with_it_into_a_backup_or_out_of_it() {
    let (directory, store) = fresh();
    let [kept, changed, lost, rotten] = ["kept", "changed", "lost", "rotten"].map(|title| {
        let id = create(&store, draft(title));
        store.entry(&id).unwrap().unwrap().hash
    });
    std::fs::write(store.blobs.path_of(&changed), "degnahc").unwrap();
    std::fs::remove_file(store.blobs.path_of(&lost)).unwrap();
    let sorted = |mut it: Carried| {
        it.problems.sort_by_key(ToString::to_string);
        it
    };
    let file = directory.path().join("backup");
    let expected = vec![
        IntegrityProblem::Changed { hash: changed.clone() },
        IntegrityProblem::Lost { hash: lost.clone() },
    ];
    let expected = sorted(Carried { blobs: 2, problems: expected });
    assert_eq!(sorted(store.backup(&file).unwrap()), expected);
    let backup = Connection::open(&file).unwrap();
    let rot = "UPDATE backup_parts SET bytes = x'00' WHERE hash = ?1";
    assert_eq!(backup.execute(rot, [&rotten]).unwrap(), 1);
    drop(backup);
    let config = Config::new(directory.path().join("again"));
    let expected = vec![
        IntegrityProblem::Changed { hash: rotten },
        IntegrityProblem::Lost { hash: changed },
        IntegrityProblem::Lost { hash: lost },
    ];
    let expected = sorted(Carried { blobs: 1, problems: expected });
    assert_eq!(sorted(backup::restore(&config, &file).unwrap()), expected);
    let again = Store::open(config).unwrap();
    assert_eq!(again.open_blob(&kept).unwrap().unwrap().bytes().unwrap(), b"kept");
    assert_eq!(again.verify(|_, _| {}).unwrap().problems.len(), 3);
}

#[test]
fn a_blob_of_any_length_is_carried_in_parts() {
    let (directory, store) = fresh();
    let part = 1 << 20;
    let lengths = [0, 1, part, part + 1, 2 * part];
    let hashes = lengths.map(|length| put(&store, &vec![7; length]));
    let file = directory.path().join("backup");
    assert_eq!(store.backup(&file).unwrap(), all(5));
    let longest = "SELECT max(length(bytes)) FROM backup_parts";
    let backup = Connection::open(&file).unwrap();
    let longest: i64 = backup.query_row(longest, [], |row| row.get(0)).unwrap();
    assert_eq!(longest, 1 << 20);
    let config = Config::new(directory.path().join("again"));
    assert_eq!(backup::restore(&config, &file).unwrap(), all(5));
    let again = Store::open(config).unwrap();
    for (length, hash) in lengths.into_iter().zip(hashes) {
        assert_eq!(again.open_blob(&hash).unwrap().unwrap().bytes().unwrap().len(), length);
    }
}

#[test]
#[cfg(unix)]
fn a_backup_and_what_is_made_of_it_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (directory, store) = fresh();
    let file = directory.path().join("backup");
    store.backup(&file).unwrap();
    assert_eq!(mode(&file), 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let again = directory.path().join("again");
    backup::restore(&Config::new(&again), &file).unwrap();
    assert_eq!(mode(&again.join(DATABASE)), 0o600);
}
