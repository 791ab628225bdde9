//! Listeners that see the same are one group; an edit may reach the catalog some time before it is
//! counted, and what is checked in between must be what each of them sees.

use rmcp::model::Tool;

use super::*;
use crate::catalog::{Edit, Kind, Stored, Touched};
use crate::notice;
use crate::shelf::Handle;

fn tool(name: &str) -> Tool {
    Tool::new(name.to_owned(), "a tool", serde_json::Map::new())
}

/// A hub with two listeners of its tools; only one of them has the label that the tool `own` names.
struct Two {
    hub: Hub,
    shelf: Shelf,
    ada: Listener,
    bob: Listener,
}

impl Two {
    async fn new() -> Self {
        let hub = Hub::new("two", "1");
        let shelf = hub.source("tools").unwrap();
        shelf.add(tool("any")).unwrap();
        tokio::time::sleep(SETTLED).await;
        let [ada, bob] = ["user:ada", "user:bob"].map(|labels| listener(&hub, labels));
        for listener in [&ada, &bob] {
            listener.follow_lists(ListKinds::ALL);
        }
        Self { hub, shelf, ada, bob }
    }

    /// Puts a tool for one label into the catalog; it is not counted yet.
    fn put_own(&self) -> Touched {
        let other = Hub::new("other", "1");
        other.source("tools").unwrap().add(tool("own")).unwrap();
        let listing = other.pipeline().catalog.listing(Kind::Tool, &Labels::NONE);
        let item: Stored = listing.items[0].clone();
        let audience = Labels::parse("user:ada").unwrap();
        let edit = Edit::Add { item, answers: None, enabled: true, audience, serial: 1000 };
        self.apply(edit)
    }

    fn take_own(&self) -> Touched {
        self.apply(Edit::Take { kind: Kind::Tool, key: "own".to_owned() })
    }

    fn apply(&self, edit: Edit) -> Touched {
        let catalog = &self.hub.pipeline().catalog;
        catalog.apply(catalog.member_id("tools").unwrap(), vec![edit]).unwrap()
    }

    fn count(&self, touched: &Touched) {
        self.hub.pipeline().touch(touched);
    }

    /// How many notices each of them gets within a long time.
    async fn heard(&self) -> [usize; 2] {
        tokio::time::sleep(SETTLED).await;
        [&self.ada, &self.bob].map(heard)
    }
}

fn listener(hub: &Hub, labels: &str) -> Listener {
    let identity = Identity { labels: Labels::parse(labels).unwrap(), ..Identity::default() };
    let viewer = hub.pipeline().viewers.session(identity);
    Listener::new(hub.pipeline(), PLAIN, About::nobody(), Some(viewer))
}

fn heard(listener: &Listener) -> usize {
    let outbox = listener.outbox();
    let reader = outbox.attach();
    let mut context = std::task::Context::from_waker(Waker::noop());
    let mut heard = 0;
    while let Poll::Ready(Next::Frames(frames)) = outbox.poll_next(reader, &mut context) {
        heard += notice::events(&frames).count();
    }
    outbox.detach(reader);
    heard
}

// A check of the group had what nobody of the label sees, though the tool was readable. The count
// that followed was announced once more, and by then there was nothing new.
#[test]
fn a_check_before_an_edit_is_counted_announces_the_edit_once() {
    in_paused_time(async {
        let two = Two::new().await;
        two.shelf.add(tool("more")).unwrap();
        let own = two.put_own();
        assert_eq!(two.heard().await, [1, 1], "more is for everyone, and read with own");
        two.count(&own);
        assert_eq!(two.heard().await, [0, 0], "ada has read that");
        two.shelf.add(tool("most")).unwrap();
        let gone = two.take_own();
        assert_eq!(two.heard().await, [1, 1]);
        two.count(&gone);
        assert_eq!(two.heard().await, [0, 0]);
    });
}

#[test]
fn a_listener_that_comes_before_an_edit_is_counted_begins_with_what_it_sees() {
    in_paused_time(async {
        let two = Two::new().await;
        let own = two.put_own();
        let late = listener(&two.hub, "user:ada");
        late.follow_lists(ListKinds::ALL);
        two.count(&own);
        assert_eq!(two.heard().await, [1, 0]);
        assert_eq!(heard(&late), 0, "it began with own");
        two.shelf.add(tool("more")).unwrap();
        assert_eq!((two.heard().await, heard(&late)), ([1, 1], 1));
    });
}

// The label is gone before the change of its item is counted, and then that change is for nobody.
#[test]
fn two_edits_may_be_counted_in_another_order() {
    in_paused_time(async {
        let two = Two::new().await;
        let (own, gone) = (two.put_own(), two.take_own());
        two.count(&gone);
        two.count(&own);
        assert_eq!(two.heard().await, [0, 0], "nothing changed");
        let own = two.put_own();
        two.count(&own);
        assert_eq!(two.heard().await, [1, 0]);
        let (gone, back) = (two.take_own(), two.put_own());
        two.count(&back);
        assert_eq!(two.heard().await, [0, 0]);
        two.count(&gone);
        assert_eq!(two.heard().await, [0, 0]);
        let gone = two.take_own();
        two.count(&gone);
        assert_eq!(two.heard().await, [1, 0], "it is told of the last change");
    });
}

#[test]
fn a_label_that_only_a_disabled_item_names_makes_no_difference_until_it_is_enabled() {
    in_paused_time(async {
        let two = Two::new().await;
        let own = Offer::from(tool("own")).audience("user:ada").disabled();
        let own: Handle<Tool> = two.shelf.add(own).unwrap();
        assert_eq!(two.heard().await, [0, 0]);
        two.shelf.add(tool("more")).unwrap();
        assert_eq!(two.heard().await, [1, 1]);
        own.enable().unwrap();
        assert_eq!(two.heard().await, [1, 0]);
        own.disable().unwrap();
        assert_eq!(two.heard().await, [1, 0]);
        own.remove().unwrap();
        assert_eq!(two.heard().await, [0, 0]);
        two.shelf.add(tool("most")).unwrap();
        assert_eq!(two.heard().await, [1, 1]);
    });
}

// A template that only ada sees lists a page that everyone had through another template.
#[test]
fn a_hidden_template_that_takes_a_listed_page_is_told_to_who_loses_it() {
    in_paused_time(async {
        let two = Two::new().await;
        let pages = Pages { versioned: true, ..Pages::default() };
        pages.texts.lock().unwrap().insert("p://x/a".to_owned(), 1);
        let mut kept = None;
        let build = |shelf: Shelf| {
            let all = shelf.add(ResourceTemplate::new("p://{+path}", "all"))?;
            let near = Offer::from(ResourceTemplate::new("p://x/{name}", "near"));
            kept = Some((all, shelf.add(near.audience("user:ada"))?));
            Ok(pages)
        };
        two.hub.add("pages", build).await.unwrap();
        let (all, near) = kept.unwrap();
        let listed = || vec![rmcp::model::Resource::new("p://x/a", "a")];
        all.expand(listed()).unwrap();
        assert_eq!(two.heard().await, [1, 1], "resources");
        let uri = ResourceUri::parse("p://x/a").unwrap();
        two.bob.subscribe(&uri).await.unwrap();
        near.expand(listed()).unwrap();
        assert_eq!(two.heard().await, [0, 2], "bob's list and his page");
        near.expand(Vec::new()).unwrap();
        assert_eq!(two.heard().await, [0, 2], "and both are back");
    });
}

// The label is granted before the edit that names it first is counted.
#[test]
fn a_grant_beside_the_first_item_of_its_label_is_told_once() {
    in_paused_time(async {
        let two = Two::new().await;
        let own = two.put_own();
        let ada = Labels::parse("user:ada").unwrap();
        let viewer = two.bob.viewer().unwrap();
        two.hub.pipeline().say_to(viewer, Scope::Session, (&ada, Word::Grant)).unwrap();
        two.count(&own);
        assert_eq!(two.heard().await, [1, 1], "both see it");
        two.hub.pipeline().say_to(viewer, Scope::Session, (&ada, Word::Withdraw)).unwrap();
        assert_eq!(two.heard().await, [0, 1]);
    });
}
