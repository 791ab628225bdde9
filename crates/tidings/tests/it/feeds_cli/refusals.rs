//! Refusals, with their hints.

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{Home, Publisher, good};
use crate::support::demo::{ended, program, within};

#[tokio::test]
async fn what_is_no_feed_is_refused_with_what_to_do() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let refused = home.feeds(&["add", &publisher.url("/feed")]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.errors.contains("private address"), "{refused:?}");
    let hint = "hint: `--allow-private` allows private addresses\n";
    assert!(refused.errors.ends_with(hint), "{refused:?}");
    let missing = home.feeds(&["add", &publisher.url("/nothing"), "--allow-private"]).await;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.errors.contains("404"), "{missing:?}");
    assert!(!missing.errors.contains("hint"), "{missing:?}");
    let link = |name: &str| format!("<link rel=alternate type=application/rss+xml href=/{name}>");
    publisher.publish("/", &format!("<!doctype html><html><head>{}{}", link("a"), link("b")));
    let several = home.feeds(&["add", &publisher.url("/"), "--allow-private"]).await;
    assert!(several.errors.contains("names 2 feeds; choose one"), "{several:?}");
    assert!(!several.errors.contains("hint"), "{several:?}");
    publisher.publish("/list", "<opml><body><outline xmlUrl='https://a.example/f'/></body></opml>");
    let list = home.feeds(&["add", &publisher.url("/list"), "--allow-private"]).await;
    assert!(list.errors.contains("is a list of feeds in OPML, not a feed"), "{list:?}");
    assert!(
        list.errors.contains("hint: add the feeds of a list with `tidings feeds import`"),
        "{list:?}"
    );
    publisher.fail("/broken", 500);
    let broken = home.feeds(&["add", &publisher.url("/broken"), "--allow-private"]).await;
    assert!(broken.errors.contains("hint: `--unseen` adds it"), "{broken:?}");
    let unseen = home.feeds(&["add", &publisher.url("/nothing"), "--unseen"]).await;
    assert!(good(&unseen).ends_with("/nothing, not fetched yet\n"), "{unseen:?}");
    let forbidden = home.feeds(&["refresh"]).await;
    let hint = "hint: `--allow-private` allows feeds on private addresses\n";
    assert!(forbidden.errors.ends_with(hint), "{forbidden:?}");
    let list = home.feeds(&["import", &publisher.url("/list")]).await;
    assert!(list.errors.ends_with("`--allow-private` allows private addresses\n"), "{list:?}");
    let unknown = home.feeds(&["rm", "0"]).await;
    assert_eq!(unknown.code, Some(2));
    assert_eq!(
        unknown.errors,
        "error: no feed has the id or URL `0`\nhint: `tidings feeds ls` lists them\n"
    );
    let titles = home.feeds(&["add", "a", "b", "--title", "x"]).await;
    assert_eq!(titles.code, Some(2), "{titles:?}");
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_is_by_the_next_command_too() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    good(&home.feeds(&["add", &publisher.url("/feed"), "--allow-private"]).await);
    publisher.fail("/busy", 429);
    let refused = home.feeds(&["add", &publisher.url("/busy"), "--allow-private"]).await;
    assert!(refused.errors.contains("refuses requests for now (429)"), "{refused:?}");
    let left = home.feeds(&["refresh", "--allow-private"]).await;
    assert!(good(&left).contains("its server sent Retry-After"), "{left:?}");
    let again = home.feeds(&["add", &publisher.url("/other"), "--allow-private"]).await;
    assert!(again.errors.contains("refuses requests for another"), "{again:?}");
}

#[tokio::test]
async fn what_is_named_to_be_served_is_looked_at_before_the_start() {
    let home = Home::new();
    for (feed, said) in [
        ("example.org/feed.xml", "hint: did you mean `https://example.org/feed.xml`?\n"),
        ("none.xml", "error: the file `none.xml` does not exist\nhint: create it first"),
        ("https://me:secret@example.org/f", "error: a URL with a user name or password"),
        ("ftp://example.org/f", "error: `ftp://example.org/f` is not the URL of a feed\n"),
    ] {
        let mut command = program(&format!("serve --stdio --in-memory --feed {feed}"));
        command.current_dir(home.path());
        let refused = ended(command).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.errors.contains(said), "{refused:?}");
        assert!(!refused.errors.contains("secret"), "{refused:?}");
    }
    let mut server = home.serve("--feeds").await;
    let mut errors = BufReader::new(server.child.stderr.take().unwrap()).lines();
    let said = within(errors.next_line()).await.unwrap().unwrap();
    let add = "`tidings feeds add URL --data data` adds one while the server runs";
    assert_eq!(said, format!("no feeds are stored yet; {add}"));
    home.write("secret.toml", "[[feeds]]\nurl = 'https://me:secret@example.org/f'\n");
    let mut command = program("serve --stdio --config secret.toml --in-memory");
    command.current_dir(home.path());
    let refused = ended(command).await;
    assert_eq!(
        refused.errors,
        "error: a URL with a user name or password is not accepted\n\
         hint: use the feed's `headers` instead\n"
    );
}

#[tokio::test]
async fn a_server_without_anything_to_serve_says_what_could_be() {
    let home = Home::new();
    for (arguments, said) in [
        ("serve", "error: nothing to serve\nhint: give `--demo`"),
        ("serve --demo --offline", "error: --offline applies only to feeds, and none are served\n"),
    ] {
        let mut command = program(arguments);
        command.current_dir(home.path());
        let refused = ended(command).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.errors.starts_with(said), "{refused:?}");
    }
}
