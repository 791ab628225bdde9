//! The graph of a workspace: identities and their connections.

use crate::{
    Bind, Connection, Find, Identity, IdentityDetails, ListPage, Workspace, WorkspaceError,
};

impl Workspace {
    /// Creates an identity, renames it, or adds hints; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// Another identity has one of the hints, or an argument is invalid.
    pub fn bind(&self, bind: Bind, actor: &str) -> Result<bool, WorkspaceError> {
        self.0.store.bind(bind, actor)
    }

    /// Adds and removes tags of an identity; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// There is no such identity, or a tag is invalid.
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
    /// One of them does not exist, or this connection exists.
    pub fn connect(&self, connection: Connection, actor: &str) -> Result<(), WorkspaceError> {
        self.0.store.connect(connection, actor)
    }

    /// Removes a connection.
    ///
    /// # Errors
    ///
    /// There is no such connection.
    pub fn disconnect(&self, connection: Connection, actor: &str) -> Result<(), WorkspaceError> {
        self.0.store.disconnect(connection, actor)
    }

    /// Identities sorted by id, after the given one.
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

    /// One identity with its hints and connections, if it exists.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn identity(&self, id: &str) -> Result<Option<IdentityDetails>, WorkspaceError> {
        self.0.store.identity(id)
    }

    /// The matching identities sorted by id, and whether there are more.
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

    /// Connections in the order they were made, after the `next` of a page.
    ///
    /// # Errors
    ///
    /// `after` is not the `next` of a page.
    pub fn connections(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Connection>, WorkspaceError> {
        self.0.store.connections(after, limit)
    }
}
