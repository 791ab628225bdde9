//! `tidings feeds parse` and `tidings serve --feed`: the real binary on documents of every kind.

#[cfg(target_os = "linux")]
mod descriptors;
mod many;
mod press;
mod rounds;
mod secure;
mod terminal;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::demo::{program, run};
use crate::support::piped::Server;

const RSS: &str = "<?xml version='1.0'?>
<rss version='2.0'><channel><title>News & more</title><link>http://a.example/</link>
<item><title>caf&eacute;</title><link>http://a.example/1</link><guid>http://a.example/1</guid>
<pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate></item>
<item><title>second</title></item></channel></rss>";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("feeds-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_document_is_shown_for_people() {
    let folder = folder("people");
    let path = file(&folder, "news.xml", RSS);
    let shown = run(&["feeds", "parse", &path]).await;
    assert_eq!((shown.code, shown.errors.as_str()), (Some(0), ""));
    let output = shown.output.replace(&path, "news.xml");
    insta::assert_snapshot!(output, @"
    news.xml: rss 2.0, 2 items
      title    News & more
      link     http://a.example/
    DATE                  TITLE   LINK
    2004-01-01T19:48:21Z  café    http://a.example/1
                          second
    ");
}

#[tokio::test]
async fn a_document_is_an_object_for_programs() {
    let folder = folder("programs");
    let rss = file(&folder, "rss.xml", RSS);
    let cut = file(&folder, "cut.xml", &RSS[..RSS.find("second").unwrap()]);
    let page =
        file(&folder, "page.html", "<html><link rel=alternate type=application/rss+xml href=f>");
    let json =
        file(&folder, "feed.json", r#"{"version":"https://jsonfeed.org/version/1.1","items":[]}"#);
    let empty = file(&folder, "empty.xml", "");
    let shown = run(&["feeds", "parse", "--json", &rss, &cut, &page, &json, &empty]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let lines = shown.lines();
    assert_eq!(
        lines[0],
        json!({
            "path": rss, "ok": true, "format": "rss 2.0", "title": "News & more",
            "link": "http://a.example/", "items": 2, "first_title": "café",
            "first_link": "http://a.example/1", "first_id": "http://a.example/1",
            "first_published": "2004-01-01T19:48:21Z", "first_updated": null,
            "truncated": false, "problems": [],
        })
    );
    assert_eq!((&lines[1]["items"], &lines[1]["truncated"]), (&json!(1), &json!(true)));
    assert_eq!(lines[1]["problems"], json!(["the document ends before its end"]));
    assert_eq!((&lines[2]["ok"], &lines[2]["feeds"]), (&json!(false), &json!(["f"])));
    assert_eq!(lines[3]["format"], "json feed 1.1");
    assert_eq!(lines[4]["error"], "the document is empty");
    let paths: Vec<&Value> = lines.iter().map(|line| &line["path"]).collect();
    assert_eq!(paths, [&rss, &cut, &page, &json, &empty]);
}

#[tokio::test]
async fn standard_input_is_a_document_too() {
    let mut child = program("feeds parse --json -").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all("<feed xmlns='http://www.w3.org/2005/Atom'/>".as_bytes()).await.unwrap();
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["path"], &line["format"]), (&json!("-"), &json!("atom 1.0")));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_failure_after_the_others() {
    let folder = folder("missing");
    let path = file(&folder, "news.xml", RSS);
    let shown = run(&["feeds", "parse", "/nonexistent/feed.xml", &path]).await;
    assert_eq!(shown.code, Some(1));
    assert!(shown.output.contains("rss 2.0, 2 items"), "{shown:?}");
    assert!(shown.errors.contains("`/nonexistent/feed.xml`"), "{shown:?}");
    let shown = run(&["feeds", "parse", "--json", "/nonexistent/feed.xml", &path]).await;
    assert_eq!((shown.code, shown.lines().len()), (Some(1), 2));
    assert_eq!(shown.lines()[0]["ok"], false);
}

#[tokio::test]
async fn what_a_feed_says_cannot_steer_the_terminal() {
    let folder = folder("terminal");
    let path = file(
        &folder,
        "bad.xml",
        "<rss><channel><title>a&#x9b;31m\u{202e}b</title></channel></rss>",
    );
    let shown = run(&["feeds", "parse", &path]).await;
    assert!(!shown.output.contains(['\u{9b}', '\u{202e}', '\u{1b}']), "{shown:?}");
}

/// `tidings serve` over stdio, in this directory.
pub(crate) async fn serve(arguments: &str, here: &Path) -> Server {
    let mut command = program(&format!("serve --stdio --silent {arguments}"));
    command.current_dir(here);
    Server::of(command).await
}

pub(crate) fn news(titles: &[&str]) -> String {
    let items: Vec<_> = titles
        .iter()
        .map(|title| format!("<item><title>{title}</title><guid>{title}</guid></item>"))
        .collect();
    format!("<rss version=\"2.0\"><channel><title>News</title>{}</channel></rss>", items.concat())
}

#[tokio::test]
async fn a_feed_that_grows_is_told_and_what_was_read_is_there_after_a_restart() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("news.xml");
    std::fs::write(&file, news(&["one"])).unwrap();
    let arguments = "--feed news.xml --data data";
    let mut server = serve(arguments, here.path()).await;
    server.subscribe("feeds://all").await;
    let mut all = server.read("feeds://all").await;
    while all[0]["itemCount"] != 1 {
        server.told("feeds://all").await;
        all = server.read("feeds://all").await;
    }
    let items = format!("feeds://feed/{}/items", all[0]["id"].as_str().unwrap());
    server.subscribe(&items).await;
    std::fs::write(&file, news(&["two", "one"])).unwrap();
    server.told(&items).await;
    assert_eq!(server.read(&items).await.as_array().unwrap().len(), 2);
    let wrong = server.try_read(&format!("{items}?colour=red")).await.unwrap_err();
    assert_eq!(wrong["code"], -32602, "{wrong}");
    server.child.kill().await.unwrap();
    // With the feed gone, what is kept is served at once.
    std::fs::remove_file(&file).unwrap();
    let mut server = serve(arguments, here.path()).await;
    assert_eq!(server.read(&items).await.as_array().unwrap().len(), 2);
}
