//! The client that the official conformance suite judges: it does what each scenario asks for.
//!
//! The suite starts it as `conformance_client [--protocol auto|legacy|modern] URL`, and names the
//! scenario in the environment.
#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::error::Error;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tidings_mirror::model::{
    ContentBlock, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    JsonObject, Root, SamplingMessage,
};
use tidings_mirror::{Config, Handlers, HttpTarget, Mirror, NO_ARGUMENTS, Protocol, Target};

type Failure = Box<dyn Error + Send + Sync>;

/// How many messages are shown when a scenario fails.
const HISTORY: usize = 100;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (protocol, url) = arguments()?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let here: Arc<OnceLock<Mirror>> = Arc::default();
    let mut config = Config::new("tidings-conformance", env!("CARGO_PKG_VERSION"));
    config.protocol = protocol;
    config.reconnect = None;
    config.history = HISTORY;
    config.handlers = handlers(&here, scenario == "sep-2322-client-request-state");
    let mirror = Mirror::connect_with(Target::Http(HttpTarget::new(url)), config).await?;
    let _ = here.set(mirror.clone());
    let played = play(&mirror, &scenario).await;
    if played.is_err() {
        for message in mirror.history() {
            eprintln!("{:?} {}", message.direction, message.text());
        }
    }
    mirror.close().await;
    played
}

fn arguments() -> Result<(Protocol, String), Failure> {
    let mut words = std::env::args().skip(1);
    let mut protocol = Protocol::Auto;
    let mut word = words.next();
    if word.as_deref() == Some("--protocol") {
        protocol = match words.next().as_deref() {
            Some("auto") => Protocol::Auto,
            Some("legacy") => Protocol::Legacy,
            Some("modern") => Protocol::Modern,
            _ => return Err("--protocol wants auto, legacy or modern".into()),
        };
        word = words.next();
    }
    Ok((protocol, word.ok_or("the URL of a server is missing")?))
}

/// Answers every question. With `aside`, another tool is called before the answer is given: what a
/// server asks for one request must not leak into another.
fn handlers(here: &Arc<OnceLock<Mirror>>, aside: bool) -> Handlers {
    let here = here.clone();
    Handlers::default()
        .elicit(move |question, _| {
            let here = here.clone();
            async move {
                if aside {
                    let mirror = here.get().ok_or("asked before the connection was made")?;
                    let outcome = mirror.call_tool("test_mrtr_unrelated", JsonObject::new()).await;
                    outcome.map_err(|error| error.to_string())?;
                }
                Ok(accept(question))
            }
        })
        .sample(|_, _| async {
            Ok(CreateMessageResult::new(
                SamplingMessage::assistant_text("Hello"),
                "none".to_owned(),
            ))
        })
        .roots(|_| async { Ok(vec![Root::new("file:///nowhere")]) })
}

/// The answer of a user who changes nothing in the form.
fn accept(question: ElicitRequestParams) -> ElicitResult {
    let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = question else {
        return ElicitResult::new(ElicitationAction::Decline);
    };
    let schema = serde_json::to_value(requested_schema).unwrap_or_default();
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let content: JsonObject =
        fields.into_iter().map(|(name, field)| (name, fill(&field))).collect();
    ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
}

/// The default of a field, or else anything of its type.
fn fill(field: &Value) -> Value {
    match (&field["default"], field["type"].as_str()) {
        (Value::Null, Some("boolean")) => json!(true),
        (Value::Null, Some("number" | "integer")) => json!(1),
        (Value::Null, _) => json!("text"),
        (default, _) => default.clone(),
    }
}

async fn play(mirror: &Mirror, scenario: &str) -> Result<(), Failure> {
    match scenario {
        "initialize" => Ok(()),
        "tools_call" => expect(mirror, "add_numbers", json!({"a": 2, "b": 3}), "is 5").await,
        "elicitation-sep1034-client-defaults" => {
            expect(mirror, "test_client_elicitation_defaults", json!({}), "completed").await
        }
        "sse-retry" => expect(mirror, "test_reconnection", json!({}), "completed").await,
        "request-metadata" => {
            // There is no such tool, and the server takes it: an ordinary request like any other.
            let _ = mirror.call_tool("any", JsonObject::new()).await;
            Ok(())
        }
        "sep-2322-client-request-state" => {
            expect(mirror, "test_mrtr_echo_state", json!({}), "echo-state-ok").await?;
            expect(mirror, "test_mrtr_no_state", json!({}), "no-state-ok").await?;
            expect(mirror, "test_mrtr_no_result_type", json!({}), "no-result-type-test-ok").await
        }
        "http-standard-headers" => use_everything(mirror).await,
        "http-custom-headers" => call_as_told(mirror).await,
        "http-invalid-tool-headers" => {
            for tool in mirror.tools().iter() {
                let fields = tool.input_schema.get("properties").and_then(Value::as_object);
                let filled =
                    fields.into_iter().flatten().map(|(name, field)| (name.clone(), fill(field)));
                call(mirror, &tool.name, filled.collect()).await?;
            }
            Ok(())
        }
        "json-schema-ref-no-deref" => {
            // The server lists this tool and does not have it. Trying makes the mirror look at the
            // schema, which points at an address that must not be fetched.
            let values = json!({"id": "ada", "profile": {"displayName": "Ada"}});
            match mirror.call_tool("lookup_user", object(values)).await {
                Err(error) if error.refusal().is_some() => Ok(()),
                other => Err(format!("the call went otherwise than refused: {other:?}").into()),
            }
        }
        "json-schema-2020-12-preservation" => {
            let tools = mirror.tools();
            let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = &tool.ok_or("the tool is not listed")?.input_schema;
            expect(mirror, "json_schema_echo", json!({"schema": schema}), "echoed").await
        }
        other => Err(format!("nobody taught this client the scenario `{other}`").into()),
    }
}

/// Calls, reads and fills in all there is.
async fn use_everything(mirror: &Mirror) -> Result<(), Failure> {
    for tool in mirror.tools().iter() {
        call(mirror, &tool.name, JsonObject::new()).await?;
    }
    for resource in mirror.resources().iter() {
        mirror.read_resource(&resource.uri).await?;
    }
    for prompt in mirror.prompts().iter() {
        mirror.get_prompt(&prompt.name, NO_ARGUMENTS).await?;
    }
    Ok(())
}

/// Makes the calls that the suite hands over.
async fn call_as_told(mirror: &Mirror) -> Result<(), Failure> {
    let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
    for wanted in context["toolCalls"].as_array().ok_or("the context has no calls")? {
        let name = wanted["name"].as_str().ok_or("a call has no name")?;
        call(mirror, name, object(wanted["arguments"].clone())).await?;
    }
    Ok(())
}

/// Calls a tool, which must answer with this text.
async fn expect(mirror: &Mirror, tool: &str, values: Value, text: &str) -> Result<(), Failure> {
    if !mirror.tools().iter().any(|listed| listed.name == tool) {
        return Err(format!("`{tool}` is not listed").into());
    }
    let said = call(mirror, tool, object(values)).await?;
    if said.contains(text) { Ok(()) } else { Err(format!("`{tool}` said: {said}").into()) }
}

async fn call(mirror: &Mirror, tool: &str, values: JsonObject) -> Result<String, Failure> {
    let outcome = mirror.call_tool(tool, values).await?;
    let result = outcome.result.as_ref().map_err(ToString::to_string)?;
    let texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    Ok(texts.collect())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
