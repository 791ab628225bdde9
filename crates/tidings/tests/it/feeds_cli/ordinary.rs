//! Ordinary days: a page that is added twice, an address with a secret, a server that ends.

use super::*;

#[tokio::test]
async fn a_page_that_is_added_twice_is_one_feed() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let link = |path: &str, title: &str| {
        format!("<link rel=alternate type=application/rss+xml title='{title}' href={path}>")
    };
    let links = link("/feed", "News") + &link("/comments/feed", "Comments on News");
    publisher.publish("/", &format!("<!doctype html><html><head>{links}</head></html>"));
    let mut states = Vec::new();
    for _ in 0..2 {
        let words = ["add", &publisher.url("/"), "--allow-private", "--json"];
        states.push(home.feeds(&words).await.object()["state"].clone());
    }
    assert_eq!(states, ["added", "present"]);
    assert_eq!(home.feed().await["url"], publisher.url("/feed").as_str());
}

#[tokio::test]
async fn an_address_of_old_browsers_is_understood() {
    let (home, publisher) = (Home::new(), Publisher::start().await);
    let url = publisher.url("/feed").replace("http://", "feed://");
    let added = home.feeds(&["add", &url, "--allow-private", "--json"]).await.object();
    assert_eq!(added["url"], publisher.url("/feed").as_str());
}

#[tokio::test]
async fn what_a_variable_holds_is_shown_by_no_command() {
    let home = Home::new();
    let url = "http://127.0.0.1:9/feed?key=${TIDINGS_NO_SUCH_KEY:-sesame}";
    let file = format!("[serve]\ndata = 'data'\n\n[[feeds]]\nurl = '{url}'\nfolder = 'Own'\n");
    home.write("tidings.toml", &file);
    let mut server = serve("", home.path()).await;
    let all = server.read("feeds://all").await;
    // The default stands in the file, and so in what is shown of it.
    assert_eq!((&all[0]["publicUrl"], &all[0]["folder"]), (&json!(url), &json!("Own")));
    server.child.start_kill().unwrap();
    within(server.child.wait()).await.unwrap();
    for words in [&["ls", "--json"][..], &["ls"], &["export"]] {
        let shown = home.feeds(words).await.output;
        assert!(!shown.contains("key=sesame"), "{shown}");
    }
}
