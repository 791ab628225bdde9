//! The commands about a folder: made, described to hosts, judged, and run without a server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::demo::{Ended, PROGRAM, client, ended, program, within};

/// A home of one test, with nothing in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With an example folder `hello` in it.
    async fn with_example() -> Self {
        let home = Self::new();
        let made = home.run(&["new", "folder", "hello"]).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file)).unwrap()
    }

    fn has(&self, file: &str) -> bool {
        self.path().join(file).exists()
    }

    /// Runs the program in it.
    async fn run(&self, words: &[&str]) -> Ended {
        let mut command = client(words);
        command.env("HOME", self.path()).current_dir(self.path());
        let ended = ended(command).await;
        let (output, errors) = (self.shown(&ended.output), self.shown(&ended.errors));
        Ended { output, errors, ..ended }
    }

    /// Text without the paths of the machine.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "~").replace(PROGRAM, "PROGRAM")
    }
}

#[track_caller]
fn refused(ended: &Ended, code: i32, errors: &str) {
    assert_eq!((ended.code, ended.errors.as_str()), (Some(code), errors), "{ended:?}");
}

#[tokio::test]
async fn a_new_folder_is_told_with_what_to_do_next() {
    let home = Home::new();
    let made = home.run(&["new", "folder", "my tools"]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    insta::assert_snapshot!(made.output, @"
    created my tools/README.md
    created my tools/.tidingsignore
    created my tools/prompts/explain.md
    created my tools/resources/colours.json
    created my tools/resources/notes.jsonl
    created my tools/resources/notes.jsonl.meta.json
    created my tools/resources/welcome.md
    created my tools/server.d/server.instructions.md
    created my tools/server.d/server.meta.json
    created my tools/tools/greet/tool.meta.json
    created my tools/tools/greet/tool.sh
    created my tools/tools/note.sh
    next:
      tidings run 'my tools' greet name=Ada
      tidings serve --folder 'my tools'
      tidings watch http://127.0.0.1:8484/mcp notes://all
      tidings call http://127.0.0.1:8484/mcp note text=hello
    ");
    let server: Value =
        serde_json::from_str(&home.read("my tools/server.d/server.meta.json")).unwrap();
    assert_eq!(server["name"], "my-tools");
    for tool in ["my tools/tools/greet/tool.sh", "my tools/tools/note.sh"] {
        let mode = std::fs::metadata(home.path().join(tool)).unwrap().permissions().mode();
        assert_eq!(mode & 0o100, 0o100, "{tool}");
    }
}

#[tokio::test]
async fn a_folder_that_is_not_empty_is_left_alone() {
    let home = Home::with_example().await;
    let again = home.run(&["new", "folder", "hello"]).await;
    refused(
        &again,
        2,
        "error: `hello` is not empty\n\
         hint: give a folder that does not exist; `tidings new tool NAME --folder DIR` adds to \
         an existing one\n",
    );
    home.write("file", "");
    let file = home.run(&["new", "folder", "file"]).await;
    assert_eq!(file.code, Some(2), "{file:?}");
    std::fs::create_dir_all(home.path().join("fresh/.git")).unwrap();
    assert_eq!(home.run(&["new", "folder", "fresh"]).await.code, Some(0));
}

#[tokio::test]
async fn items_are_added_to_a_folder() {
    let home = Home::with_example().await;
    let words = ["new", "tool", "weather", "--folder", "hello"];
    insta::assert_snapshot!(home.run(&words).await.output, @"
    created hello/tools/weather/tool.meta.json
    created hello/tools/weather/tool.sh
    next:
      tidings run hello weather text=hello
    ");
    let words = ["new", "tool", "tide", "--folder", "hello", "--single", "--language", "python"];
    let made = home.run(&[&words[..], &["--json"]].concat()).await.object();
    assert_eq!(made, json!({ "folder": "hello", "files": ["tools/tide.py"] }));
    let made = home.run(&["new", "prompt", "review", "--folder", "hello", "--json"]).await.object();
    assert_eq!(made["files"], json!(["prompts/review.md"]));
    let words = ["new", "resource", "a/today", "--folder", "hello", "--json"];
    let made = home.run(&words).await.object();
    let files = json!(["resources/a/today.md", "resources/a/today.md.meta.json"]);
    assert_eq!(made["files"], files);
}

#[tokio::test]
async fn nothing_is_overwritten_and_names_are_checked() {
    let home = Home::with_example().await;
    let taken = home.run(&["new", "tool", "note", "--folder", "hello"]).await;
    refused(
        &taken,
        2,
        "error: `hello/tools/note.sh` already exists\n\
         hint: choose another name, or remove it first\n",
    );
    let taken = home.run(&["new", "prompt", "explain", "--folder", "hello"]).await;
    assert_eq!(taken.code, Some(2), "{taken:?}");
    let taken = home.run(&["new", "resource", "welcome.md", "--folder", "hello"]).await;
    assert_eq!(taken.code, Some(2), "{taken:?}");
    let wrong = home.run(&["new", "tool", "a b", "--folder", "hello"]).await;
    assert!(wrong.errors.contains("`a b` is not a valid tool name"), "{wrong:?}");
    let wrong = home.run(&["new", "resource", "../x", "--folder", "hello"]).await;
    assert!(wrong.errors.contains("leads out of the folder"), "{wrong:?}");
    let nowhere = home.run(&["new", "tool", "x"]).await;
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.errors.contains("does not look like a folder to serve"), "{nowhere:?}");
    let missing = home.run(&["new", "tool", "x", "--folder", "none"]).await;
    refused(
        &missing,
        2,
        "error: the folder `none` does not exist\nhint: `tidings new folder none` creates it\n",
    );
}

#[tokio::test]
async fn hosts_are_listed_with_their_files() {
    let home = Home::new();
    let listed = home.run(&["config"]).await;
    // How wide a column is depends on where the home of the test is.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let listed: Vec<_> = listed.output.lines().map(words).collect();
    insta::assert_snapshot!(listed.join("\n"), @"
    CLIENT FILE FILE OF THIS PROJECT
    claude-code ~/.claude.json ~/.mcp.json
    claude-desktop ~/.config/Claude/claude_desktop_config.json
    codex ~/.codex/config.toml ~/.codex/config.toml
    cursor ~/.cursor/mcp.json ~/.cursor/mcp.json
    gemini ~/.gemini/settings.json ~/.gemini/settings.json
    lmstudio ~/.lmstudio/mcp.json
    vscode ~/.config/Code/User/mcp.json ~/.vscode/mcp.json
    windsurf ~/.codeium/windsurf/mcp_config.json
    zed ~/.config/zed/settings.json
    ");
    let listed = home.run(&["config", "--client", "list", "--json"]).await.lines();
    let cursor = listed.iter().find(|line| line["client"] == "cursor").unwrap();
    assert_eq!(
        *cursor,
        json!({ "client": "cursor", "file": "~/.cursor/mcp.json",
            "project_file": "~/.cursor/mcp.json" })
    );
}

#[tokio::test]
async fn an_entry_is_printed_for_a_host() {
    let home = Home::with_example().await;
    let printed = home.run(&["config", "hello", "--client", "vscode"]).await;
    insta::assert_snapshot!(printed.output, @r#"
    {
      "servers": {
        "hello": {
          "type": "stdio",
          "command": "PROGRAM",
          "args": [
            "serve",
            "--folder",
            "~/hello",
            "--stdio"
          ]
        }
      }
    }
    "#);
    insta::assert_snapshot!(printed.errors, @"
    file: `~/.config/Code/User/mcp.json`
    add `--write` to write it
    ");
    let printed = home.run(&["config", "hello", "--client", "codex", "--name", "a b"]).await;
    insta::assert_snapshot!(printed.output, @r#"
    [mcp_servers."a b"]
    command = "PROGRAM"
    args = ["serve", "--folder", "~/hello", "--stdio"]
    "#);
    assert!(!home.has(".config"));
    let missing = home.run(&["config", "--client", "cursor"]).await;
    assert!(missing.errors.starts_with("error: DIR is missing\n"), "{missing:?}");
    assert_eq!(missing.code, Some(2));
}

#[tokio::test]
async fn an_entry_is_written_once_and_everything_else_stays() {
    let home = Home::with_example().await;
    let before = r#"{
  "zeta": 1.50,
  "mcpServers": {
    "old": {"url": "http://h"}
  },
  "alpha": {}
}
"#;
    home.write(".cursor/mcp.json", before);
    let words = ["config", "hello", "--client", "cursor", "--write"];
    let written = home.run(&words).await;
    insta::assert_snapshot!(written.output, @"
    added `hello` in `~/.cursor/mcp.json`
    the old file was saved as `~/.cursor/mcp.json.bak`
    restart cursor to use it
    ");
    insta::assert_snapshot!(home.shown(&home.read(".cursor/mcp.json")), @r#"
    {
      "zeta": 1.50,
      "mcpServers": {
        "old": {"url": "http://h"},
        "hello": {
          "command": "PROGRAM",
          "args": ["serve", "--folder", "~/hello", "--stdio"]
        }
      },
      "alpha": {}
    }
    "#);
    assert_eq!(home.read(".cursor/mcp.json.bak"), before);
    let again = home.run(&words).await;
    insta::assert_snapshot!(again.output, @"`hello` is already in `~/.cursor/mcp.json`");
    assert!(!home.has(".cursor/mcp.json.bak.1"));
    let found = home.run(&["servers", "--json"]).await.lines();
    assert!(found.iter().any(|server| server["name"] == "hello"), "{found:?}");
}

#[tokio::test]
async fn another_server_of_the_name_is_replaced_only_by_force() {
    let home = Home::with_example().await;
    home.write(".lmstudio/mcp.json", r#"{"mcpServers": {"hello": {"command": "other"}}}"#);
    let words = ["config", "hello", "--client", "lmstudio", "--write"];
    let taken = home.run(&words).await;
    refused(
        &taken,
        1,
        "error: `~/.lmstudio/mcp.json` was not changed\n\
         caused by: it has a different server `hello`\n\
         hint: replace it with `--force`, or keep both with `--name NAME`\n",
    );
    let forced = home.run(&[&words[..], &["--force", "--json"]].concat()).await.object();
    assert_eq!(forced["state"], "replaced");
    assert_eq!(forced["backup"], "~/.lmstudio/mcp.json.bak");
    assert!(home.read(".lmstudio/mcp.json").contains(PROGRAM));
    let other = home.run(&[&words[..], &["--name", "second", "--json"]].concat()).await.object();
    assert_eq!((&other["state"], &other["name"]), (&json!("added"), &json!("second")));
    assert_eq!(other["backup"], "~/.lmstudio/mcp.json.bak.1");
}

#[tokio::test]
async fn a_file_with_comments_keeps_them() {
    let home = Home::with_example().await;
    let mine = "{\n  // mine\n  \"context_servers\": {\n    /* none yet */\n  },\n}\n";
    home.write(".config/zed/settings.json", mine);
    let words = ["config", "hello", "--client", "zed", "--write", "--json"];
    assert_eq!(home.run(&words).await.object()["state"], "added");
    let written = home.read(".config/zed/settings.json");
    assert!(written.starts_with("{\n  // mine\n  \"context_servers\": {\n"), "{written}");
    assert!(written.contains("    /* none yet */\n"), "{written}");
    assert!(written.contains("    \"hello\": {\n      \"command\": "), "{written}");
    assert!(written.ends_with("  },\n}\n"), "{written}");
    assert_eq!(home.read(".config/zed/settings.json.bak"), mine);
    assert_eq!(home.run(&words).await.object()["state"], "present");
    home.write(".config/zed/settings.json", "{ nonsense");
    let broken = home.run(&["config", "hello", "--client", "zed", "--write"]).await;
    assert_eq!(broken.code, Some(1));
    assert!(broken.errors.contains("invalid JSON: "), "{broken:?}");
}

#[tokio::test]
async fn a_host_that_is_not_there_is_said_so() {
    let home = Home::with_example().await;
    let missing = home.run(&["config", "hello", "--client", "windsurf", "--write"]).await;
    refused(
        &missing,
        1,
        "error: windsurf is not set up\n\
         caused by: the folder `~/.codeium/windsurf` does not exist\n\
         hint: start windsurf once, or create the folder: `mkdir -p ~/.codeium/windsurf`\n",
    );
    let no_project =
        home.run(&["config", "hello", "--client", "windsurf", "--write", "--project"]).await;
    assert_eq!(no_project.code, Some(2));
    assert!(no_project.errors.contains("windsurf has no project file"), "{no_project:?}");
    let codex = home.run(&["config", "hello", "--client", "codex", "--write"]).await;
    assert_eq!(codex.code, Some(1));
    assert!(codex.errors.contains("codex mcp add hello -- PROGRAM serve --folder"), "{codex:?}");
    let folder = home.run(&["config", "none", "--client", "cursor"]).await;
    assert_eq!(folder.code, Some(2), "{folder:?}");
}

#[tokio::test]
async fn the_file_of_a_project_is_made() {
    let home = Home::with_example().await;
    let words = ["config", "hello", "--client", "vscode", "--write", "--project", "--json"];
    let written = home.run(&words).await.object();
    assert_eq!(written["file"], "~/.vscode/mcp.json");
    assert_eq!((&written["state"], &written["backup"]), (&json!("added"), &Value::Null));
    let file: Value = serde_json::from_str(&home.read(".vscode/mcp.json")).unwrap();
    assert_eq!(file["servers"]["hello"]["type"], "stdio");
    let words = ["config", "hello", "--client", "claude-code", "--write", "--json"];
    assert_eq!(home.run(&words).await.object()["file"], "~/.claude.json");
}

#[tokio::test]
async fn a_folder_with_nothing_wrong_says_what_it_offers() {
    let home = Home::with_example().await;
    let linted = home.run(&["lint", "hello"]).await;
    assert_eq!((linted.code, linted.errors.as_str()), (Some(0), ""));
    insta::assert_snapshot!(linted.output, @"no problems: 2 tools, 1 prompt, 3 resources");
    let linted = home.run(&["lint", "hello", "--json"]).await;
    assert_eq!((linted.code, linted.output.as_str()), (Some(0), ""));
    for words in [
        &["new", "tool", "one"][..],
        &["new", "tool", "two", "--single"],
        &["new", "tool", "three", "--language", "python"],
        &["new", "tool", "four", "--language", "python", "--single"],
        &["new", "prompt", "123"],
        &["new", "resource", "a/b.txt"],
        &["new", "resource", "table.json"],
    ] {
        let made = home.run(&[words, &["--folder", "hello"]].concat()).await;
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    let linted = home.run(&["lint", "hello", "--strict"]).await;
    insta::assert_snapshot!(linted.output, @"no problems: 6 tools, 2 prompts, 5 resources");
    let nowhere = home.run(&["lint", "none"]).await;
    assert_eq!(nowhere.code, Some(2), "{nowhere:?}");
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_line_and_what_to_do() {
    let home = Home::with_example().await;
    home.write("hello/tools/greet/tool.meta.json", "{\n  \"description\": }\n");
    home.write("hello/tools/note.sh", "#!/bin/sh\n# @param text:strin! What\n");
    let linted = home.run(&["lint", "hello"]).await;
    assert_eq!(linted.code, Some(1), "{linted:?}");
    let lines: Vec<_> = linted.output.lines().collect();
    let begins = [
        "tools/greet/tool.meta.json:2: error: ",
        "  hint: ",
        "tools/note.sh:2: error: `strin` is not a type",
        "  hint: ",
    ];
    assert_eq!(lines.len(), begins.len(), "{linted:?}");
    for (line, begins) in lines.into_iter().zip(begins) {
        assert!(line.starts_with(begins), "{line}");
    }
    assert_eq!(linted.errors, "error: `hello` has 2 errors\n");
    let lines = home.run(&["lint", "hello", "--json"]).await.lines();
    let greet = lines.iter().find(|line| line["file"] == "tools/greet/tool.meta.json").unwrap();
    assert_eq!((&greet["line"], &greet["severity"]), (&json!(2), &json!("error")));
    assert_eq!((&greet["fixable"], &greet["mended"]), (&json!(false), &json!(false)));
    assert!(greet["reason"].is_string() && greet["advice"].is_string());
}

#[tokio::test]
async fn a_registration_that_is_not_run_is_a_note_of_lint_and_serve() {
    let home = Home::with_example().await;
    home.write("hello/server.d/register.sh", "#!/bin/sh\necho '{}'\n");
    let register = home.path().join("hello/server.d/register.sh");
    std::fs::set_permissions(register, std::fs::Permissions::from_mode(0o755)).unwrap();
    let linted = home.run(&["lint", "hello", "--strict"]).await;
    assert_eq!(linted.code, Some(0), "{linted:?}");
    let note = "server.d/register.sh: note: it is not run, so nothing it registers is offered";
    assert!(linted.output.starts_with(note), "{linted:?}");
    assert!(linted.output.contains("`--allow-register`"), "{linted:?}");
    let allowed = home.run(&["lint", "hello", "--allow-register"]).await;
    assert!(!allowed.output.contains("note:"), "{allowed:?}");
    let serve = "serve --http 127.0.0.1:0 --folder hello";
    let mut child = program(serve).current_dir(home.path()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = within(lines.next_line()).await.unwrap().unwrap();
        if line.contains("  note  server.d/register.sh: it is not run") {
            break;
        }
    }
    child.kill().await.unwrap();
}

#[tokio::test]
async fn what_can_be_mended_is_mended() {
    let home = Home::with_example().await;
    let note = home.path().join("hello/tools/note.sh");
    std::fs::set_permissions(&note, std::fs::Permissions::from_mode(0o640)).unwrap();
    let meta = "hello/tools/greet/tool.meta.json";
    let text = home.read(meta);
    home.write(meta, &format!("\u{feff}{text}"));
    let linted = home.run(&["lint", "hello", "--strict"]).await;
    assert_eq!(linted.code, Some(1), "{linted:?}");
    assert!(linted.errors.ends_with("hint: `--fix` repairs 2 of them\n"), "{linted:?}");
    let mended = home.run(&["lint", "hello", "--fix", "--strict"]).await;
    assert_eq!(mended.code, Some(0), "{mended:?}");
    insta::assert_snapshot!(mended.output, @"
    tools/greet/tool.meta.json: repaired: removed the byte order mark
    tools/note.sh: repaired: made executable
    no problems: 2 tools, 1 prompt, 3 resources
    ");
    assert_eq!(std::fs::metadata(&note).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(home.read(meta), text);
}

#[tokio::test]
async fn a_tool_is_run_as_a_server_would() {
    let home = Home::with_example().await;
    let run = home.run(&["run", "hello", "greet", "name=Ada Lovelace é"]).await;
    assert_eq!((run.code, run.output.as_str()), (Some(0), "Hello, Ada Lovelace é.\n"), "{run:?}");
    assert!(run.errors.starts_with("log: info"), "{run:?}");
    assert!(run.errors.ends_with(": greeting Ada Lovelace é\n"), "{run:?}");
    let object = home.run(&["run", "hello", "greet", "name=Ada", "--json"]).await.object();
    assert_eq!(object["tool"], "greet");
    assert_eq!(object["result"]["content"][0]["text"], "Hello, Ada.");
    let quoted = home.run(&["run", "hello", "greet", "name=\"x"]).await;
    assert_eq!(quoted.code, Some(1), "{quoted:?}");
    let missing = home.run(&["run", "hello", "greet"]).await;
    refused(
        &missing,
        2,
        "error: parameter `name` is missing\nhint: give `name=VALUE`, string: Who to greet\n",
    );
    let unknown = home.run(&["run", "hello", "gret"]).await;
    refused(&unknown, 1, "error: the server has no tool `gret`\nhint: did you mean `greet`?\n");
}

#[tokio::test]
async fn the_example_writes_down_whatever_it_is_given() {
    let home = Home::with_example().await;
    let text = "it's \"quoted\" \\ $(here)\nand `there` é";
    let noted = home.run(&["run", "hello", "note", &format!("text={text}")]).await;
    assert_eq!((noted.code, noted.output.as_str()), (Some(0), "noted\n"), "{noted:?}");
    let notes = home.read("hello/resources/notes.jsonl");
    let last: Value = serde_json::from_str(notes.lines().last().unwrap()).unwrap();
    assert_eq!(last["text"], text);
    assert_eq!(notes.lines().count(), 2);
}

#[tokio::test]
async fn a_new_tool_runs_at_once() {
    let home = Home::with_example().await;
    for (name, single) in [("one", &[][..]), ("two", &["--single"])] {
        let words = [&["new", "tool", name, "--folder", "hello"], single].concat();
        assert_eq!(home.run(&words).await.code, Some(0));
        let run = home.run(&["run", "hello", name, "text=it's"]).await;
        assert_eq!(
            run.output,
            format!("{name} was called with {{\"text\":\"it's\"}}\n"),
            "{run:?}"
        );
    }
}

#[tokio::test]
async fn a_tool_sees_only_what_it_is_shown() {
    let home = Home::with_example().await;
    home.write(
        "hello/tools/peek.sh",
        "#!/bin/sh\n# @describe Tells a secret.\necho \"[$SECRET_OF_TEST]\"\n",
    );
    for (shown, expected) in [(&[][..], "[]\n"), (&["--env", "SECRET_OF_TEST"], "[s3cret]\n")] {
        let mut command = client(&[&["run", "hello", "peek"], shown].concat());
        command.env("HOME", home.path()).env("SECRET_OF_TEST", "s3cret").current_dir(home.path());
        let run = ended(command).await;
        assert_eq!(run.output, expected, "{run:?}");
        // What is wrong with this tool is told, and it is run all the same.
        assert!(run.errors.starts_with("warning: tools/peek.sh: it is not executable"), "{run:?}");
    }
    let other = home.run(&["run", "hello", "greet", "name=Ada"]).await;
    assert!(!other.errors.contains("peek"), "{other:?}");
}

#[tokio::test]
async fn a_tool_that_fails_is_a_failure() {
    let home = Home::with_example().await;
    home.write("hello/tools/fail.sh", "#!/bin/sh\n# @describe Fails.\necho no >&2\nexit 3\n");
    let failed = home.run(&["run", "hello", "fail"]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.errors.ends_with("error: the tool `fail` reported a failure\n"), "{failed:?}");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_stopped() {
    let home = Home::with_example().await;
    home.write(
        "hello/tools/slow.sh",
        "#!/bin/sh\n# @describe Takes long.\n# @timeout 200ms\nexec sleep 60\n",
    );
    let stopped = home.run(&["run", "hello", "slow"]).await;
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(stopped.output.starts_with("`slow` timed out: it took longer than "), "{stopped:?}");
    home.write("hello/tools/slow.sh", "#!/bin/sh\n# @describe Takes long.\nexec sleep 60\n");
    let given_up = home.run(&["run", "hello", "slow", "--timeout", "200ms"]).await;
    assert_eq!(given_up.code, Some(1), "{given_up:?}");
    assert!(given_up.errors.ends_with("hint: `--timeout 5m` waits longer\n"), "{given_up:?}");
}
