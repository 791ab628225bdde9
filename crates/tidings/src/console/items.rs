//! The lists of a server as rows, with what was added, changed and removed lately.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};
use tidings_mirror::events::{Items, ListChange};
use tidings_mirror::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_mirror::{Item, List, Mirror};

use crate::console::log::millis;
use crate::present::text::one_line;

/// The most characters of a description in a row.
const DESCRIPTION: usize = 160;
/// The removed items that are remembered for each list.
const GONE: usize = 50;
/// The most marks for each list; a list that changes wholly needs none.
const MARKS: usize = 2_000;

/// An item of a list, as a row.
pub(crate) trait Listed: Serialize {
    fn key(&self) -> &str;
    fn title(&self) -> Option<&str>;
    fn description(&self) -> Option<&str>;
    /// Short words about it.
    fn notes(&self) -> Vec<String>;
}

/// One list and its latest changes.
#[derive(Debug)]
pub(crate) struct MarkedList<T> {
    items: Items<T>,
    /// Items of a file that is being read.
    restoring: Vec<Arc<Item<T>>>,
    is_loaded: bool,
    marks: HashMap<String, Mark>,
    gone: VecDeque<(String, SystemTime)>,
    error: Option<Arc<str>>,
}

#[derive(Debug)]
struct Mark {
    at: SystemTime,
    /// The item before it changed; `None` if it is new.
    before: Option<Value>,
}

/// What changed in a list, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) added: usize,
    pub(crate) changed: usize,
    pub(crate) removed: usize,
}

impl<T> Default for MarkedList<T> {
    fn default() -> Self {
        Self {
            items: Arc::new([]),
            restoring: Vec::new(),
            is_loaded: false,
            marks: HashMap::new(),
            gone: VecDeque::new(),
            error: None,
        }
    }
}

impl<T: Listed> MarkedList<T> {
    /// Takes a change of the list. Returns what to tell of it, unless it is the first load.
    pub(crate) fn apply(&mut self, change: &ListChange<T>, at: SystemTime) -> Option<Counts> {
        self.error.clone_from(&change.error);
        let is_first = !self.is_loaded;
        self.is_loaded |= change.error.is_none();
        if !is_first {
            self.mark(change, at);
        }
        self.items = change.items.clone();
        let diff = &change.diff;
        let (added, changed) = (diff.added.len(), diff.changed.len());
        let counts = Counts { added, changed, removed: diff.removed.len() };
        (!is_first && counts != Counts::default()).then_some(counts)
    }

    fn mark(&mut self, change: &ListChange<T>, at: SystemTime) {
        if self.marks.len() + change.diff.added.len() + change.diff.changed.len() > MARKS {
            self.marks.clear();
        }
        let old: HashMap<_, _> = self.items.iter().map(|item| (item.key(), item)).collect();
        for item in change.diff.changed.iter().take(MARKS) {
            let before = old.get(item.key()).map(|item| item.raw());
            self.marks.insert(item.key().to_owned(), Mark { at, before });
        }
        for item in change.diff.added.iter().take(MARKS) {
            self.marks.insert(item.key().to_owned(), Mark { at, before: None });
            self.gone.retain(|(key, _)| key != item.key());
        }
        for item in change.diff.removed.iter().take(GONE) {
            self.marks.remove(item.key());
            self.gone.push_back((item.key().to_owned(), at));
            if self.gone.len() > GONE {
                self.gone.pop_front();
            }
        }
    }

    /// Adds an item that was read from a file; [`Self::publish`] shows them.
    fn push(&mut self, item: Item<T>) {
        self.restoring.push(Arc::new(item));
    }

    fn publish(&mut self) {
        self.items = std::mem::take(&mut self.restoring).into();
        self.is_loaded = true;
    }

    pub(crate) fn find(&self, key: &str) -> Option<&Arc<Item<T>>> {
        self.items.iter().find(|item| item.key() == key)
    }

    /// The item before its last change.
    pub(crate) fn before(&self, key: &str) -> Option<&Value> {
        self.marks.get(key)?.before.as_ref()
    }

    /// How many items are marked, and since when.
    fn latest(&self) -> Value {
        let new = self.marks.values().filter(|mark| mark.before.is_none()).count();
        let last = self.marks.values().map(|mark| mark.at).max();
        json!({ "count": self.items.len(), "new": new, "changed": self.marks.len() - new,
            "at": last.map(millis) })
    }

    fn json(&self, mirror: &Mirror, list: List) -> Value {
        let rows: Vec<_> = self.items.iter().map(|item| self.row(item)).collect();
        let gone: Vec<_> =
            self.gone.iter().map(|(key, at)| json!({ "key": key, "at": millis(*at) })).collect();
        let odd: Vec<_> = mirror.odd(list).iter().take(GONE).map(ToString::to_string).collect();
        json!({
            "rows": rows, "gone": gone, "odd": odd, "loaded": self.is_loaded,
            "error": self.error, "cut": mirror.incomplete(list),
        })
    }

    fn row(&self, item: &Item<T>) -> Value {
        let mut row = json!({ "key": item.key() });
        if let Some(title) = item.title().filter(|title| *title != item.key()) {
            row["title"] = title.into();
        }
        if let Some(description) = item.description() {
            let words = one_line(description);
            let short: String = words.chars().take(DESCRIPTION).collect();
            row["about"] = short.into();
        }
        let notes = item.notes();
        if !notes.is_empty() {
            row["notes"] = notes.into();
        }
        if let Some(mark) = self.marks.get(item.key()) {
            row["mark"] = if mark.before.is_some() { "changed" } else { "new" }.into();
            row["at"] = millis(mark.at).into();
        }
        row
    }
}

/// The four lists of a server.
#[derive(Debug, Default)]
pub(crate) struct MarkedLists {
    pub(crate) tools: MarkedList<Tool>,
    pub(crate) resources: MarkedList<Resource>,
    pub(crate) templates: MarkedList<ResourceTemplate>,
    pub(crate) prompts: MarkedList<Prompt>,
}

impl MarkedLists {
    pub(crate) fn json(&self, mirror: &Mirror, list: List) -> Value {
        match list {
            List::Tools => self.tools.json(mirror, list),
            List::Resources => self.resources.json(mirror, list),
            List::Templates => self.templates.json(mirror, list),
            List::Prompts => self.prompts.json(mirror, list),
        }
    }

    pub(crate) fn latest(&self) -> Value {
        json!({
            "tools": self.tools.latest(), "resources": self.resources.latest(),
            "templates": self.templates.latest(), "prompts": self.prompts.latest(),
        })
    }

    /// The keys and titles of a list.
    pub(crate) fn names(&self, list: List) -> Vec<(&str, &str)> {
        fn of<T: Listed>(list: &MarkedList<T>) -> Vec<(&str, &str)> {
            list.items.iter().map(|item| (item.key(), item.title().unwrap_or_default())).collect()
        }
        match list {
            List::Tools => of(&self.tools),
            List::Resources => of(&self.resources),
            List::Templates => of(&self.templates),
            List::Prompts => of(&self.prompts),
        }
    }

    /// All items of a list as the server sent them.
    pub(crate) fn all(&self, list: List) -> Vec<Value> {
        fn of<T: Listed>(list: &MarkedList<T>) -> Vec<Value> {
            list.items.iter().map(|item| item.raw()).collect()
        }
        match list {
            List::Tools => of(&self.tools),
            List::Resources => of(&self.resources),
            List::Templates => of(&self.templates),
            List::Prompts => of(&self.prompts),
        }
    }

    /// Adds an item of a file at the end of its list.
    pub(crate) fn restore(&mut self, list: List, sent: &str) -> Result<(), serde_json::Error> {
        match list {
            List::Tools => self.tools.push(Item::parse(sent)?),
            List::Resources => self.resources.push(Item::parse(sent)?),
            List::Templates => self.templates.push(Item::parse(sent)?),
            List::Prompts => self.prompts.push(Item::parse(sent)?),
        }
        Ok(())
    }

    /// The items of a file are complete.
    pub(crate) fn restored(&mut self) {
        self.tools.publish();
        self.resources.publish();
        self.templates.publish();
        self.prompts.publish();
    }

    /// An item as the server sent it, and as it was before its last change.
    pub(crate) fn raw(&self, list: List, key: &str) -> Option<(Value, Option<&Value>)> {
        fn of<'a, T: Listed>(
            listing: &'a MarkedList<T>,
            key: &str,
        ) -> Option<(Value, Option<&'a Value>)> {
            Some((listing.find(key)?.raw(), listing.before(key)))
        }
        match list {
            List::Tools => of(&self.tools, key),
            List::Resources => of(&self.resources, key),
            List::Templates => of(&self.templates, key),
            List::Prompts => of(&self.prompts, key),
        }
    }
}

impl Listed for Tool {
    fn key(&self) -> &str {
        &self.name
    }
    fn title(&self) -> Option<&str> {
        let annotated = self.annotations.as_ref().and_then(|it| it.title.as_deref());
        self.title.as_deref().or(annotated)
    }
    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
    fn notes(&self) -> Vec<String> {
        let Some(annotations) = &self.annotations else { return Vec::new() };
        let is_read_only = annotations.read_only_hint == Some(true);
        let named = [
            (is_read_only, "read-only"),
            (annotations.destructive_hint == Some(true) && !is_read_only, "destructive"),
            (annotations.open_world_hint == Some(true), "open world"),
        ];
        named.iter().filter(|(is, _)| *is).map(|(_, name)| (*name).to_owned()).collect()
    }
}

impl Listed for Resource {
    fn key(&self) -> &str {
        &self.uri
    }
    fn title(&self) -> Option<&str> {
        self.title.as_deref().or(Some(&self.name))
    }
    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
    fn notes(&self) -> Vec<String> {
        self.mime_type.iter().cloned().collect()
    }
}

impl Listed for ResourceTemplate {
    fn key(&self) -> &str {
        &self.uri_template
    }
    fn title(&self) -> Option<&str> {
        self.title.as_deref().or(Some(&self.name))
    }
    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
    fn notes(&self) -> Vec<String> {
        self.mime_type.iter().cloned().collect()
    }
}

impl Listed for Prompt {
    fn key(&self) -> &str {
        &self.name
    }
    fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }
    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
    fn notes(&self) -> Vec<String> {
        let count = self.arguments.as_ref().map_or(0, Vec::len);
        if count == 0 {
            Vec::new()
        } else {
            vec![crate::present::text::count(count, "argument", "arguments")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings_mirror::Diff;

    fn change(old: &[Arc<Item<Resource>>], new: Vec<Resource>) -> ListChange<Resource> {
        let items: Items<Resource> = new.into_iter().map(|it| Arc::new(it.into())).collect();
        let diff = Diff::between(old, &items, |item: &Arc<Item<Resource>>| item.uri.clone());
        ListChange::new(items, diff)
    }

    #[test]
    fn later_changes_are_marked_and_the_first_load_is_not() {
        let mut listing = MarkedList::<Resource>::default();
        let first = change(&[], vec![Resource::new("a:1", "one"), Resource::new("a:2", "two")]);
        assert_eq!(listing.apply(&first, SystemTime::UNIX_EPOCH), None);
        assert!(listing.marks.is_empty());
        let next = vec![Resource::new("a:1", "uno"), Resource::new("a:3", "three")];
        let second = change(&first.items, next);
        let counts = listing.apply(&second, SystemTime::UNIX_EPOCH);
        assert_eq!(counts, Some(Counts { added: 1, changed: 1, removed: 1 }));
        assert_eq!(listing.before("a:1").unwrap()["name"], "one");
        assert_eq!(listing.row(listing.find("a:3").unwrap())["mark"], "new");
        assert_eq!(listing.row(listing.find("a:1").unwrap())["mark"], "changed");
        assert_eq!(listing.gone[0].0, "a:2");
    }
}
