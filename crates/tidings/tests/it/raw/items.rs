//! Raw items in lists, alone and among typed ones.

use tidings_server::model::{Prompt, Resource, ResourceTemplate};

use super::*;

#[tokio::test]
async fn unknown_fields_of_items_arrive_with_the_same_bytes() {
    let hub = Relay::default().hub().await;
    let own = r#""resultType":"complete","ttlMs":0,"cacheScope":"public","#;
    let typed = r#"{"name":"typed","description":"a typed one","inputSchema":{}}"#;
    let lists = [
        ("tools/list", "tools", format!("{TOOL},{typed}")),
        ("prompts/list", "prompts", PROMPT.to_owned()),
        ("resources/list", "resources", RESOURCE.to_owned()),
        ("resources/templates/list", "resourceTemplates", TEMPLATE.to_owned()),
    ];
    for way in WAYS {
        for (method, name, items) in &lists {
            let heard = answer(&hub, way, method, json!({})).await;
            assert_eq!(heard, wire(way, own, &format!(r#""{name}":[{items}]"#)), "{way:?}");
        }
    }
}

#[tokio::test]
async fn pages_of_raw_and_typed_items_have_cursors() {
    let mut config = tidings_server::Config::new("relay", "1");
    config.page_size = 1;
    let hub = Hub::with_config(config);
    hub.add("relay", |shelf| Relay::default().on(&shelf)).await.unwrap();
    for way in WAYS {
        let first = answer(&hub, way, "tools/list", json!({})).await;
        assert!(first.ends_with(&format!(r#""tools":[{TOOL}]}}}}"#)), "{first}");
        let cursor: Value = serde_json::from_str(&first).unwrap();
        let cursor = cursor["result"]["nextCursor"].clone();
        let second = answer(&hub, way, "tools/list", json!({ "cursor": cursor })).await;
        let second: Value = serde_json::from_str(&second).unwrap();
        assert_eq!(second["result"]["tools"][0]["name"], "typed");
        assert!(second["result"].get("nextCursor").is_none(), "{second}");
    }
}

#[tokio::test]
async fn malformed_items_are_refused_by_name() {
    let hub = Hub::new("relay", "1");
    let shelf = hub.source("relay").unwrap();
    let words = |refused: Result<(), EditError>| refused.unwrap_err().to_string();
    let tool = |text: &str| words(shelf.add(raw::<Tool>(text).unwrap()).map(drop));
    assert_eq!(
        tool(r#"{"name":"a"}"#),
        "the raw tool `a` cannot be offered: `inputSchema` is missing or is not an object"
    );
    assert_eq!(
        tool(r#"{"title":"A","inputSchema":{}}"#),
        "the raw tool `{\"title\":\"A\",\"inputSchema\":{}}` cannot be offered: \
         `name` is missing or is not a text"
    );
    assert!(tool(r#"{"name":"a","inputSchema":[]}"#).contains("not an object"));
    assert!(tool(r#"{"name":"a","inputSchema":{},"n\u0061me":"b"}"#).contains("several"));
    assert!(tool(r#"{"name":"a\n","inputSchema":{}}"#).contains("cannot name a tool"));
    let bomb = format!("[{}0]", r#"{"":0},"#.repeat(10_000));
    let bomb = format!(r#"{{"name":"a","inputSchema":{{"x-mcp-header":{bomb}}}}}"#);
    assert!(tool(&bomb).contains("too much memory"));
    let prompt = words(shelf.add(raw::<Prompt>(r#"{"name":7}"#).unwrap()).map(drop));
    assert!(prompt.contains(r#"the raw prompt `{"name":7}`"#), "{prompt}");
    let resource = |text: &str| words(shelf.add(raw::<Resource>(text).unwrap()).map(drop));
    assert!(resource(r#"{"uri":"no uri","name":"x"}"#).contains("`no uri`"));
    assert!(resource(r#"{"uri":"a:b"}"#).contains("the raw resource `a:b`"));
    let template = raw::<ResourceTemplate>(r#"{"uriTemplate":"a:{","name":"x"}"#).unwrap();
    assert!(words(shelf.add(template).map(drop)).contains("`a:{`"));
    // The others are offered.
    let tools = [r#"{"name":"a"}"#, r#"{"name":"b","inputSchema":{}}"#];
    let refused = shelf.replace(tools.map(|text| raw::<Tool>(text).unwrap())).unwrap();
    assert_eq!(refused.len(), 1);
    let heard = answer(&hub, WAYS[0], "tools/list", json!({})).await;
    assert!(heard.ends_with(r#"{"tools":[{"name":"b","inputSchema":{}}]}}"#), "{heard}");
}

#[tokio::test]
async fn arguments_in_headers_are_those_a_raw_schema_names() {
    let hub = Hub::new("relay", "1");
    hub.add("relay", |shelf| {
        let schema = r#"{"type":"object","properties":{"result":{"type":"string","x-mcp\u002dheader":"Result"}}}"#;
        let tool = format!(r#"{{"name":"call","inputSchema":{schema}}}"#);
        shelf.add(raw::<Tool>(&tool).unwrap())?;
        Ok(Relay::default())
    })
    .await
    .unwrap();
    // The client does not repeat the argument in a header.
    let heard = call(&hub, WAYS[3], "call", json!({ "result": "{}" })).await;
    assert!(heard[0].contains("Mcp-Param-Result"), "{heard:?}");
}
