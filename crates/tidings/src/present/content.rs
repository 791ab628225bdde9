//! Results for people: text, images, links, messages.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tidings_mirror::cache::PromptContent;
use tidings_mirror::model::{CallToolResult, ContentBlock, ResourceContents, Role};
use tidings_mirror::odd::{Odd, Part, parts};

use crate::present::Output;
use crate::present::body::Body;
use crate::present::save::{decoded, ending, file_name, resource_name, save};
use crate::present::structured;
use crate::present::text::{harmless, size};

/// The result of a tool as text. With a folder, other content is saved there.
pub(crate) fn result(
    tool: &str,
    (result, odd): (&CallToolResult, &[Odd]),
    folder: Option<&Path>,
    output: &Output,
) -> Result<String> {
    let mut shown = Vec::new();
    let structured = result.structured_content.as_ref();
    let fresh = unrepeated(&result.content, structured);
    for part in parts(&result.content, odd) {
        match part {
            Part::Known(block) if fresh.iter().any(|it| std::ptr::eq(*it, block)) => {
                shown.push(self::block(block, tool, folder, output)?);
            }
            Part::Known(_) => {}
            Part::Odd(odd) => shown.push(unknown(odd)),
        }
    }
    if let Some(structured) = structured {
        shown.push(structured::render(structured, output.width, output.paint));
    }
    Ok(joined(shown))
}

/// Prints the messages of a prompt.
pub(crate) fn prompt(name: &str, content: &PromptContent, output: &Output) -> Result<()> {
    let result = &content.result;
    let mut text = String::new();
    if let Some(description) = &result.description {
        text += &output.paint.faint(&harmless(description));
        text += "\n\n";
    }
    let messages = parts(&result.messages, &content.odd).map(|part| {
        let message = match part {
            Part::Known(message) => message,
            Part::Odd(odd) => return Ok(unknown(odd)),
        };
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

/// A text resource for a terminal.
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

/// A block that is not valid, as the server sent it.
pub(crate) fn unknown(odd: &Odd) -> String {
    harmless(&odd.item.to_string()) + "\n"
}

fn joined(parts: Vec<String>) -> String {
    let whole = |part: String| if part.ends_with('\n') { part } else { part + "\n" };
    parts.into_iter().map(whole).collect()
}

/// The blocks that do not repeat the structured content. The specification repeats it as text for
/// clients that know only text. Some servers wrap their result in an object with one field, and
/// send a text for it, or one for each item.
fn unrepeated<'a>(
    blocks: &'a [ContentBlock],
    structured: Option<&'a Value>,
) -> Vec<&'a ContentBlock> {
    let Some(structured) = structured else { return blocks.iter().collect() };
    let wrapped = structured.as_object().filter(|object| object.len() == 1);
    let inner = wrapped.and_then(|object| object.values().next());
    let all: Vec<_> =
        blocks.iter().filter(|block| matches!(block, ContentBlock::Text(_))).collect();
    let items = inner.unwrap_or(structured).as_array();
    let is_each = items.is_some_and(|items| {
        items.len() == all.len() && all.iter().zip(items).all(|(text, item)| repeats(text, item))
    });
    let is_repeated = |block: &ContentBlock| match block {
        ContentBlock::Text(_) if is_each => true,
        other => repeats(other, structured) || inner.is_some_and(|inner| repeats(other, inner)),
    };
    blocks.iter().filter(|block| !is_repeated(block)).collect()
}

/// Whether a block is this value as text.
fn repeats(block: &ContentBlock, value: &Value) -> bool {
    let ContentBlock::Text(text) = block else { return false };
    value.as_str() == Some(&text.text)
        || serde_json::from_str::<Value>(&text.text).is_ok_and(|said| is_same(&said, value))
}

/// Whether two values are equal: `1` and `1.0` are.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_there = |(key, value)| other.get(key).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => one == other,
    }
}

/// One block of content, ending with a line break.
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
        return Ok(format!("[{kind}] {about}; `--save FOLDER` saves it"));
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
        None => format!("{about}; `--save FOLDER` saves it"),
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
        [image] image/png, 2 bytes; `--save FOLDER` saves it
        [link] a:b (b)
        [resource] a:b (6 bytes)
        inside
        [resource] a:c (2 bytes); `--save FOLDER` saves it
        ");
    }

    #[test]
    fn a_text_that_repeats_the_structured_content_is_left_out() {
        let check = |texts: &[&str], structured: Value, left: usize| {
            let blocks: Vec<_> = texts.iter().map(|text| ContentBlock::text(*text)).collect();
            assert_eq!(unrepeated(&blocks, Some(&structured)).len(), left, "{texts:?}");
        };
        check(&["{ \"a\": 1 }"], json!({ "a": 1 }), 0);
        check(&["{ \"a\": 1.0 }"], json!({ "a": 1 }), 0);
        check(&["{ \"a\": 1 }", "and more"], json!({ "a": 1 }), 1);
        check(&["{ \"a\": 1 }"], json!({ "a": 2 }), 1);
        check(&["hello"], json!({ "result": "hello" }), 0);
        check(&["3"], json!({ "result": 3 }), 0);
        check(&["one", "{\"b\":2}"], json!({ "result": ["one", { "b": 2 }] }), 0);
        check(&["one", "three"], json!({ "result": ["one", "two"] }), 2);
        check(&["hello"], json!({ "greeting": "hello", "to": "all" }), 1);
        assert_eq!(unrepeated(&[ContentBlock::text("{}")], None).len(), 1);
    }

    #[test]
    fn json_is_set_out_and_cannot_steer_the_terminal() {
        assert_eq!(document("{\"a\":1}", Some("application/json; x=y")), "{\n  \"a\": 1\n}");
        assert_eq!(document("{\"a\":1}", Some("text/plain")), "{\"a\":1}");
        assert_eq!(document("\u{1b}[2J", None), "\u{fffd}[2J");
    }
}
