//! The commands about a workspace, as a person runs them.

use serde_json::{Value, json};
use tidings_workspace::{ArtifactList, Bind};

use super::Place;
use crate::support::workspace;

#[tokio::test]
async fn files_and_folders_become_artifacts_and_sets() {
    let place = Place::new();
    place.write("one.md", "# one");
    place.write("songs/a.mid", "MThd\0\0\0\x06");
    place.write("songs/sub/b.json", "{}");
    place.write("songs/.hidden", "no");
    let made = place.lines("import one.md songs --tag type:test --by ann").await;
    let titles: Vec<_> = made.iter().map(|line| line["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["one.md", "a.mid", "sub/b.json"]);
    let listed = place.lines("ls").await;
    let shown = |entry: &Value| {
        json!([
            entry["title"],
            entry["mimeType"],
            entry["creator"],
            entry["tags"],
            entry["set"],
            entry["index"]
        ])
    };
    assert_eq!(
        listed.iter().map(shown).collect::<Vec<_>>(),
        [
            json!(["sub/b.json", "application/json", "ann", ["type:test"], "songs", 1]),
            json!(["a.mid", "audio/mid", "ann", ["type:test"], "songs", 0]),
            json!(["one.md", "text/markdown", "ann", ["type:test"], null, null]),
        ]
    );
}

#[tokio::test]
async fn a_list_has_what_the_filters_leave() {
    let place = Place::new();
    place.import("a", "--tag x --tag y --by ann").await;
    place.import("b", "--tag x --by bob --set s").await;
    let c = place.import("c", "--by ann --set s").await;
    let titles = async |filter: &str| {
        let lines = place.lines(&format!("ls {filter}")).await;
        lines.iter().map(|line| line["title"].as_str().unwrap().to_owned()).collect::<String>()
    };
    assert_eq!(titles("").await, "cba");
    assert_eq!(titles("--tag x").await, "ba");
    assert_eq!(titles("--tag x --tag y").await, "a");
    assert_eq!(titles("--creator ann").await, "ca");
    assert_eq!(titles("--set s").await, "bc");
    assert_eq!(titles("--set s --creator ann").await, "c");
    assert_eq!(titles("--set s --limit 1").await, "b");
    assert_eq!(titles("--limit 2").await, "cb");
    assert_eq!(titles(&format!("--after {c}")).await, "ba");
    let none = place.run("ls --tag nothing").await;
    assert_eq!((none.code, none.output.as_str()), (Some(0), ""));
    assert_eq!(none.errors, "no artifacts\n");
    let more = place.run("ls --limit 1").await;
    assert_eq!(more.errors, format!("there are more: continue with `--after {c}`\n"));
}

#[tokio::test]
async fn an_artifact_is_shown_with_the_beginning_of_its_text() {
    let place = Place::new();
    let id = place.import("note.txt", "--title Note --tag a --tag b --by ann --set s").await;
    let artifact = place.lines(&format!("show {id}")).await.remove(0);
    let (created, hash) =
        (artifact["created"].as_str().unwrap(), artifact["hash"].as_str().unwrap());
    let shown = place.run(&format!("show {id}")).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let output = shown.output.replace(&id, "ID").replace(created, "TIME").replace(hash, "HASH");
    insta::assert_snapshot!(output, @"
    Note
      id       ID
      content  text/plain, 8 bytes
      hash     HASH
      created  TIME by ann
      tags     a, b
      set      s, at 0

    note.txt
    ");
    assert_eq!(artifact["lineage"][0]["id"], id);
    let content = place.run(&format!("show {id} --content")).await;
    assert_eq!(content.output, "note.txt");
}

#[tokio::test]
async fn tags_come_and_go_and_the_log_has_both() {
    let place = Place::new();
    let id = place.import("a", "").await;
    assert_eq!(place.run(&format!("tag {id} y x --by ann")).await.output, "added x, y\n");
    let again = place.run(&format!("tag {id} x")).await;
    assert_eq!(again.errors, "nothing changed: it has them already\n");
    assert_eq!(place.lines(&format!("untag {id} x z")).await[0]["removed"], json!(["x"]));
    let log = place.lines("log").await;
    let kinds: Vec<_> = log
        .iter()
        .map(|event| (event["number"].as_u64().unwrap(), event["type"].as_str().unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [
            (1, "blob.stored"),
            (2, "artifact.created"),
            (3, "artifact.tagged"),
            (4, "artifact.untagged")
        ]
    );
    assert_eq!(log[2]["actor"], "ann");
    assert_eq!(place.lines("log --since 2 --limit 1").await, [log[2].clone()]);
    assert_eq!(place.lines("log --type artifact.untagged").await, [log[3].clone()]);
    let text = place.run("log --since 3").await.output;
    let time = log[3]["time"].as_str().unwrap();
    assert_eq!(text, format!("4  {time}  cli  artifact.untagged  {id} -x\n"));
}

#[tokio::test]
async fn what_is_not_there_is_said_with_what_to_do() {
    let place = Place::new();
    let missing = place.run("ls").await;
    assert_eq!(missing.code, Some(1));
    assert_eq!(
        missing.errors,
        "error: there is no workspace in `w`\n\
         hint: create one with `tidings serve --workspace w` or `tidings workspace w import PATH`\n"
    );
    place.import("a", "").await;
    for words in ["show nothing", "tag nothing x", "untag nothing x"] {
        let refused = place.run(words).await;
        assert_eq!(refused.code, Some(1), "{words}");
        assert!(
            refused.errors.starts_with("error: no artifact has the id `nothing`\n"),
            "{refused:?}"
        );
        assert!(
            refused.errors.ends_with("hint: `tidings workspace w ls` lists the ids\n"),
            "{refused:?}"
        );
    }
    assert_eq!(place.run("log --since 99").await.code, Some(1));
    assert_eq!(place.run("import a a --title b").await.code, Some(2));
    let refused = place.run("import nothing").await;
    assert!(
        refused.errors.starts_with("error: reading `nothing`\ncaused by: No such file"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_path_that_is_not_there_keeps_nothing_else_out_and_makes_no_workspace() {
    let place = Place::new();
    for words in ["import nothing", "import nothing nowhere"] {
        let refused = place.run(words).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.errors.contains("`nothing`"), "{refused:?}");
        assert!(!place.path("w").exists(), "{words}");
    }
    place.write("one", "1");
    place.write("folder/two", "2");
    let ended = place.run("import one nothing folder --json").await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let titles: Vec<_> = ended.lines().iter().map(|line| line["title"].clone()).collect();
    assert_eq!(titles, ["one", "two"]);
    assert!(ended.errors.contains("error: reading `nothing`: No such file"), "{ended:?}");
    assert!(ended.errors.ends_with("error: 1 file could not be imported\n"), "{ended:?}");
    assert_eq!(place.run("import one nothing --title x").await.code, Some(2));
}

#[tokio::test]
async fn a_mime_type_that_is_none_is_refused() {
    let place = Place::new();
    place.write("a", "a");
    let mut command = place.command("workspace w import a --mime-type");
    command.arg("not a mime type");
    let refused = crate::support::demo::ended(command).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.errors.contains("`not a mime type` is not a MIME type"), "{refused:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_taken_is_a_failure_after_the_others() {
    let place = Place::new();
    place.write("large", &"x".repeat(2000));
    place.write("small", "x");
    let ended = place.run("import large small --blob-limit 1kB --json").await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.lines()[0]["title"], "small");
    assert!(
        ended.errors.contains("importing `large`: the blob is larger than 1000 bytes"),
        "{ended:?}"
    );
    assert!(ended.errors.ends_with("error: 1 file could not be imported\n"), "{ended:?}");
    assert_eq!((place.files("objects"), place.files("incoming")), (1, 0));
}

#[tokio::test]
async fn an_export_has_every_artifact_under_a_name_of_its_own_and_nothing_outside() {
    let place = Place::new();
    place.import("a", "--title ../../out").await;
    place.import("b", "--title out --tag x").await;
    place.import("c", "--title OUT --mime-type application/json").await;
    place.import("d", "--title manifest.json").await;
    let bench = workspace(&place.path("w"));
    let away = bench.list(&ArtifactList::Recent, None, 1).unwrap().items.remove(0).id;
    bench.archive(&away, true, "tester").unwrap();
    bench.bind(Bind::new("synth", "Synth"), "tester").unwrap();
    drop(bench);
    let done = place.run("export target").await;
    assert_eq!((done.code, done.output.as_str()), (Some(0), "4 artifacts, 4 bytes\n"), "{done:?}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(place.path("target/manifest.json")).unwrap())
            .unwrap();
    let files: Vec<_> = manifest["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|artifact| {
            let file = artifact["file"].as_str().unwrap();
            let content = std::fs::read_to_string(place.path("target").join(file)).unwrap();
            format!("{file} {content}")
        })
        .collect();
    assert_eq!(files, ["manifest-2.json d", "OUT.json c", "out.txt b", "out-2.txt a"]);
    assert_eq!(std::fs::read_dir(place.path("target")).unwrap().count(), 5);
    assert_eq!(manifest["artifacts"][0]["archived"], true);
    assert_eq!(manifest["identities"][0]["name"], "Synth");
    assert_eq!(manifest["connections"], json!([]));
    let again = place.run("export target").await;
    assert_eq!(again.code, Some(2));
    assert!(again.errors.starts_with("error: `target` is not empty\n"), "{again:?}");
    assert_eq!(place.lines("export some --tag x").await[0]["artifacts"], 1);
}

#[tokio::test]
async fn bytes_nobody_uses_are_removed_after_a_time_and_no_others() {
    let place = Place::new();
    place.import("used", "").await;
    let workspace = workspace(&place.path("w"));
    workspace.put_blob(b"nobody's", None, "tester").unwrap();
    drop(workspace);
    assert_eq!(place.run("gc").await.output, "removed 0 blobs, 0 bytes\n");
    assert_eq!(
        place.run("gc --older-than 0s --dry-run").await.output,
        "would remove 1 blob, 8 bytes\n"
    );
    assert_eq!(place.files("objects"), 2);
    assert_eq!(
        place.lines("gc --older-than 0s").await,
        [json!({ "blobs": 1, "bytes": 8, "removed": true })]
    );
    assert_eq!(place.files("objects"), 1);
    assert_eq!(place.run("verify").await.output, "1 blob of 4 bytes, 1 artifact, 4 events\n");
}

#[tokio::test]
async fn damage_is_found_and_is_a_failure() {
    let place = Place::new();
    let id = place.import("abc", "").await;
    let hash = place.lines(&format!("show {id}")).await[0]["hash"].as_str().unwrap().to_owned();
    let path = place.path("w/objects").join(&hash[..2]).join(&hash);
    std::fs::write(&path, "abd").unwrap();
    let found = place.run("verify").await;
    assert_eq!(found.code, Some(1));
    let problem =
        format!("problem: the bytes of the blob {hash} are not those it was stored with\n");
    assert!(found.output.ends_with(&problem), "{found:?}");
    assert!(
        found.errors.starts_with("error: 1 problem was found\nhint: `restore` a backup"),
        "{found:?}"
    );
    let copied = place.run("backup copy").await;
    assert_eq!(copied.code, Some(1));
    let told = format!("copy: the readable part, with 0 blobs\n{problem}");
    assert_eq!(copied.output, told);
    assert!(copied.errors.contains("hint: the backup has everything else"), "{copied:?}");
    std::fs::remove_file(&path).unwrap();
    let found = place.run("verify --json").await;
    assert_eq!(found.code, Some(1));
    assert_eq!(
        found.lines()[0]["problems"],
        json!([format!("the bytes of the blob {hash} are gone")])
    );
    let failed = place.run("export target").await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let failed = place.run(&format!("show {id} --content")).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.errors.contains("is missing\nhint: `tidings workspace w verify`"), "{failed:?}");
    // As the hint says: who has the bytes can store them again.
    place.import("abc", "").await;
    assert_eq!(place.run("verify").await.code, Some(0));
}

#[tokio::test]
async fn bytes_that_are_damaged_are_not_given_as_if_they_were_right() {
    let place = Place::new();
    let id = place.import("abc", "").await;
    place.import("other", "").await;
    let hash = place.lines(&format!("show {id}")).await[0]["hash"].as_str().unwrap().to_owned();
    std::fs::write(place.path("w/objects").join(&hash[..2]).join(&hash), "abd").unwrap();
    let shown = place.run(&format!("show {id} --content")).await;
    assert_eq!((shown.code, shown.output.as_str()), (Some(1), "abd"), "{shown:?}");
    assert!(shown.errors.contains("is damaged\nhint: "), "{shown:?}");
    let exported = place.run("export target --json").await;
    assert_eq!(exported.code, Some(1), "{exported:?}");
    let line = &exported.lines()[0];
    assert_eq!(
        (&line["artifacts"], &line["damaged"], &line["lost"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert!(
        exported.errors.contains(&format!("error: the content of `{id}` is damaged")),
        "{exported:?}"
    );
    assert!(place.path("target/other.txt").exists() || place.path("target/other").exists());
    assert!(!place.path("target/abc.txt").exists() && !place.path("target/abc").exists());
}

#[tokio::test]
async fn a_backup_is_written_once_and_only_a_backup_is_restored() {
    let place = Place::new();
    place.import("a", "").await;
    assert_eq!(place.run("backup copy").await.code, Some(0));
    let again = place.run("backup copy").await;
    assert_eq!(again.code, Some(1));
    assert!(again.errors.starts_with("error: `copy` exists already"), "{again:?}");
    std::fs::rename(place.path("w"), place.path("old")).unwrap();
    for (file, says) in [
        ("a", "error: `a` is not a backup of a workspace"),
        ("old/workspace.sqlite", "without the bytes of its blobs"),
        ("old", "it is not a file"),
        ("nothing", "error: `nothing` cannot be used\ncaused by: No such file"),
    ] {
        let refused = place.run(&format!("restore {file}")).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.errors.contains(says), "{refused:?}");
        assert!(!place.path("w").exists(), "{file}");
    }
}

#[tokio::test]
async fn a_backup_is_the_workspace_again() {
    let place = Place::new();
    let id = place.import("a", "--tag x").await;
    let before = place.lines("ls").await;
    assert_eq!(place.run("backup copy").await.output, "copy: everything, with 1 blob\n");
    assert_eq!(place.run("backup copy").await.code, Some(1));
    place.run(&format!("tag {id} later")).await;
    let occupied = place.run("restore copy").await;
    assert_eq!(occupied.code, Some(1));
    assert!(
        occupied.errors.starts_with("error: there is a workspace in `w` already\n"),
        "{occupied:?}"
    );
    std::fs::rename(place.path("w"), place.path("old")).unwrap();
    assert_eq!(place.run("restore copy").await.code, Some(0));
    assert_eq!(place.lines("ls").await, before);
    assert_eq!(place.run("verify").await.code, Some(0));
}

#[tokio::test]
async fn what_somebody_wrote_cannot_steer_the_terminal() {
    let place = Place::new();
    place.import("a", "").await;
    place.write("bad", "x\u{1b}[2Jy\u{9b}31m\u{202e}z");
    let id = place.lines("import bad").await[0]["id"].as_str().unwrap().to_owned();
    let shown = place.run(&format!("show {id}")).await;
    assert!(!shown.output.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown:?}");
}

#[tokio::test]
async fn standard_input_becomes_an_artifact() {
    let place = Place::new();
    let mut command = place.command("workspace w import - --title Piped --json");
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut input, b"piped").await.unwrap();
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success());
    let listed = place.lines("ls").await;
    assert_eq!((&listed[0]["title"], &listed[0]["size"]), (&json!("Piped"), &json!(5)));
}
