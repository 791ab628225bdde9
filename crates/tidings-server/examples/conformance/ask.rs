//! Tools that ask the client while they run, as legacy revisions do.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use serde_json::{Value, json};
use tidings_server::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use tidings_server::model::{ContentBlock, CreateMessageRequestParams, ElicitRequestParams};
use tidings_server::model::{ElicitationAction, SamplingMessage};
use tidings_server::{AnswerError, AskError, Context, EditError, Shelf};

use crate::{bare, say, text_argument, tool};

const SAMPLING: &str = "test_sampling";
const ELICITATION: &str = "test_elicitation";
const DEFAULTS: &str = "test_elicitation_sep1034_defaults";
const ENUMS: &str = "test_elicitation_sep1330_enums";

pub(crate) fn offer(shelf: &Shelf) -> Result<(), EditError> {
    let prompt = json!({ "prompt": { "type": "string", "description": "What to ask the model" } });
    shelf.add(tool(SAMPLING, "Asks the client's model", &prompt, &["prompt"]))?;
    let message = json!({ "message": { "type": "string", "description": "What to ask" } });
    shelf.add(tool(ELICITATION, "Asks the client's user", &message, &["message"]))?;
    shelf.add(bare(DEFAULTS, "Asks the client's user and proposes answers"))?;
    shelf.add(bare(ENUMS, "Lets the client's user choose"))?;
    Ok(())
}

pub(crate) fn knows(name: &str) -> bool {
    [SAMPLING, ELICITATION, DEFAULTS, ENUMS].contains(&name)
}

pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, AnswerError> {
    let arguments = request.arguments.as_ref();
    let answer = match request.name.as_ref() {
        SAMPLING => sample(context, text_argument(arguments, "prompt")?).await,
        ELICITATION => {
            let message = text_argument(arguments, "message")?;
            elicit(context, "User response", &message, user()).await
        }
        DEFAULTS => {
            let message = "Check the proposed answers";
            elicit(context, "Elicitation completed", message, defaults()).await
        }
        ENUMS => elicit(context, "Elicitation completed", "Choose", enums()).await,
        other => return Err(AnswerError::not_found(other)),
    };
    Ok(answer.unwrap_or_else(|error| {
        CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()
    }))
}

async fn sample(context: &Context, prompt: String) -> Result<CallToolResponse, AskError> {
    let question = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let answer = context.sample(question).await?;
    let content = answer.message.content.first().and_then(|content| content.as_text());
    let text = content.map_or("", |content| content.text.as_str());
    Ok(say(format!("LLM response: {text}")))
}

async fn elicit(
    context: &Context,
    title: &str,
    message: &str,
    schema: Value,
) -> Result<CallToolResponse, AskError> {
    let question: ElicitRequestParams =
        serde_json::from_value(json!({ "message": message, "requestedSchema": schema }))
            .expect("every form here is one the protocol allows");
    let answer = context.elicit(question).await?;
    let action = match answer.action {
        ElicitationAction::Accept => "accept",
        ElicitationAction::Decline => "decline",
        _ => "cancel",
    };
    let content = answer.content.unwrap_or_default();
    Ok(say(format!("{title}: action={action}, content={content}")))
}

fn user() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    })
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
        "required": [],
    })
}

fn enums() -> Value {
    let titled = |values: [&str; 3]| -> Vec<Value> {
        let names = ["value1", "value2", "value3"];
        names
            .iter()
            .zip(values)
            .map(|(name, title)| json!({ "const": name, "title": title }))
            .collect()
    };
    let options = json!({ "type": "string", "enum": ["option1", "option2", "option3"] });
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": options,
            "titledSingle": {
                "type": "string",
                "oneOf": titled(["First Option", "Second Option", "Third Option"]),
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": options },
            "titledMulti": {
                "type": "array",
                "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
            },
        },
        "required": [],
    })
}
