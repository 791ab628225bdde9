//! Tests of the stock: offered items and reported problems.

mod audience;
mod links;
mod lint;
mod project;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::{Affected, Stock};
use crate::FolderLimits;
use crate::offer::{Kind, Offered};
use crate::tree::Root;

/// A folder on disk and its stock.
struct StockFixture {
    directory: tempfile::TempDir,
    stock: Stock,
}

impl StockFixture {
    /// Files by path and text; a text that begins with `#!` is made executable.
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path()).unwrap();
        let mut fixture =
            Self { directory, stock: Stock::new(root, FolderLimits::default(), true) };
        for (path, text) in files {
            fixture.put(path, text);
        }
        fixture.stock.rescan(&mut |_| {});
        fixture
    }

    fn put(&self, path: &str, text: &str) {
        let at = self.directory.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(&at, text).unwrap();
        if text.starts_with("#!") {
            std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Writes a file and scans it alone.
    fn change(&mut self, path: &str, text: &str) -> Affected {
        self.put(path, text);
        self.stock.rescan_paths(&[PathBuf::from(path)].into(), &mut |_| {})
    }

    fn remove(&mut self, path: &str) -> Affected {
        std::fs::remove_file(self.directory.path().join(path)).unwrap();
        self.stock.rescan_paths(&[PathBuf::from(path)].into(), &mut |_| {})
    }

    /// The offered items of a kind.
    fn offers(&self, kind: Kind) -> Vec<String> {
        let keys: BTreeSet<_> = self.stock.keys().filter(|(it, _)| *it == kind).cloned().collect();
        let offered = keys.into_iter().filter(|key| self.stock.selected(key).is_some());
        let root = self.directory.path().canonicalize().unwrap();
        offered.map(|(_, name)| name.replace(root.to_str().unwrap(), "")).collect()
    }

    fn description(&self, tool: &str) -> String {
        match self.stock.selected(&(Kind::Tool, tool.into())).as_deref() {
            Some(Offered::Tool(offer)) => {
                offer.script.tool.description.clone().unwrap_or_default().into_owned()
            }
            _ => panic!("no tool {tool}"),
        }
    }

    fn problems(&self) -> Vec<String> {
        self.stock.problems().iter().map(ToString::to_string).collect()
    }
}

const SCRIPT: &str = "#!/bin/sh\n# @describe A script\n";

/// Checks the one problem of a folder with these files.
#[track_caller]
fn wrong(files: &[(&str, &str)], expected: &str) {
    let problems = StockFixture::new(files).problems();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].starts_with(expected), "{}", problems[0]);
}

#[test]
fn a_registration_that_breaks_keeps_what_it_said() {
    let say = |text: &str| {
        format!(r#"{{"tools": [{{"name": "a", "description": "{text}", "path": "x.sh"}}]}}"#)
    };
    let mut fixture = StockFixture::new(&[
        ("tools/x.sh", "#!/bin/sh\n"),
        ("server.d/register.json", &say("one")),
    ]);
    assert_eq!(fixture.offers(Kind::Tool), ["a"]);
    fixture.change("server.d/register.json", &say("two"));
    assert_eq!(fixture.description("a"), "two");
    fixture.change("server.d/register.json", "{\n\"tools\": [}");
    assert_eq!(fixture.description("a"), "two");
    assert_eq!(fixture.problems().len(), 1, "{:?}", fixture.problems());
    fixture.remove("server.d/register.json");
    assert_eq!(fixture.offers(Kind::Tool), ["x"]);
}

#[test]
fn a_kind_that_is_not_registered_is_looked_for_and_an_empty_list_is_none() {
    let files = [
        ("tools/x.sh", SCRIPT),
        ("prompts/p.md", "text"),
        ("resources/r.md", "text"),
        ("server.d/register.json", r#"{"version": 1, "tools": [], "prompts": null}"#),
    ];
    let fixture = StockFixture::new(&files);
    assert_eq!(fixture.offers(Kind::Tool), [""; 0]);
    assert_eq!(fixture.offers(Kind::Prompt), ["p"]);
    assert_eq!(fixture.offers(Kind::Resource), ["file:///resources/r.md"]);
}

#[test]
fn a_tool_is_a_directory_or_a_file() {
    let fixture = StockFixture::new(&[
        ("tools/a/tool.py", "#!/usr/bin/env python3\n"),
        ("tools/a/tool.meta.json", r#"{"description": "A", "arguments": {"type": "object"}}"#),
        ("tools/b/tool.sh", "#!/bin/sh\n"),
        ("tools/b/tool.meta.toml", "name = \"bee\"\ndescription = \"B\"\n"),
        ("tools/c.sh", SCRIPT),
        ("tools/d.rb", "#!/bin/sh\n# mcp:{\"name\":\"dee\",\"description\":\"D\"}\n"),
        ("tools/a/smoke.sh", SCRIPT),
        ("tools/README.md", "about the tools"),
    ]);
    assert_eq!(fixture.offers(Kind::Tool), ["a", "bee", "c", "dee"]);
    assert_eq!(fixture.description("bee"), "B");
    assert_eq!(fixture.problems(), [""; 0]);
}

#[test]
fn a_script_without_permission_is_run_with_what_its_first_line_names() {
    let fixture = StockFixture::new(&[
        ("tools/a/tool.meta.json", r#"{"description": "A"}"#),
        ("tools/a/tool.sh", " #!/bin/sh\n"),
    ]);
    assert_eq!(fixture.offers(Kind::Tool), [""; 0]);
    let mut fixture = fixture;
    let at = fixture.directory.path().join("tools/a/tool.sh");
    std::fs::write(&at, "#!/usr/bin/env -S sh -e\n").unwrap();
    fixture.stock.rescan(&mut |_| {});
    let Some(Offered::Tool(offer)) =
        fixture.stock.selected(&(Kind::Tool, "a".into())).as_deref().cloned()
    else {
        panic!("{:?}", fixture.problems())
    };
    assert_eq!(offer.script.program.interpreter, ["/usr/bin/env", "-S sh -e"]);
    assert_eq!(fixture.stock.problems().first().unwrap().fix, Some(crate::Fix::MakeExecutable));
}

#[test]
fn a_problem_of_a_tool_has_file_line_and_reason() {
    let tool = ("tools/a/tool.sh", "#!/bin/sh\n");
    let meta = |text: &'static str| [tool, ("tools/a/tool.meta.json", text)];
    let at = "tools/a/tool.meta.json";
    wrong(
        &meta("{\n\"description\": \"A\",\n"),
        &format!("{at}:3: it ends where a value should be"),
    );
    wrong(
        &meta("{\n\"description\": \"A\",\n\"title\": 3}"),
        &format!("{at}:3: `title` is wrong: the number `3` is not a text"),
    );
    wrong(
        &meta("{\"description\": \"A\",\n\"nam\": \"b\"}"),
        &format!("{at}:2: `nam` means nothing"),
    );
    wrong(
        &meta("{\"description\": \"A\",\n\"name\": \"a b\"}"),
        &format!("{at}:2: `a b` cannot name"),
    );
    wrong(
        &meta("\u{feff}{\"description\": \"A\"}"),
        &format!("{at}:1: it begins with a byte order"),
    );
    wrong(
        &meta("{\"description\": \"A\",\n\"inputSchema\": {\"type\": \"string\"}}"),
        &format!("{at}:2: `inputSchema` must describe an object"),
    );
    wrong(
        &meta(
            "{\"description\": \"A\",\n\"outputSchema\": {\"type\": \"object\", \"properties\": 3}}",
        ),
        &format!("{at}:2: `outputSchema` is not a JSON Schema"),
    );
    wrong(
        &meta("{\"description\": \"A\",\n\"timeoutSecs\": -1}"),
        &format!("{at}:2: `timeoutSecs` cannot be -1"),
    );
    wrong(
        &meta("{\"description\": \"A\",\n\"enabled\": 7}"),
        &format!("{at}:2: `enabled` is neither"),
    );
    wrong(
        &meta("{\"description\": \"A\", \"icons\": [{\"src\": \"../../../x.png\"}]}"),
        &format!("{at}: the icon `../../../x.png` is outside"),
    );
    wrong(&[("tools/a/tool.meta.json", "{}")], &format!("{at}: its program is missing"));
    wrong(&[("tools/a.sh", "#!/bin/sh\n# @param x\n")], "tools/a.sh:2: `x` has no type");
}

#[test]
fn a_problem_of_anything_else_has_file_line_and_reason() {
    wrong(&[("prompts/a.md", "---\nname: [\n---\n")], "prompts/a.md:");
    wrong(
        &[("prompts/a.md", "---\narguments:\n  - name: x\n---\nno")],
        "prompts/a.md:2: the argument `x` is not used",
    );
    wrong(&[("prompts/a.meta.json", "{}")], "prompts/a.meta.json: its text is missing");
    wrong(&[("resources/a.meta.json", "{}")], "resources/a.meta.json: it describes neither");
    wrong(
        &[("resources/a.meta.json", "{\"uri\": \"file:///etc/passwd\"}")],
        "resources/a.meta.json:1: `uri` leads out of the folder",
    );
    wrong(
        &[("resources/a.meta.json", "{\"uriTemplate\": \"x://y\"}")],
        "resources/a.meta.json:1: `x://y` has no variable",
    );
    wrong(
        &[("resources/a.meta.json", "{\"uri\": \"weather://here\"}")],
        "resources/a: `weather://here` cannot be read",
    );
    wrong(
        &[("server.d/policy.toml", "[tools]\nallows = []\n")],
        "server.d/policy.toml:2: `allows` means nothing here; it may be `allow` or `deny`",
    );
    wrong(
        &[("server.d/register.json", "{\"version\": 1,\n\"tool\": []}")],
        "server.d/register.json:2: `tool` means nothing",
    );
    wrong(&[("server.d/server.meta.json", "{\"nmae\": 1}")], "server.d/server.meta.json:1: `nmae`");
    wrong(&[(".tidingsignore", "[z-a]")], ".tidingsignore:1:");
}

#[test]
fn a_megabyte_of_nesting_is_told_like_any_other_fault() {
    let deep = format!("{{\"a\":{}", "[".repeat(500_000));
    wrong(
        &[("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.json", &deep)],
        "tools/a/tool.meta.json:1: it is nested too deeply",
    );
    let deep = format!("a = {}", "[".repeat(500_000));
    let files = [("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.toml", deep.as_str())];
    assert_eq!(StockFixture::new(&files).problems().len(), 1);
    let deep = format!("---\na: {}\n---\n", "[".repeat(500_000));
    assert_eq!(StockFixture::new(&[("prompts/a.md", &deep)]).problems().len(), 1);
    let large = format!("{{\"description\": \"{}\"}}", "x".repeat(2 << 20));
    wrong(
        &[("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.json", &large)],
        "tools/a/tool.meta.json: it is larger than",
    );
}

#[test]
fn of_two_with_one_name_the_first_is_served_until_it_goes() {
    let mut fixture = StockFixture::new(&[
        ("tools/a.sh", "#!/bin/sh\n# mcp:{\"name\":\"same\",\"description\":\"first\"}\n"),
        ("tools/b.sh", "#!/bin/sh\n# mcp:{\"name\":\"same\",\"description\":\"second\"}\n"),
    ]);
    assert_eq!(fixture.description("same"), "first");
    assert_eq!(
        fixture.problems(),
        [
            "tools/b.sh: the tool `same` is described at `tools/a.sh` already, which is served; give \
          one of them another name"
        ]
    );
    fixture.remove("tools/a.sh");
    assert_eq!(fixture.description("same"), "second");
    assert_eq!(fixture.problems(), [""; 0]);
}

#[test]
fn a_description_beside_a_file_is_of_that_file() {
    let mut fixture = StockFixture::new(&[
        ("resources/greeting.txt", "hello"),
        (
            "resources/greeting.meta.json",
            r#"{"name": "g", "uri": "file://./resources/greeting.txt", "provider": "file"}"#,
        ),
        ("resources/plain.txt", "plain"),
        ("resources/two.a", "a"),
        ("resources/two.b", "b"),
        ("resources/two.b.meta.json", r#"{"uri": "demo://two"}"#),
    ]);
    assert_eq!(
        fixture.offers(Kind::Resource),
        [
            "demo://two",
            "file://./resources/greeting.txt",
            "file:///resources/plain.txt",
            "file:///resources/two.a"
        ]
    );
    fixture.remove("resources/greeting.meta.json");
    assert!(fixture.offers(Kind::Resource).contains(&"file:///resources/greeting.txt".to_owned()));
    fixture.remove("resources/two.b");
    assert_eq!(fixture.offers(Kind::Resource).len(), 3, "{:?}", fixture.offers(Kind::Resource));
}

#[test]
fn a_provider_answers_for_its_scheme_by_a_template_of_its_own_or_a_described_one() {
    let described =
        ("resources/w.meta.json", r#"{"name": "w", "uriTemplate": "weather://{city}"}"#);
    let mut fixture = StockFixture::new(&[("providers/weather.sh", SCRIPT)]);
    assert_eq!(fixture.offers(Kind::Template), ["weather:{+rest}"]);
    let affected = fixture.change(described.0, described.1);
    assert!(affected.keys.contains(&(Kind::Template, "weather:{+rest}".into())));
    assert_eq!(fixture.offers(Kind::Template), ["weather://{city}"]);
    let affected = fixture.remove("providers/weather.sh");
    assert!(affected.keys.contains(&(Kind::Template, "weather://{city}".into())));
    assert_eq!(fixture.offers(Kind::Template), [""; 0]);
}

#[test]
fn a_policy_decides_by_name_path_and_host() {
    let mut fixture = StockFixture::new(&[
        ("tools/a.sh", SCRIPT),
        ("tools/b.sh", SCRIPT),
        ("resources/open.md", "x"),
        ("resources/private/key.md", "x"),
        ("resources/h.meta.json", r#"{"uri": "web://evil.example/x", "provider": "web"}"#),
        ("providers/web.sh", SCRIPT),
        (
            "server.d/policy.toml",
            "[tools]\nallow = [\"a\"]\n[paths]\ndeny = [\"resources/private/**\"]\n[hosts]\ndeny = [\"*.example\"]\n",
        ),
    ]);
    assert_eq!(fixture.offers(Kind::Tool), ["a"]);
    assert_eq!(fixture.offers(Kind::Resource), ["file:///resources/open.md"]);
    fixture.change("server.d/policy.toml", "[tools");
    assert_eq!(fixture.offers(Kind::Tool), ["a"], "the last good policy holds");
    fixture.remove("server.d/policy.toml");
    assert_eq!(fixture.offers(Kind::Tool), ["a", "b"]);
    let closed = StockFixture::new(&[("tools/a.sh", SCRIPT), ("server.d/policy.toml", "[tools")]);
    assert_eq!(closed.offers(Kind::Tool), [""; 0], "one that was never understood allows nothing");
}

#[test]
fn a_policy_sees_through_links() {
    let mut fixture = StockFixture::new(&[
        ("resources/private/key.md", "x"),
        ("resources/open.md", "x"),
        ("server.d/policy.toml", "[paths]\ndeny = [\"resources/private/**\"]\n"),
    ]);
    let at = fixture.directory.path().join("resources/link.md");
    std::os::unix::fs::symlink("private/key.md", at).unwrap();
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(fixture.offers(Kind::Resource), ["file:///resources/open.md"]);
}

#[test]
fn names_with_spaces_quotes_newlines_and_letters_of_all_kinds_are_served() {
    let fixture = StockFixture::new(&[
        ("resources/a b.txt", "x"),
        ("resources/q\"'.txt", "x"),
        ("resources/line\nbreak.txt", "x"),
        ("resources/\u{e9}\u{4e2d}\u{1f600}.txt", "x"),
        ("resources/per%cent#?.txt", "x"),
        ("tools/with space/tool.sh", SCRIPT),
    ]);
    assert_eq!(fixture.offers(Kind::Resource).len(), 5);
    for uri in fixture.offers(Kind::Resource) {
        assert!(uri.is_ascii() && !uri.contains([' ', '\n', '"', '#', '?']), "{uri}");
    }
    assert!(
        fixture.problems()[0].contains("`with space` cannot name a tool"),
        "{:?}",
        fixture.problems()
    );
}

#[test]
fn hidden_and_ignored_files_are_not_served_until_the_rules_say_otherwise() {
    let mut fixture = StockFixture::new(&[
        ("resources/a.log", "x"),
        ("resources/.secret", "x"),
        ("resources/a.md~", "x"),
        (".tidingsignore", "*.log\n"),
    ]);
    assert_eq!(fixture.offers(Kind::Resource), [""; 0]);
    fixture.put(".tidingsignore", "");
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(fixture.offers(Kind::Resource), ["file:///resources/a.log"]);
}

#[test]
fn a_directory_that_comes_or_goes_is_everything_in_it() {
    let mut fixture = StockFixture::new(&[("resources/d/a.md", "x"), ("resources/d/e/b.md", "x")]);
    let at = fixture.directory.path().join("resources");
    std::fs::rename(at.join("d"), at.join("moved")).unwrap();
    let paths = ["resources/d", "resources/moved"].map(PathBuf::from).into();
    fixture.stock.rescan_paths(&paths, &mut |_| {});
    assert_eq!(
        fixture.offers(Kind::Resource),
        ["file:///resources/moved/a.md", "file:///resources/moved/e/b.md"]
    );
    std::fs::remove_dir_all(&at).unwrap();
    fixture.stock.rescan_paths(&["resources"].map(PathBuf::from).into(), &mut |_| {});
    assert_eq!(fixture.offers(Kind::Resource), [""; 0]);
}

#[test]
fn a_file_behind_a_link_moves_the_link() {
    let mut fixture = StockFixture::new(&[("resources/real.md", "x")]);
    let at = fixture.directory.path().join("resources/link.md");
    std::os::unix::fs::symlink("real.md", at).unwrap();
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(fixture.offers(Kind::Resource).len(), 2);
    let affected = fixture.change("resources/real.md", "another");
    assert!(affected.files.contains(&PathBuf::from("resources/link.md")), "{affected:?}");
}

#[test]
fn an_icon_that_changes_is_a_description_that_changes() {
    let mut fixture = StockFixture::new(&[
        ("tools/a/tool.sh", "#!/bin/sh\n"),
        ("tools/a/tool.meta.json", r#"{"description": "A", "icons": [{"src": "../../icon.svg"}]}"#),
        ("icon.svg", "<svg/>"),
    ]);
    let icon =
        |fixture: &StockFixture| match fixture.stock.selected(&(Kind::Tool, "a".into())).as_deref()
        {
            Some(Offered::Tool(offer)) => offer.script.tool.icons.clone().unwrap()[0].src.clone(),
            _ => panic!("no tool"),
        };
    assert_eq!(icon(&fixture), "data:image/svg+xml;base64,PHN2Zy8+");
    assert_eq!(fixture.stock.consulted_directories(), ["", "config"].map(PathBuf::from).into());
    fixture.change("icon.svg", "<svg></svg>");
    assert_eq!(icon(&fixture), "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=");
}

#[test]
fn directories_whose_names_begin_alike_hide_nobody() {
    let fixture = StockFixture::new(&[
        ("resources/notes.d/x.md", "x"),
        ("resources/notes.md", "x"),
        ("resources/notes/y.md", "x"),
        ("tools/foo.lib/h.txt", "x"),
        ("tools/foo.sh", SCRIPT),
    ]);
    assert_eq!(fixture.offers(Kind::Resource).len(), 3);
    assert_eq!(fixture.offers(Kind::Tool), ["foo"]);
}

#[test]
fn a_policy_that_is_hidden_or_no_file_closes_instead_of_opening() {
    let tool = ("tools/a.sh", SCRIPT);
    let hidden = StockFixture::new(&[
        tool,
        (".tidingsignore", "*.toml\n"),
        ("server.d/policy.toml", "[tools]\ndeny = [\"a\"]\n"),
    ]);
    assert_eq!(hidden.offers(Kind::Tool), [""; 0]);
    let directory = StockFixture::new(&[tool, ("server.d/policy.toml/x", "")]);
    assert_eq!(directory.offers(Kind::Tool), [""; 0]);
    let mut link = StockFixture::new(&[tool]);
    let at = link.directory.path().join("server.d");
    std::fs::create_dir(&at).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", at.join("policy.toml")).unwrap();
    link.stock.rescan(&mut |_| {});
    assert_eq!(link.offers(Kind::Tool), ["a"], "the last good policy, which was none, holds");
}

#[test]
fn an_ignore_file_that_cannot_be_read_leaves_the_last_one_in_force() {
    let mut fixture = StockFixture::new(&[("resources/a.log", "x"), (".tidingsignore", "*.log\n")]);
    fixture.put(".tidingsignore", &"#".repeat(2 << 20));
    fixture.stock.rescan(&mut |_| {});
    assert_eq!(fixture.offers(Kind::Resource), [""; 0]);
    assert_eq!(fixture.problems().len(), 1);
}

#[test]
fn hidden_and_denied_files_do_not_become_part_of_a_description() {
    let fixture = StockFixture::new(&[
        (".env", "SECRET=1"),
        ("private/logo.svg", "<svg/>"),
        ("server.d/policy.toml", "[paths]\ndeny = [\"private/**\"]\n"),
        ("tools/a/tool.sh", "#!/bin/sh\n"),
        (
            "tools/a/tool.meta.json",
            r#"{"description": "A", "icons": [{"src": "../../.env"}, {"src": "../../private/logo.svg"}]}"#,
        ),
        ("prompts/p.meta.json", r#"{"path": "../.env"}"#),
    ]);
    let Some(Offered::Tool(offer)) =
        fixture.stock.selected(&(Kind::Tool, "a".into())).as_deref().cloned()
    else {
        panic!("{:?}", fixture.problems())
    };
    assert_eq!(offer.script.tool.icons, None);
    assert_eq!(fixture.offers(Kind::Prompt), [""; 0]);
    assert_eq!(fixture.problems().len(), 3, "{:?}", fixture.problems());
}

#[test]
fn a_registration_that_was_never_understood_opens_nothing() {
    let fixture = StockFixture::new(&[
        ("tools/danger.sh", SCRIPT),
        ("resources/r.md", "x"),
        ("server.d/register.json", "{\"tools\": [],}"),
    ]);
    assert_eq!(fixture.offers(Kind::Tool), [""; 0]);
    assert_eq!(fixture.offers(Kind::Resource), [""; 0]);
    let one_bad = StockFixture::new(&[
        ("tools/x.sh", SCRIPT),
        ("resources/r.md", "x"),
        (
            "server.d/register.json",
            r#"{"tools": [{"name": "good", "description": "G", "path": "x.sh"}, {"name": "b d", "path": "x.sh"}]}"#,
        ),
    ]);
    assert_eq!(one_bad.offers(Kind::Tool), ["good"]);
    assert_eq!(one_bad.offers(Kind::Resource).len(), 1);
}

#[test]
fn links_follow_what_they_lead_to() {
    let mut fixture = StockFixture::new(&[
        ("data/v.md", "1"),
        ("resources/one.md", "1"),
        ("resources/two.md", "22"),
    ]);
    let at = |name: &str| fixture.directory.path().join("resources").join(name);
    std::os::unix::fs::symlink("../data/v.md", at("beside.md")).unwrap();
    std::os::unix::fs::symlink("one.md", at("inner.md")).unwrap();
    std::os::unix::fs::symlink("inner.md", at("outer.md")).unwrap();
    std::os::unix::fs::symlink("late.md", at("waits.md")).unwrap();
    let (inner, late) = (at("inner.md"), PathBuf::from("resources/late.md"));
    fixture.stock.rescan(&mut |_| {});
    assert!(fixture.stock.consulted_directories().contains(&PathBuf::from("data")));
    let affected = fixture.change("data/v.md", "four");
    assert!(affected.files.contains(&PathBuf::from("resources/beside.md")), "{affected:?}");
    std::fs::remove_file(&inner).unwrap();
    std::os::unix::fs::symlink("two.md", &inner).unwrap();
    let affected =
        fixture.stock.rescan_paths(&[PathBuf::from("resources/inner.md")].into(), &mut |_| {});
    assert!(affected.files.contains(&PathBuf::from("resources/outer.md")), "{affected:?}");
    let sizes: Vec<_> = ["beside", "inner", "outer"]
        .map(|name| fixture.stock.files()[&PathBuf::from(format!("resources/{name}.md"))].size)
        .into();
    assert_eq!(sizes, [4, 2, 2]);
    fixture.put("resources/late.md", "x");
    fixture.stock.rescan_paths(&[late].into(), &mut |_| {});
    assert!(fixture.offers(Kind::Resource).contains(&"file:///resources/waits.md".to_owned()));
}

#[test]
fn a_file_with_two_names_moves_under_both() {
    let mut fixture = StockFixture::new(&[("resources/a.md", "x")]);
    let at = fixture.directory.path().join("resources");
    std::fs::hard_link(at.join("a.md"), at.join("b.md")).unwrap();
    fixture.stock.rescan(&mut |_| {});
    let affected = fixture.change("resources/b.md", "another");
    assert!(affected.files.contains(&PathBuf::from("resources/a.md")), "{affected:?}");
}

#[test]
fn thousands_of_slips_in_one_file_cost_no_more_than_they_should() {
    let keys: Vec<_> = (0..60_000).map(|number| format!("\"k{number}\": 1")).collect();
    let many = format!("{{\"description\": \"A\",\n{}}}", keys.join(",\n"));
    let fixture =
        StockFixture::new(&[("tools/a/tool.sh", "#!/bin/sh\n"), ("tools/a/tool.meta.json", &many)]);
    assert_eq!(fixture.offers(Kind::Tool), ["a"]);
    assert_eq!(fixture.problems().len(), 20);
    let names: Vec<_> = (0..90_000).map(|number| format!("{{{{p{number}}}}}")).collect();
    assert_eq!(StockFixture::new(&[("prompts/p.md", &names.concat())]).offers(Kind::Prompt), ["p"]);
}

#[test]
fn the_folder_introduces_itself() {
    let mut fixture = StockFixture::new(&[
        ("server.d/server.meta.json", r#"{"name": "n", "title": "T", "version": "3"}"#),
        ("server.d/server.instructions.md", "Be kind.\n"),
    ]);
    let introduction = fixture.stock.introduction().clone();
    assert_eq!(introduction.name.as_deref(), Some("n"));
    assert_eq!(introduction.instructions.as_deref(), Some("Be kind."));
    fixture.change("server.d/server.meta.json", "{");
    assert_eq!(fixture.stock.introduction(), &introduction, "the last good one holds");
}
