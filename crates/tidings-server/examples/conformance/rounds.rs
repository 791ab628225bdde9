//! Tools and a prompt that ask for input in their result, as modern revisions do: the client
//! repeats the request with the answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidings_server::model::{CallToolRequestParams, CallToolResponse, ClientCapabilities};
use tidings_server::model::{ElicitationCapability, InputRequest, InputRequiredResult};
use tidings_server::model::{InputResponses, RootsCapabilities, SamplingCapability};
use tidings_server::{AnswerError, Context, EditError, Shelf};

use crate::{bare, say};

pub(crate) const PROMPT: &str = "test_input_required_result_prompt";
const ELICITATION: &str = "test_input_required_result_elicitation";
const SAMPLING: &str = "test_input_required_result_sampling";
const ROOTS: &str = "test_input_required_result_list_roots";
const STATE: &str = "test_input_required_result_request_state";
const SEVERAL: &str = "test_input_required_result_multiple_inputs";
const STEPS: &str = "test_input_required_result_multi_round";
const TAMPERED: &str = "test_input_required_result_tampered_state";
const CAPABILITIES: &str = "test_input_required_result_capabilities";
const STREAMING: &str = "test_streaming_elicitation";

const TOOLS: [(&str, &str); 9] = [
    (ELICITATION, "Asks for a name"),
    (SAMPLING, "Asks the client's model"),
    (ROOTS, "Asks for the client's roots"),
    (STATE, "Asks for a confirmation and has the client keep its state"),
    (SEVERAL, "Asks for three things at once"),
    (STEPS, "Asks for two things, one after the other"),
    (TAMPERED, "Refuses a state that is not its own"),
    (CAPABILITIES, "Asks for what the client can do"),
    (STREAMING, "Asks for a name by its answer and not on the stream"),
];

pub(crate) fn offer(shelf: &Shelf) -> Result<(), EditError> {
    for (name, description) in TOOLS {
        shelf.add(bare(name, description))?;
    }
    Ok(())
}

/// Answers in rounds. The only state is the key that signs the state the client carries.
pub(crate) struct Rounds {
    key: [u8; 32],
}

impl Rounds {
    pub(crate) fn new() -> Self {
        let mut key = [0; 32];
        key[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        key[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
        Self { key }
    }

    pub(crate) fn knows(name: &str) -> bool {
        TOOLS.iter().any(|(tool, _)| *tool == name)
    }

    pub(crate) fn call(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Result<CallToolResponse, AnswerError> {
        let name = request.name.as_ref();
        let state = match &request.request_state {
            Some(sealed) => Some(self.open(name, sealed)?),
            None => None,
        };
        let given = Given(request.input_responses.as_ref());
        let answer = match name {
            ELICITATION | STREAMING => {
                given.form("user_name", "name").map(|name| format!("Hello, {}!", plain(name)))
            }
            SAMPLING => given.sampled("capital_question").map(str::to_owned),
            ROOTS => given.roots("client_roots").map(|roots| format!("Roots: {roots}")),
            STATE | TAMPERED => {
                let confirmed = state.and(given.form("confirm", "ok"));
                confirmed.map(|ok| format!("state-ok, confirmed: {ok}"))
            }
            SEVERAL => state.and_then(|_| several(given)),
            STEPS => return self.steps(state, given, context),
            CAPABILITIES => offered(given),
            other => return Err(AnswerError::not_found(other)),
        };
        if let Some(answer) = answer {
            return Ok(say(answer));
        }
        let sealed = [STATE, TAMPERED, SEVERAL].contains(&name).then(|| self.seal(name, "asked"));
        Ok(ask(context, questions(name, context), sealed)?.into())
    }

    /// First the name, then the colour; the state carries the name meanwhile.
    fn steps(
        &self,
        state: Option<&str>,
        given: Given<'_>,
        context: &Context,
    ) -> Result<CallToolResponse, AnswerError> {
        const NAMED: &str = "named:";
        let name = match state.and_then(|state| state.strip_prefix(NAMED)) {
            Some(name) => Some(name.to_owned()),
            None => state.and(given.form("step1", "name")).map(plain),
        };
        let Some(name) = name else {
            let question = form("Step 1: What is your name?", "name", "string");
            let sealed = self.seal(STEPS, "asked");
            return Ok(ask(context, vec![("step1", question)], Some(sealed))?.into());
        };
        if let Some(color) = given.form("step2", "color") {
            return Ok(say(format!("{name} likes {}", plain(color))));
        }
        let question = form("Step 2: What is your favorite color?", "color", "string");
        let sealed = self.seal(STEPS, &format!("{NAMED}{name}"));
        Ok(ask(context, vec![("step2", question)], Some(sealed))?.into())
    }

    /// The state as the client carries it: readable, but signed by us for this tool.
    fn seal(&self, tool: &str, state: &str) -> String {
        format!("{}.{state}", self.mark(tool, state).to_hex())
    }

    fn open<'a>(&self, tool: &str, sealed: &'a str) -> Result<&'a str, AnswerError> {
        let opened = sealed.split_once('.').and_then(|(mark, state)| {
            // A comparison in constant time.
            let genuine = blake3::Hash::from_hex(mark).is_ok_and(|m| m == self.mark(tool, state));
            genuine.then_some(state)
        });
        let details = "it is not a state this tool gave out";
        opened.ok_or_else(|| AnswerError::invalid("requestState", sealed, details))
    }

    fn mark(&self, tool: &str, state: &str) -> blake3::Hash {
        // No tool's name contains a line break, so the two parts cannot be confused.
        blake3::keyed_hash(&self.key, format!("{tool}\n{state}").as_bytes())
    }
}

/// The context that the client gave the prompt.
pub(crate) fn prompt_context(responses: Option<&InputResponses>) -> Option<String> {
    Given(responses).form("user_context", "context").map(plain)
}

/// The question of the prompt.
pub(crate) fn ask_for_context(context: &Context) -> Result<InputRequiredResult, AnswerError> {
    let question = form("What context should the prompt use?", "context", "string");
    ask(context, vec![("user_context", question)], None)
}

/// The client's answers so far. An answer that does not match its question is ignored.
#[derive(Clone, Copy)]
struct Given<'a>(Option<&'a InputResponses>);

impl<'a> Given<'a> {
    fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key)
    }

    /// The field of an accepted form.
    fn form(self, key: &str, field: &str) -> Option<&'a Value> {
        let answer = self.get(key)?;
        (answer.get("action")? == "accept").then(|| answer.get("content")?.get(field))?
    }

    fn sampled(self, key: &str) -> Option<&'a str> {
        self.get(key)?.get("content")?.get("text")?.as_str()
    }

    fn roots(self, key: &str) -> Option<String> {
        let roots = self.get(key)?.get("roots")?.as_array()?;
        let uris: Option<Vec<_>> = roots.iter().map(|root| root.get("uri")?.as_str()).collect();
        Some(uris?.join(", "))
    }
}

fn several(given: Given<'_>) -> Option<String> {
    let name = plain(given.form("user_name", "name")?);
    let (greeting, roots) = (given.sampled("greeting")?, given.roots("client_roots")?);
    Some(format!("{greeting} to {name} at {roots}"))
}

/// The answer to any of the possible questions.
fn offered(given: Given<'_>) -> Option<String> {
    let sampled = given.sampled("greeting").map(str::to_owned);
    let named = || given.form("user_name", "name").map(plain);
    sampled.or_else(named).or_else(|| given.roots("client_roots"))
}

fn questions(tool: &str, context: &Context) -> Vec<(&'static str, InputRequest)> {
    let name = ("user_name", form("What is your name?", "name", "string"));
    let greeting = ("greeting", sampling("Generate a greeting", 50));
    let roots = ("client_roots", input("roots/list", &json!({})));
    match tool {
        SAMPLING => vec![("capital_question", sampling("What is the capital of France?", 100))],
        ROOTS => vec![roots],
        STATE | TAMPERED => vec![("confirm", form("Please confirm", "ok", "boolean"))],
        SEVERAL => vec![name, greeting, roots],
        CAPABILITIES => {
            let can = context.client_capabilities();
            let all = [name, greeting, roots];
            let possible = all.into_iter().filter(|(_, request)| lacking(request, &can).is_none());
            possible.collect()
        }
        _ => vec![name],
    }
}

/// Asks for the input, if the client can provide it.
fn ask(
    context: &Context,
    questions: Vec<(&'static str, InputRequest)>,
    state: Option<String>,
) -> Result<InputRequiredResult, AnswerError> {
    let can = context.client_capabilities();
    if let Some(needed) = questions.iter().find_map(|(_, request)| lacking(request, &can)) {
        return Err(AnswerError::Capability(Box::new(needed)));
    }
    let questions = questions.into_iter().map(|(key, request)| (key.to_owned(), request));
    let questions: BTreeMap<_, _> = questions.collect();
    Ok(InputRequiredResult::new(Some(questions), state))
}

/// The capability that a request needs and the client lacks.
fn lacking(request: &InputRequest, can: &ClientCapabilities) -> Option<ClientCapabilities> {
    let mut needed = ClientCapabilities::default();
    let has = match request {
        InputRequest::CreateMessage(_) => {
            needed.sampling = Some(SamplingCapability::default());
            can.sampling.is_some()
        }
        InputRequest::Elicitation(_) => {
            needed.elicitation = Some(ElicitationCapability::default());
            can.elicitation.is_some()
        }
        _ => {
            needed.roots = Some(RootsCapabilities::default());
            can.roots.is_some()
        }
    };
    (!has).then_some(needed)
}

fn form(message: &str, field: &str, kind: &str) -> InputRequest {
    let schema = json!({
        "type": "object", "properties": { field: { "type": kind } }, "required": [field],
    });
    input("elicitation/create", &json!({ "message": message, "requestedSchema": schema }))
}

fn sampling(prompt: &str, max_tokens: u32) -> InputRequest {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    input("sampling/createMessage", &json!({ "messages": [message], "maxTokens": max_tokens }))
}

fn input(method: &str, params: &Value) -> InputRequest {
    serde_json::from_value(json!({ "method": method, "params": params }))
        .expect("every question here is one the protocol allows")
}

/// A value as text, without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
