//! The workspace as a source: reads, versions and completions.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use tidings_core::{Fingerprint, ResourceUri};
use tidings_server::model::ResourceContents;
use tidings_server::{
    AnswerError, Completion, CompletionOf, Completions, Contents, Context, EditError, Shelf, Source,
};
use tokio_util::sync::CancellationToken;

use crate::offer::WorkspaceOffer;
use crate::store::{ArtifactList, Ids};
use crate::view::{FAMILIES, IDENTITIES, View};
use crate::{Refusal, Workspace, WorkspaceError, WorkspaceInner, text, tools};

/// How many artifacts `artifacts://recent` shows.
const RECENT: usize = 10;
/// How many items any other list shows.
const LISTED: usize = 100;
/// How many completions are suggested; the protocol allows no more.
const PROPOSED: usize = 100;
/// How many event numbers are suggested: the newest are the useful ones.
const NUMBERS: usize = 10;

impl Workspace {
    /// The workspace as a source of this shelf. Its items are added when the source starts.
    #[must_use]
    pub fn on(self, shelf: Shelf) -> impl Source {
        Shelved { workspace: self, shelf }
    }
}

/// The workspace and the shelf that a hub gave it.
struct Shelved {
    workspace: Workspace,
    shelf: Shelf,
}

impl Source for Shelved {
    async fn start(&self) -> Result<(), EditError> {
        let told = *self.workspace.0.store.follow().borrow();
        let has =
            self.workspace.0.clone().blocking(WorkspaceInner::has).await.inspect_err(|error| {
                tracing::warn!(%error, "the content of the workspace could not be read yet");
            });
        // If the content is not known now, following the log reads it again.
        let told = has.is_ok().then_some(told);
        *self.workspace.0.offer() =
            Some(WorkspaceOffer::new(&self.shelf, &self.workspace, has.unwrap_or_default(), told)?);
        if let Err(error) = self.workspace.0.clone().blocking(WorkspaceInner::enlist).await {
            tracing::warn!(%error, "the list of artifacts could not be updated");
        }
        Ok(())
    }

    async fn run(&self, cancel: CancellationToken) {
        self.workspace.0.follow(cancel).await;
    }

    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        let (view, name) = (View::parse(uri)?, uri.clone());
        // A blob is read into memory as a whole.
        let _turn = match view {
            View::Blob(_) => self.workspace.0.turns.acquire().await.ok(),
            _ => None,
        };
        let place = self.workspace.0.places.acquire().await.ok();
        let read = self.workspace.0.clone().blocking(move |inner| inner.read(&view, &name)).await;
        drop(place);
        match read {
            Ok(Some(part)) => Ok(Contents::new(vec![part])),
            Ok(None) => Err(AnswerError::not_found(uri.as_ref())),
            Err(WorkspaceError::Refused(refusal)) => Err(unreadable(uri, &refusal)),
            Err(error) => Err(AnswerError::Failed(tools::outside(&error))),
        }
    }

    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        if View::is_ours(uri) { View::parse(uri).err() } else { None }
    }

    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        // Blobs never change; everything else is compared when it is read.
        let View::Blob(hash) = View::parse(uri).ok()? else { return None };
        let is_there = self.workspace.0.store.has_blob(&hash).ok()?;
        Some(if is_there { Fingerprint::of_bytes(hash.as_bytes()) } else { Fingerprint::ABSENT })
    }

    async fn complete(
        &self,
        completion: Completion,
        _: &Context,
    ) -> Result<Completions, AnswerError> {
        let CompletionOf::Template(template) = &completion.of else {
            return Ok(Completions::default());
        };
        if !FAMILIES.iter().any(|family| family.template == template) {
            return Ok(Completions::default());
        }
        let is_graph = template.starts_with("graph:");
        let is_identities = template.starts_with(IDENTITIES);
        let list = listed(template, &completion.known);
        let typed = completion.value;
        let (argument, known) = (completion.argument, completion.known);
        let found = self.workspace.0.clone().blocking(move |inner| match argument.as_str() {
            "tag" | "creator" | "set" => inner.store.names_like(&argument, &typed, PROPOSED),
            "category" => inner.store.names_like("category", &typed, PROPOSED),
            "value" => {
                let category = known.get("category").map(String::as_str).unwrap_or_default();
                let tags =
                    inner.store.names_like("tag", &format!("{category}:{typed}"), PROPOSED)?;
                let value = |tag: String| tag.split_once(':').map(|(_, value)| value.to_owned());
                Ok(tags.into_iter().filter_map(value).collect())
            }
            "id" if is_graph => inner.store.ids_like(Ids::Identity, &typed, PROPOSED),
            "id" => inner.store.ids_like(Ids::Artifact, &typed, PROPOSED),
            "hash" => inner.store.ids_like(Ids::Blob, &typed, PROPOSED),
            "after" if is_identities => inner.store.ids_like(Ids::Identity, &typed, PROPOSED),
            "after" => {
                // The `next` of connections is known only from a page.
                let Some(list) = list else { return Ok(Vec::new()) };
                let page = inner.store.list(&list, None, PROPOSED)?;
                let ids = page.items.into_iter().map(|entry| entry.id);
                Ok(ids.filter(|id| id.starts_with(&typed)).collect())
            }
            "n" => inner.store.cursors_like(&typed, NUMBERS),
            _ => Ok(Vec::new()),
        });
        let found = found.await.map_err(|error| AnswerError::Failed(tools::outside(&error)))?;
        Ok(found.into())
    }
}

/// The list of artifacts that a template names with the known variables, if it is one.
fn listed(template: &str, known: &BTreeMap<String, String>) -> Option<ArtifactList> {
    let get = |name: &str| known.get(name).cloned();
    let rest = template.strip_prefix("artifacts://")?;
    match rest.split(['/', '{']).next()? {
        "recent" => Some(ArtifactList::Recent),
        "by-tag" => get("tag")
            .or_else(|| Some(format!("{}:{}", get("category")?, get("value")?)))
            .map(ArtifactList::Tag),
        "by-creator" => get("creator").map(ArtifactList::Creator),
        "set" => get("set").map(ArtifactList::Set),
        _ => None,
    }
}

impl WorkspaceInner {
    /// Runs work on a thread that may block.
    pub(super) async fn blocking<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        done.map_err(|_| WorkspaceError::Interrupted)?
    }

    fn read(
        &self,
        view: &View,
        uri: &ResourceUri,
    ) -> Result<Option<ResourceContents>, WorkspaceError> {
        let store = &self.store;
        let body = match view {
            View::Summary => Some(json(&store.summary()?)),
            View::ArtifactList(list, range) => {
                let usual = if *list == ArtifactList::Recent { RECENT } else { LISTED };
                let limit = range.limit.unwrap_or(usual);
                Some(json(&store.list(list, range.after.as_deref(), limit)?))
            }
            View::Lineage(id) => store.lineage(id)?.map(|lineage| json(&lineage)),
            View::Artifact(id) => store.artifact(id)?.map(|artifact| json(&artifact)),
            View::Identities(range) => {
                let limit = range.limit.unwrap_or(LISTED);
                Some(json(&store.identities(range.after.as_deref(), limit)?))
            }
            View::Identity(id) => store.identity(id)?.map(|identity| json(&identity)),
            View::Connections(range) => {
                let limit = range.limit.unwrap_or(LISTED);
                Some(json(&store.connections(range.after.as_deref(), limit)?))
            }
            View::Events(range) => Some(json(&store.newest_events(range.limit.unwrap_or(RECENT))?)),
            View::Since(number, range) => {
                Some(json(&store.events(*number, &[], range.limit.unwrap_or(LISTED))?))
            }
            View::Blob(hash) => return self.bytes(hash, uri),
        };
        let part = |body| ResourceContents::text(body, uri.as_ref());
        Ok(body.map(|body| part(body).with_mime_type("application/json")))
    }

    /// The bytes as text if they are text, otherwise in base64.
    fn bytes(
        &self,
        hash: &str,
        uri: &ResourceUri,
    ) -> Result<Option<ResourceContents>, WorkspaceError> {
        let Some(mut file) = self.store.open_blob(hash)? else { return Ok(None) };
        let (size, limit) = (file.blob().size, self.store.config().limits.read);
        if size > limit {
            return Err(Refusal::TooLargeToRead { hash: hash.to_owned(), size, limit }.into());
        }
        let mime = file.blob().mime_type.clone();
        let bytes = file.bytes()?;
        let part = match std::str::from_utf8(&bytes).ok().filter(|it| text::is_text(&mime, it)) {
            Some(text) => ResourceContents::text(text, uri.as_ref()),
            None => ResourceContents::blob(STANDARD.encode(&bytes), uri.as_ref()),
        };
        Ok(Some(part.with_mime_type(mime)))
    }
}

fn json(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("what a workspace shows is plain JSON")
}

fn unreadable(uri: &ResourceUri, refusal: &Refusal) -> AnswerError {
    let (parameter, value) = match refusal {
        Refusal::Expired { cursor, .. } | Refusal::Ahead { cursor, .. } => {
            ("n", cursor.to_string())
        }
        Refusal::After(after) => ("after", after.clone()),
        _ => ("uri", uri.as_ref().to_owned()),
    };
    AnswerError::invalid(parameter, value, refusal.to_string())
}
