//! The items: edits that can be undone, sorted lists, and the answerers of URIs.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::Resource;
use tidings_core::{Fingerprint, ListKind, ListKinds, ResourceUri, Template};

use crate::answers::{Answers, Variables};
use crate::catalog::edit::{Edit, Touched};
use crate::catalog::item::Shown;
use crate::catalog::{Kind, Listing, Missing, Stored};
use crate::edit::EditError;
use crate::member::{Answerer, Member};

/// Everything the catalog holds.
#[derive(Default)]
pub(super) struct State {
    pub(super) members: BTreeMap<u64, Arc<Member>>,
    pub(super) items: [BTreeMap<String, Entry>; Kind::ALL.len()],
    /// The cached lists; cleared by edits.
    pub(super) listings: [Option<Arc<Listing>>; Kind::ALL.len()],
    serial: u64,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) item: Stored,
    answers: Option<Arc<Answers>>,
    fingerprint: Fingerprint,
    pub(super) owner: u64,
    serial: u64,
    pub(super) enabled: bool,
    /// The listed expansions of a template.
    expansions: Vec<(Shown<Resource>, Fingerprint)>,
}

/// An item before an edit, to undo it.
pub(super) type Undo = Vec<(Kind, String, Option<Entry>)>;

impl Entry {
    fn switch(&mut self, on: bool, touched: &mut Touched, undo: &mut Undo) {
        if self.enabled != on {
            undo.push((self.item.kind(), self.item.key().to_owned(), Some(self.clone())));
            self.enabled = on;
            touched.note(&self.item);
        }
    }

    fn update(
        &mut self,
        item: Stored,
        answers: Option<Arc<Answers>>,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        let (kind, key) = (self.item.kind(), self.item.key().to_owned());
        if item.key() != key {
            return Err(EditError::Renamed { from: key, to: item.key().to_owned() });
        }
        let fingerprint = item.fingerprint();
        let moved = self.fingerprint != fingerprint;
        if moved || answers.is_some() || !item.measures_as(&self.item) {
            undo.push((kind, key, Some(self.clone())));
            self.item = item;
            self.fingerprint = fingerprint;
            self.answers = answers.or(self.answers.take());
            // The content did not change with the resource's description.
            let lists = if moved { &mut touched.lists } else { &mut touched.remeasured };
            lists.insert(kind.list());
        }
        Ok(())
    }
}

impl State {
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(super) fn edit(
        &mut self,
        owner: u64,
        claimant: &str,
        edit: Edit,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        match edit {
            Edit::Add { item, answers, enabled, serial } => {
                let fingerprint = item.fingerprint();
                let expansions = Vec::new();
                let entry =
                    Entry { item, answers, fingerprint, owner, serial, enabled, expansions };
                self.add(claimant, entry, touched, undo)
            }
            Edit::Put { item, answers, enabled, serial } => {
                let (kind, key) = (item.kind(), item.key().to_owned());
                let Some(serial) = self.owned_serial(owner, kind, &key) else {
                    let edit = Edit::Add { item, answers, enabled, serial };
                    return self.edit(owner, claimant, edit, touched, undo);
                };
                self.entry(kind, &key, serial)?.update(item, answers, touched, undo)?;
                self.entry(kind, &key, serial)?.switch(enabled, touched, undo);
                Ok(())
            }
            Edit::Take { kind, key } => {
                let Some(serial) = self.owned_serial(owner, kind, &key) else { return Ok(()) };
                self.edit(owner, claimant, Edit::Remove { kind, key, serial }, touched, undo)
            }
            Edit::Retain { kind, keys } => {
                let items = self.items[kind.index()].iter();
                let owned = items.filter(|(_, entry)| entry.owner == owner);
                let gone = owned.map(|(key, _)| key).filter(|key| !keys.contains(*key));
                gone.cloned().collect::<Vec<_>>().into_iter().try_for_each(|key| {
                    self.edit(owner, claimant, Edit::Take { kind, key }, touched, undo)
                })
            }
            Edit::Switch { kind, key, serial, on } => {
                self.entry(kind, &key, serial)?.switch(on, touched, undo);
                Ok(())
            }
            Edit::Update { kind, key, serial, item, answers } => {
                self.entry(kind, &key, serial)?.update(item, answers, touched, undo)
            }
            Edit::Remove { kind, key, serial } => {
                let entry = self.entry(kind, &key, serial)?;
                touched.note(&entry.item);
                let before = self.items[kind.index()].remove(&key);
                undo.push((kind, key, before));
                Ok(())
            }
            Edit::Expand { key, serial, expansions } => {
                self.expand(key, serial, expansions, touched, undo)
            }
        }
    }

    /// The number of an owner's item.
    fn owned_serial(&self, owner: u64, kind: Kind, key: &str) -> Option<u64> {
        let entry = self.items[kind.index()].get(key).filter(|entry| entry.owner == owner)?;
        Some(entry.serial)
    }

    /// Undoes edits, the last first.
    pub(super) fn undo(&mut self, undo: Undo) {
        for (kind, key, before) in undo.into_iter().rev() {
            let items = &mut self.items[kind.index()];
            match before {
                Some(entry) => drop(items.insert(key, entry)),
                None => drop(items.remove(&key)),
            }
        }
    }

    fn add(
        &mut self,
        claimant: &str,
        entry: Entry,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        let (kind, key) = (entry.item.kind(), entry.item.key().to_owned());
        if let Some(there) = self.items[kind.index()].get(&key) {
            let holder = self.members.get(&there.owner);
            return Err(EditError::Claimed {
                kind: kind.word(),
                key,
                holder: holder.map_or_else(String::new, |member| member.name.clone()),
                claimant: claimant.to_owned(),
            });
        }
        if entry.enabled {
            touched.note(&entry.item);
        }
        self.items[kind.index()].insert(key.clone(), entry);
        undo.push((kind, key, None));
        Ok(())
    }

    fn expand(
        &mut self,
        key: String,
        serial: u64,
        expansions: Vec<Resource>,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        let entry = self.entry(Kind::Template, &key, serial)?;
        let Stored::Template(_, template) = &entry.item else {
            return Err(EditError::Gone { kind: Kind::Template.word(), key });
        };
        if let Some(odd) = expansions.iter().find(|it| template.matches(&it.uri).is_none()) {
            return Err(EditError::Expansion { uri: odd.uri.clone(), template: key });
        }
        let listed: Vec<_> = expansions
            .into_iter()
            .map(|resource| {
                let resource = Shown::typed(resource);
                let fingerprint = Stored::Resource(resource.clone()).fingerprint();
                (resource, fingerprint)
            })
            .collect();
        undo.push((Kind::Template, key, Some(entry.clone())));
        entry.expansions = listed;
        touched.lists.insert(ListKind::Resources);
        Ok(())
    }

    fn entry(&mut self, kind: Kind, key: &str, serial: u64) -> Result<&mut Entry, EditError> {
        match self.items[kind.index()].get_mut(key) {
            Some(entry) if entry.serial == serial => Ok(entry),
            _ => Err(EditError::Gone { kind: kind.word(), key: key.to_owned() }),
        }
    }

    pub(super) fn forget_listings(&mut self, lists: ListKinds) {
        for kind in Kind::ALL {
            if lists.contains(kind.list()) {
                self.listings[kind.index()] = None;
            }
        }
    }

    pub(super) fn list(&self, kind: Kind) -> Listing {
        let enabled = self.items[kind.index()].iter().filter(|(_, entry)| entry.enabled);
        let listed =
            enabled.map(|(key, entry)| (key.as_str(), entry.item.clone(), entry.fingerprint));
        let mut all: BTreeMap<&str, (Stored, Fingerprint)> =
            listed.map(|(key, item, fingerprint)| (key, (item, fingerprint))).collect();
        if kind == Kind::Resource {
            let templates =
                self.items[Kind::Template.index()].values().filter(|entry| entry.enabled);
            for (resource, fingerprint) in templates.flat_map(|entry| &entry.expansions) {
                // A URI whose own resource is disabled is not listed by a template either.
                if !self.items[kind.index()].contains_key(&resource.uri) {
                    all.entry(&resource.uri)
                        .or_insert_with(|| (Stored::Resource(resource.clone()), *fingerprint));
                }
            }
        }
        let fingerprint = Fingerprint::of_sequence(all.values().map(|(_, it)| *it));
        Listing { items: all.into_values().map(|(item, _)| item).collect(), fingerprint }
    }

    pub(super) fn answerer(&self, entry: &Entry) -> Result<Answerer, Missing> {
        let member = self.members.get(&entry.owner).ok_or(Missing::Unknown)?.clone();
        Ok(Answerer { member, answers: entry.answers.clone() })
    }

    /// The template of a URI, its variables, and the title of the expansion.
    pub(super) fn matching_template(
        &self,
        uri: &ResourceUri,
    ) -> Option<(&Entry, Variables, Option<String>)> {
        let (entry, variables, _) = self.items[Kind::Template.index()]
            .values()
            .filter_map(|entry| match &entry.item {
                Stored::Template(_, template) => {
                    Some((entry, variables(template, uri)?, template.literal_prefix().len()))
                }
                _ => None,
            })
            .max_by_key(|(entry, _, literal)| (entry.enabled, *literal))?;
        let listed = entry.expansions.iter().find(|(resource, _)| resource.uri == uri.as_ref());
        Some((entry, variables, listed.and_then(|(resource, _)| resource.title.clone())))
    }
}

/// The variables of a template in a URI that it answers for: an expansion of it, or a URI that
/// differs from one only in its query, if the template has a query. Then the source reports the
/// wrong parameter, and accepts values that a template would write differently, such as `a+b`.
fn variables(template: &Template, uri: &ResourceUri) -> Option<Variables> {
    if !uri.as_ref().starts_with(template.literal_prefix()) {
        return None;
    }
    let has_query = || uri.query().is_some() && template.as_str().contains("{?");
    template
        .matches(uri.as_ref())
        .or_else(|| has_query().then(|| template.matches(uri.without_query())).flatten())
}

pub(super) fn title_of(item: &Stored) -> Option<String> {
    match item {
        Stored::Resource(resource) => resource.title.clone(),
        _ => None,
    }
}
