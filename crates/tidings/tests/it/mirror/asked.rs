//! Questions of a server to its client, in both eras: handlers answer, and without one it is declined.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tidings_mirror::events::Progress;
use tidings_mirror::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageResult,
    ElicitResult, ElicitationAction, InputRequest, InputRequiredResult, Root, Tool,
};
use tidings_mirror::{
    Asking, During, Event, Handlers, Mirror, Protocol, Question, StreamsTarget, Target,
};
use tidings_server::http::{self, HttpConfig};
use tidings_server::{Answer, AnswerError, Context, EditError, Hub, Shelf, Source, stdio};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{config, connect, next, within};

/// A tool that wants to know three things, and one that takes its time.
struct Curious;

fn questions() -> BTreeMap<String, Value> {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let message = json!({ "role": "user", "content": { "type": "text", "text": "2 + 2?" } });
    let elicit = json!({ "mode": "form", "message": "Who are you?", "requestedSchema": schema });
    let sample = json!({ "messages": [message], "maxTokens": 10 });
    BTreeMap::from([
        ("who".to_owned(), json!({ "method": "elicitation/create", "params": elicit })),
        ("what".to_owned(), json!({ "method": "sampling/createMessage", "params": sample })),
        ("where".to_owned(), json!({ "method": "roots/list" })),
    ])
}

fn said(value: &Value) -> Answer<CallToolResponse> {
    CallToolResult::success(vec![ContentBlock::text(value.to_string())]).into()
}

impl Curious {
    fn new(shelf: &Shelf) -> Result<Self, EditError> {
        shelf.add(Tool::new("ask", "asks three things", Map::new()))?;
        shelf.add(Tool::new("slow", "says how far it is", Map::new()))?;
        Ok(Self)
    }
}

impl Source for Curious {
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        if request.name == "slow" {
            for step in 1..=3 {
                context.progress(f64::from(step), Some(3.0), Some("working")).await;
            }
            return Ok(said(&json!("done")));
        }
        let params = |key: &str| questions()[key]["params"].clone();
        if !context.asks_by_answer() {
            let who = context.elicit(serde_json::from_value(params("who")).unwrap()).await;
            let what = context.sample(serde_json::from_value(params("what")).unwrap()).await;
            let place = context.roots().await;
            return Ok(said(&json!({
                "who": who.ok(), "what": what.ok(), "where": place.ok(),
            })));
        }
        if let Some(answers) = request.input_responses {
            assert_eq!(request.request_state.as_deref(), Some("as it was"));
            return Ok(said(&json!(answers)));
        }
        let asked: BTreeMap<String, InputRequest> = questions()
            .into_iter()
            .map(|(key, question)| (key, serde_json::from_value(question).unwrap()))
            .collect();
        Ok(InputRequiredResult::new(Some(asked), Some("as it was".to_owned())).into())
    }
}

async fn hub() -> Hub {
    let hub = Hub::new("curious", "1");
    hub.add("curious", |shelf| Curious::new(&shelf)).await.unwrap();
    hub
}

/// A mirror of a hub in this process, over a pipe.
async fn mirror(protocol: Protocol, handlers: Handlers) -> (Mirror, JoinSet<()>) {
    let hub = hub().await;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        stdio::serve(&hub, input, output, CancellationToken::new()).await.unwrap();
    });
    let mut config = config(protocol);
    config.handlers = handlers;
    let (input, output) = tokio::io::split(ours);
    let target = Target::Streams(StreamsTarget::new(input, output));
    (within(Mirror::connect_with(target, config)).await.unwrap(), tasks)
}

fn all() -> Handlers {
    Handlers::default()
        .elicit(async |_, _| {
            Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "name": "Ada" })))
        })
        .sample(async |_, _| {
            let answer = json!({
                "role": "assistant", "model": "none", "content": { "type": "text", "text": "four" },
            });
            serde_json::from_value::<CreateMessageResult>(answer).map_err(|error| error.to_string())
        })
        .roots(async |_| Ok(vec![Root::new("file:///garden")]))
}

async fn asked(mirror: &Mirror) -> Result<Value, String> {
    let outcome = within(mirror.call_tool("ask", Map::new())).await;
    let outcome = outcome.map_err(|error| error.to_string())?;
    let result = outcome.result.as_ref().map_err(ToString::to_string)?;
    Ok(serde_json::from_str(&result.content[0].as_text().unwrap().text).unwrap())
}

#[tokio::test]
async fn handlers_answer_what_a_server_asks() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (mirror, _tasks) = mirror(protocol.clone(), all()).await;
        let answers = asked(&mirror).await.unwrap();
        assert_eq!(answers["who"]["content"]["name"], "Ada", "{protocol:?}: {answers}");
        assert_eq!(answers["what"]["content"]["text"], "four", "{protocol:?}: {answers}");
        assert_eq!(
            answers["where"]["roots"][0]["uri"], "file:///garden",
            "{protocol:?}: {answers}"
        );
        mirror.close().await;
    }
}

/// Handlers that write down what they are told of each question.
fn noting() -> (Handlers, Arc<Mutex<Vec<Asking>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let (first, second, third) = (noted.clone(), noted.clone(), noted.clone());
    let handlers = Handlers::default()
        .elicit(move |_, asking| {
            first.lock().unwrap().push(asking);
            async { Ok(ElicitResult::new(ElicitationAction::Decline)) }
        })
        .sample(move |_, asking| {
            second.lock().unwrap().push(asking);
            async { Err("no model".to_owned()) }
        })
        .roots(move |asking| {
            third.lock().unwrap().push(asking);
            async { Ok(Vec::new()) }
        });
    (handlers, noted)
}

#[tokio::test]
async fn a_handler_knows_the_call_over_stdio_if_it_is_the_only_request() {
    let (handlers, noted) = noting();
    let (mirror, _tasks) = mirror(Protocol::Legacy, handlers).await;
    let tag = mirror.tag();
    within(mirror.call_tool_tagged(tag, "ask", Map::new())).await.unwrap();
    let noted = std::mem::take(&mut *noted.lock().unwrap());
    let call = During::Call { tool: "ask".into(), tag };
    assert_eq!(noted.len(), 3, "{noted:?}");
    for asking in &noted {
        assert!(matches!(asking.question, Question::Request(_)), "{asking:?}");
        assert_eq!(asking.during.as_ref(), Some(&call));
    }
    mirror.close().await;
}

#[tokio::test]
async fn a_handler_knows_the_call_and_the_key_of_a_round_of_input() {
    let (handlers, noted) = noting();
    let (mirror, _tasks) = mirror(Protocol::Modern, handlers).await;
    let tag = mirror.tag();
    // The sample fails, and with it the call; the questions before it were asked.
    let failed = within(mirror.call_tool_tagged(tag, "ask", Map::new())).await.unwrap_err();
    assert!(failed.to_string().contains("no model"), "{failed}");
    let noted = std::mem::take(&mut *noted.lock().unwrap());
    let during = Some(During::Call { tool: "ask".into(), tag });
    let expected = Asking::new(Question::Input("what".into()), during);
    assert_eq!(noted, [expected]);
    mirror.close().await;
}

#[tokio::test]
async fn a_handler_knows_which_of_several_calls_asks_over_http() {
    let hub = hub().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = http::endpoint(listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let stop = CancellationToken::new();
        http::serve(&hub, listener, HttpConfig::default(), stop).await.unwrap();
    });
    let (handlers, noted) = noting();
    let mut config = config(Protocol::Legacy);
    config.handlers = handlers;
    let (mirror, _) = connect(&url, config).await;
    let tags = [mirror.tag(), mirror.tag()];
    let calls = tags.map(|tag| mirror.call_tool_tagged(tag, "ask", Map::new()));
    for outcome in within(futures_util::future::join_all(calls)).await {
        outcome.unwrap();
    }
    let noted = std::mem::take(&mut *noted.lock().unwrap());
    for tag in tags {
        let call = During::Call { tool: "ask".into(), tag };
        let of_it = noted.iter().filter(|asking| asking.during.as_ref() == Some(&call));
        assert_eq!(of_it.count(), 3, "{noted:?}");
    }
    mirror.close().await;
}

#[tokio::test]
async fn what_nobody_answers_is_declined_and_the_connection_lives() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (mirror, _tasks) = mirror(protocol.clone(), Handlers::default()).await;
        match asked(&mirror).await {
            Ok(answers) => {
                assert_eq!(protocol, Protocol::Legacy);
                assert_eq!(
                    answers,
                    json!({ "who": { "action": "decline" }, "what": null, "where": null })
                );
            }
            Err(error) => {
                assert_eq!(protocol, Protocol::Modern);
                assert!(error.contains("could not be answered"), "{error}");
            }
        }
        within(mirror.refresh(&tidings_mirror::List::ALL)).await.unwrap();
        mirror.close().await;
    }
}

#[tokio::test]
async fn progress_names_the_call_it_belongs_to() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (mirror, _tasks) = mirror(protocol, Handlers::default()).await;
        let mut events = mirror.events();
        let tag = mirror.tag();
        within(mirror.call_tool_tagged(tag, "slow", Map::new())).await.unwrap();
        let mut last = None;
        while last != Some(3.0) {
            let progress: Progress = next(&mut events, |event| match event {
                Event::Progress(progress) => Some(progress),
                _ => None,
            })
            .await;
            assert_eq!(progress.request, Some(tag));
            last = Some(progress.progress);
        }
        mirror.close().await;
    }
}
