//! Items that answer for themselves, asked as the handler asks them.

use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_core::ResourceUri;

use super::*;
use crate::answer::{Answer, AnswerError, CompletionOf, Completions, Contents};
use crate::catalog::Kind;
use crate::context::Context;
use crate::hub::Hub;
use crate::labels::Labels;
use crate::shelf::Shelf;

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Add {
    /// The first number.
    left: i64,
    right: Vec<i64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Sum {
    sum: i64,
}

struct World {
    hub: Hub,
    shelf: Shelf,
}

impl World {
    fn new() -> Self {
        let hub = Hub::new("test", "1");
        let shelf = hub.source("test").unwrap();
        Self { hub, shelf }
    }

    fn context(&self) -> Context {
        Context::of_hub(self.hub.pipeline().clone())
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<Value, AnswerError> {
        let (answerer, _) =
            self.hub.pipeline().catalog.find(Kind::Tool, name, &Labels::NONE).unwrap();
        let request = CallToolRequestParams::new(name.to_owned())
            .with_arguments(serde_json::from_value(arguments).unwrap());
        let Answer::Typed(CallToolResponse::Complete(result)) =
            answerer.call(request, &self.context()).await?
        else {
            panic!("a result")
        };
        Ok(serde_json::to_value(result).unwrap())
    }

    async fn read(&self, uri: &str) -> Result<Contents, AnswerError> {
        let uri = ResourceUri::parse(uri).unwrap();
        let route = self.hub.pipeline().catalog.route(&uri, &Labels::NONE).unwrap();
        route.answerer.read(&uri, &route.variables, &self.context()).await
    }

    async fn text(&self, uri: &str) -> String {
        let contents = serde_json::to_value(self.read(uri).await.unwrap().parts).unwrap();
        contents[0]["text"].as_str().unwrap_or_else(|| panic!("{contents}")).to_owned()
    }

    async fn complete(&self, template: &str, argument: &str, value: &str) -> Completions {
        let (answerer, _) =
            self.hub.pipeline().catalog.find(Kind::Template, template, &Labels::NONE).unwrap();
        let of = CompletionOf::Template(template.to_owned());
        let completion = Completion::new(of, argument.to_owned(), value.to_owned());
        answerer.complete(completion, &self.context()).await.unwrap()
    }
}

#[tokio::test]
async fn a_typed_tool_shows_its_schemas_and_answers_with_both_forms() {
    let world = World::new();
    let add = |add: Add| Json(Sum { sum: add.left + add.right.iter().sum::<i64>() });
    world.shelf.tool("add", "Adds numbers", add).unwrap();
    let tool = world.hub.pipeline().catalog.tool("add", &Labels::NONE).unwrap();
    let input = json!({
        "type": "object",
        "properties": {
            "left": { "type": "integer", "format": "int64", "description": "The first number." },
            "right": { "type": "array", "items": { "type": "integer", "format": "int64" } },
        },
        "required": ["left", "right"],
    });
    assert_eq!(Value::Object((*tool.input_schema).clone()), input);
    let output = tool.output_schema.as_ref().unwrap();
    assert_eq!(output["properties"]["sum"]["type"], "integer");
    let result = world.call("add", json!({ "left": 1, "right": [2, 3] })).await.unwrap();
    assert_eq!(result["structuredContent"], json!({ "sum": 6 }));
    assert_eq!(result["content"][0]["text"], r#"{"sum":6}"#);
}

#[tokio::test]
async fn arguments_that_do_not_fit_name_the_field() {
    let world = World::new();
    world.shelf.tool("add", "Adds numbers", |_: Add| "added").unwrap();
    for (arguments, words) in [
        (json!({ "left": "one", "right": [] }), "`left`: invalid type: string \"one\""),
        (json!({ "left": 1, "right": [2, true] }), "`right[1]`: invalid type: boolean `true`"),
        (json!({ "left": 1 }), "missing field `right`"),
    ] {
        let result = world.call("add", arguments).await.unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && text.starts_with(words), "{text}");
    }
}

#[tokio::test]
async fn a_tool_may_be_async_take_the_context_and_fail_with_anything() {
    let world = World::new();
    let shelf = &world.shelf;
    shelf.tool("nothing", "Takes nothing", || ()).unwrap();
    shelf.tool("who", "Says who asks", |context: Context| context.caller()).unwrap();
    shelf
        .tool("both", "Takes both", async |add: Add, context: Context| {
            Ok::<_, String>(format!("{} of {}", add.left, context.caller()))
        })
        .unwrap();
    shelf.tool("fails", "Fails", || Err::<(), _>("not today")).unwrap();
    let refuse = || Err::<(), _>(AnswerError::Unavailable("later".to_owned()));
    shelf.tool("refuses", "Refuses", refuse).unwrap();
    let text = |result: Value| result["content"][0]["text"].clone();
    assert_eq!(world.call("nothing", json!({ "any": 1 })).await.unwrap()["content"], json!([]));
    assert_eq!(text(world.call("who", json!({})).await.unwrap()), "hub");
    let both = world.call("both", json!({ "left": 4, "right": [] })).await.unwrap();
    assert_eq!(text(both), "4 of hub");
    let failed = world.call("fails", json!({})).await.unwrap();
    assert_eq!((&failed["isError"], text(failed.clone())), (&json!(true), json!("not today")));
    let refused = world.call("refuses", json!({})).await.unwrap_err();
    assert_eq!(refused, AnswerError::Unavailable("later".to_owned()));
}

#[tokio::test]
async fn a_tool_that_panics_is_an_error_and_no_more() {
    let world = World::new();
    let broken = |add: Add| -> String { panic!("{} is too many", add.left) };
    world.shelf.tool("broken", "Panics", broken).unwrap();
    let error = world.call("broken", json!({ "left": 1, "right": [] })).await.unwrap_err();
    assert!(matches!(error, AnswerError::Failed(_)), "{error}");
}

#[tokio::test]
async fn a_template_reads_with_its_variables_typed() {
    let world = World::new();
    let page = |(shelf, page): (String, u32)| (page < 10).then(|| format!("{shelf} {page}"));
    world.shelf.template("book://{shelf}/{page}", "page", page).unwrap();
    world.shelf.resource("book://all", "all books", || Json(json!([1, 2]))).unwrap();
    assert_eq!(world.text("book://top/3").await, "top 3");
    assert_eq!(world.text("book://all").await, "[1,2]");
    let missing = world.read("book://top/30").await.unwrap_err();
    assert_eq!(missing, AnswerError::not_found("book://top/30"));
    let malformed = world.read("book://top/x").await.unwrap_err();
    assert!(matches!(malformed, AnswerError::Invalid { .. }), "{malformed:?}");
}

#[tokio::test]
async fn a_template_completes_its_variables() {
    let world = World::new();
    let template = Offer::template("book://{shelf}", "shelf", |shelf: String| shelf)
        .complete("shelf", |completion: Completion| {
            Completions::of_total(vec![format!("{}p", completion.value)], 7)
        });
    world.shelf.add(template).unwrap();
    let completions = world.complete("book://{shelf}", "shelf", "to").await;
    assert_eq!(completions, Completions::of_total(vec!["top".to_owned()], 7));
    assert!(completions.has_more);
    assert_eq!(world.complete("book://{shelf}", "other", "to").await, Completions::default());
}

#[tokio::test]
async fn a_prompt_has_the_fields_of_its_input() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(crate = "rmcp::schemars")]
    struct Review {
        /// What to look at.
        file: String,
        depth: Option<u8>,
    }
    let world = World::new();
    let review = |it: Review| format!("Review {} to depth {:?}", it.file, it.depth);
    world.shelf.prompt("review", "Asks for a review", review).unwrap();
    let (answerer, stored) =
        world.hub.pipeline().catalog.find(Kind::Prompt, "review", &Labels::NONE).unwrap();
    let crate::catalog::Stored::Prompt(prompt) = stored else { panic!("a prompt") };
    let arguments = serde_json::to_value(&prompt.arguments).unwrap();
    let expected = json!([
        { "name": "depth", "required": false },
        { "name": "file", "description": "What to look at.", "required": true },
    ]);
    assert_eq!(arguments, expected);
    let mut request = GetPromptRequestParams::new("review");
    request.arguments = serde_json::from_value(json!({ "file": "a.rs", "depth": "3" })).ok();
    let filled = answerer.prompt(request, &world.context()).await.unwrap();
    let Answer::Typed(GetPromptResponse::Complete(filled)) = filled else { panic!("messages") };
    let filled = serde_json::to_value(filled).unwrap();
    assert_eq!(filled["messages"][0]["content"]["text"], "Review a.rs to depth Some(3)");
}

#[tokio::test]
async fn what_is_replaced_is_edited_as_little_as_possible() {
    let world = World::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let resource = |name: &str, title: &str| {
        let asked = asked.clone();
        Offer::resource(format!("x://{name}"), name, move || {
            asked.fetch_add(1, Ordering::SeqCst);
            "text"
        })
        .title(title)
    };
    let fingerprint =
        || world.hub.pipeline().catalog.listing(Kind::Resource, &Labels::NONE).fingerprint;
    let keys = || -> Vec<String> {
        let listing = world.hub.pipeline().catalog.listing(Kind::Resource, &Labels::NONE);
        listing.items.iter().map(|item| item.key().to_owned()).collect()
    };
    world.shelf.tool("kept", "Is of another kind", || ()).unwrap();
    world.shelf.replace([resource("a", "A"), resource("b", "B")]).unwrap();
    let before = fingerprint();
    world.shelf.replace([resource("b", "B"), resource("a", "A")]).unwrap();
    assert_eq!(fingerprint(), before, "it is as it was");
    world.shelf.replace([resource("b", "Bee"), resource("c", "C")]).unwrap();
    assert_eq!(keys(), ["x://b", "x://c"]);
    assert!(world.hub.pipeline().catalog.tool("kept", &Labels::NONE).is_some());
    assert_eq!((world.text("x://c").await.as_str(), asked.load(Ordering::SeqCst)), ("text", 1));
    // One that cannot be offered costs no other.
    let other = world.hub.source("other").unwrap();
    let refused =
        other.replace([resource("c", "C"), resource("no uri", "X"), resource("d", "D")]).unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(keys(), ["x://b", "x://c", "x://d"]);
    other.replace(Vec::<Resource>::new()).unwrap();
    assert_eq!(keys(), ["x://b", "x://c"], "what another source has stays");
}
