//! `create_artifact`: create an artifact.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::store::SetPlace;
use crate::tools::put::bytes;
use crate::tools::schema::{Effect, entry, number, object, text, texts, tool as described};
use crate::tools::{ToolAnswer, ToolFailure, arguments, shown};
use crate::{Draft, Refusal, Workspace, WorkspaceError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    title: String,
    text: Option<String>,
    base64: Option<String>,
    hash: Option<String>,
    mime_type: Option<String>,
    creator: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    parents: Vec<String>,
    set: Option<String>,
    index: Option<u64>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "title": text("its title, one line"),
            "text": text("its bytes, as text"),
            "base64": text("its bytes, in base64"),
            "hash": text("its bytes, by the hash of a stored blob; give one of the three"),
            "mime_type": text("the MIME type; default: guessed from the bytes"),
            "creator": text("its creator; default: the name of the client. A client with a named token is its own creator"),
            "tags": texts("tags, as `category:value` or plain"),
            "parents": texts("the ids of the artifacts it was made from"),
            "set": text("the set it is part of"),
            "index": number(0, (1 << 53) - 1, "its position in the set; default: after the last"),
            "metadata": { "type": "object", "description": "additional properties" },
        }),
        &["title"],
    );
    described(
        "create_artifact",
        "Create an artifact",
        "Creates an artifact from text, bytes in base64, or a stored blob, and notifies \
         subscribers. Each call creates a new one, even from equal bytes.",
        Effect::Adds,
        (input, entry()),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let given: Arguments = arguments(given)?;
    let bytes = bytes(given.text, given.base64)?;
    let creator = given.creator.as_deref().unwrap_or(actor);
    let mut draft = Draft::new(given.title, given.hash.clone().unwrap_or_default(), creator);
    draft.mime_type = given.mime_type;
    draft.tags = given.tags;
    draft.parents = given.parents;
    draft.metadata = given.metadata;
    draft.place = match (given.set, given.index) {
        (Some(set), index) => Some(SetPlace { set, index }),
        (None, Some(_)) => return Err(WorkspaceError::from(Refusal::Index).into()),
        (None, None) => None,
    };
    let id = match (bytes, given.hash) {
        (Some(bytes), None) => workspace.import(&mut bytes.as_slice(), draft, actor)?,
        (None, Some(_)) => workspace.create(draft, actor)?,
        _ => {
            let words = "nothing was created: give one of `text`, `base64` and `hash`";
            return Err(ToolFailure(words.to_owned()));
        }
    };
    let entry = workspace.0.store.entry(&id)?;
    Ok(shown(&entry.ok_or(WorkspaceError::from(Refusal::NoArtifact(id)))?))
}
