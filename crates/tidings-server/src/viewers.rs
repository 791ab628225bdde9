//! Who looks at a hub: the labels that each client has now, and whom a grant concerns.
//!
//! A label comes from the client's identity, and is granted or withdrawn while the hub runs: for one
//! session, or for a person. Of several words on one label, the last counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::identity::Identity;
use crate::labels::{LabelError, Labels};
use crate::outbox::Outbox;

/// How many labels may be granted or withdrawn for one session, and for one person.
const WORDS: usize = 64;
/// How many people may have labels granted or withdrawn.
const PEOPLE: usize = 100_000;

/// Why labels were not granted or withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// They are not labels.
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// The request belongs to no session: over HTTP, requests of modern clients stand for
    /// themselves.
    #[error("this request belongs to no session")]
    NoSession,
    /// The client has no name.
    #[error("this client has no name")]
    NoName,
    /// Too many labels of one session or person, or too many people.
    #[error("too many labels were granted or withdrawn")]
    TooMany,
}

/// What a grant does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Grant,
    Withdraw,
}

/// Whom a grant concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One session or connection.
    Session,
    /// All sessions and requests of a person.
    Person,
}

/// Labels that were granted and withdrawn, and when.
#[derive(Clone, Debug, Default)]
struct Words(BTreeMap<Arc<str>, (u64, Word)>);

impl Words {
    fn say(&mut self, labels: &Labels, word: Word, stamp: u64) -> Result<(), GrantError> {
        let new = labels.iter().filter(|label| !self.0.contains_key(*label)).count();
        if self.0.len() + new > WORDS {
            return Err(GrantError::TooMany);
        }
        self.0.extend(labels.as_slice().iter().map(|label| (label.clone(), (stamp, word))));
        Ok(())
    }
}

/// The labels of an identity after what was said of it.
fn labels_after(identity: &Identity, words: [Option<&Words>; 2]) -> Labels {
    let mut said: BTreeMap<&Arc<str>, (u64, Word)> = BTreeMap::new();
    for (label, word) in words.into_iter().flatten().flat_map(|words| &words.0) {
        let newest = said.entry(label).or_insert(*word);
        if newest.0 < word.0 {
            *newest = *word;
        }
    }
    if said.is_empty() {
        return identity.labels.clone();
    }
    let mut labels: BTreeSet<_> = identity.labels.as_slice().iter().cloned().collect();
    for (label, (_, word)) in said {
        match word {
            Word::Grant => drop(labels.insert(label.clone())),
            Word::Withdraw => drop(labels.remove(label)),
        }
    }
    Labels::of_sorted(labels)
}

/// One client: a session, a stdio connection, a listen request, or a single request.
pub(crate) struct Viewer {
    id: u64,
    /// Whether it lasts longer than a request, so that labels can be granted to it.
    is_session: bool,
    /// Those whom it belongs to, to be forgotten by them.
    all: Arc<Viewers>,
    state: Mutex<State>,
}

struct State {
    identity: Identity,
    own: Words,
    labels: Labels,
    outboxes: Vec<Weak<Outbox>>,
}

impl Viewer {
    /// Who it is, with the labels it has now.
    pub(crate) fn who(&self) -> Identity {
        let state = self.lock();
        Identity { labels: state.labels.clone(), ..state.identity.clone() }
    }

    /// The labels it has now.
    pub(crate) fn labels(&self) -> Labels {
        self.lock().labels.clone()
    }

    /// A listener of this client: it sees what the client sees, from now on.
    pub(crate) fn join(&self, outbox: &Arc<Outbox>) {
        let mut state = self.lock();
        outbox.begin(&state.labels);
        state.outboxes.retain(|outbox| outbox.strong_count() > 0);
        state.outboxes.push(Arc::downgrade(outbox));
    }

    /// Finds its labels again; if they changed, its listeners learn of it.
    fn refresh(&self, person: Option<&Words>, relabel: &impl Fn(&Arc<Outbox>, &Labels)) {
        let mut state = self.lock();
        let labels = labels_after(&state.identity, [person, Some(&state.own)]);
        if labels == state.labels {
            return;
        }
        state.labels = labels;
        // Order: under the lock, so that of two changes the later one reaches the listeners last.
        for outbox in state.outboxes.iter().filter_map(Weak::upgrade) {
            relabel(&outbox, &state.labels);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let name = self.lock().identity.name.clone();
        if let Some(name) = name {
            self.all.forget(&name, self.id);
        }
    }
}

/// All viewers of a hub. Lock order: the people, then a viewer, then the subscriptions.
#[derive(Default)]
pub(crate) struct Viewers {
    next: AtomicU64,
    people: Mutex<HashMap<Arc<str>, Person>>,
}

/// Everyone with one name.
#[derive(Default)]
struct Person {
    words: Words,
    viewers: HashMap<u64, Weak<Viewer>>,
}

impl Viewers {
    /// A session or connection: labels can be granted to it.
    pub(crate) fn session(self: &Arc<Self>, identity: Identity) -> Arc<Viewer> {
        self.viewer(identity, true)
    }

    /// A request that stands for itself.
    pub(crate) fn request(self: &Arc<Self>, identity: Identity) -> Arc<Viewer> {
        self.viewer(identity, false)
    }

    fn viewer(self: &Arc<Self>, identity: Identity, is_session: bool) -> Arc<Viewer> {
        let id = self.stamp();
        let (name, labels) = (identity.name.clone(), identity.labels.clone());
        let (own, outboxes) = (Words::default(), Vec::new());
        let state = Mutex::new(State { identity, own, labels, outboxes });
        let viewer = Arc::new(Viewer { id, is_session, all: self.clone(), state });
        if let Some(name) = name {
            let mut people = self.people();
            let person = people.entry(name).or_default();
            person.viewers.insert(id, Arc::downgrade(&viewer));
            viewer.refresh(Some(&person.words), &|_, _| {});
        }
        viewer
    }

    /// The identity of a viewer is this now; `relabel` is called for each listener that sees
    /// something else.
    pub(crate) fn identify(
        &self,
        viewer: &Viewer,
        identity: Identity,
        relabel: impl Fn(&Arc<Outbox>, &Labels),
    ) {
        let people = self.people();
        let mut state = viewer.lock();
        // A token of another name is another person: it is registered under its first name.
        if state.identity.name != identity.name || state.identity == identity {
            return;
        }
        state.identity = identity;
        let name = state.identity.name.clone();
        drop(state);
        let person = name.and_then(|name| people.get(&name));
        viewer.refresh(person.map(|person| &person.words), &relabel);
    }

    /// Grants labels to one viewer or to its person, or withdraws them.
    pub(crate) fn say(
        &self,
        viewer: &Viewer,
        scope: Scope,
        (labels, word): (&Labels, Word),
        relabel: impl Fn(&Arc<Outbox>, &Labels),
    ) -> Result<(), GrantError> {
        let name = viewer.lock().identity.name.clone();
        match scope {
            Scope::Person => {
                let name = name.ok_or(GrantError::NoName)?;
                self.say_of(&name, (labels, word), relabel)
            }
            Scope::Session if !viewer.is_session => Err(GrantError::NoSession),
            Scope::Session => {
                let people = self.people();
                viewer.lock().own.say(labels, word, self.stamp())?;
                let person = name.and_then(|name| people.get(&name));
                viewer.refresh(person.map(|person| &person.words), &relabel);
                Ok(())
            }
        }
    }

    /// Grants labels to a person, or withdraws them.
    pub(crate) fn say_of(
        &self,
        name: &str,
        (labels, word): (&Labels, Word),
        relabel: impl Fn(&Arc<Outbox>, &Labels),
    ) -> Result<(), GrantError> {
        let mut people = self.people();
        if people.len() >= PEOPLE && !people.contains_key(name) {
            return Err(GrantError::TooMany);
        }
        let person = people.entry(name.into()).or_default();
        person.words.say(labels, word, self.stamp())?;
        let viewers: Vec<_> = person.viewers.values().filter_map(Weak::upgrade).collect();
        for viewer in &viewers {
            viewer.refresh(Some(&person.words), &relabel);
        }
        // Order: a viewer that ends here asks for the people.
        drop(people);
        drop(viewers);
        Ok(())
    }

    fn forget(&self, name: &str, viewer: u64) {
        let mut people = self.people();
        let Some(person) = people.get_mut(name) else { return };
        person.viewers.remove(&viewer);
        if person.viewers.is_empty() && person.words.0.is_empty() {
            people.remove(name);
        }
    }

    fn stamp(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn people(&self) -> MutexGuard<'_, HashMap<Arc<str>, Person>> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        Labels::parse(text).unwrap()
    }

    fn nobody(_: &Arc<Outbox>, _: &Labels) {}

    #[test]
    fn the_last_word_on_a_label_counts() {
        let all = Arc::new(Viewers::default());
        let ada = all.session(Identity::new("ada", labels("role:pilot")));
        let other = all.session(Identity::new("ada", labels("role:pilot")));
        let say = |scope, text: &str, word| {
            all.say(&ada, scope, (&labels(text), word), nobody).unwrap();
        };
        say(Scope::Session, "door:open", Word::Grant);
        assert_eq!(ada.labels(), labels("door:open role:pilot"));
        assert_eq!(other.labels(), labels("role:pilot"));
        say(Scope::Person, "door:open role:pilot", Word::Withdraw);
        assert_eq!((ada.labels(), other.labels()), (Labels::NONE, Labels::NONE));
        say(Scope::Session, "role:pilot", Word::Grant);
        assert_eq!((ada.labels(), other.labels()), (labels("role:pilot"), Labels::NONE));
        // Who comes later has what was said of the person.
        assert_eq!(all.request(Identity::new("ada", labels("role:pilot"))).labels(), Labels::NONE);
    }

    #[test]
    fn a_request_without_a_session_or_a_name_is_granted_nothing() {
        let all = Arc::new(Viewers::default());
        let request = all.request(Identity::new("ada", Labels::NONE));
        let anybody = all.session(Identity::anonymous());
        let grant = |viewer, scope| all.say(viewer, scope, (&labels("x"), Word::Grant), nobody);
        assert_eq!(grant(&request, Scope::Session), Err(GrantError::NoSession));
        assert_eq!(grant(&anybody, Scope::Person), Err(GrantError::NoName));
        assert_eq!(grant(&request, Scope::Person), Ok(()));
        assert_eq!(grant(&anybody, Scope::Session), Ok(()));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let all = Arc::new(Viewers::default());
        let anybody = all.session(Identity::anonymous());
        let grant = |number: usize| {
            let label = labels(&format!("x:{number}"));
            all.say(&anybody, Scope::Session, (&label, Word::Grant), nobody)
        };
        assert!((0..WORDS).all(|number| grant(number).is_ok()));
        assert_eq!(grant(WORDS), Err(GrantError::TooMany));
        assert_eq!(grant(0), Ok(()));
        drop(all.session(Identity::new("bob", Labels::NONE)));
        assert!(all.people().is_empty());
    }
}
