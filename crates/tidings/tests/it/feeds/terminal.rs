//! The terminal while many feeds are fetched for the first time.

use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::news;
use crate::support::demo::{PROGRAM, within};

#[tokio::test]
async fn the_first_fetches_are_counted_on_a_line_that_stands() {
    let here = tempfile::tempdir().unwrap();
    let mut words = format!("{PROGRAM} serve --http 127.0.0.1:0 --in-memory --allow-private");
    for number in 0..4 {
        std::fs::write(here.path().join(format!("{number}.xml")), news(&["two", "one"])).unwrap();
        words.extend([" --feed ", &number.to_string(), ".xml"]);
    }
    // The last feed is not answered before the line was seen.
    let last = TcpListener::bind("127.0.0.1:0").await.unwrap();
    words.extend([" --feed http://", &last.local_addr().unwrap().to_string(), "/"]);
    // It gives the program a terminal, and us what is written there.
    let mut command = Command::new("script");
    command.args(["--quiet", "--flush", "--return", "--command", &words, "/dev/null"]);
    command.current_dir(here.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut shown = String::new();
    read_until(&mut screen, &mut shown, "\r\u{1b}[Kfetching feeds: ").await;
    let (mut connection, _) = within(last.accept()).await.unwrap();
    read_until(&mut connection, &mut String::new(), "\r\n\r\n").await;
    let body = news(&["two", "one"]);
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/rss+xml\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    connection.write_all(answer.as_bytes()).await.unwrap();
    read_until(&mut screen, &mut shown, "5 of 5, 10 items").await;
    assert!(shown.contains(" of 5, "), "{shown}");
    assert!(shown.contains("listening on http://127.0.0.1:"), "{shown}");
}

/// Reads until these words came.
async fn read_until(from: &mut (impl AsyncRead + Unpin), came: &mut String, words: &str) {
    while !came.contains(words) {
        let mut bytes = [0; 4096];
        let length = within(from.read(&mut bytes)).await.unwrap();
        assert_ne!(length, 0, "it ended before {words:?} came: {came}");
        *came += &String::from_utf8_lossy(&bytes[..length]);
    }
}
