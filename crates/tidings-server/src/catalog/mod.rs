//! The catalog: the items of all sources, merged into ordered lists. It is the single owner of what
//! can be listed, read and called.

mod edit;
mod item;
mod named;
mod outline;
mod page;
mod state;
#[cfg(test)]
mod tests;
mod views;

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rmcp::model::Tool;
use tidings_core::{Fingerprint, ListKind, ResourceUri};

use crate::answer::AnswerError;
use crate::answers::Variables;
use crate::edit::EditError;
use crate::labels::Labels;
use crate::member::{Answerer, Member};

use state::{Claim, State};

pub(crate) use edit::{Edit, Reach, Touched};
pub use item::Item;
pub(crate) use item::{Kind, Stored};
pub(crate) use named::MovedLabels;
pub(crate) use page::CursorError;

/// Why a named item cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It does not exist.
    Unknown,
    /// It is disabled.
    Disabled,
}

/// The answerer of a URI, the variables of its template, and the resource's title in the list.
pub(crate) struct Route {
    pub(crate) answerer: Answerer,
    pub(crate) variables: Variables,
    pub(crate) title: Option<String>,
    /// Whom the item of the URI is for.
    pub(crate) audience: Labels,
    /// The URI belongs to an item outside the view, and the answerer is that of a template within:
    /// it is not asked, and the URI reads as absent.
    pub(crate) is_withheld: bool,
}

/// A list as clients with some labels see it: enabled items for them, sorted by key.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) items: Vec<Stored>,
    pub(crate) fingerprint: Fingerprint,
}

impl Listing {
    /// The names or URIs of its items, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(Stored::key)
    }
}

/// All items of all sources.
#[derive(Default)]
pub(crate) struct Catalog {
    state: RwLock<State>,
}

impl Catalog {
    /// Adds a source; `None` if the name is taken.
    pub(crate) fn join(&self, name: &str) -> Option<(u64, Arc<Member>)> {
        let mut state = self.write();
        if state.members.values().any(|member| member.name == name) {
            return None;
        }
        let id = state.next_serial();
        let member = Arc::new(Member::new(name));
        state.members.insert(id, member.clone());
        Some((id, member))
    }

    /// Removes a source with all its items.
    pub(crate) fn leave(&self, owner: u64) -> Touched {
        let mut state = self.write();
        state.members.remove(&owner);
        let mut touched = Touched::default();
        for kind in Kind::ALL {
            let gone: Vec<String> = state.items[kind.index()]
                .iter()
                .filter(|(_, entry)| entry.owner == owner)
                .map(|(key, _)| key.clone())
                .collect();
            for key in gone {
                if let Some(entry) = state.replace(kind, &key, None) {
                    touched.note(&entry.item, &entry.audience);
                }
            }
        }
        state.forget_listings(&mut touched);
        touched
    }

    /// All members in the order they were added, with their numbers of items.
    pub(crate) fn members(&self) -> Vec<(Arc<Member>, usize)> {
        let state = self.read();
        let entries = || state.items.iter().flat_map(|items| items.values());
        let count = |id: u64| entries().filter(|entry| entry.owner == id).count();
        state.members.iter().map(|(id, member)| (member.clone(), count(*id))).collect()
    }

    /// The member of that name.
    pub(crate) fn member_id(&self, name: &str) -> Option<u64> {
        self.read().members.iter().find(|(_, member)| member.name == name).map(|(id, _)| *id)
    }

    /// Sets how a source is used.
    pub(crate) fn instruct(&self, owner: u64, instructions: Option<String>) {
        if let Some(member) = self.read().members.get(&owner) {
            member.instruct(instructions);
        }
    }

    /// How the sources are used, in the order they were added.
    pub(crate) fn instructions(&self) -> Vec<String> {
        self.read().members.values().filter_map(|member| member.instructions()).collect()
    }

    /// A serial number for a new item.
    pub(crate) fn next_serial(&self) -> u64 {
        self.write().next_serial()
    }

    /// Applies the edits of one source that are possible, and returns the errors of the others.
    pub(crate) fn apply_possible(
        &self,
        owner: u64,
        edits: Vec<Edit>,
    ) -> Result<(Touched, Vec<EditError>), EditError> {
        let mut state = self.write();
        let claimant = state.members.get(&owner).ok_or(EditError::Removed)?.name.clone();
        let (mut touched, mut refused) = (Touched::default(), Vec::new());
        for edit in edits {
            let mut undo = state::Undo::new();
            if let Err(error) = state.edit(owner, &claimant, edit, &mut touched, &mut undo) {
                state.undo(undo);
                refused.push(error);
            }
        }
        state.forget_listings(&mut touched);
        Ok((touched, refused))
    }

    /// Applies all edits of one source, or none.
    pub(crate) fn apply(&self, owner: u64, edits: Vec<Edit>) -> Result<Touched, EditError> {
        let mut state = self.write();
        let claimant = state.members.get(&owner).ok_or(EditError::Removed)?.name.clone();
        let mut touched = Touched::default();
        let mut undo = state::Undo::new();
        let mut done = Ok(());
        for edit in edits {
            done = state.edit(owner, &claimant, edit, &mut touched, &mut undo);
            if done.is_err() {
                break;
            }
        }
        if let Err(error) = done {
            state.undo(undo);
            return Err(error);
        }
        state.forget_listings(&mut touched);
        Ok(touched)
    }

    /// The current list as clients with these labels see it.
    pub(crate) fn listing(&self, kind: Kind, labels: &Labels) -> Arc<Listing> {
        let state = self.read();
        let known = state.views[kind.index()].get(&state.reduce(kind, labels));
        drop(state);
        known.unwrap_or_else(|| self.write().build_listing(kind, labels))
    }

    /// The fingerprint of the lists that this notice announces, for clients with these labels.
    pub(crate) fn list_fingerprint(&self, kind: ListKind, labels: &Labels) -> Fingerprint {
        let of = |kind| self.listing(kind, labels).fingerprint;
        match kind {
            ListKind::Tools => of(Kind::Tool),
            ListKind::Prompts => of(Kind::Prompt),
            ListKind::Resources => {
                Fingerprint::of_sequence([of(Kind::Resource), of(Kind::Template)])
            }
        }
    }

    /// The labels that items of the lists that this notice announces may name since the last call,
    /// or not any more.
    pub(crate) fn take_moved_labels(&self, list: ListKind) -> MovedLabels {
        // Nearly always there are none, and nobody is held up.
        let has_rested = self.read().have_labels_rested(list);
        if has_rested { MovedLabels::new() } else { self.write().take_moved_labels(list) }
    }

    /// The answerer of a tool, a prompt or a template, for clients with these labels.
    pub(crate) fn find(
        &self,
        kind: Kind,
        key: &str,
        labels: &Labels,
    ) -> Result<(Answerer, Stored), Missing> {
        let state = self.read();
        let entry = state.items[kind.index()].get(key);
        let entry = entry.filter(|entry| entry.audience.admits(labels)).ok_or(Missing::Unknown)?;
        if !entry.enabled {
            return Err(Missing::Disabled);
        }
        Ok((state.answerer(entry)?, entry.item.clone()))
    }

    /// An enabled tool for clients with these labels.
    pub(crate) fn tool(&self, name: &str, labels: &Labels) -> Option<Arc<Tool>> {
        match self.find(Kind::Tool, name, labels) {
            Ok((_, Stored::Tool(tool))) => Some(tool.item),
            _ => None,
        }
    }

    /// Whether a URI is answered by this source.
    pub(crate) fn is_answered_by(&self, uri: &ResourceUri, owner: u64) -> bool {
        let Ok(route) = self.owner(uri) else { return false };
        self.read().members.get(&owner).is_some_and(|it| Arc::ptr_eq(it, &route.answerer.member))
    }

    /// The source that claims a URI that no item has. It is for everybody.
    fn claimed(&self, uri: &ResourceUri) -> Result<Route, Missing> {
        // No source is asked under the lock.
        let members: Vec<_> = self.read().members.values().cloned().collect();
        let member = members.into_iter().find(|member| member.claims(uri));
        let answerer = Answerer { member: member.ok_or(Missing::Unknown)?, answers: None };
        let (variables, audience) = (Variables::new(), Labels::NONE);
        Ok(Route { answerer, variables, title: None, audience, is_withheld: false })
    }

    /// The answerer of the item that a URI belongs to, whatever its audience.
    pub(crate) fn owner(&self, uri: &ResourceUri) -> Result<Route, Missing> {
        let state = self.read();
        let Some(claim) = state.owner(uri) else {
            drop(state);
            return self.claimed(uri);
        };
        let audience = claim.entry.audience.clone();
        route(&state, claim, audience)
    }

    /// The answerer of a URI, for clients with these labels.
    ///
    /// A URI belongs to one item. If that one is for others, nothing else answers in its place: its
    /// source may have what the item has. Where a template matches or a source claims the URI, it is
    /// withheld, as one that they do not have.
    pub(crate) fn route(&self, uri: &ResourceUri, labels: &Labels) -> Result<Route, Missing> {
        let state = self.read();
        let Some(claim) = state.owner(uri) else {
            drop(state);
            return self.claimed(uri);
        };
        let audience = claim.entry.audience.clone();
        if audience.admits(labels) {
            return route(&state, claim, audience);
        }
        let within = state.matching_template(uri, |entry| entry.audience.admits(labels));
        let instead = within.map(|claim| route(&state, claim, audience.clone()));
        drop(state);
        let instead = instead.unwrap_or_else(|| self.claimed(uri))?;
        Ok(Route { is_withheld: true, title: None, audience, ..instead })
    }

    /// Whether clients with different labels may see different items of a list.
    pub(crate) fn has_views(&self, kind: Kind) -> bool {
        self.read().has_views(kind)
    }

    /// The error of a source for a URI that is not offered; the first that recognises it answers.
    pub(crate) fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        let members: Vec<_> = self.read().members.values().cloned().collect();
        members.iter().find_map(|member| member.refuse(uri))
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no code panics while it holds the catalog")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("no code panics while it holds the catalog")
    }
}

fn route(state: &State, claim: Claim<'_>, audience: Labels) -> Result<Route, Missing> {
    let Claim { entry, variables, title } = claim;
    if !entry.enabled {
        return Err(Missing::Disabled);
    }
    let answerer = state.answerer(entry)?;
    Ok(Route { answerer, variables, title, audience, is_withheld: false })
}
