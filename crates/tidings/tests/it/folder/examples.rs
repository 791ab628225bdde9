//! The example projects of `mcp-bash` as data: what is in them, what they list and answer there.

use super::*;

/// A project: its files, and what a client sees of it.
struct Example {
    name: &'static str,
    /// Path and text; a text that begins with `#!` is made executable.
    files: &'static [(&'static str, &'static str)],
    /// Names, in order: tools, resources, templates, prompts.
    lists: [&'static [&'static str]; 4],
    /// Requests, and a text that is in their answers.
    answers: &'static [(&'static str, &'static str, &'static str)],
}

/// Stands for the SDK: enough of its functions, written for this test.
const SDK: &str = r#"
mcp_args_get() { sed -n 's/.*"'"${1#.}"'":"\([^"]*\)".*/\1/p' <<<"$MCP_TOOL_ARGS_JSON"; }
mcp_args_require() { v=$(mcp_args_get "$1"); [ -n "$v" ] || mcp_fail -32602 "missing $1"; echo "$v"; }
mcp_fail() { printf '{"code":%s,"message":"%s"}' "$1" "$2" > "$MCP_TOOL_ERROR_FILE"; exit 1; }
mcp_log_info() { printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"%s","data":"%s"}}\n' "$1" "$2" >> "$MCP_LOG_STREAM"; }
mcp_run_with_progress() { for i in 1 2 3 4 5 6 7 8; do touch "$MCP_PROGRESS_STREAM" 2>/dev/null; sleep 0.1; done 2>/dev/null; }
mcp_result() { printf '{"content":[{"type":"text","text":"%s"}],"structuredContent":{"success":true,"result":{"message":"%s"}},"isError":false}\n' "$1" "$1"; }
"#;

const OUTPUT: &str = r#""outputSchema":{"type":"object","required":["success","result"]}"#;

const EXAMPLES: &[Example] = &[
    Example {
        name: "00-hello-tool",
        files: &[
            ("server.d/server.meta.json", r#"{"name":"hello-tool-example","title":"Hello"}"#),
            (
                "tools/hello/tool.meta.json",
                r#"{"name":"example-hello","description":"Greets",OUTPUT,"timeoutSecs":5}"#,
            ),
            (
                "tools/hello/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result 'Hello from example tool'\n",
            ),
        ],
        lists: [&["example-hello"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"example-hello"}"#, "Hello from example tool")],
    },
    Example {
        name: "01-args-and-validation",
        files: &[
            (
                "tools/echo-arg/tool.meta.json",
                r#"{"name":"example-echo-arg","description":"Echoes","inputSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]},OUTPUT}"#,
            ),
            (
                "tools/echo-arg/tool.sh",
                "#!/bin/bash\nset -e\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nvalue=$(mcp_args_require .value)\nmcp_result \"You sent: $value\"\n",
            ),
        ],
        lists: [&["example-echo-arg"], &[], &[], &[]],
        answers: &[
            (
                "tools/call",
                r#"{"name":"example-echo-arg","arguments":{"value":"x"}}"#,
                "You sent: x",
            ),
            ("tools/call", r#"{"name":"example-echo-arg","arguments":{}}"#, "-32602"),
        ],
    },
    Example {
        name: "02-logging-and-levels",
        files: &[
            (
                "tools/logger/tool.meta.json",
                r#"{"name":"example-logger","description":"Logs",OUTPUT}"#,
            ),
            (
                "tools/logger/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_log_info example.logger 'about to work'\nmcp_result logged\n",
            ),
        ],
        lists: [&["example-logger"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"example-logger"}"#, "logged")],
    },
    Example {
        name: "04-roots-basics",
        files: &[
            ("config/roots.json", r#"{"roots":[{"path":"./data","name":"Example Data"}]}"#),
            ("data/sample.txt", "a sample"),
            ("secret.txt", "a secret"),
            (
                "tools/read/tool.meta.json",
                r#"{"name":"example-roots-read","description":"Reads","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}"#,
            ),
            (
                "tools/read/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nfile=$(realpath \"$(mcp_args_get .path)\")\nwhile read -r root; do case $file in \"$root\"/*) cat \"$file\"; exit;; esac; done <<<\"$MCP_ROOTS_PATHS\"\necho 'outside of the roots'; exit 1\n",
            ),
        ],
        lists: [&["example-roots-read"], &[], &[], &[]],
        answers: &[
            (
                "tools/call",
                r#"{"name":"example-roots-read","arguments":{"path":"./data/sample.txt"}}"#,
                "a sample",
            ),
            (
                "tools/call",
                r#"{"name":"example-roots-read","arguments":{"path":"./secret.txt"}}"#,
                "outside of the roots",
            ),
        ],
    },
    Example {
        name: "05-resources-basics",
        files: &[
            ("resources/greeting.txt", "Hello from a resource file"),
            (
                "resources/greeting.meta.json",
                r#"{"name":"example-greeting","uri":"file://./resources/greeting.txt","mimeType":"text/plain","provider":"file"}"#,
            ),
        ],
        lists: [&[], &["example-greeting"], &[], &[]],
        answers: &[(
            "resources/read",
            r#"{"uri":"file://./resources/greeting.txt"}"#,
            "Hello from a resource file",
        )],
    },
    Example {
        name: "06-embedded-resources",
        files: &[
            (
                "tools/embed-resource/tool.meta.json",
                r#"{"name":"embed-resource","description":"Embeds"}"#,
            ),
            (
                "tools/embed-resource/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmkdir -p \"$MCPBASH_PROJECT_ROOT/resources\"\nprintf 'Embedded report' > \"$MCPBASH_PROJECT_ROOT/resources/report.txt\"\nprintf '[{\"path\":\"%s\",\"mimeType\":\"text/plain\"}]' \"$MCPBASH_PROJECT_ROOT/resources/report.txt\" > \"$MCP_TOOL_RESOURCES_FILE\"\necho done\n",
            ),
        ],
        lists: [&["embed-resource"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"embed-resource"}"#, "Embedded report")],
    },
    Example {
        name: "07-prompts-basics",
        files: &[
            ("prompts/greeting.txt", "Hello, ${name}! Welcome to MCP prompts."),
            (
                "prompts/greeting.meta.json",
                r#"{"name":"prompt.greeting","description":"Greets","path":"greeting.txt","role":"system","arguments":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}"#,
            ),
        ],
        lists: [&[], &[], &[], &["prompt.greeting"]],
        answers: &[(
            "prompts/get",
            r#"{"name":"prompt.greeting","arguments":{"name":"Ada"}}"#,
            "Hello, Ada! Welcome",
        )],
    },
    Example {
        name: "08-elicitation",
        files: &[
            (
                "tools/elicitation/tool.meta.json",
                r#"{"name":"example-elicitation","description":"Asks",OUTPUT}"#,
            ),
            (
                "tools/elicitation/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\n[ \"$MCP_ELICIT_SUPPORTED\" = 1 ] || mcp_result 'Stopped: nobody to ask'\nmcp_result 'Stopped after the mode'\n",
            ),
        ],
        lists: [&["example-elicitation"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"example-elicitation"}"#, "Stopped: nobody to ask")],
    },
    Example {
        name: "09-registry-overrides",
        files: &[
            ("prompts/manual.prompt.txt", "Explain it. Topic hint: {{topic}}."),
            ("resources/echo-placeholder.txt", "a placeholder"),
            (
                "tools/progress-demo.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result finished\n",
            ),
            (
                "server.d/register.json",
                r#"{"version":1,"tools":[{"name":"manual.progress","description":"Progress","path":"progress-demo.sh"}],"resources":[{"name":"echo.hello","path":"echo-placeholder.txt","uri":"echo://Hello-from-manual-registry","mimeType":"text/plain","provider":"echo"}],"prompts":[{"name":"manual.prompt","description":"Explains","path":"manual.prompt.txt","arguments":{"type":"object","properties":{"topic":{"type":"string"}}}}]}"#,
            ),
        ],
        lists: [&["manual.progress"], &["echo.hello"], &[], &["manual.prompt"]],
        answers: &[
            ("tools/call", r#"{"name":"manual.progress"}"#, "finished"),
            (
                "resources/read",
                r#"{"uri":"echo://Hello-from-manual-registry"}"#,
                "Hello-from-manual-registry",
            ),
            (
                "prompts/get",
                r#"{"name":"manual.prompt","arguments":{"topic":"birds"}}"#,
                "Topic hint: birds.",
            ),
        ],
    },
    Example {
        name: "10-completions",
        files: &[
            (
                "completions/suggest.sh",
                "#!/bin/bash\necho '{\"suggestions\":[\"retry job\",\"review logs\"],\"hasMore\":false}'\n",
            ),
            ("prompts/demo.completion.txt", "Query: ${query}"),
            (
                "prompts/demo.completion.meta.json",
                r#"{"name":"demo.completion","description":"Demo","path":"demo.completion.txt","arguments":{"type":"object","properties":{"query":{"type":"string"}}}}"#,
            ),
            (
                "server.d/register.json",
                r#"{"version":1,"completions":[{"name":"demo.completion","path":"completions/suggest.sh","timeoutSecs":5}]}"#,
            ),
        ],
        lists: [&[], &[], &[], &["demo.completion"]],
        answers: &[(
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"demo.completion"},"argument":{"name":"query","value":"re"}}"#,
            "review logs",
        )],
    },
    Example {
        name: "11-resource-templates",
        files: &[
            ("resources/example.txt", "reachable"),
            (
                "resources/project-files.meta.json",
                r#"{"name":"project-files","uriTemplate":"file:///{path}","mimeType":"application/octet-stream"}"#,
            ),
            (
                "resources/repo-tree.meta.json",
                r#"{"name":"repo-tree","uriTemplate":"git+https://{repo}/{ref}/{path}"}"#,
            ),
            (
                "server.d/register.json",
                r#"{"version":1,"resourceTemplates":[{"name":"project-files","uriTemplate":"file:///{path}","description":"Manual override"},{"name":"logs-by-date","uriTemplate":"file:///var/log/{service}/{date}.log"}]}"#,
            ),
        ],
        // Nothing fetches from the web by itself: `repo-tree` has no provider.
        lists: [&[], &["example.txt"], &["logs-by-date", "project-files"], &[]],
        answers: &[("resources/read", r#"{"uri":"file:///var/log/a/b.log"}"#, "error")],
    },
    Example {
        name: "03-progress-and-cancellation",
        files: &[
            ("tools/slow/tool.meta.json", r#"{"name":"example-slow","description":"Does it"}"#),
            (
                "tools/slow/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nfor p in 10 50 90; do echo \"::progress $p%\" >&2; done\nmcp_result Completed\n",
            ),
        ],
        lists: [&["example-slow"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"example-slow","arguments":{}}"#, "Completed")],
    },
    Example {
        name: "12-config-and-downloads",
        files: &[
            (
                "tools/fetch-api-data/tool.meta.json",
                r#"{"name":"fetch-api-data","description":"Does it","inputSchema":{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}}"#,
            ),
            (
                "tools/fetch-api-data/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\ntest -f config.example.json && mcp_result configured\n",
            ),
            ("config.example.json", "{}"),
        ],
        lists: [&["fetch-api-data"], &[], &[], &[]],
        answers: &[
            (
                "tools/call",
                r#"{"name":"fetch-api-data","arguments":{"url":"https://a.example"}}"#,
                "configured",
            ),
            ("tools/call", r#"{"name":"fetch-api-data","arguments":{}}"#, "-32602"),
        ],
    },
    Example {
        name: "13-ui-basics",
        files: &[
            ("tools/weather/tool.meta.json", r#"{"name":"weather","description":"Does it"}"#),
            (
                "tools/weather/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result Sunny\n",
            ),
            ("tools/weather/ui/index.html", "<p>"),
            ("tools/weather/ui/ui.meta.json", "{}"),
        ],
        lists: [&["weather"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"weather","arguments":{}}"#, "Sunny")],
    },
    Example {
        name: "14-ui-templates",
        files: &[
            (
                "tools/system-info/tool.meta.json",
                r#"{"name":"system-info","description":"Does it"}"#,
            ),
            (
                "tools/system-info/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result load\n",
            ),
        ],
        lists: [&["system-info"], &[], &[], &[]],
        answers: &[("tools/call", r#"{"name":"system-info","arguments":{}}"#, "load")],
    },
    Example {
        name: "15-cli-wrapper",
        files: &[
            (
                "tools/system-info/tool.meta.json",
                r#"{"name":"system-info","description":"Does it","inputSchema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}"#,
            ),
            (
                "tools/system-info/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\n. lib/cli-detect.sh\nmcp_result \"$found\"\n",
            ),
            ("lib/cli-detect.sh", "found=it\n"),
            ("tools/system-info/smoke.sh", "#!/bin/bash\n"),
        ],
        lists: [&["system-info"], &[], &[], &[]],
        answers: &[
            ("tools/call", r#"{"name":"system-info","arguments":{"command":"os"}}"#, "it"),
            ("tools/call", r#"{"name":"system-info","arguments":{}}"#, "-32602"),
        ],
    },
    Example {
        name: "advanced/ffmpeg-studio",
        files: &[
            ("config/roots.json", r#"{"roots":[{"path":"./media","name":"Sample Media"}]}"#),
            ("media/example.mp4", "film"),
            (
                "tools/extract/tool.meta.json",
                r#"{"name":"extract_frame","description":"Does it","inputSchema":{"type":"object","properties":{"input":{"type":"string"},"time":{"type":"string"},"output":{"type":"string"}},"required":["input","time","output"]}}"#,
            ),
            (
                "tools/extract/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result frame\n",
            ),
            (
                "tools/inspect/tool.meta.json",
                r#"{"name":"inspect_media","description":"Does it","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}"#,
            ),
            (
                "tools/inspect/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result \"${MCP_ROOTS_PATHS##*/}\"\n",
            ),
            (
                "tools/transcode/tool.meta.json",
                r#"{"name":"transcode","description":"Does it","inputSchema":{"type":"object","properties":{"input":{"type":"string"},"output":{"type":"string"},"preset":{"type":"string"}},"required":["input","output","preset"]}}"#,
            ),
            (
                "tools/transcode/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_result done\n",
            ),
        ],
        lists: [&["extract_frame", "inspect_media", "transcode"], &[], &[], &[]],
        answers: &[
            (
                "tools/call",
                r#"{"name":"inspect_media","arguments":{"path":"media/example.mp4"}}"#,
                "media",
            ),
            ("tools/call", r#"{"name":"transcode","arguments":{}}"#, "-32602"),
        ],
    },
    Example {
        name: "advanced/register-sh-hooks",
        files: &[
            ("completions/suggest.sh", "#!/bin/bash\n"),
            ("server.d/register.sh", "#!/bin/bash\nmcp_completion_manual_begin\n"),
        ],
        lists: [&[], &[], &[], &[]],
        answers: &[],
    },
    Example {
        name: "99-test-fixtures",
        files: &[
            (
                "tools/slow-no-progress/tool.meta.json",
                r#"{"name":"slow-no-progress","description":"Slow","timeoutSecs":0.2,"progressExtendsTimeout":true}"#,
            ),
            (
                "tools/slow-no-progress/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nexec sleep 20\n",
            ),
            (
                "tools/slow-with-events/tool.meta.json",
                r#"{"name":"slow-with-events","description":"Slow","timeoutSecs":0.5,"progressExtendsTimeout":true}"#,
            ),
            (
                "tools/slow-with-events/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nmcp_run_with_progress\nmcp_result Completed\n",
            ),
            (
                "tools/slow-with-hint/tool.meta.json",
                r#"{"name":"slow-with-hint","description":"Slow","timeoutSecs":0.2,"timeoutHint":"Try using dryRun=true first."}"#,
            ),
            (
                "tools/slow-with-hint/tool.sh",
                "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\nexec sleep 20\n",
            ),
        ],
        lists: [&["slow-no-progress", "slow-with-events", "slow-with-hint"], &[], &[], &[]],
        answers: &[
            ("tools/call", r#"{"name":"slow-no-progress"}"#, "idle"),
            ("tools/call", r#"{"name":"slow-with-events"}"#, "Completed"),
            ("tools/call", r#"{"name":"slow-with-hint"}"#, "dryRun=true"),
        ],
    },
];

#[tokio::test]
async fn the_examples_of_mcp_bash_list_and_answer_as_there() {
    for example in EXAMPLES {
        let yard = Yard::with(
            |plot| {
                plot.write("sdk/tool-sdk.sh", SDK);
                std::fs::remove_dir_all(plot.at("resources")).unwrap();
                for (path, text) in example.files {
                    plot.write(path, text.replace("OUTPUT", OUTPUT));
                    if text.starts_with("#!") {
                        let mode = std::fs::Permissions::from_mode(0o755);
                        std::fs::set_permissions(plot.at(path), mode).unwrap();
                    }
                }
            },
            Merging::default(),
            |_| {},
        )
        .await;
        let mut listener = yard.listener(Way::Stdio).await;
        let lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
        let keys = ["tools", "resources", "resourceTemplates", "prompts"];
        for ((method, key), expected) in lists.into_iter().zip(keys).zip(example.lists) {
            let answer = listener.ask(method, json!({})).await;
            let items = answer[key].as_array().unwrap();
            let mut names: Vec<_> = items.iter().map(|it| it["name"].as_str().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, expected, "{} {method}", example.name);
        }
        for (method, params, expected) in example.answers {
            let params = serde_json::from_str(params).unwrap();
            let answer = listener.ask(method, params).await.to_string();
            assert!(answer.contains(expected), "{} {method}: {answer}", example.name);
        }
    }
}
