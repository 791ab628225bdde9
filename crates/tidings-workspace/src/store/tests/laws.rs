//! Laws that hold for any writes, in any order, by any number of writers.

use proptest::prelude::*;

use super::*;
use crate::store::apply;

/// A write, with numbers for its objects.
#[derive(Clone, Debug)]
enum WriteStep {
    Create { text: u8, tags: Vec<u8>, parent: Option<u8>, set: Option<u8> },
    Tag(u8, Vec<u8>),
    Untag(u8, Vec<u8>),
    Annotate(u8),
    Archive(u8, bool),
    Bind { id: u8, name: u8, hint: Option<u8>, steal: bool },
    TagIdentity(u8, u8, u8),
    Unbind(u8),
    Connect(u8, u8),
    Disconnect(u8, u8),
}

fn step() -> impl Strategy<Value = WriteStep> {
    let few = || prop::collection::vec(0..4_u8, 0..3);
    let some = || prop::option::of(0..6_u8);
    prop_oneof![
        4 => (0..4_u8, few(), some(), some())
            .prop_map(|(text, tags, parent, set)| WriteStep::Create { text, tags, parent, set }),
        1 => (0..6_u8, few()).prop_map(|(it, tags)| WriteStep::Tag(it, tags)),
        1 => (0..6_u8, few()).prop_map(|(it, tags)| WriteStep::Untag(it, tags)),
        1 => (0..6_u8).prop_map(WriteStep::Annotate),
        1 => (0..6_u8, any::<bool>()).prop_map(|(it, away)| WriteStep::Archive(it, away)),
        2 => (0..4_u8, 0..3_u8, prop::option::of(0..3_u8), any::<bool>())
            .prop_map(|(id, name, hint, steal)| WriteStep::Bind { id, name, hint, steal }),
        1 => (0..4_u8, 0..3_u8, 0..3_u8).prop_map(|(it, add, remove)| WriteStep::TagIdentity(it, add, remove)),
        1 => (0..4_u8).prop_map(WriteStep::Unbind),
        2 => (0..4_u8, 0..4_u8).prop_map(|(from, to)| WriteStep::Connect(from, to)),
        1 => (0..4_u8, 0..4_u8).prop_map(|(from, to)| WriteStep::Disconnect(from, to)),
    ]
}

fn named(numbers: &[u8]) -> Vec<String> {
    let categories = ["", "type:", "type:", "mood:"];
    numbers.iter().map(|it| format!("{}{it}", categories[usize::from(*it) % 4])).collect()
}

fn link(from: u8, to: u8) -> Link {
    let port = "main".to_owned();
    let (from, to) = (from.to_string(), to.to_string());
    Link { from, from_port: port.clone(), to, to_port: port, transport: String::new() }
}

/// Performs a step; it may be refused.
fn take(store: &Store, step: &WriteStep, ids: &mut Vec<String>) {
    let id = |it: u8| ids.get(usize::from(it)).cloned().unwrap_or_else(|| "none".to_owned());
    let done = match step {
        WriteStep::Create { text, tags, parent, set } => {
            let mut draft = draft(&format!("text {text}"));
            draft.tags = named(tags);
            draft.parents = parent.map(id).into_iter().collect();
            draft.place = set.map(|it| SetPlace { set: (it % 2).to_string(), index: None });
            let whole = whole(store, draft.title.as_bytes());
            store.create_of(whole, draft, "tester").map(|id| ids.push(id))
        }
        WriteStep::Tag(it, tags) => store.tag(&id(*it), &named(tags), "tester").map(drop),
        WriteStep::Untag(it, tags) => store.untag(&id(*it), &named(tags), "tester").map(drop),
        WriteStep::Annotate(it) => store.annotate(&id(*it), "good", "tester", "tester").map(drop),
        WriteStep::Archive(it, away) => store.archive(&id(*it), *away, "tester").map(drop),
        WriteStep::Bind { id, name, hint, steal } => {
            let mut bind = Bind::new(id.to_string(), format!("name {name}"));
            let hint = hint.map(|it| Hint {
                kind: "port".to_owned(),
                value: it.to_string(),
                confidence: f64::from(it) / 4.0,
            });
            bind.hints = hint.into_iter().collect();
            bind.steal = *steal;
            store.bind(bind, "tester").map(drop)
        }
        WriteStep::TagIdentity(it, add, remove) => {
            let (add, remove) = (named(&[*add]), named(&[*remove]));
            store.tag_identity(&it.to_string(), &add, &remove, "tester").map(drop)
        }
        WriteStep::Unbind(it) => store.unbind(&it.to_string(), "tester"),
        WriteStep::Connect(from, to) => store.connect(link(*from, *to), "tester"),
        WriteStep::Disconnect(from, to) => store.disconnect(link(*from, *to), "tester"),
    };
    if let Err(error) = done {
        assert!(error.refusal().is_some(), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn the_log_applied_again_gives_the_same_workspace(
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let (_directory, store) = fresh();
        let mut ids = Vec::new();
        for step in &steps {
            take(&store, step, &mut ids);
        }
        let log = store.events(0, &[], 1000).unwrap().events;
        let (_other, copy) = fresh();
        copy.exclusively(|connection| {
            log.iter().try_for_each(|event| apply::apply(connection, &store.blobs, event))
        })
        .unwrap();
        prop_assert_eq!(state(&copy), state(&store));
        prop_assert_eq!(store.verify(|_, _| {}).unwrap().problems, Vec::new());
    }
}

#[test]
fn writers_at_once_leave_no_gap_and_nothing_twice() {
    const WRITERS: usize = 16;
    const EACH: usize = 8;
    let (_directory, store) = fresh();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut one = draft(&format!("{writer} {number}"));
                    one.place = Some(SetPlace { set: "all".to_owned(), index: None });
                    create(store, one);
                    // A refused write does not affect the others.
                    let mut bad = draft("same");
                    bad.parents = texts(["none"]);
                    let whole = whole(store, b"same");
                    assert!(store.create_of(whole, bad, "tester").is_err());
                }
            });
        }
    });
    let log = store.events(0, &[], 10_000).unwrap().events;
    let numbers: Vec<_> = log.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let created = log.iter().filter(|event| matches!(event.change, Change::Created(_)));
    assert_eq!(created.count(), WRITERS * EACH);
    let refused = blake3::hash(b"same").to_hex().to_string();
    let is_refused =
        |change: &Change| matches!(change, Change::BlobStored { hash, .. } if *hash == refused);
    assert!(!log.iter().any(|event| is_refused(&event.change)));
    let set = store.list(&ArtifactList::Set("all".to_owned()), None, 1000).unwrap();
    let places: Vec<_> = set.items.iter().filter_map(|entry| entry.index).collect();
    assert_eq!(places, (0..(WRITERS * EACH) as u64).collect::<Vec<_>>());
    assert_eq!(store.verify(|_, _| {}).unwrap().problems, Vec::new());
}

#[test]
fn a_writer_that_panics_leaves_nothing_and_stops_nobody() {
    let (_directory, store) = fresh();
    create(&store, draft("before"));
    let before = state(&store);
    let failed = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let done: Result<(), _> = store.write(|ledger| {
                let (hash, mime_type) = ("a".repeat(64), "x/y".to_owned());
                ledger.record("t", Change::BlobStored { hash, mime_type, size: 1 })?;
                panic!("on purpose")
            });
            done
        });
        writer.join()
    });
    assert!(failed.is_err());
    assert_eq!(state(&store), before);
    create(&store, draft("after"));
    assert_eq!(store.events(0, &[], 10).unwrap().cursor, 4);
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let (directory, store) = fresh();
    let id = create(&store, draft("kept"));
    let before = state(&store);
    drop(store);
    let store = Store::open(Config::new(directory.path())).unwrap();
    assert_eq!(state(&store), before);
    assert_eq!(store.artifact(&id).unwrap().unwrap().entry.title, "kept");
    assert_eq!(*store.follow().borrow(), 2);
}

#[test]
fn equal_bytes_are_two_artifacts_and_one_blob() {
    let (_directory, store) = fresh();
    let (one, other) = (create(&store, draft("same")), create(&store, draft("same")));
    assert!(one < other);
    assert_eq!(store.blobs.all().unwrap().len(), 1);
    assert_eq!(store.summary().unwrap().artifacts, 2);
}

#[test]
fn lists_have_pages() {
    let (_directory, store) = fresh();
    for title in ["a", "b", "c", "d", "e"] {
        let mut one = draft(title);
        one.tags = texts(["x"]);
        one.place = Some(SetPlace { set: "s".to_owned(), index: None });
        create(&store, one);
    }
    let lists = [
        ArtifactList::Recent,
        ArtifactList::Tag("x".into()),
        ArtifactList::Creator("tester".into()),
    ];
    for list in &lists {
        let page = store.list(list, None, 2).unwrap();
        assert_eq!((page.total, titles(&page.items)), (5, vec!["e", "d"]));
        let page = store.list(list, page.next.as_deref(), 3).unwrap();
        assert_eq!((titles(&page.items), page.next), (vec!["c", "b", "a"], None));
    }
    let page = store.list(&ArtifactList::Set("s".into()), None, 2).unwrap();
    let page = store.list(&ArtifactList::Set("s".into()), page.next.as_deref(), 2).unwrap();
    assert_eq!(titles(&page.items), ["c", "d"]);
}

#[test]
fn what_is_archived_leaves_lists_and_comes_back() {
    let (_directory, store) = fresh();
    let mut one = draft("one");
    one.tags = texts(["type:a", "plain"]);
    one.place = Some(SetPlace { set: "s".to_owned(), index: None });
    let id = create(&store, one);
    let before = store.summary().unwrap();
    assert!(store.archive(&id, true, "tester").unwrap());
    assert!(!store.archive(&id, true, "tester").unwrap());
    store.tag(&id, &texts(["type:b"]), "tester").unwrap();
    for list in [
        ArtifactList::Recent,
        ArtifactList::Tag("plain".into()),
        ArtifactList::Creator("tester".into()),
    ] {
        assert_eq!(store.list(&list, None, 10).unwrap().total, 0);
    }
    assert!(store.list(&ArtifactList::Set("s".into()), None, 10).unwrap().items[0].archived);
    let summary = store.summary().unwrap();
    assert_eq!((summary.artifacts, summary.archived, summary.categories.len()), (0, 1, 0));
    store.untag(&id, &texts(["type:b"]), "tester").unwrap();
    assert!(store.archive(&id, false, "tester").unwrap());
    assert_eq!(store.summary().unwrap(), before);
}

#[test]
fn a_lineage_has_every_ancestor_once_and_roots_first() {
    let (_directory, store) = fresh();
    let child_of = |title: &str, parents: &[&String]| {
        let mut child = draft(title);
        child.parents = parents.iter().map(|it| (*it).clone()).collect();
        create(&store, child)
    };
    let root = child_of("root", &[]);
    let (left, right) = (child_of("left", &[&root]), child_of("right", &[&root]));
    let last = child_of("last", &[&right, &left, &right]);
    let Lineage { items: lineage, truncated } = store.lineage(&last).unwrap().unwrap();
    assert!(!truncated);
    let found: Vec<_> = lineage.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(found, ["root", "left", "right", "last"]);
    assert_eq!(lineage[3].parents, [right, left]);
    assert_eq!(store.artifact(&root).unwrap().unwrap().child_count, 2);
    assert!(store.lineage("none").unwrap().is_none());
}

#[test]
fn words_are_found_in_titles_remarks_and_texts() {
    let (_directory, store) = fresh();
    let mut one = draft("Nocturne");
    one.tags = texts(["type:midi"]);
    let bytes = whole(&store, "a slow gr\u{fc}n melody".as_bytes());
    let first = store.create_of(bytes, one, "tester").unwrap();
    let other = store.create_of(whole(&store, b"\xff\x00 melody"), draft("Other"), "tester");
    let other = other.unwrap();
    store.annotate(&other, "too loud", "critic", "critic").unwrap();
    store.annotate(&first, "not slow enough", "critic", "critic").unwrap();
    store.annotate(&other, "and slow", "critic", "critic").unwrap();
    let find = |words: &str, tags: &[&str]| {
        let search = Search {
            words: Some(words.to_owned()),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Search::default()
        };
        titles(&store.search(&search, 10).unwrap().0).join(" ")
    };
    assert_eq!(find("melody", &[]), "Nocturne");
    assert_eq!(find("grun noct*", &[]), "Nocturne");
    assert_eq!(find("\"slow melody\"", &[]), "");
    assert_eq!(find("loud", &[]), "Other");
    assert_eq!(find("loud", &["type:midi"]), "");
    // Each word anywhere: in a title and a remark, in two remarks.
    assert_eq!(find("slow", &[]), "Other Nocturne");
    assert_eq!(find("nocturne enough", &[]), "Nocturne");
    assert_eq!(find("loud slow", &[]), "Other");
    assert_eq!(find("loud melody", &[]), "");
    assert_eq!(find("\"loud and\"", &[]), "");
    assert_eq!(find("", &["type:midi"]), "Nocturne");
    assert_eq!(find("", &["type:midi", "none"]), "");
    assert_eq!(find("' OR \" ( ^ {", &[]), "");
    // A text without letters and digits matches nothing, rather than everything.
    for none in ["\u{2600}", "+++", "\"", "* - \"...\""] {
        assert_eq!(find(none, &[]), "", "{none}");
        assert_eq!(find(none, &["type:midi"]), "", "{none}");
    }
    assert_eq!(find(" ", &[]), "Other Nocturne");
    store.archive(&first, true, "tester").unwrap();
    assert_eq!(find("melody", &[]), "");
}

#[test]
fn whoever_is_done_leaves_one_file() {
    let (directory, store) = fresh();
    let id = create(&store, draft("one"));
    store.artifact(&id).unwrap();
    drop(store);
    assert!(!directory.path().join(format!("{DATABASE}-wal")).exists());
}
