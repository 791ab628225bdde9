//! Tests of audiences: in descriptions, in heads, in front matter and in the policy.

use super::{StockFixture, wrong};
use crate::offer::Kind;

const TOOL: &str = "#!/bin/sh\n";
const POLICY: &str = "server.d/policy.toml";

/// The audience of an offered item.
#[track_caller]
fn audience(fixture: &StockFixture, kind: Kind, name: &str) -> String {
    let key = fixture.stock.keys().find(|(it, key)| *it == kind && key.ends_with(name));
    let offered = fixture.stock.selected(key.expect("it is described")).expect("it is offered");
    offered.audience().to_string()
}

#[test]
fn every_kind_of_description_can_name_an_audience() {
    let fixture = StockFixture::new(&[
        ("tools/a/tool.sh", TOOL),
        ("tools/a/tool.meta.json", r#"{"description": "x", "audience": ["role:b", "role:a"]}"#),
        ("tools/b.sh", "#!/bin/sh\n# @describe x\n# @audience role:a, user:ada\n"),
        ("tools/c.sh", "#!/bin/sh\n# mcp:{\"description\": \"x\", \"audience\": \"role:a\"}\n"),
        ("tools/d.sh", "#!/bin/sh\n# @describe x\n"),
        ("prompts/p.md", "---\naudience: role:a\n---\nHi\n"),
        ("resources/r.md", "x"),
        ("resources/r.meta.json", r#"{"audience": "role:a"}"#),
        (
            "resources/t.meta.json",
            r#"{"uriTemplate": "t://{n}", "path": "{n}.md", "audience": "role:a"}"#,
        ),
    ]);
    assert_eq!(fixture.problems(), [""; 0]);
    assert_eq!(audience(&fixture, Kind::Tool, "a"), "role:a role:b");
    assert_eq!(audience(&fixture, Kind::Tool, "b"), "role:a user:ada");
    assert_eq!(audience(&fixture, Kind::Tool, "c"), "role:a");
    assert_eq!(audience(&fixture, Kind::Tool, "d"), "");
    assert_eq!(audience(&fixture, Kind::Prompt, "p"), "role:a");
    assert_eq!(audience(&fixture, Kind::Resource, "r.md"), "role:a");
    assert_eq!(audience(&fixture, Kind::Template, "t://{n}"), "role:a");
}

#[test]
fn an_audience_that_is_wrong_opens_nothing() {
    let described =
        |audience: &str| format!("{{\"description\": \"x\",\n\"audience\": {audience}}}");
    for audience in ["[]", "\"\"", "3", "[\"a b\"]", "{}"] {
        let meta = described(audience);
        let files = [("tools/a/tool.sh", TOOL), ("tools/a/tool.meta.json", meta.as_str())];
        let mut fixture = StockFixture::new(&files);
        assert_eq!(fixture.offers(Kind::Tool), [""; 0], "{audience}");
        wrong(&files, "tools/a/tool.meta.json:2: `audience` is wrong: ");
        fixture.change("tools/a/tool.meta.json", &described("\"role:a\""));
        fixture.change("tools/a/tool.meta.json", &meta);
        assert_eq!(
            self::audience(&fixture, Kind::Tool, "a"),
            "role:a",
            "the last valid one counts"
        );
    }
}

#[test]
fn a_misspelt_audience_opens_nothing() {
    let fixture = StockFixture::new(&[
        ("tools/a/tool.sh", TOOL),
        ("tools/a/tool.meta.json", r#"{"description": "x", "audence": "role:a"}"#),
        ("tools/b.sh", "#!/bin/sh\n# @describe x\n# @audiences role:a\n"),
        ("prompts/p.md", "---\naudiance: role:a\n---\nHi\n"),
    ]);
    assert_eq!(fixture.offers(Kind::Tool), [""; 0]);
    assert_eq!(fixture.offers(Kind::Prompt), [""; 0]);
    let problems = fixture.problems().join("\n");
    assert_eq!(problems.matches("write `audience`").count(), 2, "{problems}");
    assert!(problems.contains("tools/b.sh:3: `@audiences` means nothing here"), "{problems}");
}

#[test]
fn the_policy_decides_for_directories_and_names_and_its_first_rule_counts() {
    let mut fixture = StockFixture::new(&[
        ("tools/a.sh", "#!/bin/sh\n# @describe x\n# @audience role:own\n"),
        ("tools/b.sh", "#!/bin/sh\n# @describe x\n"),
        ("resources/finance/open/a.md", "x"),
        ("resources/finance/q3.md", "x"),
        ("resources/other.md", "x"),
        (
            POLICY,
            "[[audience]]\npaths = ['resources/finance/open/**']\nlabels = []\n\
             [[audience]]\npaths = ['resources/finance/**']\ntools = ['b*']\nlabels = 'role:f'\n",
        ),
    ]);
    assert_eq!(audience(&fixture, Kind::Tool, "a"), "role:own");
    assert_eq!(audience(&fixture, Kind::Tool, "b"), "role:f");
    assert_eq!(audience(&fixture, Kind::Resource, "open/a.md"), "");
    assert_eq!(audience(&fixture, Kind::Resource, "q3.md"), "role:f");
    assert_eq!(audience(&fixture, Kind::Resource, "other.md"), "");
    fixture.change(POLICY, "[[audience]]\ntools = ['*']\nlabels = ['a b']\n");
    assert!(fixture.problems()[0].contains("\"a b\""), "{:?}", fixture.problems());
    assert_eq!(audience(&fixture, Kind::Tool, "b"), "role:f", "the last valid policy counts");
    fixture.change(POLICY, "[[audience]]\ntools = ['*']\nlabels = ['role:x']\n");
    assert_eq!(
        audience(&fixture, Kind::Tool, "a"),
        "role:x",
        "the policy goes before a description"
    );
}

#[test]
fn a_link_does_not_open_what_the_policy_keeps_for_some() {
    let mut fixture = StockFixture::new(&[
        ("resources/finance/q3.md", "x"),
        (POLICY, "[[audience]]\npaths = ['resources/finance/**']\nlabels = 'role:f'\n"),
    ]);
    let link = fixture.directory.path().join("resources/link.md");
    std::os::unix::fs::symlink("finance/q3.md", link).unwrap();
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(audience(&fixture, Kind::Resource, "link.md"), "role:f");
}
