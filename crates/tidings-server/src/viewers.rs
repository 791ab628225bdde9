//! Who looks at a hub: the labels that each client has now, and whom a grant concerns.
//!
//! A label comes from the client's identity, and is granted or withdrawn while the hub runs: for one
//! session, or for a person. Of several words on one label, the last counts. A withdrawal never
//! fails for lack of room: of too many, the oldest that concerns nobody here is forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::identity::Identity;
use crate::labels::{LabelError, Labels};
use crate::outbox::Outbox;

/// How many labels may be granted to one session, and to one person.
const GRANTS: usize = 64;
/// How many withdrawals of one session or person are remembered, and all that concern a label of a
/// client that is here.
const WITHDRAWALS: usize = 256;
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
    /// Too many labels were granted to one session or person, or there are too many people.
    #[error("too many labels were granted, or to too many people")]
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
    fn grant(&mut self, labels: &Labels, stamp: u64) -> Result<(), GrantError> {
        let kept = self.all(Word::Grant).filter(|(label, _)| !labels.contains(label)).count();
        if kept + labels.as_slice().len() > GRANTS {
            return Err(GrantError::TooMany);
        }
        self.0.extend(labels.as_slice().iter().map(|label| (label.clone(), (stamp, Word::Grant))));
        Ok(())
    }

    /// Withdraws labels. Of too many withdrawals, the oldest are forgotten whose labels nobody
    /// `has` otherwise.
    fn withdraw(&mut self, labels: &Labels, stamp: u64, has: impl Fn(&str) -> bool) {
        let said = (stamp, Word::Withdraw);
        self.0.extend(labels.as_slice().iter().map(|label| (label.clone(), said)));
        let excess = self.all(Word::Withdraw).count().saturating_sub(WITHDRAWALS);
        if excess == 0 {
            return;
        }
        let idle = self.all(Word::Withdraw).filter(|(label, _)| !has(label));
        let mut idle: Vec<_> = idle.map(|(label, stamp)| (stamp, label.clone())).collect();
        idle.sort_unstable();
        for (_, label) in idle.into_iter().take(excess) {
            self.0.remove(&label);
        }
    }

    /// The labels whose last change was this one, and when it was made.
    fn all(&self, word: Word) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let words = self.0.iter().filter(move |(_, said)| said.1 == word);
        words.map(|(label, said)| (label, said.0))
    }

    fn grants(&self, label: &str) -> bool {
        self.0.get(label).is_some_and(|said| said.1 == Word::Grant)
    }
}

/// The labels of an identity after all grants and withdrawals.
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

    /// Grants it labels, or withdraws them.
    fn say(
        &self,
        person: Option<&Words>,
        (labels, word): (&Labels, Word),
        stamp: u64,
    ) -> Result<(), GrantError> {
        let State { identity, own, .. } = &mut *self.lock();
        match word {
            Word::Grant => own.grant(labels, stamp),
            Word::Withdraw => {
                let has = |label: &str| {
                    identity.labels.contains(label) || person.is_some_and(|it| it.grants(label))
                };
                own.withdraw(labels, stamp, has);
                Ok(())
            }
        }
    }

    /// Whether it has a label that is not its person's.
    fn has(&self, label: &str) -> bool {
        let state = self.lock();
        state.identity.labels.contains(label) || state.own.grants(label)
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
                let person = name.and_then(|name| people.get(&name)).map(|person| &person.words);
                viewer.say(person, (labels, word), self.stamp())?;
                viewer.refresh(person, &relabel);
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
        let viewers: Vec<_> = person.viewers.values().filter_map(Weak::upgrade).collect();
        let said = match word {
            Word::Grant => person.words.grant(labels, self.stamp()),
            Word::Withdraw => {
                let has = |label: &str| viewers.iter().any(|viewer| viewer.has(label));
                person.words.withdraw(labels, self.stamp(), has);
                Ok(())
            }
        };
        for viewer in &viewers {
            viewer.refresh(Some(&person.words), &relabel);
        }
        // Order: a viewer that ends here asks for the people.
        drop(people);
        drop(viewers);
        said
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
        assert!((0..GRANTS).all(|number| grant(number).is_ok()));
        assert_eq!(grant(GRANTS), Err(GrantError::TooMany));
        assert_eq!(grant(0), Ok(()));
        drop(all.session(Identity::new("bob", Labels::NONE)));
        assert!(all.people().is_empty());
    }

    #[test]
    fn labels_can_be_granted_and_withdrawn_for_ever() {
        let all = Arc::new(Viewers::default());
        let ada = all.session(Identity::new("ada", labels("role:pilot")));
        for scope in [Scope::Session, Scope::Person] {
            let say = |text: &str, word| all.say(&ada, scope, (&labels(text), word), nobody);
            say("role:pilot", Word::Withdraw).unwrap();
            for number in 0..2 * WITHDRAWALS {
                let door = format!("door:{number}");
                say(&door, Word::Grant).unwrap();
                assert_eq!(ada.labels(), labels(&door));
                say(&door, Word::Withdraw).unwrap();
            }
            // What was withdrawn of the token stays withdrawn, however much follows.
            assert_eq!(ada.labels(), Labels::NONE);
        }
        let own = ada.lock().own.0.len();
        assert_eq!((own, all.people()["ada"].words.0.len()), (WITHDRAWALS, WITHDRAWALS));
    }

    #[test]
    fn a_withdrawal_has_room_beside_all_grants() {
        let all = Arc::new(Viewers::default());
        let ada = all.session(Identity::new("ada", labels("role:pilot")));
        let say = |text: &str, word| all.say_of("ada", (&labels(text), word), nobody);
        assert!((0..GRANTS).all(|number| say(&format!("x:{number}"), Word::Grant).is_ok()));
        assert_eq!(say("y", Word::Grant), Err(GrantError::TooMany));
        assert_eq!(say("role:pilot", Word::Withdraw), Ok(()));
        assert!(!ada.labels().iter().any(|label| label == "role:pilot"));
        assert_eq!(say("x:0", Word::Withdraw), Ok(()));
        assert_eq!(say("y", Word::Grant), Ok(()));
    }
}
