//! Tests of problems that are easy to make and hard to see.

use super::{SCRIPT, StockFixture, wrong};
use crate::offer::Kind;

const HELLO: &str = r#"{"description": "d"}"#;

/// Checks the one problem of a tool with this program.
#[track_caller]
fn wrong_program(text: &str, expected: &str) {
    let mut fixture = StockFixture::new(&[("tools/a/tool.meta.json", HELLO)]);
    fixture.put("tools/a/tool.sh", text);
    let at = fixture.directory.path().join("tools/a/tool.sh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(at, mode).unwrap();
    fixture.stock = fixture.stock.searching(Some("/nowhere".into()));
    fixture.stock.rescan(&mut |_| {});
    let problems = fixture.problems();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].starts_with(expected), "{}", problems[0]);
}

#[test]
fn a_first_line_with_which_nothing_runs_is_told() {
    wrong_program("#!/bin/sh\r\necho\r\n", "tools/a/tool.sh:1: its `#!` line ends with a carriage");
    wrong_program("echo hello\n", "tools/a/tool.sh:1: it has no `#!` line");
    wrong_program("#!/opt/none/sh\n", "tools/a/tool.sh:1: its `#!` line names `/opt/none/sh`");
    wrong_program("#!/usr/bin/env pithon\n", "tools/a/tool.sh:1: its `#!` line names `pithon`");
}

#[test]
fn a_script_that_is_neither_executable_nor_described_is_told() {
    let fixture = StockFixture::new(&[]);
    fixture.put("tools/a.sh", "");
    std::fs::write(fixture.directory.path().join("tools/a.sh"), "#!/bin/sh\necho\n").unwrap();
    let mut fixture = fixture;
    fixture.stock.rescan(&mut |_| {});
    assert!(fixture.problems()[0].starts_with("tools/a.sh: it is not executable and has no"));
    let fix = fixture.stock.problems().into_iter().next().unwrap().fix;
    assert_eq!(fix, Some(crate::Fix::MakeExecutable));
}

#[test]
fn two_programs_for_one_tool_are_told() {
    wrong(
        &[
            ("tools/a/tool.meta.json", HELLO),
            ("tools/a/tool.py", "#!/bin/sh\n"),
            ("tools/a/tool.sh", "#!/bin/sh\n"),
        ],
        "tools/a/tool.sh: `tool.py` is run as this tool; this file is not used",
    );
}

#[test]
fn misspelt_words_are_told() {
    let meta = r#"{"description": "d", "annotations": {"readonlyHint": true}}"#;
    wrong(
        &[("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.json", meta)],
        "tools/a/tool.meta.json:1: `readonlyHint` means nothing here",
    );
    let head = "#!/bin/sh\n# @describe d\n# @parm a:string\n";
    wrong(&[("tools/a.sh", head)], "tools/a.sh:3: `@parm` means nothing here; write `@param`");
}

#[test]
fn front_matter_without_an_end_is_told() {
    wrong(&[("prompts/a.md", "---\ndescription: x\nText")], "prompts/a.md:1: the front matter has");
    assert_eq!(StockFixture::new(&[("prompts/a.md", "---\nText\n")]).offers(Kind::Prompt), ["a"]);
}

#[test]
fn what_is_required_and_not_described_is_told() {
    let schema = r#"{"type": "object", "properties": {"b": {}}, "required": ["a"]}"#;
    let meta = format!(r#"{{"description": "d", "inputSchema": {schema}}}"#);
    wrong(
        &[("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.json", &meta)],
        "tools/a/tool.meta.json:1: `inputSchema` requires `a`, which is not in its `properties`",
    );
    let meta = format!(r#"{{"description": "d", "arguments": {schema}}}"#);
    wrong(
        &[("prompts/p.txt", "{{b}}"), ("prompts/p.meta.json", &meta)],
        "prompts/p.meta.json:1: `arguments` requires `a`",
    );
}

#[test]
fn a_completion_for_nothing_is_told() {
    let files = [("completions/greet.sh", SCRIPT), ("prompts/greet.md", "Hi {{name}}")];
    assert_eq!(StockFixture::new(&files).problems(), [""; 0]);
    let expected = "completions/greet.sh: there is no prompt or template `greet` to complete";
    wrong(&files[..1], expected);
}

/// Registered kinds are not searched in files: only registered completions count.
#[test]
fn a_completion_that_is_registered_under_another_name_is_no_mistake() {
    let files = [
        ("completions/suggest.sh", SCRIPT),
        ("prompts/greet.md", "Hi {{name}}"),
        ("server.d/register.json", r#"{"completions": [{"name": "greet", "path": "suggest.sh"}]}"#),
    ];
    assert_eq!(StockFixture::new(&files).problems(), [""; 0]);
    let other = files[2].1.replace("greet", "other");
    wrong(
        &[files[0], files[1], ("server.d/register.json", &other)],
        "completions/suggest.sh: there is no prompt or template `other` to complete",
    );
}

#[test]
fn what_is_wrong_with_a_policy_or_front_matter_is_told_once_and_in_words() {
    wrong(
        &[("prompts/a.md", "Hi"), ("server.d/policy.toml", "[tools]\nallow = 3\n")],
        "server.d/policy.toml:2: the number `3` is not a list; correct it; until then",
    );
    wrong(
        &[("prompts/a.md", "---\nrole: robot\n---\nHi")],
        "prompts/a.md:2: the front matter is wrong: `robot` is not one of user, assistant, system",
    );
}

#[test]
fn a_value_of_the_wrong_type_is_named() {
    let meta = "{\n \"description\": \"d\",\n \"timeoutSecs\": \"soon\"\n}";
    wrong(
        &[("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.json", meta)],
        "tools/a/tool.meta.json:3: `timeoutSecs` is wrong: the text \"soon\" is not a number",
    );
}

#[test]
fn a_prompt_of_the_role_system_is_served_as_the_users() {
    let fixture = StockFixture::new(&[("prompts/a.md", "---\nrole: system\n---\nBe kind")]);
    assert_eq!(fixture.offers(Kind::Prompt), ["a"]);
    assert!(fixture.problems()[0].contains("no role `system`"), "{:?}", fixture.problems());
}
