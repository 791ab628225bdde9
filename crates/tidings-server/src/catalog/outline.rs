//! Raw items: the fields that the hub needs, and why items are refused.

use std::sync::Arc;

use rmcp::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};

use crate::catalog::item::Shown;
use crate::catalog::item::sealed::{Sealed, StoredItem, StoredKind, addressed, named, templated};
use crate::catalog::{Kind, Stored};
use crate::edit::EditError;
use crate::raw::{self, Raw};
use crate::weight;

/// The limit for the schema of a raw tool that the protocol library must parse.
const SCHEMA_LIMIT: usize = 1 << 20;
/// How much of a raw item without a name is shown.
const SHOWN: usize = 64;

/// A raw item with a missing or repeated member.
fn refused<T>(kind: Kind, key: &str, raw: &Raw<T>, details: &str) -> EditError {
    let item = raw.string(key).unwrap_or_else(|| raw.as_str().chars().take(SHOWN).collect());
    EditError::Raw { kind: kind.word(), item, details: details.to_owned() }
}

/// A required member of a raw item: present once, and a string.
fn required<T>(kind: Kind, key: &str, name: &str, raw: &Raw<T>) -> Result<String, EditError> {
    let refused = |details: String| refused(kind, key, raw, &details);
    if raw.count(name) > 1 {
        return Err(refused(format!("it has several members `{name}`")));
    }
    raw.string(name).ok_or_else(|| refused(format!("`{name}` is missing or is not a text")))
}

/// The schema of a raw tool, as far as the protocol library needs it: it compares headers with the
/// arguments that the schema repeats there, and uses nothing else.
fn schema(raw: &Raw<Tool>) -> Result<JsonObject, EditError> {
    let refused = |details: &str| refused(Kind::Tool, "name", raw, details);
    let text = raw.get("inputSchema").filter(|text| text.starts_with('{'));
    let text = text.ok_or_else(|| refused("`inputSchema` is missing or is not an object"))?;
    if raw.count("inputSchema") > 1 {
        return Err(refused("it has several members `inputSchema`"));
    }
    if !raw::has_string(text, "x-mcp-header") {
        return Ok(JsonObject::new());
    }
    if weight::of(text.as_bytes(), SCHEMA_LIMIT) > SCHEMA_LIMIT {
        return Err(refused("`inputSchema` takes too much memory"));
    }
    serde_json::from_str(text).map_err(|error| refused(&format!("`inputSchema`: {error}")))
}

impl Sealed for Raw<Tool> {
    fn kind() -> StoredKind {
        StoredKind(Kind::Tool)
    }

    fn store(self) -> Result<StoredItem, EditError> {
        let name = required(Kind::Tool, "name", "name", &self)?;
        named("tool", &name)?;
        let outline = Tool::new_with_raw(name, None, Arc::new(schema(&self)?));
        Ok(StoredItem(Stored::Tool(Shown::raw(outline, self))))
    }
}

impl Sealed for Raw<Prompt> {
    fn kind() -> StoredKind {
        StoredKind(Kind::Prompt)
    }

    fn store(self) -> Result<StoredItem, EditError> {
        let name = required(Kind::Prompt, "name", "name", &self)?;
        named("prompt", &name)?;
        let outline = Prompt::new(name, None::<String>, None);
        Ok(StoredItem(Stored::Prompt(Shown::raw(outline, self))))
    }
}

impl Sealed for Raw<Resource> {
    fn kind() -> StoredKind {
        StoredKind(Kind::Resource)
    }

    fn store(self) -> Result<StoredItem, EditError> {
        let uri = required(Kind::Resource, "uri", "uri", &self)?;
        addressed(&uri)?;
        let mut outline = Resource::new(uri, required(Kind::Resource, "uri", "name", &self)?);
        outline.title = self.string("title");
        Ok(StoredItem(Stored::Resource(Shown::raw(outline, self))))
    }
}

impl Sealed for Raw<ResourceTemplate> {
    fn kind() -> StoredKind {
        StoredKind(Kind::Template)
    }

    fn store(self) -> Result<StoredItem, EditError> {
        let key = "uriTemplate";
        let uri = required(Kind::Template, key, key, &self)?;
        let template = templated(&uri)?;
        let name = required(Kind::Template, key, "name", &self)?;
        let outline = ResourceTemplate::new(uri, name);
        let shown = Shown::raw(outline, self);
        Ok(StoredItem(Stored::Template(shown, Arc::new(template))))
    }
}
