//! Tests of `mcp-bash` projects.

use super::{SCRIPT, StockFixture};
use crate::Severity;
use crate::describe::{Confine, Confines};
use crate::offer::{Kind, Offered};

#[test]
fn tools_are_confined_to_the_roots_of_the_project() {
    let mut fixture = StockFixture::new(&[("tools/a.sh", SCRIPT)]);
    assert_eq!(*fixture.stock.confines(), Confines::Folder);
    let affected = fixture.change("config/roots.json", r#"{"roots": [{"path": "./data"}]}"#);
    assert!(affected.keys.contains(&(Kind::Tool, "a".into())));
    let path = fixture.directory.path().canonicalize().unwrap().join("./data");
    assert_eq!(*fixture.stock.confines(), Confines::Only(vec![Confine { path, name: None }]));
    assert_eq!(fixture.offers(Kind::Tool), ["a"]);
    assert_eq!(
        fixture.problems(),
        [
            "config/roots.json: tools are confined to these directories, unless a client names its \
             own roots; the tools themselves must keep to `MCP_ROOTS_PATHS`",
            "config/roots.json:1: there is no directory `./data`: tools cannot work in it; create \
             it, or take it off the list",
        ]
    );
    // A file that breaks keeps its last valid version.
    let before = fixture.stock.confines().clone();
    fixture.change("config/roots.json", "{");
    assert_eq!(*fixture.stock.confines(), before);
    fixture.remove("config/roots.json");
    assert_eq!(*fixture.stock.confines(), Confines::Folder);
}

#[test]
fn no_tool_is_offered_if_the_roots_were_never_understood() {
    let mut fixture = StockFixture::new(&[("tools/a.sh", SCRIPT), ("config/roots.json", "./data")]);
    assert!(fixture.offers(Kind::Tool).is_empty());
    assert!(fixture.problems()[0].contains("no tool is offered"), "{:?}", fixture.problems());
    fixture.change("config/roots.json", r#"{"roots": []}"#);
    assert_eq!(fixture.offers(Kind::Tool), ["a"]);
}

#[test]
fn a_policy_in_shell_is_reported() {
    let policy = "mcp_tools_policy_check() { return 1; }";
    let fixture = StockFixture::new(&[("server.d/policy.sh", policy)]);
    let problems: Vec<_> = fixture.stock.problems().into_iter().collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].file, std::path::Path::new("server.d/policy.sh"));
    assert_eq!(problems[0].severity, Severity::Note);
}

#[test]
fn a_policy_in_shell_without_its_function_is_an_error() {
    let severity = |policy: &str| {
        let fixture = StockFixture::new(&[("server.d/policy.sh", policy)]);
        fixture.stock.problems().into_iter().next().unwrap().severity
    };
    assert_eq!(severity("echo hello"), Severity::Error);
    assert_eq!(severity("  source ./shared.sh"), Severity::Note);
}

#[test]
fn a_tool_of_mcp_bash_runs_in_the_project() {
    let sourced = "#!/bin/bash\nsource \"${MCP_SDK:?}/tool-sdk.sh\"\n";
    let mut fixture =
        StockFixture::new(&[("tools/ours/tool.sh", SCRIPT), ("tools/theirs/tool.sh", sourced)]);
    let directory = |fixture: &StockFixture, name: &str| {
        let Some(Offered::Tool(offer)) =
            fixture.stock.selected(&(Kind::Tool, name.into())).as_deref().cloned()
        else {
            panic!("no tool {name}");
        };
        let root = fixture.directory.path().canonicalize().unwrap();
        offer.script.directory.strip_prefix(root).unwrap().display().to_string()
    };
    assert_eq!(directory(&fixture, "ours"), "tools/ours");
    assert_eq!(directory(&fixture, "theirs"), "");
    fixture.put("sdk/tool-sdk.sh", "");
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(directory(&fixture, "ours"), "");
}

#[test]
fn names_of_tools_may_have_dots() {
    let meta = r#"{"name": "weather.today", "description": "d"}"#;
    let files = [("tools/w/tool.sh", SCRIPT), ("tools/w/tool.meta.json", meta)];
    assert_eq!(StockFixture::new(&files).offers(Kind::Tool), ["weather.today"]);
}
