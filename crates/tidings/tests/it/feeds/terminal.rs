//! What a person sees at a terminal while many feeds are fetched for the first time.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::news;
use crate::support::demo::{PROGRAM, within};

#[tokio::test]
async fn the_first_fetches_are_counted_on_a_line_that_stands() {
    let here = tempfile::tempdir().unwrap();
    let mut words = format!("{PROGRAM} serve --http 127.0.0.1:0 --in-memory");
    for number in 0..5 {
        std::fs::write(here.path().join(format!("{number}.xml")), news(&["two", "one"])).unwrap();
        words.extend([" --feed ", &number.to_string(), ".xml"]);
    }
    // It gives the program a terminal, and us what is written there.
    let mut command = Command::new("script");
    command.args(["--quiet", "--flush", "--return", "--command", &words, "/dev/null"]);
    command.current_dir(here.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = String::new();
    while !shown.contains("fetched") {
        shown += &within(lines.next_line()).await.unwrap().expect("it goes on");
        shown.push('\n');
    }
    assert!(shown.contains("\r\u{1b}[Kfetching feeds: 0 of 5, 0 items"), "{shown}");
    assert!(shown.contains("5 of 5, 10 items"), "{shown}");
    assert!(shown.contains("listening on http://127.0.0.1:"), "{shown}");
}
