//! The promises of the catalog to its sources and clients.

use std::sync::Arc;

use rmcp::model::{Annotations, Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::{ListKind, ResourceUri};

use super::{CursorError, Kind, Missing, Stored};
use crate::edit::EditError;
use crate::hub::{AddError, Hub};
use crate::labels::Labels;
use crate::pipeline::Pipeline;
use crate::raw::Raw;
use crate::shelf::Shelf;
use crate::source::Source;

/// Claims one tool when it starts.
struct Claims(&'static str, Shelf);

impl Claims {
    fn on(name: &'static str) -> impl FnOnce(Shelf) -> Result<Self, EditError> {
        move |shelf| Ok(Self(name, shelf))
    }
}

impl Source for Claims {
    async fn start(&self) -> Result<(), EditError> {
        self.1.add(Prompt::new(format!("prompt of {}", self.0), None::<String>, None))?;
        self.1.add(tool(self.0))?;
        Ok(())
    }
}

fn tool(name: &str) -> Tool {
    Tool::new(name.to_owned(), "a tool", serde_json::Map::new())
}

fn uri(text: &str) -> ResourceUri {
    ResourceUri::parse(text).unwrap()
}

fn keys(pipeline: &Pipeline, kind: Kind) -> Vec<String> {
    pipeline
        .catalog
        .listing(kind, &Labels::NONE)
        .items
        .iter()
        .map(|item| item.key().to_owned())
        .collect()
}

fn world() -> (Hub, Arc<Pipeline>, Shelf) {
    let hub = Hub::new("catalog", "1");
    let pipeline = hub.pipeline().clone();
    let shelf = hub.source("empty").unwrap();
    (hub, pipeline, shelf)
}

#[tokio::test]
async fn lists_are_in_the_order_of_their_names_whatever_the_order_they_came_in() {
    let (_hub, pipeline, shelf) = world();
    for name in ["b", "a", "c"] {
        shelf.add(tool(name)).unwrap();
        shelf.add(Resource::new(format!("x://{name}"), name)).unwrap();
    }
    assert_eq!(keys(&pipeline, Kind::Tool), ["a", "b", "c"]);
    assert_eq!(keys(&pipeline, Kind::Resource), ["x://a", "x://b", "x://c"]);
}

#[tokio::test]
async fn the_second_to_claim_a_name_is_refused_whole_and_the_first_keeps_serving() {
    let (hub, pipeline, _) = world();
    hub.add("first", Claims::on("same")).await.unwrap();
    let refused = hub.add("second", Claims::on("same")).await.unwrap_err();
    let AddError::Start { error, .. } = &refused else { panic!("{refused}") };
    assert_eq!(
        error.to_string(),
        "the prompt `prompt of same` of source `second` is offered by source `first` already, \
         which keeps serving it"
    );
    assert_eq!(
        pipeline.catalog.find(Kind::Tool, "same", &Labels::NONE).unwrap().0.member.name,
        "first"
    );
    hub.add("second", Claims::on("other")).await.unwrap();
    assert!(hub.remove("first"));
    assert_eq!(keys(&pipeline, Kind::Tool), ["other"]);
    hub.add("first", Claims::on("same")).await.unwrap();
    let twice = hub.add("first", Claims::on("third")).await.unwrap_err();
    assert_eq!(twice.to_string(), "a source named `first` is part of this hub already");
}

#[tokio::test]
async fn a_transaction_is_done_at_once_or_not_at_all() {
    let (_hub, pipeline, shelf) = world();
    let kept = shelf.add(tool("kept")).unwrap();
    shelf.add(tool("taken")).unwrap();
    let before = pipeline.catalog.list_fingerprint(ListKind::Tools, &Labels::NONE);
    let mut transaction = shelf.transaction();
    transaction.disable(&kept);
    transaction.add(tool("new")).unwrap();
    assert_eq!(keys(&pipeline, Kind::Tool), ["kept", "taken"], "nothing is done before the end");
    transaction.add(tool("taken")).unwrap();
    assert!(matches!(transaction.commit(), Err(EditError::Claimed { .. })));
    assert_eq!(keys(&pipeline, Kind::Tool), ["kept", "taken"]);
    assert_eq!(pipeline.catalog.list_fingerprint(ListKind::Tools, &Labels::NONE), before);

    let mut transaction = shelf.transaction();
    transaction.disable(&kept);
    let new = transaction.add(tool("new")).unwrap();
    transaction.commit().unwrap();
    assert_eq!(keys(&pipeline, Kind::Tool), ["new", "taken"]);
    new.remove().unwrap();
    assert_eq!(keys(&pipeline, Kind::Tool), ["taken"]);
}

#[tokio::test]
async fn a_disabled_item_is_absent_and_refused_and_comes_back() {
    let (_hub, pipeline, shelf) = world();
    let handle = shelf.add(tool("t")).unwrap();
    let page = shelf.add(Resource::new("x://a", "a")).unwrap();
    let on = pipeline.catalog.list_fingerprint(ListKind::Tools, &Labels::NONE);
    handle.disable().unwrap();
    page.disable().unwrap();
    assert!(keys(&pipeline, Kind::Tool).is_empty());
    assert_eq!(
        pipeline.catalog.find(Kind::Tool, "t", &Labels::NONE).err(),
        Some(Missing::Disabled)
    );
    assert_eq!(pipeline.catalog.route(&uri("x://a"), &Labels::NONE).err(), Some(Missing::Disabled));
    handle.enable().unwrap();
    handle.enable().unwrap();
    assert_eq!(pipeline.catalog.list_fingerprint(ListKind::Tools, &Labels::NONE), on);
}

#[tokio::test]
async fn a_handle_of_a_removed_item_edits_nothing() {
    let (hub, pipeline, shelf) = world();
    let old = shelf.add(tool("t")).unwrap();
    old.remove().unwrap();
    let new = shelf.add(tool("t")).unwrap();
    let gone = old.disable().unwrap_err();
    assert_eq!(gone.to_string(), "the tool `t` is not in the catalog any more");
    assert_eq!(keys(&pipeline, Kind::Tool), ["t"]);
    assert!(matches!(new.update(tool("u")), Err(EditError::Renamed { .. })));
    hub.remove("empty");
    assert_eq!(new.disable().unwrap_err(), EditError::Removed);
    assert!(matches!(shelf.add(tool("late")), Err(EditError::Removed)));
}

#[tokio::test]
async fn what_cannot_be_offered_is_refused_in_words() {
    let (_hub, _core, shelf) = world();
    let refused = |error: EditError| error.to_string();
    assert!(refused(shelf.add(tool("")).unwrap_err()).contains("cannot name a tool"));
    let no_uri = shelf.add(Resource::new("no uri", "x")).unwrap_err();
    assert_eq!(refused(no_uri), "`no uri` cannot be a resource's URI");
    let no_template = shelf.add(ResourceTemplate::new("x://{a", "x")).unwrap_err();
    assert_eq!(refused(no_template), "`x://{a` cannot be a URI template");
}

#[tokio::test]
async fn expansions_are_listed_among_the_resources_and_stay_while_nothing_moves() {
    let (_hub, pipeline, shelf) = world();
    let template = shelf.add(ResourceTemplate::new("x://{name}", "x")).unwrap();
    shelf.add(Resource::new("x://b", "fixed")).unwrap();
    let listed = |names: &[&str]| {
        names.iter().map(|name| Resource::new(format!("x://{name}"), *name)).collect()
    };
    template.expand(listed(&["c", "a", "b"])).unwrap();
    assert_eq!(keys(&pipeline, Kind::Resource), ["x://a", "x://b", "x://c"]);
    let before = pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE);
    template.expand(listed(&["a", "c"])).unwrap();
    assert_eq!(
        pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE),
        before,
        "b is fixed"
    );
    template.expand(listed(&["a"])).unwrap();
    assert_ne!(pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE), before);
    let odd = template.expand(vec![Resource::new("y://a", "odd")]).unwrap_err();
    assert_eq!(odd.to_string(), "`y://a` is not an expansion of `x://{name}`");
    template.disable().unwrap();
    assert_eq!(keys(&pipeline, Kind::Resource), ["x://b"]);
    assert_eq!(pipeline.catalog.route(&uri("x://a"), &Labels::NONE).err(), Some(Missing::Disabled));
}

#[tokio::test]
async fn a_template_with_a_query_answers_for_any_query() {
    let (_hub, pipeline, shelf) = world();
    shelf.add(ResourceTemplate::new("x://{name}/items{?limit,search}", "x")).unwrap();
    shelf.add(ResourceTemplate::new("y://{name}", "y")).unwrap();
    let answers = |text: &str| pipeline.catalog.route(&uri(text), &Labels::NONE).is_ok();
    for answered in ["?limit=1", "?search=a+b", "?limit=1:2", "?colour=red", "?limit=1&limit=2"] {
        assert!(answers(&format!("x://a/items{answered}")), "{answered}");
    }
    assert!(!answers("x://a/meta?limit=1"));
    assert!(!answers("y://a?limit=1"));
}

#[tokio::test]
async fn the_template_that_says_most_literally_answers() {
    let (hub, pipeline, shelf) = world();
    let near = hub.source("near").unwrap();
    shelf.add(ResourceTemplate::new("x://{+rest}", "all")).unwrap();
    near.add(ResourceTemplate::new("x://near/{name}", "near")).unwrap();
    assert_eq!(
        pipeline.catalog.route(&uri("x://near/a"), &Labels::NONE).unwrap().answerer.member.name,
        "near"
    );
    assert_eq!(
        pipeline.catalog.route(&uri("x://far/a"), &Labels::NONE).unwrap().answerer.member.name,
        "empty"
    );
    assert_eq!(pipeline.catalog.route(&uri("y://a"), &Labels::NONE).err(), Some(Missing::Unknown));
}

#[tokio::test]
async fn pages_join_to_the_list_and_a_changed_list_refuses_its_cursors() {
    let (_hub, pipeline, shelf) = world();
    let handles: Vec<_> =
        (0..25).map(|index| shelf.add(tool(&format!("t{index:02}"))).unwrap()).collect();
    let listing = pipeline.catalog.listing(Kind::Tool, &Labels::NONE);
    let (mut all, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = listing.page(cursor.as_deref(), 10).unwrap();
        all.extend(page.items.iter().map(|item| item.key().to_owned()));
        pages += 1;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((pages, all), (3, keys(&pipeline, Kind::Tool)));
    let cursor = listing.page(None, 10).unwrap().next.unwrap();
    handles[0].remove().unwrap();
    let changed = pipeline.catalog.listing(Kind::Tool, &Labels::NONE);
    assert_eq!(changed.page(Some(&cursor), 10).unwrap_err(), CursorError::Changed);
    let zero = format!("{}-0", changed.fingerprint);
    let far = format!("{}-99", changed.fingerprint);
    let signed = format!("{}-+5", changed.fingerprint);
    for invented in ["", "10", "-", "zz-1", "é-1", &zero, &far, &signed] {
        assert_eq!(
            changed.page(Some(invented), 10).unwrap_err(),
            CursorError::Invented,
            "{invented}"
        );
    }
}

#[tokio::test]
async fn the_measures_of_a_resource_are_listed_as_they_are_and_move_no_list() {
    let (_hub, pipeline, shelf) = world();
    let measured = |size: u64, moment: &str| {
        let mut resource = Resource::new("x://a", "a");
        resource.size = Some(size);
        let mut annotations = Annotations::default();
        annotations.last_modified = Some(moment.to_owned());
        resource.annotations = Some(annotations);
        resource
    };
    let handle = shelf.add(measured(1, "2026-01-01T00:00:00Z")).unwrap();
    let before = pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE);
    handle.update(measured(2, "2026-01-02T00:00:00Z")).unwrap();
    assert_eq!(pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE), before);
    let listing = pipeline.catalog.listing(Kind::Resource, &Labels::NONE);
    let Stored::Resource(listed) = &listing.items[0] else { panic!("no resource") };
    assert_eq!(listed.size, Some(2));
    let mut titled = measured(2, "2026-01-02T00:00:00Z");
    titled.title = Some("A".to_owned());
    handle.update(titled).unwrap();
    assert_ne!(pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE), before);
}

#[tokio::test]
async fn a_raw_item_has_the_fingerprint_of_an_equal_typed_one() {
    let (_hub, pipeline, shelf) = world();
    let put = |text: &str| {
        let mut edit = shelf.transaction();
        edit.put(Raw::<Resource>::parse(text).unwrap()).unwrap();
        edit.commit().unwrap();
        pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE)
    };
    let mut typed = Resource::new("x://a", "a");
    typed.size = Some(1);
    shelf.add(typed).unwrap();
    let before = pipeline.catalog.list_fingerprint(ListKind::Resources, &Labels::NONE);
    let measured = r#"{"size":2.5,"name":"a","annotations":{"lastModified":"now"},"uri":"x://a"}"#;
    assert_eq!(put(measured), before);
    let listing = pipeline.catalog.listing(Kind::Resource, &Labels::NONE);
    assert_eq!(listing.items[0].raw(), Some(measured));
    assert_ne!(put(r#"{"name":"a","uri":"x://a","new":null}"#), before);
    assert_eq!(put(r#"{"name":"a","uri":"x:\/\/a"}"#), before);
    let listing = pipeline.catalog.listing(Kind::Resource, &Labels::NONE);
    assert_eq!((listing.items.len(), listing.items[0].key()), (1, "x://a"));
}

#[tokio::test]
async fn a_raw_item_is_used_as_a_typed_one_is() {
    let (_hub, pipeline, shelf) = world();
    let tool = Raw::<Tool>::parse(r#"{"name":"a","inputSchema":{}}"#).unwrap();
    let tool = shelf.add(tool).unwrap();
    let template = r#"{"uriTemplate":"x://{id}","name":"t"}"#;
    let template = shelf.add(Raw::<ResourceTemplate>::parse(template).unwrap()).unwrap();
    template.expand(vec![Resource::new("x://7", "seven")]).unwrap();
    assert_eq!(keys(&pipeline, Kind::Resource), ["x://7"]);
    assert_eq!(pipeline.catalog.route(&uri("x://8"), &Labels::NONE).unwrap().variables["id"], "8");
    let resource = r#"{"uri":"x://9","name":"n","title":"Nine"}"#;
    shelf.add(Raw::<Resource>::parse(resource).unwrap()).unwrap();
    assert_eq!(
        pipeline.catalog.route(&uri("x://9"), &Labels::NONE).unwrap().title.as_deref(),
        Some("Nine")
    );
    tool.disable().unwrap();
    assert_eq!(
        pipeline.catalog.find(Kind::Tool, "a", &Labels::NONE).err(),
        Some(Missing::Disabled)
    );
    tool.enable().unwrap();
    let renamed = Raw::<Tool>::parse(r#"{"name":"b","inputSchema":{}}"#).unwrap();
    assert!(matches!(tool.update(renamed), Err(EditError::Renamed { .. })));
}
