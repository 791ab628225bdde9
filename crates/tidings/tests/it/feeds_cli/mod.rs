//! `tidings feeds` and `tidings.toml`: the real binary, a publisher on this machine, and a server
//! that runs meanwhile.

mod ordinary;
mod refusals;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use http::{StatusCode, Uri};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::feeds::{news, serve};
use crate::support::demo::{Ended, PROGRAM, client, ended, program, within};
use crate::support::piped::Server;

type Pages = Arc<Mutex<HashMap<String, (u16, String)>>>;

/// Somebody who publishes feeds.
struct Publisher {
    base: String,
    pages: Pages,
    _serving: JoinSet<()>,
}

impl Publisher {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let pages = Pages::default();
        let router = Router::new().fallback(answer).with_state(pages.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let publisher = Self { base, pages, _serving: serving };
        publisher.publish("/feed", &news(&["one"]));
        publisher
    }

    fn publish(&self, path: &str, body: &str) {
        self.pages.lock().unwrap().insert(path.to_owned(), (200, body.to_owned()));
    }

    fn fail(&self, path: &str, status: u16) {
        self.pages.lock().unwrap().insert(path.to_owned(), (status, String::new()));
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

async fn answer(State(pages): State<Pages>, uri: Uri) -> (StatusCode, String) {
    let found = pages.lock().unwrap().get(uri.path()).cloned();
    let (status, body) = found.unwrap_or((404, String::new()));
    (StatusCode::from_u16(status).unwrap(), body)
}

/// A home with feeds in `data`.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).unwrap();
    }

    /// Runs `tidings feeds` in it.
    async fn feeds(&self, words: &[&str]) -> Ended {
        let mut command = client(&["feeds"]);
        command.args(words).current_dir(self.path());
        if words[0] != "parse" {
            command.args(["--data", "data"]);
        }
        ended(command).await
    }

    /// The one feed there is.
    async fn feed(&self) -> Value {
        self.feeds(&["ls", "--json"]).await.object()
    }

    async fn serve(&self, more: &str) -> Server {
        serve(&format!("--data data {more}"), self.path()).await
    }
}

/// What was printed, without what differs from run to run.
fn same(text: &str, publisher: &Publisher, id: &str) -> String {
    let text = text.replace(&publisher.base, "BASE").replace(id, "ID------");
    let text = text.replace(publisher.base.trim_start_matches("http://"), "HOST");
    let mut words = String::new();
    let mut rest = text.as_str();
    // When it is fetched next is spread.
    while let Some(at) = rest.find(" min") {
        let (before, after) = rest.split_at(at);
        words += before.trim_end_matches(|letter: char| letter.is_ascii_digit());
        words += "NN";
        words += &after[..4];
        rest = &after[4..];
    }
    words + rest
}

#[track_caller]
fn good(ended: &Ended) -> &str {
    assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{ended:?}");
    &ended.output
}

#[tokio::test]
async fn a_feed_is_added_by_its_page_shown_and_removed() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let link = "<link rel=alternate type=application/rss+xml href=/feed>";
    publisher.publish("/", &format!("<!doctype html><html><head>{link}</head></html>"));
    let words = ["add", &publisher.url("/"), "--allow-private", "--category", "World"];
    let added = home.feeds(&words).await;
    let feed = home.feed().await;
    let id = feed["id"].as_str().unwrap();
    insta::assert_snapshot!(same(good(&added), &publisher, id), @"added ID------  News, 1 item, at BASE/feed");
    assert_eq!((&feed["category"], &feed["state"]), (&json!("World"), &json!("good")));
    assert_eq!((&feed["items"], &feed["last_error"]), (&json!(1), &Value::Null));
    let shown = home.feeds(&["ls"]).await;
    insta::assert_snapshot!(same(good(&shown), &publisher, id), @"
    ID        TITLE  STATE  NEXT FETCH  ITEMS
    ID------  News   good   in NN min   1
    ");
    let health = home.feeds(&["health"]).await;
    assert_eq!(good(&health), "1 feed: 1 good\nno server is running\n");
    let again = home.feeds(&["add", &publisher.url("/feed")]).await;
    assert_eq!(good(&again), format!("exists: {id}  News, 1 item\n"));
    let titled = home.feeds(&["add", &publisher.url("/feed"), "--title", "Mine", "--json"]).await;
    let titled = titled.object();
    assert_eq!((&titled["state"], &titled["title"]), (&json!("changed"), &json!("Mine")));
    let removed = home.feeds(&["rm", &publisher.url("/feed")]).await;
    assert_eq!(good(&removed), format!("removed {id}  Mine\n"));
    let none = home.feeds(&["ls"]).await;
    assert_eq!((none.code, none.errors.as_str()), (Some(0), "no feeds are stored in `data`\n"));
}

/// Whoever came after once asked it again at once.
#[tokio::test]
async fn a_refresh_tells_what_is_really_new_and_what_fails() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let url = publisher.url("/feed");
    good(&home.feeds(&["add", &url, "--allow-private"]).await);
    let id = home.feed().await["id"].as_str().unwrap().to_owned();
    let nothing = home.feeds(&["refresh", "--allow-private"]).await;
    assert_eq!(good(&nothing), format!("{id}  News: nothing new\n"));
    let edited = news(&["two", "one"]).replace("<title>one</title>", "<title>1</title>");
    publisher.publish("/feed", &edited);
    let grown = home.feeds(&["refresh", "--allow-private", &id]).await;
    insta::assert_snapshot!(same(good(&grown), &publisher, &id), @"
    ID------  News: 1 new, 1 changed
      + two
      ~ 1
    ");
    publisher.fail("/feed", 500);
    let failed = home.feeds(&["refresh", "--allow-private", "--json"]).await;
    assert_eq!(failed.code, Some(1));
    assert_eq!(failed.errors, "error: 1 feed could not be fetched\n");
    assert_eq!(failed.lines()[0]["error"], "the server answered 500");
    let shown = home.feeds(&["ls"]).await;
    insta::assert_snapshot!(same(good(&shown), &publisher, &id), @"
    ID        TITLE  STATE    NEXT FETCH  ITEMS  LAST ERROR
    ID------  News   failing  in NN min   2      the server answered 500
    ");
    let health = home.feeds(&["health", "--json"]).await.object();
    assert_eq!(health["states"]["failing"], 1);
    assert_eq!(health["failing"][0]["last_error"], "the server answered 500");
    assert_eq!(health["served_by"], Value::Null);
}

#[tokio::test]
async fn a_server_that_runs_hears_of_a_feed_that_is_added_once_and_can_read_it() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let mut server = home.serve("--allow-private").await;
    let list_changed = "notifications/resources/list_changed";
    good(&home.feeds(&["add", &publisher.url("/feed"), "--allow-private"]).await);
    while server.next().await["method"] != list_changed {}
    let all = server.read("feeds://all").await;
    assert_eq!((&all[0]["title"], &all[0]["itemCount"]), (&json!("News"), &json!(1)));
    let id = all[0]["id"].as_str().unwrap().to_owned();
    let items = format!("feeds://feed/{id}/items");
    assert_eq!(server.read(&items).await[0]["title"], "one");
    server.ask("resources/subscribe", json!({ "uri": items })).await;

    // The server fetches for whoever wants it, and its client hears of what that found.
    publisher.publish("/feed", &news(&["two", "one"]));
    let refreshed = home.feeds(&["refresh"]).await;
    insta::assert_snapshot!(same(good(&refreshed), &publisher, &id), @"
    ID------  News: 1 new
      + two
    ");
    server.told(&items).await;
    assert_eq!(server.read(&items).await.as_array().unwrap().len(), 2);

    // By now it has looked more than once, and had nothing else to tell.
    let heard = server.heard.iter().filter(|method| *method == list_changed).count();
    assert_eq!(heard, 1, "{:?}", server.heard);
    let health = home.feeds(&["health", "--json"]).await.object();
    assert_eq!(health["served_by"]["pid"], server.child.id().unwrap());

    good(&home.feeds(&["pause", &id]).await);
    let paused = home.feeds(&["refresh"]).await;
    assert_eq!(good(&paused), format!("{id}  News: is paused\n"));
    good(&home.feeds(&["resume", &id]).await);
    good(&home.feeds(&["rm", &id]).await);
    while server.next().await["method"] != list_changed {}
    assert_eq!(server.read("feeds://all").await, json!([]));
}

#[tokio::test]
async fn a_second_server_is_told_who_has_the_feeds_and_may_follow_it() {
    let home = Home::new();
    let first = home.serve("").await;
    let mut second = program("serve --stdio --data data");
    let refused = ended({
        second.current_dir(home.path());
        second
    })
    .await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let who = format!("caused by: process {} (since ", first.child.id().unwrap());
    assert!(refused.errors.contains(&who), "{refused:?}");
    assert!(
        refused.errors.contains("hint: serve the same feeds with `--read-only`"),
        "{refused:?}"
    );
    let mut wrong = program("serve --stdio --data other --feed ftp://example.com/feed");
    let refused = ended({
        wrong.current_dir(home.path());
        wrong
    })
    .await;
    assert!(refused.errors.ends_with("or the path of a file\n"), "{refused:?}");
    let mut follower = home.serve("--read-only").await;
    assert_eq!(follower.read("feeds://all").await, json!([]));
    home.write("news.xml", &news(&["one"]));
    good(&home.feeds(&["add", "news.xml"]).await);
    while follower.next().await["method"] != "notifications/resources/list_changed" {}
    assert_eq!(follower.read("feeds://all").await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_of_feeds_are_taken_in_and_given_out_with_their_folders() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let list = "<opml><body>\n<outline text='Tech'>\n<outline xmlUrl='https://a.example/f' \
        text='A &amp; B'/></outline>\n<outline xmlUrl='passwd' text='no'/>\n</body></opml>";
    publisher.publish("/list", list);
    home.write("list.opml", list);
    let imported = home.feeds(&["import", "list.opml"]).await;
    assert_eq!(
        (imported.code, imported.output.as_str()),
        (Some(0), "added 1 feed; 1 was refused\n")
    );
    assert!(imported.errors.starts_with("list.opml: line 4: "), "{imported:?}");
    let url = publisher.url("/list");
    let again = home.feeds(&["import", &url, "--allow-private", "--json"]).await.object();
    assert_eq!(again["added"], json!([]));
    assert_eq!(again["present"].as_array().unwrap().len(), 1);
    publisher.publish("/files", &list.replace("passwd", "/etc/passwd"));
    let url = publisher.url("/files");
    let files = home.feeds(&["import", &url, "--allow-private", "--json"]).await.object();
    assert_eq!((&files["added"], &files["problems"][0]["line"]), (&json!([]), &json!(4)));
    let exported = home.feeds(&["export"]).await;
    insta::assert_snapshot!(good(&exported), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <opml version="2.0">
      <head>
        <title>Feeds</title>
      </head>
      <body>
        <outline text="Tech" title="Tech">
          <outline type="rss" text="A &amp; B" title="A &amp; B" xmlUrl="https://a.example/f"/>
        </outline>
      </body>
    </opml>
    "#);
    good(&home.feeds(&["export", "-o", "out.opml"]).await);
    let written = std::fs::read_to_string(home.path().join("out.opml")).unwrap();
    assert_eq!(written, exported.output);
    home.write("news.xml", &news(&["two, 2", "one"]));
    good(&home.feeds(&["add", "news.xml"]).await);
    good(&home.feeds(&["refresh", "news.xml"]).await);
    // What is given out is taken in again, files too.
    good(&home.feeds(&["export", "-o", "all.opml"]).await);
    good(&home.feeds(&["rm", "news.xml"]).await);
    assert_eq!(
        good(&home.feeds(&["import", "all.opml"]).await),
        "added 1 feed; 1 was known already\n"
    );
    good(&home.feeds(&["refresh", "news.xml"]).await);
    for format in ["rss", "atom", "json"] {
        let words = ["export", "news.xml", "--format", format, "--limit", "1", "-o", "out.xml"];
        good(&home.feeds(&words).await);
        let read = home.feeds(&["parse", "out.xml", "--json"]).await.object();
        assert_eq!((&read["items"], &read["first_title"]), (&json!(1), &json!("two, 2")), "{read}");
    }
    let table = home.feeds(&["export", "--format", "csv"]).await;
    assert!(good(&table).contains("\"two, 2\""), "{table:?}");
    home.write("not.opml", "<html></html>");
    assert_eq!(home.feeds(&["import", "not.opml"]).await.code, Some(1));
}

#[tokio::test]
async fn what_a_file_says_is_served() {
    let home = Home::new();
    home.write("news.xml", &news(&["one"]));
    home.write(
        "tidings.toml",
        "[serve]\ndata = 'kept'\n\n[[feeds]]\nurl = 'news.xml'\ntitle = 'Mine'\ncategory = 'Own'\n",
    );
    let mut server = serve("", home.path()).await;
    server.subscribe("feeds://all").await;
    let mut all = server.read("feeds://all").await;
    while all[0]["itemCount"] != 1 {
        server.told("feeds://all").await;
        all = server.read("feeds://all").await;
    }
    assert_eq!(all[0]["title"], "Mine");
    server.child.start_kill().unwrap();
    let output = within(server.child.wait_with_output()).await.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("using the configuration in `tidings.toml`\n"), "{errors}");
    assert!(home.path().join("kept/feeds.sqlite").exists());
    home.write("tidings.toml", "[[feeds]]\nurl = 'news.xml'\ncatgory = 'Own'\n");
    let mut command = program("serve --stdio");
    command.current_dir(home.path());
    let refused = ended(command).await;
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.errors,
        "using the configuration in `tidings.toml`\n\
         error: `tidings.toml`, line 3: unknown key `catgory`\n\
         hint: did you mean `category`?\n"
    );
    let mut nothing = program("serve --stdio --config other.toml");
    nothing.current_dir(home.path());
    assert_eq!(ended(nothing).await.code, Some(1));
}

#[tokio::test]
async fn a_url_is_parsed_as_a_file_is() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let url = publisher.url("/feed");
    let parsed = home.feeds(&["parse", &url, "--allow-private", "--json"]).await.object();
    assert_eq!((&parsed["path"], &parsed["format"]), (&json!(url), &json!("rss 2.0")));
    assert_eq!(parsed["first_title"], "one");
    let refused = home.feeds(&["parse", &url]).await;
    assert_eq!(refused.code, Some(1));
    assert_eq!(
        same(&refused.errors, &publisher, "ID"),
        "error: reading `BASE/feed`: `127.0.0.1` is at the private address 127.0.0.1\n\
         hint: `--allow-private` allows private addresses\n\
         error: 1 document could not be read\n"
    );
    let other = home.feeds(&["parse", "ftp://a.example/f"]).await;
    assert!(
        other.errors.contains("only files and `http` or `https` URLs can be read"),
        "{other:?}"
    );
    home.write("my news.xml", &news(&["one"]));
    let file = format!("file://{}/my%20news.xml", home.path().display());
    let parsed = home.feeds(&["parse", &file, "--json"]).await.object();
    assert_eq!(parsed["first_title"], "one");
}

#[tokio::test]
async fn the_examples_of_the_commands_work_as_printed() {
    let home = Home::new();
    home.write("news.xml", &news(&["one"]));
    let path = Path::new(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap());
    // What is added by the first is used by the others and removed by the last.
    let names = "add ls health refresh pause resume export import parse rm";
    for name in names.split_whitespace() {
        let help = ended(client(&["feeds", name, "--help"])).await.output;
        let example = help.split("Example:\n").nth(1).unwrap();
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", example]).env("PATH", &path).kill_on_drop(true);
        shell.current_dir(home.path()).env("HOME", home.path()).env_remove("XDG_DATA_HOME");
        let ended = ended(shell).await;
        assert_eq!(ended.code, Some(0), "{example}: {ended:?}");
        assert!(name == "export" || !ended.output.is_empty(), "{example}: {ended:?}");
    }
}

#[tokio::test]
async fn a_list_on_the_web_is_read_while_what_is_kept_is_served() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let serve = format!("--allow-private --opml {}", publisher.url("/list"));
    let list = format!("<opml><body><outline xmlUrl='{}'/></body></opml>", publisher.url("/feed"));
    publisher.publish("/list", &list);
    let mut server = home.serve(&serve).await;
    server.subscribe("feeds://all").await;
    while server.read("feeds://all").await[0]["itemCount"] != 1 {
        server.told("feeds://all").await;
    }
    drop(server);
    // A list that cannot be read is told, and what it named the last time is served.
    publisher.fail("/list", 500);
    let mut server = home.serve(&serve).await;
    assert_eq!(server.read("feeds://all").await[0]["itemCount"], 1);
    let mut errors = BufReader::new(server.child.stderr.take().unwrap()).lines();
    let said = within(errors.next_line()).await.unwrap().unwrap();
    assert!(said.contains("/list` could not be loaded; next try in 15 min: "), "{said}");
    drop(server);
    let mut server = home.serve(&format!("{serve} --offline")).await;
    assert_eq!(server.read("feeds://all").await[0]["itemCount"], 1);
}

#[tokio::test]
async fn feeds_of_an_earlier_start_are_served_shown_and_removed() {
    let home = Home::new();
    home.write("news.xml", &news(&["one"]));
    home.write("other.xml", &news(&["two"]));
    drop(home.serve("--feed news.xml").await);
    let mut server = home.serve("--feeds").await;
    let all = server.read("feeds://all").await;
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    drop(server);
    drop(home.serve("--feed other.xml").await);
    let shown = home.feeds(&["ls", "--json"]).await;
    let mut states: Vec<_> = shown.lines().iter().map(|it| it["state"].clone()).collect();
    states.sort_by_key(ToString::to_string);
    assert_eq!(states.last().unwrap(), "unserved", "{shown:?}");
    let removed = home.feeds(&["rm", "news.xml"]).await;
    assert!(good(&removed).starts_with("removed "), "{removed:?}");
    assert_eq!(home.feeds(&["ls", "--json"]).await.lines().len(), 1);
}

#[tokio::test]
async fn a_file_is_read_before_it_is_added() {
    let home = Home::new();
    home.write("news.xml", &news(&["one"]));
    home.write("notes.txt", "nothing like a feed");
    let added = home.feeds(&["add", "news.xml"]).await;
    assert!(good(&added).ends_with("News, 1 item\n"), "{added:?}");
    let refused = home.feeds(&["add", "notes.txt"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.errors.contains("there is no feed at `"), "{refused:?}");
    let missing = home.feeds(&["add", "example.com/feed.xml"]).await;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.errors.contains("could not be read"), "{missing:?}");
    assert!(
        missing.errors.ends_with("hint: did you mean `https://example.com/feed.xml`?\n"),
        "{missing:?}"
    );
    assert_eq!(home.feeds(&["ls", "--json"]).await.lines().len(), 1);
}

#[tokio::test]
async fn commands_find_the_feeds_where_the_configuration_says() {
    let home = Home::new();
    home.write("news.xml", &news(&["one"]));
    home.write("tidings.toml", "[serve]\ndata = 'kept'\n");
    let run = async |words: &[&str]| {
        let mut command = client(&["feeds"]);
        command.args(words).current_dir(home.path());
        ended(command).await
    };
    let added = run(&["add", "news.xml"]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(added.errors, "using the feeds in `kept`, as configured in `tidings.toml`\n");
    assert!(home.path().join("kept/feeds.sqlite").exists());
    assert_eq!(run(&["ls", "--config", "tidings.toml", "--json"]).await.lines().len(), 1);
    home.write("tidings.toml", "[serve]\nkeep_items = 0\n");
    assert_eq!(run(&["ls"]).await.code, Some(2));
}
