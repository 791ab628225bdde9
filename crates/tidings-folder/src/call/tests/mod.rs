//! Tests of whole calls of real scripts, without a client.

mod live;

use std::time::Duration;

use serde_json::json;
use tidings_server::model::{ContentBlock, ResourceContents};

use super::*;
use crate::offer::Patience;
use crate::testing::{Fixture, schema_of};

fn request(arguments: &Value) -> CallRequest {
    CallRequest {
        arguments: arguments.to_string(),
        meta: "{}".to_owned(),
        progress_token: None,
        roots: Vec::new(),
    }
}

async fn try_call(fixture: &Fixture, script: &ToolScript, request: CallRequest) -> CallToolResult {
    let workshop = fixture.workshop();
    let result = answer(&workshop, script, request).await.unwrap();
    let left = std::fs::read_dir(&workshop.scratch).unwrap().count();
    assert_eq!(left, 0, "private files are left");
    result
}

async fn answer(
    workshop: &Workshop,
    script: &ToolScript,
    request: CallRequest,
) -> Result<CallToolResult, AnswerError> {
    perform(workshop, script, request, |_| std::future::ready(())).await
}

async fn run(text: &str) -> CallToolResult {
    let fixture = Fixture::new();
    try_call(&fixture, &fixture.tool(text), request(&json!({}))).await
}

fn text(result: &CallToolResult) -> &str {
    match result.content.as_slice() {
        [ContentBlock::Text(text)] => &text.text,
        other => panic!("{other:?}"),
    }
}

fn failed(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    text(result)
}

fn fine(result: &CallToolResult) -> &str {
    assert_ne!(result.is_error, Some(true), "{result:?}");
    text(result)
}

#[tokio::test]
async fn what_is_printed_is_the_text_less_one_line_end() {
    assert_eq!(fine(&run("echo hello; echo").await), "hello\n");
    assert_eq!(fine(&run("printf hello").await), "hello");
    assert_eq!(fine(&run("true").await), "");
    assert_eq!(fine(&run("echo '{\"half\": '").await), "{\"half\": ");
    assert_eq!(fine(&run("echo '{\"content\": [1]}'").await), "{\"content\": [1]}");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_an_error() {
    let result = run("printf 'abc\\377'").await;
    assert_eq!(failed(&result), "`try` printed invalid UTF-8 at byte 3");
}

#[tokio::test]
async fn a_whole_result_passes_through() {
    let printed = r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1},"isError":false,"_meta":{"c":2}}"#;
    let result = run(&format!("echo '{printed}'")).await;
    let mut expected: CallToolResult = serde_json::from_str(printed).unwrap();
    expected.result_type = result.result_type.clone();
    assert_eq!(result, expected);
    let failing = run(&format!("echo '{printed}'; exit 1")).await;
    assert_eq!(failed(&failing), "a");
}

#[tokio::test]
async fn a_failure_says_how_and_why() {
    let result = run("echo out; echo err >&2; exit 3").await;
    assert_eq!(failed(&result), "`try` failed with exit code 3:\nerr");
    assert_eq!(failed(&run("echo out; exit 3").await), "`try` failed with exit code 3:\nout");
    assert_eq!(failed(&run("exit 3").await), "`try` failed with exit code 3");
    let result = run("kill -KILL $$").await;
    assert_eq!(failed(&result), "`try` was ended by SIGKILL (signal 9)");
}

#[tokio::test]
async fn arguments_are_on_the_input_and_in_a_variable() {
    let result = run_with("cat; printf ' %s' \"$MCP_TOOL_ARGS_JSON\"", json!({ "a": "ü\n" })).await;
    assert_eq!(fine(&result), r#"{"a":"ü\n"} {"a":"ü\n"}"#);
}

async fn run_with(text: &str, arguments: Value) -> CallToolResult {
    let fixture = Fixture::new();
    try_call(&fixture, &fixture.tool(text), request(&arguments)).await
}

#[tokio::test]
async fn large_arguments_are_in_a_private_file() {
    let fixture = Fixture::new();
    let script = fixture.tool(
        "echo \"[$MCP_TOOL_ARGS_JSON]\"; ls -l \"$MCP_TOOL_ARGS_FILE\" | cut -c 1-10
         cat > input; cmp input \"$MCP_TOOL_ARGS_FILE\" && wc -c < input",
    );
    let arguments = json!({ "large": "x".repeat(200 << 10) });
    let result = try_call(&fixture, &script, request(&arguments)).await;
    let expected = format!("[]\n-rw-------\n{}", arguments.to_string().len());
    assert_eq!(fine(&result).replace(' ', ""), expected);
}

#[tokio::test]
async fn a_tool_is_told_of_its_call() {
    let fixture = Fixture::new();
    let script = fixture.tool(
        "echo \"$MCP_TOOL_NAME|$MCP_TOOL_META_JSON|$MCP_TOOL_METADATA_JSON|$MCP_PROGRESS_TOKEN\"
         echo \"$MCP_ROOTS_COUNT|$MCP_ROOTS_PATHS|$MCP_ELICIT_SUPPORTED|${MCP_TOOL_ARGS_FILE-none}\"
         [ \"$MCP_TOOL_PATH\" = \"$MCPBASH_TOOLS_DIR/try/tool.sh\" ] && [ \"$(pwd -P)\" = \"${MCP_TOOL_PATH%/*}\" ] && echo here
         [ -f \"$MCP_TOOL_RESOURCES_FILE\" ] && echo resources",
    );
    let mut request = request(&json!({}));
    request.meta = r#"{"x/y":1}"#.to_owned();
    request.progress_token = Some("7".to_owned());
    request.roots = roots::default(std::path::Path::new("/one"));
    request.roots.extend(roots::default(std::path::Path::new("/two")));
    let result = try_call(&fixture, &script, request).await;
    let expected = "try|{\"x/y\":1}|{\"name\":\"try\"}|7\n2|/one\n/two|0|none\nhere\nresources";
    assert_eq!(fine(&result), expected);
}

#[tokio::test]
async fn roots_that_are_too_many_are_in_a_file() {
    let fixture = Fixture::new();
    let script = fixture.tool(
        "echo \"$MCP_ROOTS_COUNT,$MCP_ROOTS_JSON,$MCP_ROOTS_PATHS\"; grep -c path \"$MCP_ROOTS_FILE\"",
    );
    let mut request = request(&json!({}));
    let root = roots::default(std::path::Path::new(&format!("/{}", "x".repeat(1000)))).remove(0);
    request.roots = vec![root; 100];
    assert_eq!(fine(&try_call(&fixture, &script, request).await), "100,,\n1");
}

#[tokio::test]
async fn a_structured_result_must_keep_its_promise() {
    let fixture = Fixture::new();
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"] });
    let run = async |text: &str| {
        let mut script = fixture.tool(text);
        script.output = Some(schema_of(&schema));
        try_call(&fixture, &script, request(&json!({}))).await
    };
    let result = run("echo ' {\"n\": 1} '").await;
    assert_eq!(fine(&result), "{\"n\": 1}");
    assert_eq!(result.structured_content, Some(json!({ "n": 1 })));
    for (printed, fault) in [
        ("{\"n\": \"x\"}", "output/n: \"x\" is not of type \"number\""),
        ("[1]", "output: not a JSON object"),
        ("{\"n\": ", "output: not JSON: EOF"),
        ("", "output: not JSON"),
        ("{\"content\":[]}", "structuredContent: missing"),
        ("{\"content\":[],\"structuredContent\":{}}", "structuredContent: \"n\" is a required"),
    ] {
        let result = run(&format!("echo '{printed}'")).await;
        assert!(failed(&result).contains(fault), "{printed}: {result:?}");
        assert_eq!(result.structured_content, None);
    }
    let result = run("echo '{\"content\":[],\"structuredContent\":{\"n\":2}}'").await;
    assert_eq!(result.structured_content, Some(json!({ "n": 2 })));
    let result =
        run("echo '{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"isError\":true}'").await;
    assert_eq!(failed(&result), "no");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_listed() {
    let fixture = Fixture::new();
    let mut script = fixture.tool("exit 9");
    let property = json!({ "type": "number" });
    script.input = schema_of(&json!({
        "type": "object",
        "properties": { "a": property, "b": { "items": property } },
        "required": ["c"],
    }));
    assert_eq!(outcome::refusal(&script, &json!({ "c": 1 })), None);
    let result = outcome::refusal(&script, &json!({ "a": "x", "b": [1, "y"] })).unwrap();
    let said = result.as_str();
    for line in
        ["arguments/a: \"x\" is not", "arguments/b/1: \"y\" is not", "arguments: \"c\" is a"]
    {
        assert!(said.lines().any(|it| it.starts_with(line)), "{said}");
    }
    let many = json!({ "b": vec!["z".repeat(9999); 20] });
    let result = outcome::refusal(&script, &many).unwrap();
    let said = result.as_str();
    assert_eq!(said.lines().count(), 12, "{said}");
    assert!(said.len() < 5000 && said.ends_with("and 11 more"), "{said}");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_stopped_and_says_so() {
    let fixture = Fixture::new();
    let mut script = fixture.tool("echo stuck >&2; exec sleep 60");
    script.patience = Patience::fixed(Duration::from_millis(200));
    script.hint = Some("Ask for less.".to_owned());
    let result = try_call(&fixture, &script, request(&json!({}))).await;
    let expected =
        "`try` timed out: it took longer than 0.2 s and was stopped (fixed):\nstuck\nAsk for less.";
    assert_eq!(failed(&result), expected);
    let error = json!({ "type": "timeout", "reason": "fixed", "seconds": 0.2 });
    assert_eq!(result.structured_content, Some(json!({ "error": error })));
    script.output = Some(schema_of(&json!({})));
    let result = try_call(&fixture, &script, request(&json!({}))).await;
    assert_eq!(result.structured_content, None);
}

/// As `mcp-bash` does it: the command that touches the stream has another standard error.
#[tokio::test]
async fn touching_the_progress_stream_is_a_sign_of_life() {
    let fixture = Fixture::new();
    let mut script = fixture.tool(
        "for i in 1 2 3 4 5 6; do touch \"$MCP_PROGRESS_STREAM\" 2>/dev/null; sleep 0.1; done
         echo done",
    );
    let limit = Duration::from_millis(350);
    script.patience = Patience { limit, extended: true, at_most: Duration::from_secs(20) };
    let result = try_call(&fixture, &script, request(&json!({}))).await;
    assert_eq!(text(&result), "done", "{result:?}");
}

#[tokio::test]
async fn too_much_output_is_an_error_that_names_the_limit() {
    let mut fixture = Fixture::new();
    fixture.config.limits.output = 1000;
    let result = try_call(&fixture, &fixture.tool("yes"), request(&json!({}))).await;
    assert!(failed(&result).contains("more than 1000 bytes"), "{result:?}");
}

#[tokio::test]
async fn files_a_tool_names_are_embedded() {
    let fixture = Fixture::new();
    let script = fixture.tool(
        "echo hi > note.txt; echo done
         printf 'note.txt\\ttext/x\\tnote://1\\n/etc/passwd\\n' > \"$MCP_TOOL_RESOURCES_FILE\"",
    );
    let result = try_call(&fixture, &script, request(&json!({}))).await;
    let [ContentBlock::Text(done), ContentBlock::Resource(note)] = result.content.as_slice() else {
        panic!("{result:?}");
    };
    assert_eq!(done.text, "done");
    let expected = ResourceContents::text("hi\n", "note://1").with_mime_type("text/x");
    assert_eq!(note.resource, expected);
}

#[tokio::test]
async fn a_tool_that_cannot_be_run_says_what_to_do() {
    let fixture = Fixture::new();
    let script = fixture.tool("true");
    std::fs::remove_file(&script.program.path).unwrap();
    let result = try_call(&fixture, &script, request(&json!({}))).await;
    assert_eq!(failed(&result), "`tools/try/tool.sh` does not exist; put a program there");
}

/// The library for temporary directories reports the path in its error.
#[tokio::test]
async fn a_call_without_room_for_private_files_does_not_say_where_that_is() {
    let fixture = Fixture::new();
    let script = fixture.tool("echo done");
    let mut workshop = fixture.workshop();
    workshop.scratch = fixture.path().join("secret");
    let (arguments, meta) = ("{}".to_owned(), "{}".to_owned());
    let request = CallRequest { arguments, meta, progress_token: None, roots: Vec::new() };
    let result = answer(&workshop, &script, request).await.unwrap();
    let said = serde_json::to_string(&result).unwrap();
    assert!(said.contains("no room for private files: entity not found"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[tokio::test]
async fn of_several_results_the_first_counts() {
    let result = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let two = run(&format!("echo '{}'; echo '{}'", result("stopped"), result("done"))).await;
    assert_eq!(fine(&two), "stopped");
    let mixed = format!("{}\n{{}}", result("a"));
    assert_eq!(fine(&run(&format!("echo '{mixed}'")).await), mixed);
}

#[tokio::test]
async fn arguments_that_a_tool_calls_invalid_are_an_error_of_the_protocol() {
    let fixture = Fixture::new();
    let fail = |code: i64| {
        fixture.tool(&format!(
            "printf '{{\"code\":{code},\"message\":\"no value\"}}' > \"$MCP_TOOL_ERROR_FILE\"; exit 1"
        ))
    };
    let request = request(&json!({ "a": 1 }));
    let invalid = answer(&fixture.workshop(), &fail(-32602), request.clone()).await;
    assert_eq!(invalid, Err(AnswerError::invalid("arguments", "{\"a\":1}", "no value")));
    let failing = answer(&fixture.workshop(), &fail(-32603), request).await.unwrap();
    failed(&failing);
}

#[tokio::test]
async fn a_failure_for_want_of_a_variable_names_it() {
    let mut fixture = Fixture::new();
    fixture.config.withheld.insert("API_KEY".to_owned());
    let script = fixture.tool("echo \"${API_KEY:?must be set}\"");
    let result = try_call(&fixture, &script, request(&json!({}))).await;
    let hint = "hint: `API_KEY` is set and not passed to programs; the operator can pass it";
    assert_eq!(result.content.last(), Some(&ContentBlock::text(hint)));
}
