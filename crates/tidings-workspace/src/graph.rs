//! The graph of a workspace: identities and their connections.

use crate::{
    Bind, Connection, Find, Identity, IdentityDetails, ListPage, Workspace, WorkspaceError,
};

impl Workspace {
    /// Makes an identity, renames it, or adds hints; says whether that changed anything.
    ///
    /// # Errors
    ///
    /// A hint is another's, or a part of it cannot be.
    pub fn bind(&self, bind: Bind, actor: &str) -> Result<bool, WorkspaceError> {
        self.0.store.bind(bind, actor)
    }

    /// Adds and removes tags of an identity; says whether that changed anything.
    ///
    /// # Errors
    ///
    /// There is no such identity, or a tag cannot be.
    pub fn tag_identity(
        &self,
        identity: &str,
        add: &[String],
        remove: &[String],
        actor: &str,
    ) -> Result<bool, WorkspaceError> {
        self.0.store.tag_identity(identity, add, remove, actor)
    }

    /// Removes an identity with its connections.
    ///
    /// # Errors
    ///
    /// There is no such identity.
    pub fn unbind(&self, identity: &str, actor: &str) -> Result<(), WorkspaceError> {
        self.0.store.unbind(identity, actor)
    }

    /// Connects two identities.
    ///
    /// # Errors
    ///
    /// One of them does not exist, or they are connected like that already.
    pub fn connect(&self, connection: Connection, actor: &str) -> Result<(), WorkspaceError> {
        self.0.store.connect(connection, actor)
    }

    /// Takes a connection away.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn disconnect(&self, connection: Connection, actor: &str) -> Result<(), WorkspaceError> {
        self.0.store.disconnect(connection, actor)
    }

    /// Identities in order of their ids, after one of them.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn identities(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Identity>, WorkspaceError> {
        self.0.store.identities(after, limit)
    }

    /// One identity with all that is known of it, if there is one of this id.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn identity(&self, id: &str) -> Result<Option<IdentityDetails>, WorkspaceError> {
        self.0.store.identity(id)
    }

    /// The identities that fit, in order of their ids, and whether there are more.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn find(
        &self,
        find: &Find,
        limit: usize,
    ) -> Result<(Vec<IdentityDetails>, bool), WorkspaceError> {
        self.0.store.find(find, limit)
    }

    /// Connections in the order they were made, after what a page called `next`.
    ///
    /// # Errors
    ///
    /// That is no place in the list.
    pub fn connections(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Connection>, WorkspaceError> {
        self.0.store.connections(after, limit)
    }
}
