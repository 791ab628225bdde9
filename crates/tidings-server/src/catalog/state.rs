//! The items: edits that can be undone, sorted lists, and the answerers of URIs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rmcp::model::Resource;
use tidings_core::{Fingerprint, ListKind, ResourceUri, Template};

use crate::answers::{Answers, Variables};
use crate::catalog::edit::{Edit, Reach, Touched};
use crate::catalog::item::Shown;
use crate::catalog::named::{MovedLabels, Named};
use crate::catalog::views::Views;
use crate::catalog::{Kind, Listing, Missing, Stored};
use crate::edit::EditError;
use crate::labels::Labels;
use crate::member::{Answerer, Member};

/// Everything the catalog holds.
#[derive(Default)]
pub(super) struct State {
    pub(super) members: BTreeMap<u64, Arc<Member>>,
    /// Written by [`State::replace`] and [`State::update`], which count the labels.
    pub(super) items: [BTreeMap<String, Entry>; Kind::ALL.len()],
    named: [Named; Kind::ALL.len()],
    /// The cached lists; cleared by edits.
    pub(super) views: [Views; Kind::ALL.len()],
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
    /// Its audience: clients with one of these labels. If empty, everyone.
    pub(super) audience: Labels,
    /// The listed expansions of a template.
    expansions: Vec<(Shown<Resource>, Fingerprint)>,
}

/// The replacement of an item. Without functions or an audience, the old ones stay.
type New = (Stored, Option<Arc<Answers>>, Option<Labels>);

/// An item before an edit, to undo it.
pub(super) type Undo = Vec<(Kind, String, Option<Entry>)>;

impl Entry {
    fn switch(&mut self, on: bool, touched: &mut Touched, undo: &mut Undo) {
        if self.enabled != on {
            undo.push((self.item.kind(), self.item.key().to_owned(), Some(self.clone())));
            self.enabled = on;
            touched.note(&self.item, &self.audience);
        }
    }

    fn update(
        &mut self,
        (item, answers, audience): New,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        let (kind, key) = (self.item.kind(), self.item.key().to_owned());
        if item.key() != key {
            return Err(EditError::Renamed { from: key, to: item.key().to_owned() });
        }
        let fingerprint = item.fingerprint();
        let moved = self.fingerprint != fingerprint;
        let audience = audience.filter(|audience| *audience != self.audience);
        if moved || answers.is_some() || audience.is_some() || !item.measures_as(&self.item) {
            undo.push((kind, key, Some(self.clone())));
            self.item = item;
            self.fingerprint = fingerprint;
            self.answers = answers.or(self.answers.take());
            // The content did not change with the resource's description.
            if moved {
                touched.note_list(kind, &self.audience);
            } else {
                touched.note_measures(kind, &self.audience);
            }
        }
        if let Some(audience) = audience {
            touched.note(&self.item, &self.audience);
            touched.note(&self.item, &audience);
            self.audience = audience;
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
            Edit::Add { item, answers, enabled, audience, serial } => {
                let (fingerprint, expansions) = (item.fingerprint(), Vec::new());
                let entry = Entry {
                    item,
                    answers,
                    fingerprint,
                    owner,
                    serial,
                    enabled,
                    audience,
                    expansions,
                };
                self.add(claimant, entry, touched, undo)
            }
            Edit::Put { item, answers, enabled, audience, serial } => {
                let (kind, key) = (item.kind(), item.key().to_owned());
                let Some(serial) = self.owned_serial(owner, kind, &key) else {
                    let edit = Edit::Add { item, answers, enabled, audience, serial };
                    return self.edit(owner, claimant, edit, touched, undo);
                };
                let new = (item, answers, Some(audience));
                self.update((kind, &key, serial), new, touched, undo)?;
                self.entry(kind, &key, serial)?.switch(enabled, touched, undo);
                Ok(())
            }
            Edit::Take { kind, key } => {
                let Some(serial) = self.owned_serial(owner, kind, &key) else { return Ok(()) };
                self.remove(kind, key, serial, touched, undo)
            }
            Edit::Retain { kind, keys } => {
                let items = self.items[kind.index()].iter();
                let owned = items.filter(|(_, entry)| entry.owner == owner);
                let gone = owned.filter(|(key, _)| !keys.contains(*key));
                let gone: Vec<_> = gone.map(|(key, entry)| (key.clone(), entry.serial)).collect();
                gone.into_iter()
                    .try_for_each(|(key, serial)| self.remove(kind, key, serial, touched, undo))
            }
            Edit::Switch { kind, key, serial, on } => {
                self.entry(kind, &key, serial)?.switch(on, touched, undo);
                Ok(())
            }
            Edit::Update { kind, key, serial, item, answers, audience } => {
                self.update((kind, &key, serial), (item, answers, audience), touched, undo)
            }
            Edit::Remove { kind, key, serial } => self.remove(kind, key, serial, touched, undo),
            Edit::Expand { key, serial, expansions } => {
                self.expand(key, serial, expansions, touched, undo)
            }
        }
    }

    fn remove(
        &mut self,
        kind: Kind,
        key: String,
        serial: u64,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        let entry = self.entry(kind, &key, serial)?;
        touched.note(&entry.item, &entry.audience);
        let before = self.replace(kind, &key, None);
        undo.push((kind, key, before));
        Ok(())
    }

    fn update(
        &mut self,
        (kind, key, serial): (Kind, &str, u64),
        new: New,
        touched: &mut Touched,
        undo: &mut Undo,
    ) -> Result<(), EditError> {
        let entry = self.entry(kind, key, serial)?;
        let before = entry.audience.clone();
        entry.update(new, touched, undo)?;
        let after = entry.audience.clone();
        self.named[kind.index()].replace(Some(&before), Some(&after));
        Ok(())
    }

    /// Puts an item under its name, or removes the one that is there; returns that one.
    pub(super) fn replace(&mut self, kind: Kind, key: &str, entry: Option<Entry>) -> Option<Entry> {
        let audience = entry.as_ref().map(|entry| entry.audience.clone());
        let items = &mut self.items[kind.index()];
        let before = match entry {
            Some(entry) => items.insert(key.to_owned(), entry),
            None => items.remove(key),
        };
        let was_for = before.as_ref().map(|entry| &entry.audience);
        self.named[kind.index()].replace(was_for, audience.as_ref());
        before
    }

    /// The number of an owner's item.
    fn owned_serial(&self, owner: u64, kind: Kind, key: &str) -> Option<u64> {
        let entry = self.items[kind.index()].get(key).filter(|entry| entry.owner == owner)?;
        Some(entry.serial)
    }

    /// Undoes edits, the last first.
    pub(super) fn undo(&mut self, undo: Undo) {
        for (kind, key, before) in undo.into_iter().rev() {
            self.replace(kind, &key, before);
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
            touched.note(&entry.item, &entry.audience);
        }
        self.replace(kind, &key, Some(entry));
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
        let are_several = self.items[Kind::Template.index()].len() > 1;
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
        // A listed URI belongs to the template that lists it, so what moves may be answered by another.
        if are_several {
            let (was, is) = (uris(&entry.expansions), uris(&listed));
            let moved = was.symmetric_difference(&is);
            touched.uris.extend(moved.filter_map(|uri| ResourceUri::parse(uri).ok()));
        }
        undo.push((Kind::Template, key, Some(entry.clone())));
        entry.expansions = listed;
        touched.note_list(Kind::Template, &entry.audience);
        Ok(())
    }

    fn entry(&mut self, kind: Kind, key: &str, serial: u64) -> Result<&mut Entry, EditError> {
        match self.items[kind.index()].get_mut(key) {
            Some(entry) if entry.serial == serial => Ok(entry),
            _ => Err(EditError::Gone { kind: kind.word(), key: key.to_owned() }),
        }
    }

    /// Forgets the lists that an edit touched.
    pub(super) fn forget_listings(&mut self, touched: &mut Touched) {
        let resources = &mut touched.reach[ListKind::Resources.index()];
        // A resource or a template takes a URI from the template that lists it, also for those whom
        // it is not for: their list may have changed.
        let may_take = !touched.uris.is_empty() || !touched.prefixes.is_empty();
        if matches!(resources, Reach::Those(_)) && may_take {
            let mut templates = self.items[Kind::Template.index()].values();
            if templates.any(|entry| !entry.expansions.is_empty()) {
                *resources = Reach::Everyone;
            }
        }
        for kind in Kind::ALL {
            let list = kind.list();
            if touched.lists.contains(list) || touched.remeasured.contains(list) {
                self.views[kind.index()].forget(&touched.reach[list.index()]);
            }
        }
    }

    /// Builds and keeps a list as clients with these labels see it.
    pub(super) fn build_listing(&mut self, kind: Kind, labels: &Labels) -> Arc<Listing> {
        let labels = self.reduce(kind, labels);
        self.views[kind.index()].get(&labels).unwrap_or_else(|| {
            let listing = Arc::new(self.list(kind, &labels));
            self.views[kind.index()].keep(labels, &listing);
            listing
        })
    }

    /// Those of a client's labels that make a difference to a list.
    pub(super) fn reduce(&self, kind: Kind, labels: &Labels) -> Labels {
        labels.filtered(|label| self.is_named(kind, label))
    }

    /// Whether an item of a list names this label. Templates list resources, too.
    pub(super) fn is_named(&self, kind: Kind, label: &str) -> bool {
        let is_named = |kind: Kind| self.named[kind.index()].contains(label);
        is_named(kind) || (kind == Kind::Resource && is_named(Kind::Template))
    }

    /// Whether an item of a list names a label. Templates list resources, too.
    pub(super) fn has_views(&self, kind: Kind) -> bool {
        let names_one = |kind: Kind| !self.named[kind.index()].is_empty();
        names_one(kind) || (kind == Kind::Resource && names_one(Kind::Template))
    }

    /// Whether the same labels are named as at the last [`Self::take_moved_labels`].
    pub(super) fn have_labels_rested(&self, list: ListKind) -> bool {
        let mut named = Kind::ALL.into_iter().filter(|kind| kind.list() == list);
        named.all(|kind| self.named[kind.index()].has_rested())
    }

    /// The labels that items of a list may name since the last call, or not any more.
    pub(super) fn take_moved_labels(&mut self, list: ListKind) -> MovedLabels {
        let kinds = || Kind::ALL.into_iter().filter(|kind| kind.list() == list);
        let moved = kinds().flat_map(|kind| self.named[kind.index()].take_moved());
        let moved: Vec<_> = moved.collect();
        let is_named = |label: &str| kinds().any(|kind| self.named[kind.index()].contains(label));
        moved.into_iter().map(|label| (label.clone(), is_named(&label))).collect()
    }

    fn list(&self, kind: Kind, labels: &Labels) -> Listing {
        let is_shown = |entry: &&Entry| entry.enabled && entry.audience.admits(labels);
        let shown = self.items[kind.index()].iter().filter(|(_, entry)| is_shown(entry));
        let listed =
            shown.map(|(key, entry)| (key.as_str(), entry.item.clone(), entry.fingerprint));
        let mut all: BTreeMap<&str, (Stored, Fingerprint)> =
            listed.map(|(key, item, fingerprint)| (key, (item, fingerprint))).collect();
        if kind == Kind::Resource {
            for (entry, resource, fingerprint) in self.listed_by_templates() {
                if is_shown(&entry) {
                    let listed = (Stored::Resource(resource.clone()), fingerprint);
                    all.insert(&resource.uri, listed);
                }
            }
        }
        let fingerprint = Fingerprint::of_sequence(all.values().map(|(_, it)| *it));
        let items = all.into_values().map(|(item, _)| item).collect();
        Listing { items, fingerprint }
    }

    /// What enabled templates list, each URI by the template that it belongs to. A URI whose own
    /// resource is disabled, or for others, is not listed by a template either.
    fn listed_by_templates(&self) -> impl Iterator<Item = (&Entry, &Shown<Resource>, Fingerprint)> {
        let mut listed: BTreeMap<&str, (usize, &Entry, &Shown<Resource>, Fingerprint)> =
            BTreeMap::new();
        let templates = self.items[Kind::Template.index()].values();
        for entry in templates.filter(|entry| entry.enabled) {
            let Stored::Template(_, template) = &entry.item else { continue };
            let literal = template.literal_prefix().len();
            for (resource, fingerprint) in &entry.expansions {
                let uri = resource.uri.as_str();
                // As `matching_template` decides: of several, the last with the longest literal.
                let is_owner = listed.get(uri).is_none_or(|(other, ..)| *other <= literal);
                if is_owner && !self.items[Kind::Resource.index()].contains_key(uri) {
                    listed.insert(uri, (literal, entry, resource, *fingerprint));
                }
            }
        }
        listed.into_values().map(|(_, entry, resource, fingerprint)| (entry, resource, fingerprint))
    }

    pub(super) fn answerer(&self, entry: &Entry) -> Result<Answerer, Missing> {
        let member = self.members.get(&entry.owner).ok_or(Missing::Unknown)?.clone();
        Ok(Answerer { member, answers: entry.answers.clone() })
    }

    /// The item that a URI belongs to, whatever its audience: the resource of that URI, or else the
    /// template that lists it, or else the template with the longest literal match.
    pub(super) fn owner(&self, uri: &ResourceUri) -> Option<Claim<'_>> {
        match self.items[Kind::Resource.index()].get(uri.as_ref()) {
            Some(entry) => {
                let title = title_of(&entry.item);
                Some(Claim { entry, variables: Variables::new(), title })
            }
            None => self.matching_template(uri, |_| true),
        }
    }

    /// The template of a URI, of those that are `eligible`.
    pub(super) fn matching_template(
        &self,
        uri: &ResourceUri,
        eligible: impl Fn(&Entry) -> bool,
    ) -> Option<Claim<'_>> {
        let (entry, variables, listed, _) = self.items[Kind::Template.index()]
            .values()
            .filter_map(|entry| match &entry.item {
                Stored::Template(_, template) if eligible(entry) => {
                    let variables = variables(template, uri)?;
                    let listed = entry.expansions.iter().find(|(it, _)| it.uri == uri.as_ref());
                    Some((entry, variables, listed, template.literal_prefix().len()))
                }
                _ => None,
            })
            .max_by_key(|(entry, _, listed, literal)| {
                (entry.enabled, listed.is_some(), *literal)
            })?;
        let title = listed.and_then(|(resource, _)| resource.title.clone());
        Some(Claim { entry, variables, title })
    }
}

/// An item that answers for a URI, the variables of its template, and the title of the resource.
pub(super) struct Claim<'a> {
    pub(super) entry: &'a Entry,
    pub(super) variables: Variables,
    pub(super) title: Option<String>,
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

fn uris(listed: &[(Shown<Resource>, Fingerprint)]) -> BTreeSet<&str> {
    listed.iter().map(|(resource, _)| resource.uri.as_str()).collect()
}

fn title_of(item: &Stored) -> Option<String> {
    match item {
        Stored::Resource(resource) => resource.title.clone(),
        _ => None,
    }
}
