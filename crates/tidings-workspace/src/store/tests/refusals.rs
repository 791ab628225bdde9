//! Tests of refusals, which must leave nothing behind.

use super::*;
use crate::WorkspaceLimits;

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, WorkspaceError>, expected: &Refusal) {
    assert_eq!(result.unwrap_err().refusal(), Some(expected));
}

#[test]
fn an_artifact_of_what_is_not_there_is_refused_and_leaves_nothing() {
    let (_directory, store) = fresh();
    let hash = blake3::hash(b"?").to_hex().to_string();
    let mut one = draft("one");
    one.hash.clone_from(&hash);
    refused(store.create(one.clone(), "t"), &Refusal::NoBlob(hash));
    one.hash = "abc".to_owned();
    refused(store.create(one.clone(), "t"), &Refusal::Hash("abc".to_owned()));
    one.hash = put(&store, b"x");
    one.parents = texts(["none"]);
    refused(store.create(one.clone(), "t"), &Refusal::NoParent("none".to_owned()));
    let before = state(&store);
    one.parents.clear();
    one.place = Some(SetPlace { set: "s".to_owned(), index: Some(3) });
    store.create(one.clone(), "t").unwrap();
    let taken = Refusal::PlaceTaken { set: "s".to_owned(), index: 3 };
    refused(store.create(one.clone(), "t"), &taken);
    assert_ne!(state(&store), before);
    let numbers = store.events(0, &[], 10).unwrap().cursor;
    assert_eq!(numbers, 2);
    one.place = Some(SetPlace { set: "s".to_owned(), index: None });
    let id = store.create(one, "t").unwrap();
    assert_eq!(store.entry(&id).unwrap().unwrap().index, Some(4));
}

#[test]
fn texts_that_cannot_be_are_refused() {
    let (_directory, store) = fresh();
    let hash = put(&store, b"x");
    let limits = WorkspaceLimits::default();
    let check = |change: fn(&mut Draft), expected: Refusal| {
        let mut one = Draft::new("title", &hash, "tester");
        change(&mut one);
        refused(store.create(one, "t"), &expected);
    };
    let long = |what, length, limit| Refusal::TooLong { what, length, limit };
    check(|it| it.title = "x".repeat(1 << 20), long("title", 1 << 20, limits.name));
    check(|it| it.title = "a\0b".to_owned(), Refusal::Control { what: "title", code: 0 });
    check(|it| it.title = " ".to_owned(), Refusal::Empty { what: "title" });
    check(|it| it.tags = vec!["\u{7}".to_owned()], Refusal::Control { what: "tag", code: 7 });
    check(|it| it.tags = vec!["x".repeat(201)], long("tag", 201, limits.tag));
    check(
        |it| it.tags = (0..10_000).map(|number| number.to_string()).collect(),
        Refusal::TooMany { what: "tags", count: 10_000, limit: limits.tags },
    );
    check(
        |it| {
            it.metadata.insert("x".to_owned(), json!("y".repeat(70_000)));
        },
        long("metadata", 70_008, limits.metadata),
    );
    check(
        |it| it.place = Some(SetPlace { set: "s".to_owned(), index: Some(1 << 53) }),
        Refusal::Index,
    );
    assert_eq!(store.events(0, &[], 10).unwrap().cursor, 1);
}

#[test]
fn tags_added_one_by_one_stay_within_the_limit() {
    let (_directory, store) = fresh();
    let id = create(&store, draft("one"));
    let tags: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(store.tag(&id, &tags, "t").unwrap().len(), 100);
    assert_eq!(store.tag(&id, &tags, "t").unwrap(), Vec::<String>::new());
    let many = Refusal::TooMany { what: "tags", count: 101, limit: 100 };
    refused(store.tag(&id, &texts(["more"]), "t"), &many);
    refused(store.tag("none", &tags, "t"), &Refusal::NoArtifact("none".to_owned()));
}

#[test]
fn a_hint_has_one_owner_and_can_be_taken_away() {
    let (_directory, store) = fresh();
    let hint = Hint { kind: "usb".into(), value: "1:2".into(), confidence: 0.5 };
    let mut one = Bind::new("one", "One");
    one.hints = vec![hint.clone()];
    assert!(store.bind(one.clone(), "t").unwrap());
    assert!(!store.bind(one, "t").unwrap());
    let mut other = Bind::new("other", "Other");
    other.hints = vec![hint.clone()];
    let taken = Refusal::HintTaken { kind: "usb".into(), value: "1:2".into(), owner: "one".into() };
    refused(store.bind(other.clone(), "t"), &taken);
    assert!(store.identity("other").unwrap().is_none());
    other.steal = true;
    assert!(store.bind(other, "t").unwrap());
    assert_eq!(store.identity("one").unwrap().unwrap().hints, []);
    assert_eq!(store.identity("other").unwrap().unwrap().hints, [hint]);
}

#[test]
fn a_connection_needs_both_ends_and_is_there_once() {
    let (_directory, store) = fresh();
    let link = |to: &str| Link {
        from: "a".into(),
        from_port: "out".into(),
        to: to.into(),
        to_port: "in".into(),
        transport: String::new(),
    };
    store.bind(Bind::new("a", "A"), "t").unwrap();
    refused(store.connect(link("b"), "t"), &Refusal::NoIdentity("b".to_owned()));
    store.bind(Bind::new("b", "B"), "t").unwrap();
    store.connect(link("b"), "t").unwrap();
    refused(store.connect(link("b"), "t"), &Refusal::Connected);
    store.unbind("b", "t").unwrap();
    assert_eq!(store.connections(None, 10).unwrap().total, 0);
    refused(store.disconnect(link("b"), "t"), &Refusal::NotConnected);
    refused(store.unbind("b", "t"), &Refusal::NoIdentity("b".to_owned()));
}

#[test]
fn a_cursor_to_events_that_are_gone_is_told_the_oldest() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(directory.path());
    config.events_kept = 5;
    let store = Store::open(config).unwrap();
    for number in 0..10 {
        put(&store, &[number]);
    }
    refused(store.events(4, &[], 10), &Refusal::Expired { cursor: 4, oldest: 5 });
    refused(store.events(11, &[], 10), &Refusal::Ahead { cursor: 11, last: 10 });
    assert_eq!(store.events(5, &[], 2).unwrap().cursor, 7);
    let none = store.events(5, &texts(["artifact.created"]), 2).unwrap();
    assert_eq!((none.events.len(), none.cursor, none.has_more), (0, 10, false));
}

#[test]
fn remarks_are_counted_and_there_may_be_only_so_many() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(directory.path());
    config.limits.annotations = 120;
    let store = Store::open(config).unwrap();
    let id = create(&store, draft("one"));
    for number in 1..=120 {
        assert_eq!(store.annotate(&id, &number.to_string(), "t", "t").unwrap(), number);
    }
    let many = Refusal::TooMany { what: "annotations", count: 121, limit: 120 };
    refused(store.annotate(&id, "more", "t", "t"), &many);
    let artifact = store.artifact(&id).unwrap().unwrap();
    assert_eq!((artifact.annotation_count, artifact.annotations.len()), (120, 100));
    assert_eq!(artifact.annotations[0].message, "21");
    assert_eq!(artifact.annotations[99].message, "120");
}

#[test]
fn a_place_is_one_of_the_same_set() {
    let (_directory, store) = fresh();
    let in_set = |title: &str, set: &str| {
        let mut one = draft(title);
        one.place = Some(SetPlace { set: set.to_owned(), index: None });
        create(&store, one)
    };
    let (here, there) = (in_set("a", "here"), in_set("b", "there"));
    let here_after = |id: &str| store.list(&ArtifactList::Set("here".to_owned()), Some(id), 10);
    assert_eq!(here_after(&here).unwrap().items, []);
    refused(here_after(&there), &Refusal::After(there.clone()));
}

#[test]
fn identities_are_counted_and_found_in_any_case_of_any_script() {
    let (_directory, store) = fresh();
    store.bind(Bind::new("\u{c4}rger", "\u{d6}l"), "t").unwrap();
    store.bind(Bind::new("b", "B"), "t").unwrap();
    store.bind(Bind::new("b", "\u{411}\u{430}\u{441}"), "t").unwrap();
    let find = |name: &str| {
        let find = Find { name: Some(name.to_owned()), ..Find::default() };
        let (found, has_more) = store.find(&find, 10).unwrap();
        assert!(!has_more);
        found.into_iter().map(|it| it.identity.id).collect::<Vec<_>>()
    };
    assert_eq!(find("\u{f6}L"), ["\u{c4}rger"]);
    assert_eq!(find("\u{e4}rg"), ["\u{c4}rger"]);
    assert_eq!(find("\u{411}\u{410}"), ["b"]);
    let total = || {
        let identities = store.identities(None, 10).unwrap().total;
        (identities, store.connections(None, 10).unwrap().total, store.has_graph().unwrap())
    };
    let link = |from: &str, port: &str| Link {
        from: from.into(),
        from_port: port.into(),
        to: "b".into(),
        to_port: "in".into(),
        transport: String::new(),
    };
    for (from, port) in [("b", "1"), ("\u{c4}rger", "1"), ("\u{c4}rger", "2")] {
        store.connect(link(from, port), "t").unwrap();
    }
    store.disconnect(link("\u{c4}rger", "2"), "t").unwrap();
    assert_eq!(total(), (2, 2, (true, true)));
    store.unbind("b", "t").unwrap();
    assert_eq!(total(), (1, 0, (true, false)));
}

#[test]
fn there_is_one_zero() {
    let (_directory, store) = fresh();
    let mut one = Bind::new("one", "One");
    let hint = |confidence| Hint { kind: "usb".into(), value: "1".into(), confidence };
    one.hints = vec![hint(-0.0)];
    assert!(store.bind(one.clone(), "t").unwrap());
    one.hints = vec![hint(0.0)];
    assert!(!store.bind(one, "t").unwrap());
    let kept = store.identity("one").unwrap().unwrap().hints[0].confidence;
    assert!(kept.is_sign_positive());
}
