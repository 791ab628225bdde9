//! Fixed resources, and a template.

use serde_json::json;
use tidings_server::model::{Resource, ResourceContents, ResourceTemplate};
use tidings_server::{AnswerError, Contents, EditError, ResourceUri, Shelf};

use crate::PNG;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const TEMPLATE: &str = "test://template/{id}/data";

pub(crate) fn offer(shelf: &Shelf) -> Result<(), EditError> {
    let text = Resource::new(TEXT, "static-text").with_description("A text that stays as it is");
    shelf.add(text.with_mime_type("text/plain"))?;
    let binary =
        Resource::new(BINARY, "static-binary").with_description("A picture that stays as it is");
    shelf.add(binary.with_mime_type("image/png"))?;
    let template = ResourceTemplate::new(TEMPLATE, "template").with_description("Data for any id");
    shelf.add(template.with_mime_type("application/json"))?;
    Ok(())
}

pub(crate) fn read(uri: &ResourceUri) -> Result<Contents, AnswerError> {
    let part = match uri.as_ref() {
        TEXT => ResourceContents::text("This is the content of the static text resource.", TEXT)
            .with_mime_type("text/plain"),
        BINARY => ResourceContents::blob(PNG, BINARY).with_mime_type("image/png"),
        other => {
            let id = other.strip_prefix("test://template/").and_then(|id| id.strip_suffix("/data"));
            let id = id.ok_or_else(|| AnswerError::not_found(other))?;
            let data = format!("Data for ID: {id}");
            return Ok(Contents::json(
                uri,
                &json!({ "id": id, "templateTest": true, "data": data }),
            ));
        }
    };
    Ok(Contents::new(vec![part]))
}
