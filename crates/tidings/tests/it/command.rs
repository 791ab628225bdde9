//! The client commands against the demo, over HTTP and stdio.

use serde_json::{Value, json};

use crate::support::demo::{Demo, PROGRAM, client, ended, folder, run, within};
use crate::support::rogue::{Rogue, tool};

/// A station in which nothing happens by itself.
const STILL: &str = "--every 3600";
/// The same over stdio, as the words that come last.
const STDIO: [&str; 7] = ["--", PROGRAM, "serve", "--demo", "--stdio", "--every", "3600"];

async fn over_stdio(words: &[&str]) -> crate::support::demo::Ended {
    run(&[words, &STDIO].concat()).await
}

fn names(items: &[Value], key: &str) -> Vec<String> {
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_are_tables_and_lines_of_json() {
    let demo = Demo::start(STILL).await;
    let url = demo.url();
    let table = run(&["tools", &url]).await;
    assert_eq!(table.code, Some(0), "{table:?}");
    insta::assert_snapshot!(table.output, @"
    NAME           TAKES   DESCRIPTION
    dock_module    module  Docks a module. Offered only while a port is free.
    login                  Makes this session a commander's.
    undock_module  module  Lets a docked module go.
    ");
    for protocol in ["legacy", "modern", "2025-06-18"] {
        let listed = run(&["tools", &url, "--json", "--protocol", protocol]).await;
        assert_eq!(names(&listed.lines(), "name"), ["dock_module", "login", "undock_module"]);
        assert!(listed.lines()[0]["inputSchema"].is_object());
    }
    let filtered = run(&["tools", &url, "--filter", "LETS", "--json"]).await;
    assert_eq!(names(&filtered.lines(), "name"), ["undock_module"]);
    let nothing = run(&["tools", &url, "--filter", "zebra"]).await;
    assert_eq!((nothing.code, nothing.output.as_str()), (Some(0), ""));
    assert_eq!(nothing.errors, "no tools match `zebra`\n");
}

#[tokio::test]
async fn a_server_that_is_a_program_comes_last() {
    let listed = over_stdio(&["resources", "--json"]).await;
    let uris = names(&listed.lines(), "uri");
    assert!(uris.contains(&"station://log".to_owned()), "{uris:?}");
    let listed = over_stdio(&["templates", "--json"]).await;
    assert_eq!(names(&listed.lines(), "uriTemplate"), ["station://module/{name}"]);
    let listed = over_stdio(&["prompts", "--json"]).await;
    assert_eq!(names(&listed.lines(), "name"), ["station_report"]);
}

/// A server whose one answer to `tools/list`, and to what follows it, is this.
fn answering(results: &[Value]) -> [String; 4] {
    let capabilities = json!({ "tools": {} });
    let server = json!({ "name": "odd", "version": "1" });
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server,
    });
    let answer = |(id, result): (usize, &Value)| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        // What follows the first answer is a notification, which nobody waits to be answered.
        let read = if id == 1 { "read -r line; read -r line" } else { "read -r line" };
        format!("{read}; echo '{message}'; ")
    };
    let script: String = std::iter::once(&hello).chain(results).enumerate().map(answer).collect();
    ["--".to_owned(), "sh".to_owned(), "-c".to_owned(), script + "cat > /dev/null"]
}

#[tokio::test]
async fn odd_items_and_blocks_are_listed_and_printed() {
    let tools = json!({ "tools": [{ "name": "pay" }, { "inputSchema": {} }], "nextCursor": "x" });
    let rest = json!({ "tools": [], "nextCursor": "x" });
    let hologram = json!({ "type": "hologram", "x": 1 });
    let called = json!({ "content": [hologram, { "type": "text", "text": "hi" }] });
    let server = answering(&[tools, rest, called]);
    let server: Vec<_> = server.iter().map(String::as_str).collect();
    let legacy = ["--protocol", "legacy"];
    let listed = run(&[&["tools"], &legacy[..], &server].concat()).await;
    assert_eq!((listed.code, listed.output.as_str()), (Some(0), "NAME\npay\n"));
    insta::assert_snapshot!(listed.errors, @"
    warning: odd tools: `pay` (number 0): `inputSchema` is missing, so any arguments are allowed
    warning: odd tools: number 1: `name` is missing
    warning: the tools may be incomplete: the server gave the same cursor twice
    ");
    let lines = run(&[&["tools", "--json"], &legacy[..], &server].concat()).await.lines();
    assert_eq!((&lines[0]["name"], lines.len()), (&json!("pay"), 4));
    let odd = &lines[2]["odd"];
    assert_eq!((&odd["index"], &odd["usable"]), (&json!(1), &json!(false)));
    assert_eq!(odd["item"], json!({ "inputSchema": {} }));
    assert!(lines[3]["incomplete"].is_string(), "{lines:?}");
    let called = run(&[&["call", "pay"], &legacy[..], &server].concat()).await;
    assert_eq!(called.output, format!("{hologram}\nhi\n"));
    let called = run(&[&["call", "pay", "--json"], &legacy[..], &server].concat()).await.object();
    assert_eq!(called["result"]["content"][0], hologram);
}

#[tokio::test]
async fn a_result_is_printed_as_the_server_sent_it() {
    let tools = json!({ "tools": [{ "name": "pay", "inputSchema": {} }] });
    let text = json!({ "type": "text", "text": "hi", "shape": { "round": true } });
    let sent = json!({ "content": [text], "verdict": "unheard of", "_meta": { "a/b": 1 } });
    let server = answering(&[tools, sent.clone()]);
    let server: Vec<_> = server.iter().map(String::as_str).collect();
    let call = ["call", "pay", "--json", "--protocol", "legacy"];
    let called = run(&[&call[..], &server].concat()).await.object();
    assert_eq!((&called["tool"], &called["result"]), (&json!("pay"), &sent));
}

#[tokio::test]
async fn a_result_that_is_none_is_printed_as_it_came() {
    for sent in [json!([]), json!([1]), json!("done"), json!(5), json!({})] {
        let tools = json!({ "tools": [{ "name": "pay", "inputSchema": {} }] });
        let server = answering(&[tools, sent.clone()]);
        let server: Vec<_> = server.iter().map(String::as_str).collect();
        let call = ["call", "pay", "--json", "--protocol", "legacy"];
        let called = run(&[&call[..], &server].concat()).await;
        assert_eq!(called.object()["result"], sent, "{called:?}");
    }
}

#[tokio::test]
async fn items_are_printed_as_the_server_sent_them() {
    let sent = json!({ "name": "pay", "inputSchema": {}, "verdict": { "unheard": "of" } });
    let server = answering(&[json!({ "tools": [sent] })]);
    let server: Vec<_> = server.iter().map(String::as_str).collect();
    for command in [&["tools"][..], &["show", "pay"]] {
        let line = [command, &["--json", "--protocol", "legacy"], &server].concat();
        assert_eq!(run(&line).await.object(), sent, "{command:?}");
    }
}

#[tokio::test]
async fn one_item_is_shown_whole() {
    let demo = Demo::start(STILL).await;
    let url = demo.url();
    let shown = run(&["show", &url, "dock_module"]).await;
    assert!(shown.output.starts_with("tool dock_module(module: string)\n"), "{shown:?}");
    assert!(shown.output.contains(&format!("tidings call {url} dock_module module=MODULE\n")));
    assert_eq!(run(&["show", &url, "station://log", "--json"]).await.object()["name"], "log");
    let template = run(&["show", &url, "station://module/{name}"]).await;
    assert!(template.output.contains("name=text"), "{template:?}");
    let prompt = run(&["show", &url, "station_report"]).await;
    assert!(prompt.output.starts_with("prompt station_report(focus?)"), "{prompt:?}");
    let by_name = run(&["show", &url, "status", "--json"]).await;
    assert_eq!(by_name.object()["uri"], "station://status");
    let nothing = run(&["show", &url, "dock_modul"]).await;
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.errors.contains("did you mean `dock_module`?"), "{nothing:?}");
}

#[tokio::test]
async fn a_tool_is_called_with_typed_arguments() {
    let demo = Demo::start(STILL).await;
    let url = demo.url();
    let docked = run(&["call", &url, "dock_module", "module=iris"]).await;
    assert_eq!((docked.code, docked.output.as_str()), (Some(0), "iris docked at port 3\n"));
    let words = ["call", &url, "undock_module", "--args", r#"{"module":"iris"}"#, "--json"];
    let called = run(&words).await.object();
    assert_eq!(called["tool"], "undock_module");
    assert!(called["took_ms"].is_u64());
    assert_eq!(called["result"]["content"][0]["text"], "iris left port 3");
    let failed = run(&["call", &url, "undock_module", "module=iris", "--json"]).await;
    assert_eq!(failed.code, Some(1));
    assert_eq!(failed.lines()[0]["result"]["isError"], true);
    assert_eq!(failed.errors, "error: the tool `undock_module` reported a failure\n");
    let missing = run(&["call", &url, "dock_module"]).await;
    assert_eq!(missing.code, Some(2));
    assert_eq!(
        missing.errors,
        "error: parameter `module` is missing\n\
         hint: give `module=VALUE`, string: the module that should come\n"
    );
    let unknown = run(&["call", &url, "dock_module", "modul=iris"]).await;
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.errors.contains("did you mean `module`?"), "{unknown:?}");
    let no_tool = run(&["call", &url, "dock"]).await;
    assert_eq!(no_tool.code, Some(1));
    assert!(no_tool.errors.starts_with("error: the server has no tool `dock`"), "{no_tool:?}");
    let stdio = over_stdio(&["call", "dock_module", "module=iris"]).await;
    assert_eq!(stdio.output, "iris docked at port 3\n");
}

#[tokio::test]
async fn arguments_come_from_a_file_or_standard_input() {
    let demo = Demo::start(STILL).await;
    let folder = folder("arguments");
    let file = folder.join("arguments.json");
    std::fs::write(&file, r#"{"module":"iris"}"#).unwrap();
    let file = format!("@{}", file.display());
    let docked = run(&["call", &demo.url(), "dock_module", "--args", &file]).await;
    assert_eq!(docked.output, "iris docked at port 3\n");
    let mut child = client(&["call", &demo.url(), "undock_module", "--args", "-"]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    within(tokio::io::AsyncWriteExt::write_all(&mut input, br#"{"module":"iris"}"#)).await.unwrap();
    drop(input);
    let ended = within(child.wait_with_output()).await.unwrap();
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "iris left port 3\n");
    let wrong = run(&["call", &demo.url(), "dock_module", "--args", "[1]"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[tokio::test]
async fn resources_and_templates_are_read() {
    let demo = Demo::start(STILL).await;
    let url = demo.url();
    let log = "0001 aurora docked at port 1\n0002 beagle docked at port 2\n";
    assert_eq!(run(&["read", &url, "station://log"]).await.output, log);
    assert_eq!(over_stdio(&["read", "station://log"]).await.output, log);
    let object = run(&["read", &url, "station://log", "--json"]).await.object();
    assert_eq!(object["uri"], "station://log");
    assert_eq!(object["contents"][0]["text"], log);
    let template = ["read", &url, "station://module/{name}", "name=aurora", "--json"];
    let object = run(&template).await.object();
    assert_eq!(object["uri"], "station://module/aurora");
    assert_eq!(object["template"], "station://module/{name}");
    assert_eq!(object["values"], json!({ "name": "aurora" }));
    assert!(object["contents"][0]["text"].as_str().unwrap().contains("aurora"));
    let wrong = run(&["read", &url, "station://module/{name}", "nam=aurora"]).await;
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.errors.contains("did you mean `name`?"), "{wrong:?}");
    let nothing = run(&["read", &url, "station://module/zebra"]).await;
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.errors.starts_with("error: reading `station://module/zebra`\n"), "{nothing:?}");
    assert!(nothing.errors.contains("lists the resources"), "{nothing:?}");
}

#[tokio::test]
async fn content_goes_to_a_file_or_into_a_folder() {
    let demo = Demo::start(STILL).await;
    let (url, folder) = (demo.url(), folder("read"));
    let file = folder.join("log.txt");
    let written = run(&["read", &url, "station://log", "--out", file.to_str().unwrap()]).await;
    assert_eq!((written.code, written.output.as_str()), (Some(0), ""));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("0001 aurora"));
    run(&["read", &url, "station://status", "--out", folder.to_str().unwrap()]).await;
    assert!(folder.join("status.json").exists());
}

#[tokio::test]
async fn prompts_are_filled_in_and_arguments_completed() {
    let demo = Demo::start(STILL).await;
    let url = demo.url();
    let filled = run(&["prompt", &url, "station_report", "focus=aurora"]).await;
    assert!(filled.output.starts_with("user:\n"), "{filled:?}");
    assert!(filled.output.contains("station://module/aurora"), "{filled:?}");
    let object = run(&["prompt", &url, "station_report", "focus=aurora", "--json"]).await.object();
    assert_eq!(object["prompt"], "station_report");
    assert_eq!(object["arguments"], json!({ "focus": "aurora" }));
    assert_eq!(object["result"]["messages"][0]["role"], "user");
    let completed = run(&["complete", &url, "prompt", "station_report", "focus=be"]).await;
    assert_eq!(completed.output, "beagle\n");
    let template = ["complete", &url, "template", "station://module/{name}", "name=", "--json"];
    let object = run(&template).await.object();
    assert_eq!(object["values"], json!(["aurora", "beagle"]));
    assert_eq!(object["has_more"], false);
    let wrong = run(&["complete", &url, "tool", "x", "y=z"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[tokio::test]
async fn a_server_tells_who_it_is_in_both_eras() {
    let demo = Demo::start(STILL).await;
    for (protocol, version) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let info = run(&["info", &demo.url(), "--json", "--protocol", protocol]).await.object();
        assert_eq!((&info["era"], &info["protocol"]), (&json!(protocol), &json!(version)));
        assert_eq!(info["name"], "tidings");
        assert_eq!(
            info["counts"],
            json!({ "tools": 3, "resources": 5, "templates": 1, "prompts": 1 })
        );
        assert!(info["latency_ms"].as_f64().unwrap() > 0.0);
        assert!(info["capabilities"]["tools"].is_object() && info["instructions"].is_string());
    }
    let words = over_stdio(&["info"]).await.output;
    assert!(words.contains("3 tools, 5 resources, 1 template, 1 prompt\n"), "{words}");
    assert!(words.contains("new tools, new resources"), "{words}");
}

#[tokio::test]
async fn names_are_looked_up_and_secrets_are_not_shown() {
    let demo = Demo::start(STILL).await;
    let folder = folder("names");
    let file = folder.join("servers.json");
    let servers = json!({ "mcpServers": {
        "station": { "command": PROGRAM, "args": &STDIO[2..], "env": { "KEY": "hunter2" } },
        "far": { "url": "${STATION_URL}", "headers": { "x-key": "hunter3" } },
    }});
    std::fs::write(&file, servers.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let listed = run(&["servers", "--mcp-file", file, "--json"]).await;
    assert!(!listed.output.contains("hunter"), "{listed:?}");
    let station = listed.lines().into_iter().find(|line| line["name"] == "station").unwrap();
    assert_eq!((&station["kind"], &station["command"]), (&json!("command"), &json!(PROGRAM)));
    let far = listed.lines().into_iter().find(|line| line["name"] == "far").unwrap();
    assert_eq!((&far["kind"], &far["url"]), (&json!("http"), &json!("${STATION_URL}")));
    let table = run(&["servers", "--mcp-file", file]).await;
    assert!(table.output.contains("serve --demo --stdio") && !table.output.contains("hunter"));
    let listed = run(&["tools", "station", "--mcp-file", file, "--json"]).await;
    assert_eq!(listed.lines().len(), 3);
    let mut command = client(&["tools", "far", "--mcp-file", file, "--json"]);
    assert_eq!(
        ended({
            command.env("STATION_URL", demo.url());
            command
        })
        .await
        .lines()
        .len(),
        3
    );
    let unset = run(&["tools", "far", "--mcp-file", file]).await;
    assert_eq!(unset.code, Some(2));
    assert!(unset.errors.contains("`STATION_URL` is not set"), "{unset:?}");
    std::fs::write(folder.join(".mcp.json"), servers.to_string()).unwrap();
    let mut command = client(&["tools", "statoin"]);
    command.current_dir(&folder);
    let unknown = ended(command).await;
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.errors.contains("did you mean `station`?"), "{unknown:?}");
}

/// Every client command ends its help with examples that need nothing else.
#[tokio::test]
async fn the_examples_of_every_help_work_as_printed() {
    let help = run(&["--help"]).await.output;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<_> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 12, "{help}");
    let path = std::path::Path::new(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap());
    // The first of them makes a folder that later ones use.
    let home = tempfile::tempdir().unwrap();
    for (file, member, server) in [
        (".config/Claude/claude_desktop_config.json", "mcpServers", "notes"),
        (".vscode/mcp.json", "servers", "files"),
        (".cursor/mcp.json", "mcpServers", "mail"),
    ] {
        let file = home.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let servers = json!({ member: { server: { "command": format!("{server}-server") } } });
        std::fs::write(file, servers.to_string()).unwrap();
    }
    // Some need a server that runs, or are one.
    let lasting = ["serve", "open", "upstream", "help"];
    for command in commands.into_iter().filter(|name| !lasting.contains(name)) {
        let help = run(&[command, "--help"]).await.output;
        let examples = help.split("Example").nth(1).unwrap();
        let examples: Vec<_> = examples.lines().filter(|line| line.contains(" tidings ")).collect();
        assert!(!examples.is_empty(), "{help}");
        for example in examples {
            let mut shell = tokio::process::Command::new("sh");
            shell.args(["-c", example]).env("PATH", &path).kill_on_drop(true);
            shell.current_dir(home.path()).env("HOME", home.path());
            shell.env_remove("TIDINGS_TOKEN").env_remove("XDG_CONFIG_HOME");
            shell.env_remove("XDG_DATA_HOME");
            let ended = ended(shell).await;
            assert_eq!(ended.code, Some(0), "{example}: {ended:?}");
            assert!(command == "servers" || !ended.output.is_empty(), "{example}");
        }
    }
}

/// A server whose tool and resource say what `_meta` they were asked with.
async fn echo() -> Rogue {
    Rogue::start(|call| {
        let meta = &call.message["params"]["_meta"];
        let said = json!({ "a": meta["a"], "b": meta["b"] });
        match call.method.as_str() {
            "tools/list" => call.result(&json!({ "tools": [tool("echo")] })),
            "tools/call" => {
                let text = json!({ "type": "text", "text": said.to_string() });
                call.result(&json!({ "content": [text], "structuredContent": said }))
            }
            "resources/read" => {
                let uri = &call.message["params"]["uri"];
                call.result(&json!({ "contents": [{ "uri": uri, "text": said.to_string() }] }))
            }
            _ => call.decent(&json!({ "tools": {}, "resources": {} })),
        }
    })
    .await
}

#[tokio::test]
async fn meta_is_sent_and_a_structured_result_is_printed_once() {
    let rogue = echo().await;
    let meta = ["--meta", "a=1", "--meta", "b=x=y", "--protocol", "legacy"];
    let called = run(&[&["call", rogue.url.as_str(), "echo"], &meta[..]].concat()).await;
    assert_eq!((called.code, called.output.as_str()), (Some(0), "a  1\nb  x=y\n"), "{called:?}");
    let read = run(&[&["read", rogue.url.as_str(), "r:1"], &meta[..]].concat()).await;
    assert_eq!(read.output, r#"{"a":1,"b":"x=y"}"#);
    let refused = run(&["read", &rogue.url, "r:1", "--meta", "nothing"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[tokio::test]
async fn a_template_that_is_not_listed_is_refused_unless_that_is_wanted() {
    let rogue = echo().await;
    let words = ["read", &rogue.url, "r:{name}", "name=1", "--protocol", "legacy"];
    let refused = run(&words).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.errors.contains("does not list the template `r:{name}`"), "{refused:?}");
    assert!(refused.errors.contains("--unlisted"), "{refused:?}");
    let read = run(&[&words[..], &["--unlisted"]].concat()).await;
    assert_eq!(read.code, Some(0), "{read:?}");
}
