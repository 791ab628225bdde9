//! What a server answers, as a person reads it: text, pictures, links, messages.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tidings_mirror::model::{
    CallToolResult, ContentBlock, GetPromptResult, ResourceContents, Role,
};

use crate::present::Output;
use crate::present::body::Body;
use crate::present::save::{decoded, ending, file_name, resource_name, save};
use crate::present::structured;
use crate::present::text::{harmless, size};

/// The result of a tool in words. With a folder, what is not text is saved there.
pub(crate) fn result(
    tool: &str,
    result: &CallToolResult,
    folder: Option<&Path>,
    output: &Output,
) -> Result<String> {
    let mut shown = Vec::new();
    // By the specification the text repeats the structured content for clients that know only it.
    let structured = result.structured_content.as_ref();
    for block in &result.content {
        if !repeats(block, structured) {
            shown.push(self::block(block, tool, folder, output)?);
        }
    }
    if let Some(structured) = structured {
        shown.push(structured::render(structured, output.width, output.paint));
    }
    Ok(joined(shown))
}

/// Prints the messages of a prompt.
pub(crate) fn prompt(name: &str, result: &GetPromptResult, output: &Output) -> Result<()> {
    let mut text = String::new();
    if let Some(description) = &result.description {
        text += &output.paint.faint(&harmless(description));
        text += "\n\n";
    }
    let messages = result.messages.iter().map(|message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let said = block(&message.content, name, None, output)?;
        Ok(format!("{}\n{said}", output.paint.bold(&format!("{role}:"))))
    });
    text += &messages.collect::<Result<Vec<_>>>()?.join("\n");
    output.raw(&text)
}

/// A text resource as a terminal shows it.
pub(crate) fn document(text: &str, mime: Option<&str>) -> String {
    let json = mime.is_some_and(|mime| {
        let mime = mime.split(';').next().unwrap_or_default().trim();
        mime == "application/json" || mime.ends_with("+json")
    });
    match serde_json::from_str::<Value>(text) {
        Ok(value) if json => {
            harmless(&serde_json::to_string_pretty(&value).unwrap_or_else(|_| text.to_owned()))
        }
        _ => harmless(text),
    }
}

fn joined(parts: Vec<String>) -> String {
    let whole = |part: String| if part.ends_with('\n') { part } else { part + "\n" };
    parts.into_iter().map(whole).collect()
}

/// Whether a text is the structured content again.
fn repeats(block: &ContentBlock, structured: Option<&Value>) -> bool {
    match (block, structured) {
        (ContentBlock::Text(text), Some(structured)) => {
            serde_json::from_str::<Value>(&text.text).is_ok_and(|value| value == *structured)
        }
        _ => false,
    }
}

/// One block of content, with a line break at its end.
fn block(
    block: &ContentBlock,
    name: &str,
    folder: Option<&Path>,
    output: &Output,
) -> Result<String> {
    let line = match block {
        ContentBlock::Text(text) if output.terminal => harmless(&text.text),
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => media("image", &image.data, &image.mime_type, name, folder)?,
        ContentBlock::Audio(audio) => media("audio", &audio.data, &audio.mime_type, name, folder)?,
        ContentBlock::ResourceLink(link) => {
            let title = link.title.as_ref().unwrap_or(&link.name);
            harmless(&format!("[link] {} ({title})", link.uri))
        }
        ContentBlock::Resource(embedded) => resource(&embedded.resource, folder)?,
        other => serde_json::to_string(other)?,
    };
    Ok(if line.ends_with('\n') { line } else { line + "\n" })
}

fn media(kind: &str, data: &str, mime: &str, name: &str, folder: Option<&Path>) -> Result<String> {
    let bytes = decoded(data)?;
    let about = format!("{}, {}", harmless(mime), size(bytes.len()));
    let Some(folder) = folder else {
        return Ok(format!("[{kind}] {about}; `--save FOLDER` keeps it"));
    };
    let name = format!("{}.{}", file_name(name, kind), ending(Some(mime)));
    let path = save(folder, &name, &bytes)?;
    Ok(format!("[{kind}] {about}, saved as {}", path.display()))
}

fn resource(contents: &ResourceContents, folder: Option<&Path>) -> Result<String> {
    let body = Body::of(contents);
    let bytes = body.bytes()?;
    let about =
        harmless(&format!("[resource] {} ({}{})", body.uri, kind(body.mime), size(bytes.len())));
    if let Some(folder) = folder {
        let path = save(folder, &resource_name(body.uri, body.mime), &bytes)?;
        return Ok(format!("{about}, saved as {}", path.display()));
    }
    Ok(match body.text() {
        Some(text) => format!("{about}\n{}", document(text, body.mime)),
        None => format!("{about}; `--save FOLDER` keeps it"),
    })
}

fn kind(mime: Option<&str>) -> String {
    mime.map(|mime| format!("{mime}, ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::colour::Paint;
    use serde_json::json;

    const OUTPUT: Output =
        Output { json: false, terminal: false, width: None, paint: Paint::PLAIN };

    #[track_caller]
    fn shown(value: Value) -> String {
        let content: ContentBlock = serde_json::from_value(value).unwrap();
        block(&content, "paint", None, &OUTPUT).unwrap()
    }

    #[test]
    fn every_kind_of_content_is_shown() {
        let blocks = [
            json!({ "type": "text", "text": "plain" }),
            json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" }),
            json!({ "type": "resource_link", "uri": "a:b", "name": "b" }),
            json!({ "type": "resource", "resource": { "uri": "a:b", "text": "inside" } }),
            json!({ "type": "resource", "resource": { "uri": "a:c", "blob": "aGk=" } }),
        ];
        insta::assert_snapshot!(blocks.map(shown).concat(), @"
        plain
        [image] image/png, 2 bytes; `--save FOLDER` keeps it
        [link] a:b (b)
        [resource] a:b (6 bytes)
        inside
        [resource] a:c (2 bytes); `--save FOLDER` keeps it
        ");
    }

    #[test]
    fn a_text_that_repeats_the_structured_content_is_known() {
        let text = ContentBlock::text("{ \"a\": 1 }");
        assert!(repeats(&text, Some(&json!({ "a": 1 }))));
        assert!(!repeats(&text, Some(&json!({ "a": 2 }))));
        assert!(!repeats(&text, None));
    }

    #[test]
    fn json_is_set_out_and_cannot_steer_the_terminal() {
        assert_eq!(document("{\"a\":1}", Some("application/json; x=y")), "{\n  \"a\": 1\n}");
        assert_eq!(document("{\"a\":1}", Some("text/plain")), "{\"a\":1}");
        assert_eq!(document("\u{1b}[2J", None), "\u{fffd}[2J");
    }
}
