//! Benchmark of a folder: the start, a list, a call, and a change among ten thousand files.
//!
//! `cargo bench -p tidings --bench folder -- [--quick]`. The program is measured from outside, over
//! stdio. The floor of a call is spawning the same script directly; the two take turns. The figures
//! of `mcp-bash`, the shell framework whose folders are served too, were measured once on one
//! machine and are printed beside ours.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use self::support::{Failure, Server, bare_start, median};

const TOOLS: usize = 100;
const FILES: usize = 10_000;

fn main() -> Result<(), Failure> {
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if quick { 11 } else { 101 };
    println!("| | ours | floor | allowed | mcp-bash |\n|---|---|---|---|---|");
    tools(rounds)?;
    files(rounds)
}

/// A hundred tools: the start, the list, a call.
fn tools(rounds: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    for number in 0..TOOLS {
        tool(folder.path(), &format!("tool-{number:03}"))?;
    }
    starts(folder.path(), rounds.min(31))?;

    let mut server = serve(folder.path())?;
    server.ask("tools/list", &json!({}))?;
    let before = faults_of_children(&server)?;
    let mut lists = Vec::new();
    for _ in 0..rounds * 10 {
        let begun = Instant::now();
        server.ask("tools/list", &json!({}))?;
        lists.push(begun.elapsed());
    }
    let processes = faults_of_children(&server)? != before;
    lists.sort();
    let p99 = lists[lists.len() * 99 / 100];
    row("`tools/list`, p99", p99, None, "≤ 5 ms", "570 ms");
    let started = if processes { "some" } else { "none" };
    println!("| processes started by lists | {started} | | none | 54 a list |");

    let script = folder.path().join("tools/tool-000/tool.sh");
    let (mut calls, mut spawns) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 3 {
        let begun = Instant::now();
        let answer = server.ask("tools/call", &json!({ "name": "tool-000", "arguments": {} }))?;
        calls.push(begun.elapsed());
        assert_eq!(answer["content"][0]["text"], "hello");
        let begun = Instant::now();
        let output = Command::new(&script).env_clear().stdin(Stdio::null()).output()?;
        spawns.push(begun.elapsed());
        assert_eq!(output.stdout, b"hello\n");
    }
    row(
        "call of a trivial script",
        median(&mut calls),
        Some(median(&mut spawns)),
        "floor + 2 ms",
        "1,040 ms",
    );
    let beyond = median(&mut calls).saturating_sub(median(&mut spawns));
    row("of it beyond the floor", beyond, None, "≤ 2 ms", "");
    server.end()
}

fn starts(folder: &Path, rounds: usize) -> Result<(), Failure> {
    let mut starts = Vec::new();
    let mut floors = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut server = serve(folder)?;
        let listed = server.ask("tools/list", &json!({}))?;
        starts.push(begun.elapsed());
        assert_eq!(listed["tools"].as_array().map(Vec::len), Some(TOOLS));
        server.end()?;
        floors.push(bare_start()?);
    }
    row(
        "start, 100 tools, to the first list",
        median(&mut starts),
        Some(median(&mut floors)),
        "≤ 50 ms",
        "870 ms",
    );
    Ok(())
}

/// Ten thousand files: the first look, a change, memory.
fn files(rounds: usize) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    for number in 0..FILES {
        let directory = folder.path().join(format!("resources/d{:02}", number % 100));
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(format!("file-{number}.md")), format!("file {number}\n"))?;
    }
    tool(folder.path(), "one")?;
    let mut starts = Vec::new();
    let mut floors = Vec::new();
    for _ in 0..rounds.min(11) {
        let begun = Instant::now();
        let mut server = serve(folder.path())?;
        server.ask("resources/list", &json!({}))?;
        starts.push(begun.elapsed());
        server.end()?;
        let begun = Instant::now();
        assert_eq!(look(&folder.path().join("resources"))?, FILES);
        floors.push(begun.elapsed());
    }
    row("first look at 10,000 files", median(&mut starts), Some(median(&mut floors)), "≤ 1 s", "");
    let mut server = serve(folder.path())?;
    let resources = folder.path().canonicalize()?.join("resources");
    let path = |number| resources.join(format!("d{:02}/file-{number}.md", number % 100));
    let resting: Vec<_> = (0..rounds).map(path).collect();
    row(
        "a change among them, from write to notice",
        waits(&mut server, &resting)?,
        None,
        "≤ 20 ms",
        "polls",
    );
    let busy = vec![path(rounds); rounds];
    row("one file changed again and again", waits(&mut server, &busy)?, None, "≤ 300 ms", "polls");
    let mut waits = Vec::new();
    for round in 0..rounds {
        let name = format!("resources/d07/new-{round}.md");
        let begun = Instant::now();
        std::fs::write(folder.path().join(name), "new\n")?;
        server.hear("notifications/resources/list_changed")?;
        waits.push(begun.elapsed());
    }
    row("a new file, from write to notice of the list", median(&mut waits), None, "", "polls");
    let resident = server.resident()?;
    println!("| resident memory | {:.1} MB | | ≤ 60 MB | |", resident as f64 / 1000.0);
    server.end()
}

/// The median time from writing one of these files to its notice.
fn waits(server: &mut Server, files: &[PathBuf]) -> Result<Duration, Failure> {
    for file in files {
        let uri = format!("file://{}", file.display());
        server.ask("resources/subscribe", &json!({ "uri": uri }))?;
    }
    let mut waits = Vec::new();
    for (round, file) in files.iter().enumerate() {
        let begun = Instant::now();
        std::fs::write(file, format!("round {round}\n"))?;
        server.hear("notifications/resources/updated")?;
        waits.push(begun.elapsed());
        // The next change is not part of this one.
        while begun.elapsed() < Duration::from_millis(60) {
            server.ask("ping", &json!({}))?;
        }
    }
    Ok(median(&mut waits))
}

fn serve(folder: &Path) -> Result<Server, Failure> {
    Server::start(["--folder".as_ref(), folder.as_os_str()])
}

/// What a look costs at best: every directory read, every file's head too.
fn look(directory: &Path) -> Result<usize, Failure> {
    use std::io::Read as _;
    let mut count = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            count += look(&entry.path())?;
        } else {
            entry.metadata()?;
            let mut head = [0; 2048];
            let _ = std::fs::File::open(entry.path())?.read(&mut head)?;
            count += 1;
        }
    }
    Ok(count)
}

fn tool(folder: &Path, name: &str) -> Result<(), Failure> {
    let directory = folder.join("tools").join(name);
    std::fs::create_dir_all(&directory)?;
    let script = directory.join("tool.sh");
    std::fs::write(&script, "#!/bin/sh\necho hello\n")?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
    let meta = json!({
        "name": name,
        "description": "Says hello, whatever it is asked, and nothing else",
        "inputSchema": { "type": "object", "properties": {
            "who": { "type": "string", "description": "Whom to greet" },
            "times": { "type": "integer", "minimum": 1 },
        } },
    });
    std::fs::write(directory.join("tool.meta.json"), meta.to_string())?;
    Ok(())
}

fn row(what: &str, ours: Duration, floor: Option<Duration>, allowed: &str, shell: &str) {
    let shown = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    let floor = floor.map(shown).unwrap_or_default();
    println!("| {what} | {} | {floor} | {allowed} | {shell} |", shown(ours));
}

/// Page faults of all processes a server ever started and waited for: every process has some.
fn faults_of_children(server: &Server) -> Result<u64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.child.id()))?;
    let fields = stat.rsplit(')').next().ok_or("no fields")?;
    Ok(fields.split_whitespace().nth(8).ok_or("no faults")?.parse()?)
}
