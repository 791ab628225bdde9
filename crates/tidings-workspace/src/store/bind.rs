//! Writes to the graph: validated, logged and applied.

use crate::change::Change;
use crate::record::{Connection, Hint};
use crate::store::commit::Ledger;
use crate::store::write::at_most;
use crate::store::{Store, graph};
use crate::text::{self, Lines};
use crate::{Refusal, WorkspaceError};

/// An identity to create or change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bind {
    /// Its id.
    pub id: String,
    /// Its new name.
    pub name: String,
    /// Hints to add.
    pub hints: Vec<Hint>,
    /// Whether to take hints from other identities.
    pub steal: bool,
}

impl Bind {
    /// An identity with this id and name.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), hints: Vec::new(), steal: false }
    }
}

impl Store {
    /// Creates an identity, renames it, or adds hints; returns whether that changed anything.
    pub(crate) fn bind(&self, mut bind: Bind, actor: &str) -> Result<bool, WorkspaceError> {
        let limits = &self.config.limits;
        text::check("id", &bind.id, limits.tag, Lines::One)?;
        text::check("name", &bind.name, limits.name, Lines::One)?;
        at_most("hints", bind.hints.len(), limits.hints)?;
        for hint in &mut bind.hints {
            text::check("kind", &hint.kind, limits.tag, Lines::One)?;
            text::check("value", &hint.value, limits.name, Lines::One)?;
            if !(0.0..=1.0).contains(&hint.confidence) {
                return Err(Refusal::Confidence.into());
            }
            // Turns -0 into 0.
            hint.confidence += 0.0;
        }
        let actor = actor.to_owned();
        self.write(move |ledger| rebind(ledger, bind, &actor))
    }

    /// Adds and removes tags of an identity; returns whether that changed anything.
    pub(crate) fn tag_identity(
        &self,
        identity: &str,
        add: &[String],
        remove: &[String],
        actor: &str,
    ) -> Result<bool, WorkspaceError> {
        let added = text::identity_tags(add, &self.config.limits)?;
        let (identity, actor) = (identity.to_owned(), actor.to_owned());
        let mut removed = remove.to_vec();
        removed.sort();
        removed.dedup();
        self.write(move |ledger| {
            let tags = graph::tags(ledger.connection, &identity)?
                .ok_or_else(|| Refusal::NoIdentity(identity.clone()))?;
            let (mut added, mut removed) = (added, removed);
            removed.retain(|tag| tags.contains(tag) && !added.contains(tag));
            added.retain(|tag| !tags.contains(tag));
            if added.is_empty() && removed.is_empty() {
                return Ok(false);
            }
            at_most("tags", tags.len() + added.len() - removed.len(), ledger.limits.tags)?;
            ledger.record(&actor, Change::IdentityTagged { identity, added, removed })?;
            Ok(true)
        })
    }

    /// Removes an identity with its connections.
    pub(crate) fn unbind(&self, identity: &str, actor: &str) -> Result<(), WorkspaceError> {
        let (identity, actor) = (identity.to_owned(), actor.to_owned());
        self.write(move |ledger| {
            present(ledger, &identity)?;
            let neighbours = graph::neighbours(ledger.connection, &identity)?;
            ledger.record(&actor, Change::Unbound { identity, neighbours })?;
            Ok(())
        })
    }

    /// Connects two identities.
    pub(crate) fn connect(&self, it: Connection, actor: &str) -> Result<(), WorkspaceError> {
        let limit = self.config.limits.tag;
        text::check("from_port", &it.from_port, limit, Lines::One)?;
        text::check("to_port", &it.to_port, limit, Lines::One)?;
        if !it.transport.is_empty() {
            text::check("transport", &it.transport, limit, Lines::One)?;
        }
        let actor = actor.to_owned();
        self.write(move |ledger| {
            present(ledger, &it.from)?;
            present(ledger, &it.to)?;
            if graph::is_connected(ledger.connection, &it)? {
                return Err(Refusal::Connected.into());
            }
            ledger.record(&actor, Change::Connected(it))?;
            Ok(())
        })
    }

    /// Removes a connection.
    pub(crate) fn disconnect(&self, it: Connection, actor: &str) -> Result<(), WorkspaceError> {
        let actor = actor.to_owned();
        self.write(move |ledger| {
            if !graph::is_connected(ledger.connection, &it)? {
                return Err(Refusal::NotConnected.into());
            }
            ledger.record(&actor, Change::Disconnected(it))?;
            Ok(())
        })
    }
}

fn rebind(ledger: &mut Ledger<'_>, bind: Bind, actor: &str) -> Result<bool, WorkspaceError> {
    let connection = ledger.connection;
    let name = graph::name(connection, &bind.id)?;
    let (mut hints, mut losers) = (Vec::<Hint>::new(), Vec::new());
    let mut more = 0;
    for hint in bind.hints {
        hints.retain(|it| (&it.kind, &it.value) != (&hint.kind, &hint.value));
        match graph::owner(connection, &hint)? {
            Some((owner, confidence)) if owner == bind.id => {
                if confidence.to_bits() != hint.confidence.to_bits() {
                    hints.push(hint);
                }
            }
            Some((owner, _)) if !bind.steal => {
                let Hint { kind, value, .. } = hint;
                return Err(Refusal::HintTaken { kind, value, owner }.into());
            }
            Some((owner, _)) => {
                losers.push(owner);
                hints.push(hint);
                more += 1;
            }
            None => {
                hints.push(hint);
                more += 1;
            }
        }
    }
    if name.as_ref() == Some(&bind.name) && hints.is_empty() {
        return Ok(false);
    }
    at_most("hints", graph::hints(connection, &bind.id)?.len() + more, ledger.limits.hints)?;
    losers.sort();
    losers.dedup();
    let change = Change::Bound { identity: bind.id, name: bind.name, hints, losers };
    ledger.record(actor, change)?;
    Ok(true)
}

fn present(ledger: &Ledger<'_>, identity: &str) -> Result<(), WorkspaceError> {
    match graph::name(ledger.connection, identity)? {
        Some(_) => Ok(()),
        None => Err(Refusal::NoIdentity(identity.to_owned()).into()),
    }
}
