//! Tools without questions: fixed content, progress, log messages, a resumable stream.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::time::Duration;

use serde_json::json;
use tidings_server::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use tidings_server::model::{ClientCapabilities, ContentBlock, LoggingLevel};
use tidings_server::model::{ResourceContents, SamplingCapability, Tool};
use tidings_server::{AnswerError, Context, EditError, Shelf};

use crate::{PNG, bare, object, say, text_argument, tool};

/// Eight samples of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";
/// How long a step of work takes.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn offer(shelf: &Shelf) -> Result<(), EditError> {
    for (name, description) in [
        ("test_simple_text", "Answers with a text"),
        ("test_image_content", "Answers with an image"),
        ("test_audio_content", "Answers with a sound"),
        ("test_embedded_resource", "Answers with an embedded resource"),
        ("test_multiple_content_types", "Answers with a text, an image and a resource"),
        ("test_error_handling", "Fails"),
        ("test_tool_with_progress", "Reports progress three times, then answers"),
        ("test_tool_with_logging", "Logs three times, then answers"),
        ("test_logging_tool", "Logs once if the request asks for it, then answers"),
        ("test_reconnection", "Ends the stream of its answer and answers a moment later"),
        ("test_missing_capability", "Answers clients that can sample"),
    ] {
        shelf.add(bare(name, description))?;
    }
    let region = json!({ "region": {
        "type": "string",
        "description": "Where it runs; repeated in a header",
        "x-mcp-header": "Region",
    }});
    shelf.add(tool("test_x_mcp_header", "Says where it runs", &region, &["region"]))?;
    shelf.add(json_schema_tool())?;
    Ok(())
}

pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, AnswerError> {
    let content = match request.name.as_ref() {
        "test_simple_text" => {
            vec![ContentBlock::text("This is a simple text response for testing.")]
        }
        "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => vec![embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ],
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
        }
        "test_tool_with_progress" => return Ok(with_progress(context).await),
        "test_tool_with_logging" => return Ok(with_logging(context).await),
        "test_logging_tool" => {
            context.log(LoggingLevel::Info, json!("The tool runs")).await;
            return Ok(say("Logged, if that was asked for."));
        }
        "test_reconnection" => {
            context.release_stream();
            tokio::time::sleep(2 * STEP).await;
            return Ok(say("Answered after the client came back."));
        }
        "test_missing_capability" => {
            if context.client_capabilities().sampling.is_none() {
                let mut needed = ClientCapabilities::default();
                needed.sampling = Some(SamplingCapability::default());
                return Err(AnswerError::Capability(Box::new(needed)));
            }
            return Ok(say("The client can sample."));
        }
        "test_x_mcp_header" => {
            let region = text_argument(request.arguments.as_ref(), "region")?;
            return Ok(say(format!("Running in {region}")));
        }
        "json_schema_2020_12_tool" => return Ok(say("The schema is what counts.")),
        other => return Err(AnswerError::not_found(other)),
    };
    Ok(CallToolResult::success(content).into())
}

async fn with_progress(context: &Context) -> CallToolResponse {
    context.progress(0.0, Some(100.0), None).await;
    for done in [50.0, 100.0] {
        tokio::time::sleep(STEP).await;
        context.progress(done, Some(100.0), None).await;
    }
    say("All of the work is done.")
}

async fn with_logging(context: &Context) -> CallToolResponse {
    context.log(LoggingLevel::Info, json!("Tool execution started")).await;
    for message in ["Tool processing data", "Tool execution completed"] {
        tokio::time::sleep(STEP).await;
        context.log(LoggingLevel::Info, json!(message)).await;
    }
    say("Logged three times.")
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}

/// A schema with keywords that must reach the client unchanged.
fn json_schema_tool() -> Tool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        }},
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    Tool::new("json_schema_2020_12_tool", "Has a schema with many keywords", object(schema))
}
