//! Items on the shelf: fixed resources, templates and their expansions, and usable tools.

use std::collections::BTreeMap;

use tidings_server::model::{Resource, ResourceTemplate, Tool};
use tidings_server::{Change, EditError, Handle, Shelf};

use crate::Workspace;
use crate::record::{ArtifactEntry, Identity};
use crate::tools::{self, Needs};
use crate::view::{self, FAMILIES};

const JSON: &str = "application/json";

/// The items on the shelf.
pub(crate) struct WorkspaceOffer {
    shelf: Shelf,
    artifacts: Handle<ResourceTemplate>,
    identities: Handle<ResourceTemplate>,
    tools: Vec<(Needs, Handle<Tool>)>,
    has: Has,
    /// The last published event; `None` if anything may have changed since.
    pub(crate) told: Option<u64>,
    /// The last event that the list of resources includes; `None` if the list may be wrong.
    pub(crate) listed: Option<u64>,
}

/// What the workspace contains, which decides which tools are usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Has {
    pub(crate) artifacts: bool,
    pub(crate) identities: bool,
    pub(crate) connections: bool,
}

impl Has {
    fn fills(self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::Artifacts => self.artifacts,
            Needs::Identities => self.identities,
            Needs::Connections => self.connections,
        }
    }
}

impl WorkspaceOffer {
    /// Puts everything on the shelf, for a workspace with this content.
    pub(crate) fn new(
        shelf: &Shelf,
        workspace: &Workspace,
        has: Has,
        told: Option<u64>,
    ) -> Result<Self, EditError> {
        let mut transaction = shelf.transaction();
        for (uri, name, description) in [
            (view::SUMMARY, "summary", "How many artifacts there are, by tag, creator and set"),
            (view::RECENT, "recent", "The newest ten artifacts"),
            (view::IDENTITIES, "identities", "The identities of the graph"),
            (view::CONNECTIONS, "connections", "The connections of the graph"),
            (view::EVENTS, "events", "The newest events of the log"),
        ] {
            let resource = Resource::new(uri, name).with_description(description);
            transaction.add(resource.with_mime_type(JSON))?;
        }
        let mut templates = BTreeMap::new();
        for family in FAMILIES {
            let template = ResourceTemplate::new(family.template, family.name)
                .with_description(family.description);
            let template =
                if family.name == "cas" { template } else { template.with_mime_type(JSON) };
            templates.insert(family.name, transaction.add(template)?);
        }
        let mut handles = Vec::new();
        for (needs, tool) in tools::all(workspace) {
            let tool = if has.fills(needs) { tool } else { tool.disabled() };
            handles.push((needs, transaction.add(tool)?));
        }
        transaction.commit()?;
        let mut template = |name| templates.remove(name).expect("a family has this name");
        let (artifacts, identities) = (template("artifact"), template("identity"));
        let (shelf, tools) = (shelf.clone(), handles);
        Ok(Self { shelf, artifacts, identities, tools, has, told, listed: None })
    }

    /// Announces that a resource may have changed.
    pub(crate) fn changed(&self, uri: &str) {
        if let Err(error) = self.shelf.changed(uri) {
            tracing::error!(uri, %error, "a change cannot be announced");
        }
    }

    /// Announces that all resources with this prefix may have changed.
    pub(crate) fn changed_below(&self, prefix: &str) {
        let Ok(()) = self.shelf.changed(Change::below(prefix));
    }

    pub(crate) fn has(&self) -> Has {
        self.has
    }

    /// Enables the usable tools and disables the others, in one step.
    pub(crate) fn arm(&mut self, has: Has) -> Result<(), EditError> {
        if has == self.has {
            return Ok(());
        }
        let mut transaction = self.shelf.transaction();
        for (needs, handle) in &self.tools {
            match (self.has.fills(*needs), has.fills(*needs)) {
                (false, true) => transaction.enable(handle),
                (true, false) => transaction.disable(handle),
                _ => {}
            }
        }
        transaction.commit()?;
        self.has = has;
        Ok(())
    }

    /// Lists these artifacts and identities instead of the previous ones.
    pub(crate) fn list(
        &self,
        entries: &[ArtifactEntry],
        identities: &[Identity],
    ) -> Result<(), EditError> {
        let mut transaction = self.shelf.transaction();
        let artifacts = entries.iter().map(|entry| {
            Resource::new(view::artifact_uri(&entry.id), entry.title.clone())
                .with_description(format!("An artifact by {}", entry.creator))
                .with_mime_type(JSON)
        });
        transaction.expand(&self.artifacts, artifacts.collect());
        let identities = identities.iter().map(|identity| {
            Resource::new(view::identity_uri(&identity.id), identity.name.clone())
                .with_description("An identity of the graph")
                .with_mime_type(JSON)
        });
        transaction.expand(&self.identities, identities.collect());
        transaction.commit()
    }
}
