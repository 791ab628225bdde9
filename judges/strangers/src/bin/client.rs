//! A client that stays current: lists, a watched resource, and what a template, a prompt and a tool
//! gave last. It is given the program that serves; what is not as it should be ends it.

use tidings_mirror::{CommandTarget, Config, Mirror};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::args().nth(1).ok_or("which server?")?;
    let config = Config::new("stranger", "1.0");
    let target = CommandTarget::new(server, Vec::new());
    let (mirror, mut events) = Mirror::connect_with_events(target, config).await?;
    assert_eq!(mirror.tools().len(), 1, "one tool is offered at first");
    let mut all = mirror.watch("notes://all").await?;
    assert_eq!(all.next().await.ok_or("it ended")?.content?.text(), "first");
    let note = mirror.read_from_template("notes://{number}", [("number", "0")]).await?;
    assert_eq!(note.content.text(), "first");
    mirror.get_prompt("sum_up", [("text", "everything")]).await?;
    let added = mirror.call_tool("add", [("text", "second")]).await?;
    assert_eq!(added.text(), "added");
    assert_eq!(all.next().await.ok_or("it ended")?.content?.text(), "first\nsecond");
    while mirror.tools().len() < 2 {
        events.next().await.ok_or("it ended before the second tool came")?;
    }
    let cache = mirror.cache();
    let prompt = cache.prompt("sum_up").ok_or("no prompt is cached")?;
    assert_eq!(prompt.text(), "Sum up: everything");
    assert!(cache.tool_result("add").is_some() && cache.resource("notes://all").is_some());
    assert!(!mirror.call_tool("add", [("text", "")]).await?.is_success());
    println!("the client stayed current");
    mirror.close().await;
    Ok(())
}
