//! Rounds of input that the user of the library drives, one request at a time.

use serde_json::{Value, json};
use tidings_mirror::{Answers, Handlers, Mirror, NO_ARGUMENTS, Once, Protocol, Round, Target};

use super::{config, within};
use crate::support::lines::{Lines, Say, decent};

/// A modern server that asks who is there before it gives anything.
fn asking(message: &Value, say: &Say) {
    let method = message["method"].as_str().unwrap_or_default();
    let answers = &message["params"]["inputResponses"];
    let greeting = format!("hello {}", answers["who"]["content"]["name"].as_str().unwrap_or("?"));
    let result = match method {
        "server/discover" => {
            let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities })
        }
        "tools/call" | "resources/read" | "prompts/get" if answers.is_null() => {
            let schema =
                json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            let params = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
            let who = json!({ "method": "elicitation/create", "params": params });
            json!({
                "resultType": "input_required", "inputRequests": { "who": who },
                "requestState": "sealed",
            })
        }
        _ if message["params"]["requestState"] != "sealed" => {
            return decent(message, say, &json!({}));
        }
        "tools/call" => json!({ "content": [{ "type": "text", "text": greeting }] }),
        "resources/read" => json!({ "contents": [{ "uri": "a:b", "text": greeting }] }),
        _ => {
            let content = json!({ "type": "text", "text": greeting });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
    };
    let mut complete = result;
    if complete.get("resultType").is_none() {
        complete["resultType"] = "complete".into();
    }
    say.result(message, &complete);
}

async fn open(target: Target) -> Mirror {
    let mut config = config(Protocol::Modern);
    config.handlers = Handlers::default().declare_all();
    within(Mirror::connect_with(target, config)).await.unwrap()
}

/// The answers to the one question of a round.
#[track_caller]
fn answered<T: std::fmt::Debug>(once: Once<T>) -> Answers {
    let Once::Asked(round) = once else { panic!("nothing was asked: {once:?}") };
    let round: Round = round;
    assert_eq!(round.questions.keys().collect::<Vec<_>>(), ["who"]);
    round.answers().with("who", json!({ "action": "accept", "content": { "name": "Ada" } }))
}

#[tokio::test]
async fn a_call_a_read_and_a_prompt_can_be_driven_by_hand() {
    let (server, target) = Lines::start(asking);
    let mirror = open(target).await;
    let asked = within(mirror.call_tool_once("greet", [("a", 1)], Answers::none())).await.unwrap();
    assert!(mirror.cache().tool_result("greet").is_none(), "it is not done yet");
    let done = mirror.call_tool_once("greet", [("a", 1)], answered(asked));
    let outcome = within(done).await.unwrap().done().unwrap();
    assert_eq!(outcome.text(), "hello Ada");
    assert!(mirror.cache().tool_result("greet").is_some());

    let asked = within(mirror.read_resource_once("a:b", Answers::none())).await.unwrap();
    assert!(mirror.cache().resource("a:b").is_none());
    let read = within(mirror.read_resource_once("a:b", answered(asked))).await.unwrap();
    assert_eq!(read.done().unwrap().text(), "hello Ada");

    let asked = within(mirror.get_prompt_once("p", NO_ARGUMENTS, Answers::none())).await.unwrap();
    let filled = mirror.get_prompt_once("p", NO_ARGUMENTS, answered(asked));
    assert_eq!(within(filled).await.unwrap().done().unwrap().text(), "hello Ada");
    assert_eq!(server.asked("tools/call"), 2, "each round is one request");
}

#[tokio::test]
async fn what_is_driven_by_hand_is_declared_to_the_server() {
    let (server, target) = Lines::start(asking);
    let mirror = open(target).await;
    within(mirror.call_tool_once("greet", NO_ARGUMENTS, Answers::none())).await.unwrap();
    let called = server.messages("tools/call");
    let declared = &called[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    for capability in ["elicitation", "sampling", "roots"] {
        assert!(declared[capability].is_object(), "{capability}: {declared}");
    }
    let failed = within(mirror.call_tool("greet", NO_ARGUMENTS)).await;
    let decline = failed.unwrap();
    assert_eq!(decline.text(), "hello ?", "without a handler the question is declined");
}
