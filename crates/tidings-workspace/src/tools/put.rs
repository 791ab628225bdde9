//! `put_blob`: store bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::tools::schema::{Effect, object, text, tool as described};
use crate::tools::{ToolAnswer, ToolFailure, arguments, shown};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: Option<String>,
    base64: Option<String>,
    mime_type: Option<String>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "text": text("the bytes, as text"),
            "base64": text("the bytes, in base64; give one of the two"),
            "mime_type": text("the MIME type; default: guessed from the bytes"),
        }),
        &[],
    );
    let output = object(
        &json!({
            "hash": text("the BLAKE3 hash; `cas://{hash}` has the bytes"),
            "mimeType": text("the MIME type, as first stored"),
            "size": { "type": "integer", "description": "the number of bytes" },
        }),
        &["hash", "mimeType", "size"],
    );
    described(
        "put_blob",
        "Store bytes",
        "Stores bytes, given as text or in base64, and returns their hash. Equal bytes are one blob.",
        Effect::Sets,
        (input, output),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let given: Arguments = arguments(given)?;
    let bytes = bytes(given.text, given.base64)?.ok_or_else(|| {
        ToolFailure("nothing was stored: give the bytes as `text` or in `base64`".to_owned())
    })?;
    Ok(shown(&workspace.put_blob(&bytes, given.mime_type.as_deref(), actor)?))
}

/// The bytes given as text or in base64, if any.
pub(super) fn bytes(
    text: Option<String>,
    base64: Option<String>,
) -> Result<Option<Vec<u8>>, ToolFailure> {
    match (text, base64) {
        (Some(_), Some(_)) => {
            Err(ToolFailure("nothing was stored: give `text` or `base64`, not both".to_owned()))
        }
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(base64)) => STANDARD.decode(base64.trim()).map(Some).map_err(|error| {
            ToolFailure(format!("nothing was stored: `base64` is not base64 with padding: {error}"))
        }),
        (None, None) => Ok(None),
    }
}
