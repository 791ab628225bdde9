//! Tests of damaged and foreign databases, and of files that are not backups.

use super::*;

fn database(directory: &TempDir) -> PathBuf {
    directory.path().join(DATABASE)
}

/// Opens it as a server and as a command: both must report the damage and how to restore.
#[track_caller]
fn refused(directory: &TempDir) {
    for config in [Config::new(directory.path()), Config::beside(directory.path())] {
        let Err(error) = Store::open(config) else { panic!("it was opened") };
        damaged(&error);
    }
}

#[track_caller]
fn damaged(error: &WorkspaceError) {
    assert!(matches!(error, WorkspaceError::Damaged { .. }), "{error:?}");
    let words = error.to_string();
    assert!(words.contains(DATABASE) && words.contains("restore a backup"), "{words}");
}

#[test]
fn a_database_that_was_cut_to_nothing_is_no_new_workspace() {
    let (directory, store) = fresh();
    create(&store, draft("kept"));
    drop(store);
    std::fs::write(database(&directory), "").unwrap();
    let log = directory.path().join(format!("{DATABASE}-wal"));
    std::fs::write(&log, "what was written last").unwrap();
    refused(&directory);
    assert!(log.exists());
    assert!(blob::is_any(directory.path()).unwrap());
    assert_eq!(std::fs::metadata(database(&directory)).unwrap().len(), 0);
}

#[test]
fn blobs_without_a_database_are_no_new_workspace() {
    let (directory, store) = fresh();
    create(&store, draft("kept"));
    let backup = directory.path().join("backup");
    store.backup(&backup).unwrap();
    drop(store);
    std::fs::remove_file(database(&directory)).unwrap();
    for open in [Config::new, Config::beside, Config::creating, Config::read_only] {
        let Err(error) = Store::open(open(directory.path())) else { panic!("it was opened") };
        damaged(&error);
    }
    // Nothing was created, so it can be restored in place.
    assert!(!database(&directory).exists());
    backup::restore(&Config::new(directory.path()), &backup).unwrap();
}

#[test]
fn a_directory_with_nothing_stored_yet_becomes_a_workspace() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("objects").join("ab")).unwrap();
    std::fs::write(database(&directory), "").unwrap();
    Store::open(Config::beside(directory.path())).unwrap();
}

/// Regression: a second process took half-made tables for those of something else.
#[test]
fn any_number_may_make_a_workspace_at_once() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let all = std::sync::Barrier::new(6);
        let make = |config: Config| {
            all.wait();
            let store = Store::open(config).unwrap();
            create(&store, draft("one"));
        };
        std::thread::scope(|scope| {
            scope.spawn(|| make(Config::new(&path)));
            for _ in 0..5 {
                scope.spawn(|| make(Config::creating(&path)));
            }
        });
        let store = Store::open(Config::beside(&path)).unwrap();
        assert_eq!(store.list(&ArtifactList::Recent, None, 10).unwrap().total, 6);
    }
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    for version in [0, 1] {
        let directory = tempfile::tempdir().unwrap();
        let other = Connection::open(database(&directory)).unwrap();
        other.execute_batch("CREATE TABLE songs (name TEXT)").unwrap();
        other.pragma_update(None, "user_version", version).unwrap();
        drop(other);
        let before = std::fs::read(database(&directory)).unwrap();
        refused(&directory);
        assert!(std::fs::read(database(&directory)).unwrap() == before);
    }
}

/// Overwrites the first page of a table while the database is closed.
fn spoil(directory: &TempDir, table: &str) {
    let file = database(directory);
    let connection = Connection::open(&file).unwrap();
    let sql = "SELECT rootpage FROM sqlite_master WHERE name = ?1";
    let page: u64 = connection.query_row(sql, [table], |row| row.get::<_, u32>(0)).unwrap().into();
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE").unwrap();
    drop(connection);
    let mut bytes = std::fs::read(&file).unwrap();
    let start = usize::try_from(page - 1).unwrap() * 4096;
    bytes[start..start + 4096].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
}

#[test]
fn damage_in_the_middle_is_said_by_whatever_meets_it() {
    let (directory, store) = fresh();
    let id = create(&store, draft("kept"));
    drop(store);
    spoil(&directory, "artifacts");
    let store = Store::open(Config::new(directory.path())).unwrap();
    damaged(&store.list(&ArtifactList::Recent, None, 10).unwrap_err());
    damaged(&store.artifact(&id).unwrap_err());
    damaged(&store.tag(&id, &texts(["x"]), "t").unwrap_err());
    let whole = whole(&store, b"more");
    damaged(&store.create_of(whole, draft("more"), "t").unwrap_err());
    damaged(&store.verify(|_, _| {}).unwrap_err());
    damaged(&store.backup(&directory.path().join("backup")).unwrap_err());
    assert!(!directory.path().join("backup").exists());
    // Undamaged parts can still be read.
    assert_eq!(store.newest_events(1).unwrap()[0].number, 2);
}

#[test]
fn damage_of_the_words_is_said_when_something_is_stored_or_searched() {
    let (directory, store) = fresh();
    create(&store, draft("kept"));
    drop(store);
    spoil(&directory, "words_data");
    let store = Store::open(Config::new(directory.path())).unwrap();
    let search = Search { words: Some("kept".to_owned()), ..Search::default() };
    damaged(&store.search(&search, 10).unwrap_err());
    let whole = whole(&store, b"more");
    damaged(&store.create_of(whole, draft("more"), "t").unwrap_err());
}

#[test]
fn bytes_the_database_does_not_know_are_told_of_when_they_are_old() {
    let (_directory, store) = fresh();
    create(&store, draft("kept"));
    let stray = whole(&store, b"stray");
    store.blobs.keep(&stray).unwrap();
    let verified = store.verify(|_, _| {}).unwrap();
    assert_eq!((verified.strays, verified.problems.len()), (Collected::default(), 0));
    let file = std::fs::File::options().append(true).open(store.blobs.path_of(&stray.hash));
    let past = std::time::SystemTime::now() - Duration::from_hours(25);
    file.unwrap().set_modified(past).unwrap();
    let verified = store.verify(|_, _| {}).unwrap();
    assert_eq!((verified.strays.blobs, verified.strays.bytes), (1, 5));
    assert_eq!(verified.problems, []);
}

#[test]
fn what_is_no_backup_is_said_and_leaves_nothing() {
    let (directory, store) = fresh();
    create(&store, draft("kept"));
    let here = directory.path();
    let [text, other, bare, nothing] = ["text", "other", "bare", "nothing"].map(|it| here.join(it));
    std::fs::write(&text, "x".repeat(5000)).unwrap();
    let songs = Connection::open(&other).unwrap();
    songs.execute_batch("CREATE TABLE songs (name TEXT)").unwrap();
    store.exclusively(|it| Ok(it.execute("VACUUM INTO ?1", [bare.to_str().unwrap()])?)).unwrap();
    let target = here.join("again");
    let restore = |file: &Path| backup::restore(&Config::new(&target), file).unwrap_err();
    for file in [&text, &other, &bare, &here.to_owned()] {
        let error = restore(file);
        assert!(matches!(error, WorkspaceError::NoBackup { .. }), "{error:?}");
        assert!(error.to_string().contains("a file that a backup wrote"), "{error}");
    }
    let error = restore(&nothing);
    assert!(matches!(&error, WorkspaceError::Path { path, .. } if *path == nothing), "{error:?}");
    assert!(!target.exists());
}

#[test]
fn a_backup_that_is_damaged_leaves_nothing() {
    let (directory, store) = fresh();
    create(&store, draft("kept"));
    let file = directory.path().join("backup");
    store.backup(&file).unwrap();
    let backup = Connection::open(&file).unwrap();
    let sql = "SELECT rootpage FROM sqlite_master WHERE name = 'annotations'";
    let page: u32 = backup.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(backup);
    let mut bytes = std::fs::read(&file).unwrap();
    let start = usize::try_from(page - 1).unwrap() * 4096;
    bytes[start..start + 4096].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    let target = directory.path().join("again");
    let error = backup::restore(&Config::new(&target), &file).unwrap_err();
    assert!(matches!(error, WorkspaceError::NoBackup { .. }), "{error:?}");
    assert!(!target.exists());
}
