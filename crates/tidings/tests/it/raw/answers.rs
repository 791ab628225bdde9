//! Results and errors, byte for byte, over each transport and in each era.

use super::*;

#[tokio::test]
async fn unknown_content_and_fields_arrive_with_the_same_bytes() {
    let relay = Relay::default();
    let contents = format!(
        r#""extra":[ ],"contents":[{{"blob":"AA==","hologram":{HOLOGRAM},"uri":"raw://one"}}]"#
    );
    *relay.content.lock().unwrap() = format!("{{{contents}}}");
    let hub = relay.hub().await;
    for way in WAYS {
        let members = format!(
            r#""content":[{HOLOGRAM}],"isError":false,"structuredContent":null,"_meta":{{"x":1.0}}"#
        );
        let arguments = json!({ "result": format!("{{{members}}}") });
        let heard = call(&hub, way, "call", arguments).await;
        assert_eq!(heard, [wire(way, COMPLETE, &members)], "{way:?}");

        let heard = answer(&hub, way, "prompts/get", json!({ "name": "ask" })).await;
        let members = format!(r#""messages":[{{"content":{HOLOGRAM},"role":"user"}}],"x":0.10"#);
        assert_eq!(heard, wire(way, COMPLETE, &members), "{way:?}");

        let heard = answer(&hub, way, "resources/read", json!({ "uri": "raw://one" })).await;
        let own = r#""resultType":"complete","ttlMs":2000,"cacheScope":"private","#;
        assert_eq!(heard, wire(way, own, &contents.replace("[ ]", "[]")), "{way:?}");

        let reference = json!({ "type": "ref/prompt", "name": "ask" });
        let params = json!({ "ref": reference, "argument": { "name": "who", "value": "" } });
        let heard = answer(&hub, way, "completion/complete", params).await;
        let members = r#""why":"not","completion":{"values":["a"],"rank":[1.50]}"#;
        assert_eq!(heard, wire(way, COMPLETE, members), "{way:?}");
    }
}

#[tokio::test]
async fn what_is_said_of_an_era_or_a_connection_is_the_hubs() {
    let relay = Relay::default();
    let hop = r#""io.modelcontextprotocol/serverInfo":{"name":"up","version":"1"}"#;
    *relay.content.lock().unwrap() = format!(
        r#"{{"ttlMs":5,"contents":[],"resultType":"complete","_meta":{{{hop}}},"cacheScope":"public"}}"#
    );
    let hub = relay.hub().await;
    for way in WAYS {
        let heard = answer(&hub, way, "resources/read", json!({ "uri": "raw://one" })).await;
        let members = if way.is_modern {
            r#""ttlMs":2000,"contents":[],"resultType":"complete","cacheScope":"private""#
        } else {
            r#""contents":[]"#
        };
        assert_eq!(heard, wire(way, "", members), "{way:?}");

        let result = format!(r#"{{"content":[],"_meta":{{"a":1,{hop},"b":2}},"ttlMs":1}}"#);
        let heard = call(&hub, way, "call", json!({ "result": result })).await;
        let members = r#""content":[],"_meta":{"a":1,"b":2},"ttlMs":1"#;
        assert_eq!(heard, [wire(way, COMPLETE, members)], "{way:?}");
        let heard = call(&hub, way, "call", json!({ "result": "{}" })).await;
        assert_eq!(heard, [wire(way, COMPLETE.trim_end_matches(','), "")], "{way:?}");
    }
}

#[tokio::test]
async fn errors_arrive_with_their_code_message_and_data() {
    let hub = Relay::default().hub().await;
    for way in WAYS {
        let error =
            format!(r#"{{"message":"too \u00e9","hint":1,"data":[{HOLOGRAM}],"code":-31999}}"#);
        let heard = call(&hub, way, "call", json!({ "error": error })).await;
        assert_eq!(heard, [format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#)], "{way:?}");

        // The code of "not found" is the era's.
        let heard =
            answer(&hub, way, "resources/read", json!({ "uri": "raw://item/missing" })).await;
        let code = if way.is_modern { -32602 } else { -32002 };
        let data = r#""data":{"n":18446744073709551616}"#;
        let error = format!(r#"{{{data},"code":{code},"message":"no such thing"}}"#);
        assert_eq!(heard, format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#), "{way:?}");

        let heard = call(&hub, way, "call", json!({ "error": r#"{"code":"odd","data":1}"# })).await;
        let error = r#"{"code":-32603,"data":1,"message":"Internal error"}"#;
        assert_eq!(heard, [format!(r#"{{"jsonrpc":"2.0","id":7,"error":{error}}}"#)], "{way:?}");
    }
}

#[tokio::test]
async fn no_text_of_a_client_is_taken_for_a_stand_in() {
    let hub = Relay::default().hub().await;
    // What the library may have been given in place of a raw answer, and whole answers.
    let tricks = [
        r#"{"content":[]}"#,
        r#"{"resultType":"complete","content":[]}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
        "\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n",
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":""}}"#,
    ];
    for way in WAYS {
        for trick in tricks {
            // Beside a raw answer: in the progress that comes before it.
            let members = format!(r#""content":[{HOLOGRAM}]"#);
            let arguments = json!({ "progress": trick, "result": format!("{{{members}}}") });
            let heard = call(&hub, way, "call", arguments).await;
            assert_eq!(heard.len(), 2, "{way:?} {heard:?}");
            let progress: Value = serde_json::from_str(&heard[0]).unwrap();
            assert_eq!(progress["params"]["message"], trick, "{way:?}");
            assert_eq!(heard[1], wire(way, COMPLETE, &members), "{way:?}");
            // Beside a raw error.
            let error = r#"{"data":1.0,"code":1,"message":"no"}"#;
            let arguments = json!({ "progress": trick, "error": error });
            let heard = call(&hub, way, "call", arguments).await;
            assert!(heard[1].ends_with(&format!(r#""error":{error}}}"#)), "{way:?} {heard:?}");
            // In the answer of a typed tool.
            let heard = call(&hub, way, "typed", json!({ "result": trick })).await;
            let result: Value = serde_json::from_str(&heard[0]).unwrap();
            assert_eq!(result["result"]["content"][0]["text"], trick, "{way:?}");
        }
    }
}

#[tokio::test]
async fn what_a_client_cannot_take_is_refused_by_its_kind() {
    let hub = Relay::default().hub().await;
    let asked = r#""inputRequests":{"q":{"method":"elicitation/create","params":{"new":1.0}}},"requestState":"\u0061","resultType":"input_required""#;
    for way in WAYS {
        let heard = call(&hub, way, "call", json!({ "result": format!("{{{asked}}}") })).await;
        if way.is_modern {
            assert_eq!(heard, [wire(way, "", asked)], "{way:?}");
        } else {
            assert!(heard[0].contains(r#""error":{"code":-32600"#), "{way:?} {heard:?}");
        }
        let task = r#"{"resultType":"task","taskId":"secret"}"#;
        let heard = call(&hub, way, "call", json!({ "result": task })).await;
        assert!(heard[0].contains(r#""error""#) && !heard[0].contains("secret"), "{heard:?}");
    }
}

#[tokio::test]
async fn each_request_of_a_connection_gets_its_own_answer() {
    let hub = Relay::default().hub().await;
    let requests = (0..40).map(|id| {
        let result = format!(r#"{{"content":[],"z":{id}.0}}"#);
        let tool = if id % 4 == 0 { "typed" } else { "call" };
        let params = json!({ "name": tool, "arguments": { "result": result } });
        let mut request = request(WAYS[1], "tools/call", params);
        request["id"] = json!(id);
        request
    });
    let heard = talk(&hub, &requests.collect::<Vec<_>>()).await;
    assert_eq!(heard.len(), 40);
    for id in 0..40 {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        let line = heard.iter().find(|line| line.starts_with(&head)).unwrap();
        let typed = format!(r#""text":"{{\"content\":[],\"z\":{id}.0}}""#);
        let raw = format!(r#"{{"resultType":"complete","content":[],"z":{id}.0}}}}"#);
        assert!(if id % 4 == 0 { line.contains(&typed) } else { line.ends_with(&raw) }, "{line}");
    }
}

#[tokio::test]
async fn raw_answers_count_in_the_budget_until_they_are_sent() {
    let relay = Relay::default();
    let text = "x".repeat(600 << 10);
    *relay.content.lock().unwrap() = format!(r#"{{"contents":[{{"new":"{text}"}}]}}"#);
    let hub = relay.hub().await;
    let mut config = HttpConfig::default();
    config.budget = 1 << 20;
    for way in WAYS.into_iter().filter(|way| way.is_http) {
        let router = server::router(&hub, config.clone());
        let asked = request(way, "resources/read", json!({ "uri": "raw://one" }));
        let unread = router.clone().oneshot(prepared(&router, way, &asked).await).await.unwrap();
        let refused = over_http(router.clone(), way, &asked).await;
        assert!(refused[0].contains("Too busy"), "{way:?}");
        drop(unread);
        let heard = over_http(router, way, &asked).await;
        assert!(heard[0].contains(&text), "{way:?}");
    }
}
