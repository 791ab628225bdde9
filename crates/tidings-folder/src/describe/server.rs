//! The folder's introduction: `server.d/server.meta.json` and `server.d/server.instructions.md`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tidings_server::model::Icon;

use super::{Describer, Surroundings};
use crate::Problem;

pub(crate) const SERVER: &str = "server.d/server.meta.json";
pub(crate) const INSTRUCTIONS: &str = "server.d/server.instructions.md";
const KNOWN: &str = "name, title, version, description, icons, websiteUrl, instructions, env";

/// The folder's name, version and instructions. The program chooses what is not set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Introduction {
    /// The server's name.
    pub name: Option<String>,
    /// A title to display.
    pub title: Option<String>,
    /// The server's version.
    pub version: Option<String>,
    /// What the server is for.
    pub description: Option<String>,
    /// Icons of the server.
    pub icons: Option<Vec<Icon>>,
    /// A website with more information.
    pub website_url: Option<String>,
    /// Variables that the folder's programs need; the operator passes them on.
    #[serde(default)]
    pub env: Vec<String>,
    /// Instructions for models.
    pub instructions: Option<String>,
}

#[derive(Deserialize)]
struct ServerDocument {
    #[serde(flatten)]
    introduction: Introduction,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// Reads the introduction; `None` if it is invalid.
pub(crate) fn introduction(surroundings: Surroundings<'_>) -> (Option<Introduction>, Vec<Problem>) {
    let mut describer = Describer::new(surroundings);
    let mut introduction = Introduction::default();
    let (server, instructions) = (Path::new(SERVER), Path::new(INSTRUCTIONS));
    if surroundings.files.contains_key(server)
        && let Some((document, text)) = describer.document::<ServerDocument>(server)
    {
        introduction = document.introduction;
        let known: Vec<_> = KNOWN.split(", ").collect();
        let unknown = document.unknown.keys().filter(|key| !known.contains(&key.as_str()));
        describer.unknown_keys(server, &text, unknown, KNOWN);
        let icons = introduction.icons.take();
        introduction.icons = describer.icons(server, icons);
    }
    if surroundings.files.contains_key(instructions)
        && let Some(text) = describer.text(instructions)
    {
        introduction.instructions = Some(text.trim().to_owned());
    }
    let broken = describer.result.broken;
    ((!broken).then_some(introduction), describer.result.problems)
}
