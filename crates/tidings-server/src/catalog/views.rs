//! One list of the catalog as clients with different labels see it. Each view is built when
//! somebody asks for it and kept until an edit that it shows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Listing;
use crate::catalog::edit::Reach;
use crate::labels::Labels;

/// The views of one list hold at most so many items together, besides the view of everyone. When
/// there are more, they are built again as they are asked for.
const HELD: usize = 1 << 18;

/// The views of one list.
#[derive(Default)]
pub(super) struct Views {
    /// What clients without labels see.
    everyone: Option<Arc<Listing>>,
    /// By those labels of the client that some item names. Others make no difference, so most
    /// clients share few views.
    others: HashMap<Labels, Arc<Listing>>,
    held: usize,
}

impl Views {
    /// What clients with these labels, which were reduced, see, if it is known.
    pub(super) fn get(&self, labels: &Labels) -> Option<Arc<Listing>> {
        if labels.is_empty() { self.everyone.clone() } else { self.others.get(labels).cloned() }
    }

    /// Keeps what clients with these labels, which were reduced, see.
    pub(super) fn keep(&mut self, labels: Labels, listing: &Arc<Listing>) {
        if labels.is_empty() {
            self.everyone = Some(listing.clone());
            return;
        }
        self.held += weight(listing);
        if self.held > HELD {
            self.others.clear();
            self.held = weight(listing);
        }
        self.others.insert(labels, listing.clone());
    }

    /// Forgets the views that show a change.
    pub(super) fn forget(&mut self, reach: &Reach) {
        if *reach == Reach::Everyone {
            self.everyone = None;
        }
        self.others.retain(|labels, _| !reach.includes(labels));
        self.held = self.others.values().map(weight).sum();
    }
}

/// What a view counts as: an empty one takes room, too.
fn weight(listing: &Arc<Listing>) -> usize {
    listing.items.len() + 1
}

#[cfg(test)]
mod tests {
    use rmcp::model::{Resource, ResourceTemplate, Tool};
    use tidings_core::{Fingerprint, ResourceUri};

    use super::*;
    use crate::catalog::{Kind, Missing, Stored};
    use crate::edit::EditError;
    use crate::hub::Hub;
    use crate::offer::Offer;
    use crate::shelf::Shelf;

    fn labels(text: &str) -> Labels {
        Labels::parse(text).unwrap()
    }

    fn tool(name: &str) -> Offer<Tool> {
        Tool::new(name.to_owned(), "a tool", serde_json::Map::new()).into()
    }

    fn world() -> (Hub, Shelf) {
        let hub = Hub::new("views", "1");
        let shelf = hub.source("all").unwrap();
        shelf.add(tool("any")).unwrap();
        shelf.add(tool("flight").audience(["role:pilot", "role:admin"])).unwrap();
        shelf.add(tool("reset").audience("role:admin")).unwrap();
        (hub, shelf)
    }

    fn listing(hub: &Hub, text: &str) -> Arc<Listing> {
        hub.pipeline().catalog.listing(Kind::Tool, &labels(text))
    }

    fn names(hub: &Hub, text: &str) -> Vec<String> {
        listing(hub, text).items.iter().map(|item| item.key().to_owned()).collect()
    }

    #[tokio::test]
    async fn a_list_has_what_is_for_everyone_and_for_the_labels_of_its_reader() {
        let (hub, _shelf) = world();
        assert_eq!(names(&hub, ""), ["any"]);
        assert_eq!(names(&hub, "role:pilot"), ["any", "flight"]);
        assert_eq!(names(&hub, "role:admin"), ["any", "flight", "reset"]);
        let find = |text| hub.pipeline().catalog.find(Kind::Tool, "reset", &labels(text)).err();
        assert_eq!(find("role:pilot"), Some(Missing::Unknown));
        assert_eq!(find("role:admin"), None);
        let catalog = &hub.pipeline().catalog;
        assert!(catalog.has_views(Kind::Tool) && !catalog.has_views(Kind::Prompt));
    }

    #[tokio::test]
    async fn clients_whose_labels_make_no_difference_share_one_list() {
        let (hub, _shelf) = world();
        let same = |one, other| Arc::ptr_eq(&listing(&hub, one), &listing(&hub, other));
        assert!(same("", "user:ada team:x"));
        assert!(same("role:pilot user:ada", "role:pilot user:bob"));
        assert!(!same("role:pilot", "role:admin"));
    }

    #[tokio::test]
    async fn an_edit_forgets_only_the_views_that_show_it() {
        let (hub, shelf) = world();
        let [none, pilot, admin] = ["", "role:pilot", "role:admin"].map(|it| listing(&hub, it));
        let is_kept = |text, before: &Arc<Listing>| Arc::ptr_eq(&listing(&hub, text), before);
        let hidden = shelf.add(tool("secret").audience("role:admin")).unwrap();
        assert!(is_kept("", &none) && is_kept("role:pilot", &pilot));
        assert!(!is_kept("role:admin", &admin));
        hidden.remove().unwrap();
        assert_eq!(listing(&hub, "role:admin").fingerprint, admin.fingerprint);
        shelf.add(tool("open")).unwrap();
        assert!(!is_kept("", &none) && !is_kept("role:pilot", &pilot));
    }

    #[tokio::test]
    async fn a_uri_belongs_to_one_item_and_no_template_answers_in_its_place() {
        let (hub, shelf) = world();
        let route = |uri: &str, text: &str| {
            let route =
                hub.pipeline().catalog.route(&ResourceUri::parse(uri).unwrap(), &labels(text));
            route.map(|route| route.is_withheld)
        };
        let secret = || Offer::from(Resource::new("p://secret", "secret"));
        let page = shelf.add(secret().audience("role:admin")).unwrap();
        assert_eq!(route("p://secret", ""), Err(Missing::Unknown));
        assert_eq!(route("p://secret", "role:admin"), Ok(false));
        let template = shelf.add(ResourceTemplate::new("p://{name}", "page")).unwrap();
        assert_eq!(route("p://secret", ""), Ok(true));
        assert_eq!(route("p://other", ""), Ok(false));
        template.expand(vec![Resource::new("p://secret", "secret")]).unwrap();
        let listed =
            |text| hub.pipeline().catalog.listing(Kind::Resource, &labels(text)).items.len();
        assert_eq!((listed(""), listed("role:admin")), (0, 1));
        // What the template lists is everyone's again once the resource is gone.
        page.remove().unwrap();
        assert_eq!((listed(""), listed("role:admin")), (1, 1));
    }

    // A listed URI once read as absent where a hidden template had the longer literal match.
    #[tokio::test]
    async fn what_a_template_lists_is_its_own_and_who_sees_it_listed_can_read_it() {
        let (hub, shelf) = world();
        let catalog = &hub.pipeline().catalog;
        let page = |uri: &str, title: &str| {
            let mut resource = Resource::new(uri, "page");
            resource.title = Some(title.to_owned());
            resource
        };
        let titles = |text: &str| {
            let listing = catalog.listing(Kind::Resource, &labels(text));
            let title = |item: &Stored| match item {
                Stored::Resource(resource) => resource.title.clone().unwrap(),
                other => panic!("{other:?}"),
            };
            listing.items.iter().map(title).collect::<Vec<_>>()
        };
        let read = |uri: &str, text: &str| {
            let route = catalog.route(&ResourceUri::parse(uri).unwrap(), &labels(text)).unwrap();
            (!route.is_withheld).then_some(route.title)
        };
        let all = shelf.add(ResourceTemplate::new("p://{+path}", "all")).unwrap();
        let vault = Offer::from(ResourceTemplate::new("p://vault/{name}", "vault"));
        let vault = shelf.add(vault.audience("role:admin")).unwrap();
        all.expand(vec![page("p://vault/a", "open a"), page("p://b", "open b")]).unwrap();
        assert_eq!(titles(""), ["open b", "open a"]);
        assert_eq!(read("p://vault/a", ""), Some(Some("open a".to_owned())), "listed wins");
        assert_eq!(read("p://vault/other", ""), None, "not listed, so it is the vault's");
        // The vault lists it, too: it is the nearer one, and then the page is hidden.
        vault.expand(vec![page("p://vault/a", "secret a")]).unwrap();
        assert_eq!(titles(""), ["open b"]);
        assert_eq!(read("p://vault/a", ""), None);
        assert_eq!(titles("role:admin"), ["open b", "secret a"]);
        vault.disable().unwrap();
        assert_eq!(titles(""), ["open b", "open a"]);
        assert_eq!(read("p://vault/a", ""), Some(Some("open a".to_owned())));
    }

    #[tokio::test]
    async fn an_update_keeps_the_audience_unless_it_names_one() {
        let (hub, shelf) = world();
        let handle = shelf.add(tool("x").audience("role:admin")).unwrap();
        handle.update(tool("x").with(|tool| tool.title = Some("X".into()))).unwrap();
        assert!(!names(&hub, "").contains(&"x".to_owned()));
        handle.update(tool("x").everyone()).unwrap();
        assert!(names(&hub, "").contains(&"x".to_owned()));
        handle.update(tool("x").audience("role:pilot")).unwrap();
        assert!(!names(&hub, "").contains(&"x".to_owned()));
        let mut transaction = shelf.transaction();
        transaction.put(tool("x")).unwrap();
        transaction.commit().unwrap();
        assert!(names(&hub, "").contains(&"x".to_owned()), "put replaces the whole item");
    }

    #[tokio::test]
    async fn an_invalid_audience_is_refused_with_the_item_and_the_label() {
        let (_hub, shelf) = world();
        for odd in ["", "a\u{7}b"] {
            let error = shelf.add(tool("x").audience(odd).audience("role:admin")).unwrap_err();
            assert!(matches!(&error, EditError::Audience { key, .. } if key == "x"), "{error}");
        }
        let none = shelf.add(tool("x").audience(Labels::NONE)).unwrap_err();
        assert!(matches!(none, EditError::Audience { .. }), "an empty audience is not everyone");
    }

    #[test]
    fn the_views_that_are_kept_are_bounded() {
        let Offer { item, .. } = tool("many");
        let stored = Stored::Tool(crate::catalog::item::Shown::typed(item));
        let fingerprint = Fingerprint::of_bytes(b"");
        let items = vec![stored; HELD / 2];
        let listing = Arc::new(Listing { items, fingerprint });
        let mut views = Views::default();
        for number in 0..5 {
            views.keep(labels(&number.to_string()), &listing);
            assert!(views.others.len() <= 2);
        }
        views.forget(&Reach::Everyone);
        assert_eq!((views.others.len(), views.held), (0, 0));
    }

    #[test]
    fn empty_views_are_bounded_too() {
        let fingerprint = Fingerprint::of_bytes(b"");
        let listing = Arc::new(Listing { items: Vec::new(), fingerprint });
        let mut views = Views { held: HELD - 1, ..Views::default() };
        views.keep(labels("one"), &listing);
        assert_eq!((views.others.len(), views.held), (1, HELD));
        views.keep(labels("two"), &listing);
        assert_eq!((views.others.len(), views.held), (1, 1));
    }
}
