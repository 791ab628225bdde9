//! Variables for the programs of a folder, and how hosts are told of them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::support::demo::{Ended, client, ended};

/// A folder whose one tool needs a variable.
fn folder() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let tool = place.path().join("hello/tools/ask.sh");
    std::fs::create_dir_all(tool.parent().unwrap()).unwrap();
    let text = "#!/bin/sh\n# @describe Asks\necho \"key ${API_KEY:?must be set}\"\n";
    std::fs::write(&tool, text).unwrap();
    std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

async fn run(place: &Path, words: &[&str], key: Option<&str>) -> Ended {
    let mut command = client(words);
    command.env("HOME", place).current_dir(place).env_remove("API_KEY");
    if let Some(key) = key {
        command.env("API_KEY", key);
    }
    ended(command).await
}

#[tokio::test]
async fn a_variable_is_passed_with_one_spelling() {
    let place = folder();
    let run = async |words: &[&str]| run(place.path(), words, Some("one")).await;
    let refused = run(&["run", "hello", "ask"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.output.contains("serve the folder with `--env API_KEY`"), "{refused:?}");
    for (variable, expected) in [("API_KEY", "key one"), ("API_KEY=two", "key two")] {
        let there = run(&["run", "hello", "ask", "--env", variable]).await;
        assert_eq!(there.output.trim(), expected, "{there:?}");
        let old = run(&["run", "hello", "ask", "--pass-env", variable]).await;
        assert_eq!(old.output.trim(), expected, "{old:?}");
        let program = env!("CARGO_BIN_EXE_tidings");
        let server = ["--", program, "serve", "--folder", "hello", "--stdio", "--env", variable];
        let served = run(&[&["call", "ask"], &server[..]].concat()).await;
        assert_eq!(served.output.trim(), expected, "{served:?}");
    }
    std::fs::write(place.path().join("tidings.toml"), "[folders]\nenv = [\"API_KEY=file\"]\n")
        .unwrap();
    let program = env!("CARGO_BIN_EXE_tidings");
    let server =
        ["--", program, "serve", "--folder", "hello", "--stdio", "--config", "tidings.toml"];
    let served = run(&[&["call", "ask"], &server[..]].concat()).await;
    assert_eq!(served.output.trim(), "key file", "{served:?}");
}

#[tokio::test]
async fn a_folder_says_which_variables_it_needs() {
    let place = folder();
    let meta = place.path().join("hello/server.d/server.meta.json");
    std::fs::create_dir_all(meta.parent().unwrap()).unwrap();
    std::fs::write(meta, r#"{"env": ["API_KEY"]}"#).unwrap();
    let linted = run(place.path(), &["lint", "hello"], Some("one")).await;
    assert!(linted.output.contains("need `API_KEY`, which is not passed to them"), "{linted:?}");
    let words = ["config", "hello", "--client", "cursor"];
    let printed: Value =
        serde_json::from_str(&run(place.path(), &words, None).await.output).unwrap();
    let arguments = printed["mcpServers"]["hello"]["args"].as_array().unwrap();
    assert_eq!(arguments[arguments.len() - 2..], ["--env", "API_KEY"]);
}

#[tokio::test]
async fn an_entry_of_a_host_has_any_options_of_serve() {
    let place = folder();
    let entry = async |words: &[&str]| {
        let words = [&["config", "--client", "cursor"], words].concat();
        let ended = run(place.path(), &words, None).await;
        serde_json::from_str::<Value>(&ended.output).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let feeds = entry(&["--", "--feeds", "--read-only"]).await;
    let arguments = &feeds["mcpServers"]["feeds"]["args"];
    assert_eq!(*arguments, serde_json::json!(["serve", "--feeds", "--read-only", "--stdio"]));
    let shared = entry(&["--", "--workspace", "notes"]).await;
    let here = place.path().canonicalize().unwrap().join("notes");
    assert_eq!(shared["mcpServers"]["notes"]["args"][2], here.to_str().unwrap());
    let keyed = entry(&["hello", "--env", "API_KEY=secret"]).await;
    let hello = &keyed["mcpServers"]["hello"];
    assert_eq!(hello["env"]["API_KEY"], "secret");
    assert!(!hello["args"].to_string().contains("secret"), "{hello}");
    let words = ["config", "--client", "cursor", "--", "--no-such"];
    let refused = run(place.path(), &words, None).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("--no-such"), "{refused:?}");
}

#[tokio::test]
async fn a_server_is_named_after_its_folder_and_quiet() {
    let place = folder();
    let program = env!("CARGO_BIN_EXE_tidings");
    let words = ["info", "--json", "--", program, "serve", "--folder", "hello", "--stdio"];
    let info = run(place.path(), &words, None).await;
    assert!(info.output.contains("\"name\":\"hello\""), "{info:?}");
    assert!(!info.errors.contains("change"), "{info:?}");
}
