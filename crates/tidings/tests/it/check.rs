//! `tidings check` against our own servers, which must pass every check that concerns them, and its
//! reports and exit codes.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::demo::{Demo, Ended, PROGRAM, client, folder, program, run, within};

/// A run makes changes for many seconds, in both eras.
const PATIENCE: Duration = Duration::from_secs(50);

async fn checked(words: &[&str]) -> Ended {
    let mut command = client(&[&["check", "--json"], words].concat());
    command.env_remove("GITHUB_ACTIONS");
    let output = command.stdin(Stdio::null()).output();
    let output = tokio::time::timeout(PATIENCE, output).await.unwrap().unwrap();
    Ended {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The verdicts of a run, by verdict; an era is named where the eras differ.
fn verdicts(ended: &Ended) -> String {
    let mut by_check: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    // On a busy machine, changes cannot be made fast enough for this one.
    let is_shown = |line: &&Value| line["id"].is_string() && line["id"] != "notice.not-starved";
    for line in ended.lines().iter().filter(is_shown) {
        let text = |key: &str| line[key].as_str().unwrap_or("both").to_owned();
        by_check.entry(text("id")).or_default().push((text("era"), text("verdict")));
    }
    let mut by_verdict: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, eras) in by_check {
        let same = eras.iter().all(|(_, verdict)| *verdict == eras[0].1);
        for (era, verdict) in if same { &eras[..1] } else { &eras[..] } {
            let name = if same { id.clone() } else { format!("{id} ({era})") };
            by_verdict.entry(verdict.clone()).or_default().push(name);
        }
    }
    let lines = by_verdict.iter().map(|(verdict, ids)| format!("{verdict}: {}\n", ids.join(" ")));
    lines.collect()
}

fn failures(ended: &Ended) -> Vec<Value> {
    ended.lines().into_iter().filter(|line| line["verdict"] == "fail").collect()
}

#[track_caller]
fn fine(ended: &Ended) {
    assert_eq!(failures(ended), [] as [Value; 0], "{}", ended.errors);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn the_demo_keeps_its_clients_current_over_http() {
    let demo = Demo::start("--every 3600").await;
    let url = demo.url();
    let change = ["--change", "dock_module module=iris", "--undo", "undock_module module=iris"];
    let ended = checked(&[&[url.as_str()], &change[..]].concat()).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.truth caps.subscribe-undeclared proc.eof-exit proc.stdout-clean
    not tried: cache.scope listen.ends-gracefully notice.templates recon.resume recon.slow-reader sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.kinds-honest caps.list-served caps.silent-change caps.subscribe-works http.origin list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.no-logs listen.no-session listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.noop-silent notice.once notice.only-asked notice.other-session notice.spurious notice.storm read.notfound read.stable sub.get-race sub.second-stream sub.unknown-uri sub.unsubscribe-quiet
    ");
    let lines = ended.lines();
    let summary = &lines.last().unwrap()["summary"];
    assert!(summary["measured"]["latency_ms"]["p50"].as_f64().unwrap() > 0.0, "{summary}");
    assert_eq!(summary["measured"]["for_nothing"], 0);
}

#[tokio::test]
async fn the_demo_keeps_its_clients_current_over_stdio_and_a_restart() {
    let change = ["--change", "dock_module module=iris", "--undo", "undock_module module=iris"];
    let server = ["--", PROGRAM, "serve", "--demo", "--stdio", "--every", "3600"];
    let ended = checked(&[&["--restart"], &change[..], &server].concat()).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.scope cache.truth caps.subscribe-undeclared http.origin listen.no-session notice.other-session recon.slow-reader sub.get-race sub.second-stream
    not tried: notice.templates sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.kinds-honest caps.list-served caps.silent-change caps.subscribe-works list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.ends-gracefully listen.no-logs listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.noop-silent notice.once notice.only-asked notice.spurious notice.storm proc.eof-exit proc.stdout-clean read.notfound read.stable recon.resume sub.unknown-uri sub.unsubscribe-quiet
    ");
}

/// The demo behind a gateway.
fn upstream() -> String {
    format!("demo={PROGRAM} serve --demo --stdio --every 3600")
}

const BEHIND: [&str; 4] =
    ["--change", "demo__dock_module module=iris", "--undo", "demo__undock_module module=iris"];

#[tokio::test]
async fn a_gateway_keeps_its_clients_current_over_http() {
    let mut server = program("serve --http 127.0.0.1:0");
    server.args(["--upstream", &upstream()]);
    let home = folder("check-gateway");
    server.env("XDG_RUNTIME_DIR", &home).env("XDG_DATA_HOME", &home);
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut url = None;
    while let Some(line) = within(lines.next_line()).await.unwrap() {
        url = url.or_else(|| line.strip_prefix("listening on ").map(str::to_owned));
        if line.contains("demo: ready") {
            break;
        }
    }
    let ended = checked(&[&[url.unwrap().as_str()], &BEHIND[..]].concat()).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.truth caps.subscribe-undeclared proc.eof-exit proc.stdout-clean
    not tried: cache.scope listen.ends-gracefully notice.noop-silent notice.templates recon.resume recon.slow-reader sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.kinds-honest caps.list-served caps.silent-change caps.subscribe-works http.origin list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.no-logs listen.no-session listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.once notice.only-asked notice.other-session notice.spurious notice.storm read.notfound read.stable sub.get-race sub.second-stream sub.unknown-uri sub.unsubscribe-quiet
    ");
}

#[tokio::test]
async fn a_gateway_keeps_its_clients_current_over_stdio_and_a_restart() {
    let home = folder("check-gateway-stdio");
    let places =
        ["XDG_RUNTIME_DIR", "XDG_DATA_HOME"].map(|name| format!("{name}={}", home.display()));
    let upstream = upstream();
    let server = ["--", "env", &places[0], &places[1], PROGRAM, "serve", "--stdio", "--upstream"];
    let server = [&server[..], &[upstream.as_str()]].concat();
    let ended = checked(&[&["--restart"], &BEHIND[..], &server].concat()).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.scope cache.truth caps.subscribe-undeclared http.origin listen.no-session notice.other-session recon.slow-reader sub.get-race sub.second-stream
    not tried: notice.noop-silent notice.templates sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.kinds-honest caps.list-served caps.silent-change caps.subscribe-works list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.ends-gracefully listen.no-logs listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.once notice.only-asked notice.spurious notice.storm proc.eof-exit proc.stdout-clean read.notfound read.stable recon.resume sub.unknown-uri sub.unsubscribe-quiet
    ");
}

#[tokio::test]
async fn a_folder_keeps_its_clients_current() {
    let home = folder("check-folder");
    let place = home.join("mine");
    let place = place.to_str().unwrap();
    assert_eq!(run(&["new", "folder", place]).await.code, Some(0));
    let before = std::fs::read_dir(place).unwrap().count();
    let ended = checked(&["--folder", place]).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.scope cache.truth caps.subscribe-undeclared http.origin listen.no-session recon.slow-reader sub.get-race sub.second-stream
    not tried: listen.ends-gracefully notice.templates recon.resume sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.kinds-honest caps.list-served caps.silent-change caps.subscribe-works list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.no-logs listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.noop-silent notice.once notice.only-asked notice.other-session notice.spurious notice.storm proc.eof-exit proc.stdout-clean read.notfound read.stable sub.unknown-uri sub.unsubscribe-quiet
    ");
    assert_eq!(std::fs::read_dir(place).unwrap().count(), before, "the folder itself is only read");
}

#[tokio::test]
async fn a_workspace_keeps_its_clients_current() {
    let home = folder("check-workspace");
    let place = home.join("mine");
    let words = format!("serve --http 127.0.0.1:0 --workspace {}", place.display());
    let mut server = program(&words).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = within(lines.next_line()).await.unwrap().unwrap();
    let url = url.strip_prefix("listening on ").unwrap();
    let change = ["--change", "create_artifact title=note-{n} text={n}"];
    let expects = ["--expects", "artifacts://recent", "--expects", "artifacts://summary"];
    let ended = checked(&[&[url], &change[..], &expects].concat()).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.truth caps.subscribe-undeclared proc.eof-exit proc.stdout-clean
    not tried: cache.scope caps.kinds-honest caps.silent-change listen.ends-gracefully notice.noop-silent notice.templates recon.resume sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.list-served caps.subscribe-works http.origin list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.no-logs listen.no-session listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.once notice.only-asked notice.other-session notice.spurious notice.storm read.notfound read.stable recon.slow-reader sub.get-race sub.second-stream sub.unknown-uri sub.unsubscribe-quiet
    ");
}

#[tokio::test]
async fn feeds_keep_their_clients_current() {
    let home = folder("check-feeds");
    let feed = home.join("news.xml");
    let feed = feed.to_str().unwrap();
    let channel = "<title>News</title><link>http://a.example/</link><description>d</description>";
    let news = |item: &str| {
        format!(
            "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel>{channel}\
             <item><guid>{item}</guid><title>{item}</title></item></channel></rss>"
        )
    };
    std::fs::write(feed, news("0")).unwrap();
    let exec = format!("printf '%s' '{}' > '{feed}.new' && mv '{feed}.new' '{feed}'", news("{n}"));
    let server = ["--", PROGRAM, "serve", "--feed", feed, "--in-memory", "--stdio"];
    let ended = checked(&[&["--exec", &exec], &server[..]].concat()).await;
    fine(&ended);
    insta::assert_snapshot!(verdicts(&ended), @"
    not offered: cache.scope cache.truth caps.subscribe-undeclared http.origin listen.no-session notice.other-session recon.slow-reader sub.get-race sub.second-stream
    not tried: caps.kinds-honest caps.silent-change listen.ends-gracefully notice.templates recon.resume sub.idle
    pass: cache.hints caps.depend-on-client caps.eras-agree caps.list-served caps.subscribe-works list.cursor-bad list.names-legal list.order-stable list.pages-end list.per-connection listen.ack-first listen.no-logs listen.parallel listen.tagged notice.after-visible notice.delivered notice.last-told notice.noop-silent notice.once notice.only-asked notice.spurious notice.storm proc.eof-exit proc.stdout-clean read.notfound read.stable sub.unknown-uri sub.unsubscribe-quiet
    ");
}

/// A server that answers nothing but these requests, and sends a line of text first.
fn talkative() -> [&'static str; 4] {
    let script = r#"echo hello
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) r='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"talkative","version":"1"}}' ;;
    *'"cursor"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"no\"}}"; continue ;;
    *'"tools/list"'*) r='{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}' ;;
    *'"id"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}"; continue ;;
    *) continue ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$r}"
done"#;
    ["--", "sh", "-c", script]
}

const LEGACY: [&str; 4] = ["--protocol", "legacy", "--listen", "50ms"];

#[tokio::test]
async fn a_failure_is_shown_with_what_to_do() {
    let mut command = client(&[&["check"], &LEGACY[..], &talkative()].concat());
    command.env_remove("GITHUB_ACTIONS");
    let ended = crate::support::demo::ended(command).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let shown: Vec<_> = ended.output.lines().take(4).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    talkative 1

    FAIL proc.stdout-clean (legacy)
      standard output has a line that is not a message: hello
    ");
    assert!(ended.output.contains("← not a message: hello\n"), "{}", ended.output);
    assert!(ended.output.contains("To do: Log to standard error."), "{}", ended.output);
    assert_eq!(ended.errors, "error: the check failed: 1 error\n");
}

#[tokio::test]
async fn a_known_failure_does_not_count_and_a_stale_one_does() {
    let home = folder("check-baseline");
    let file = home.join("baseline.txt");
    let file = file.to_str().unwrap();
    let words = |file| [&["--baseline", file], &LEGACY[..], &talkative()].concat();
    std::fs::write(file, "proc.stdout-clean legacy # it greets\n").unwrap();
    let ended = checked(&words(file)).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(failures(&ended)[0]["known"], true);
    std::fs::write(file, "proc.stdout-clean\nlist.order-stable\n").unwrap();
    let ended = checked(&words(file)).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.lines().last().unwrap()["summary"]["stale"][0], "list.order-stable");
    // What this run cannot judge is not stale.
    std::fs::write(file, "proc.stdout-clean\nlisten.tagged\nnotice.once modern\n").unwrap();
    assert_eq!(checked(&words(file)).await.code, Some(0));
    std::fs::write(file, "list.disorder\n").unwrap();
    let ended = checked(&words(file)).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.contains("there is no check `list.disorder`"), "{}", ended.errors);
}

#[tokio::test]
async fn reports_are_written_for_other_programs() {
    let home = folder("check-reports");
    let (xml, page) = (home.join("check.xml"), home.join("check.md"));
    let files = ["--junit", xml.to_str().unwrap(), "--report", page.to_str().unwrap()];
    let mut command = client(&[&["check"], &files[..], &LEGACY, &talkative()].concat());
    command.env("GITHUB_ACTIONS", "1");
    let ended = crate::support::demo::ended(command).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let annotation = "::error title=proc.stdout-clean (legacy)::standard output has a line";
    assert!(ended.output.contains(annotation), "{}", ended.output);
    let xml = std::fs::read_to_string(xml).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.ends_with("</testsuites>\n"), "{xml}");
    assert!(xml.contains("<testcase classname=\"legacy\" name=\"list.order-stable\"/>"), "{xml}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("## error `proc.stdout-clean` (legacy)"), "{page}");
    assert!(page.contains("not a message: hello"), "{page}");
    assert!(page.contains("| `notice.delivered` | legacy | not tried |"), "{page}");
}

/// The command of the workflow in the documentation, with a server of ours.
#[tokio::test]
async fn the_documented_workflow_writes_its_reports() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("- run: |\n").unwrap();
    let lines = rest.lines().take_while(|line| !line.trim_start().starts_with("- "));
    let script: Vec<_> = lines.map(|line| line.trim().trim_end_matches('\\')).collect();
    let script = script.join(" ");
    assert!(script.starts_with("tidings check ") && script.ends_with("-- python3 server.py"));
    let script = script.replace("python3 server.py", "sh server.sh");
    let home = folder("check-workflow");
    std::fs::write(home.join("server.sh"), talkative()[3]).unwrap();
    std::fs::write(home.join("mcp-baseline.txt"), "").unwrap();
    let mut command = tokio::process::Command::new("sh");
    let place = std::path::Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
    command.args(["-c", &script]).env("PATH", path).env("HOME", &home).current_dir(&home);
    let ended = crate::support::demo::ended(command).await;
    // This server has no such tool.
    assert!(ended.errors.contains("no change could be made"), "{ended:?}");
    for file in ["check.md", "check.xml"] {
        assert!(home.join(file).exists(), "{file} is missing: {ended:?}");
    }
}

#[tokio::test]
async fn a_change_that_cannot_be_made_is_wrong_usage() {
    let change = ["--change", "nothing a=1"];
    let ended = checked(&[&change[..], &LEGACY, &talkative()].concat()).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let why = "error: no change could be made: the tool `nothing` failed: the error -32601 (no)";
    assert!(ended.errors.starts_with(why), "{}", ended.errors);
    assert!(ended.output.contains("\"summary\""), "the rest is reported: {ended:?}");
}

#[tokio::test]
async fn a_run_that_is_cut_short_is_not_fine() {
    let words = [&["check", "--max-requests", "5"], &LEGACY[..], &talkative()].concat();
    let ended = crate::support::demo::ended(client(&words)).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.contains("\nincomplete: "), "{}", ended.output);
    assert!(ended.output.contains("5 of at most 5 requests"), "{}", ended.output);
}

#[tokio::test]
async fn with_strict_the_baseline_also_covers_what_was_not_tried() {
    let home = folder("check-strict");
    let file = home.join("baseline.txt");
    let file = file.to_str().unwrap();
    let strict = ["--strict", "--baseline", file];
    let words = [&strict[..], &LEGACY, &talkative()].concat();
    std::fs::write(file, "proc.stdout-clean\n").unwrap();
    let ended = checked(&words).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("checks not tried"), "{}", ended.errors);
    let untried = ended.lines().into_iter().filter(|line| line["verdict"] == "not tried");
    let known: Vec<_> = untried.map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    std::fs::write(file, format!("proc.stdout-clean\n{}\n", known.join("\n"))).unwrap();
    let ended = checked(&words).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn what_cannot_be_checked_is_wrong_usage() {
    for (words, why) in [
        (&["http://127.0.0.1:1/mcp"][..], "the server could not be checked"),
        (&["--", "/nonexistent/server"], "could not start `/nonexistent/server`"),
        (&["--change", "'open", "--", "cat"], "a quote is not closed"),
        (&["--folder", "/nonexistent"], "does not exist"),
        (&["--folder", "/tmp", "http://a/mcp"], "was not expected"),
        (&["--long", "10s", "--", "cat"], "write `--long=10s`"),
        (&["--junit", "/nonexistent/check.xml", "--", "cat"], "its folder does not exist"),
        (&["--report", "/tmp", "--", "cat"], "it is a folder"),
        (&["--undo", "a b=1", "--", "cat"], "--change"),
        (&["--", "sh", "-c", "echo starting; cat > /dev/null"], "it printed"),
    ] {
        let ended = checked(&[&["--timeout", "1s"], words].concat()).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.errors.contains(why), "{}", ended.errors);
    }
}
