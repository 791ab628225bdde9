//! Notices for ordinary work in a folder: each change once, and none without a change.

use std::time::Duration;

use serde_json::json;
use tidings_server::Merging;

use super::{Plot, Yard, seconds};

fn garden(plot: &Plot) {
    plot.tool("count", "Counts", "echo 1");
    plot.write("resources/note.md", "first");
    plot.write("prompts/greet.md", "---\ndescription: Greets\n---\nHello {{who}}");
}

#[tokio::test]
async fn a_tool_that_comes_while_clients_are_silent_is_told_once() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    yard.plot().tool("weigh", "Weighs", "echo 2");
    for listener in &mut listeners.0 {
        listener.until_listed("tools", "weigh").await;
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn a_touch_equal_bytes_and_another_body_are_silence() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    let meta = "tools/count/tool.meta.json";
    let bytes = std::fs::read(plot.at(meta)).unwrap();
    let file = std::fs::File::options().write(true).open(plot.at(meta)).unwrap();
    file.set_modified(std::time::SystemTime::now() + Duration::from_secs(5)).unwrap();
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    plot.write(meta, &bytes);
    plot.save(meta, &bytes);
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    plot.script("tools/count/tool.sh", "echo 1000");
    plot.save("prompts/greet.md", "---\ndescription: Greets\n---\nGood day {{who}}");
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    // The new body is what is used, all the same.
    let params = json!({ "name": "greet", "arguments": { "who": "Ada" } });
    let answer = listeners.0[0].ask("prompts/get", params).await;
    assert_eq!(answer["messages"][0]["content"]["text"], "Good day Ada");
    let answer = listeners.0[1].ask("tools/call", json!({ "name": "count" })).await;
    assert_eq!(answer["content"][0]["text"], "1000");
}

#[tokio::test]
async fn a_description_that_keeps_size_and_time_is_told_and_listed() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let path = yard.plot().at("tools/count/tool.meta.json");
    let (modified, size) = (seconds(&path), path.metadata().unwrap().len());
    let text = std::fs::read_to_string(&path).unwrap().replace("Counts", "Sorted");
    std::fs::write(&path, text).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!((seconds(&path), path.metadata().unwrap().len()), (modified, size));
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
        let answer = listener.ask("tools/list", json!({})).await;
        assert_eq!(answer["tools"][0]["description"], "Sorted");
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn what_comes_and_goes_within_a_window_is_silence_and_twenty_are_one() {
    let mut yard = Yard::patient(garden).await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    plot.tool("brief", "Is gone at once", "echo 0");
    plot.remove("tools/brief");
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    for number in 0..20 {
        plot.tool(&format!("many-{number:02}"), "One of many", "echo 0");
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[("tools", 1)]).await;
    assert_eq!(listeners.0[0].names("tools").await.len(), 21);
}

#[tokio::test]
async fn a_checkout_of_hundreds_of_files_is_told_in_few_notices() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    let begun = std::time::Instant::now();
    for number in 0..100 {
        plot.script(&format!("tools/t{number}.sh"), &format!("# @describe Tool {number}"));
        plot.write(&format!("prompts/p{number}.md"), "text");
        plot.write(&format!("resources/deep/er/r{number}.txt"), number.to_string());
    }
    let windows = usize::try_from(begun.elapsed().as_millis() / 250).unwrap();
    yard.fence(&mut listeners).await;
    for listener in &mut listeners.0 {
        let mut told = std::collections::BTreeMap::new();
        listener.told(&mut told);
        for (list, count) in told {
            assert!(count <= 2 + windows, "{list} {count} times in {windows} windows");
        }
        assert_eq!(listener.names("tools").await.len(), 101);
        assert_eq!(listener.names("resources").await.len(), 101);
    }
}

#[tokio::test]
async fn a_registration_is_told_and_a_broken_one_is_not() {
    let registered = |description: &str| {
        json!({ "version": 1, "tools": [
            { "name": "count", "description": description, "path": "count/tool.sh" },
        ] })
    };
    let mut yard = Yard::new(|plot| {
        garden(plot);
        plot.write("server.d/register.json", registered("Once").to_string());
    })
    .await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    plot.save("server.d/register.json", registered("Twice").to_string());
    yard.fence(&mut listeners).await;
    listeners.told(&[("tools", 1)]).await;
    // Reports of what came before.
    while yard.reports.try_recv().is_ok() {}
    plot.save("server.d/register.json", "{\n  \"version\": 1,\n  \"tools\": [}\n");
    let report = loop {
        let report = yard.report().await;
        if !report.problems.is_empty() {
            break report;
        }
    };
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let problem = report.problems[0].to_string();
    assert!(
        problem.starts_with("server.d/register.json:3: this is not a value of JSON"),
        "{problem}"
    );
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    let answer = listeners.0[0].ask("tools/list", json!({})).await;
    assert_eq!(answer["tools"][0]["description"], "Twice");
    plot.save("server.d/register.json", json!({ "tools": [] }).to_string());
    yard.fence(&mut listeners).await;
    listeners.told(&[("tools", 1)]).await;
    plot.remove("server.d/register.json");
    yard.fence(&mut listeners).await;
    listeners.told(&[("tools", 1)]).await;
    assert_eq!(listeners.0[0].names("tools").await, ["count"]);
}

#[tokio::test]
async fn a_broken_description_keeps_the_last_good_one_and_is_told_once() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    plot.save("tools/count/tool.meta.json", "{\n \"name\": \"count\",\n \"description\": 7\n}");
    let report = yard.report().await;
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let problem = report.problems[0].to_string();
    assert!(problem.starts_with("tools/count/tool.meta.json:3: "), "{problem}");
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    assert_eq!(listeners.0[0].names("tools").await, ["count"]);
    let meta = json!({ "name": "count", "description": "Counts" }).to_string();
    plot.save("tools/count/tool.meta.json", meta);
    let report = loop {
        let report = yard.report().await;
        if !report.mended.is_empty() {
            break report;
        }
    };
    assert!(report.problems.is_empty(), "{report:?}");
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn a_registration_program_that_prints_in_another_order_each_time_is_silence() {
    let print = |plot: &Plot| {
        let entry = r#"{"name":"NAME","description":"One of two","path":"count/tool.sh"}"#;
        let (one, two) = (entry.replace("NAME", "one"), entry.replace("NAME", "two"));
        plot.script(
            "server.d/register.sh",
            &format!(
                "n=$(cat runs 2>/dev/null || echo 0); echo $((n + 1)) > runs\n\
                 if [ $((n % 2)) = 0 ]; then echo '{{\"tools\":[{one},{two}]}}'\n\
                 else echo '{{  \"tools\" : [ {two} , {one} ] }}'; fi"
            ),
        );
    };
    let mut yard = Yard::with(
        |plot| {
            garden(plot);
            print(plot);
        },
        Merging::default(),
        |config| config.register = Some(Duration::from_millis(50)),
    )
    .await;
    let mut listeners = yard.listeners().await;
    assert_eq!(listeners.0[0].names("tools").await, ["one", "two"]);
    let runs = || std::fs::read_to_string(yard.plot().at("runs")).unwrap_or_default();
    let enough = async {
        while runs().trim().parse::<u32>().unwrap_or(0) < 6 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), enough).await.unwrap();
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    yard.plot().script("server.d/register.sh", "echo '{\"tools\":[]}'");
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
    }
    assert_eq!(listeners.0[0].names("tools").await, [""; 0]);
}

#[tokio::test]
async fn a_watched_file_is_told_of_when_its_bytes_move_and_only_then() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    let uri = plot.uri("resources/note.md");
    listeners.subscribe(&uri).await;
    plot.save("resources/note.md", "second");
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "params": { "uri": uri } })).await;
        assert_eq!(listener.text(&uri).await, "second");
        let list = listener.ask("resources/list", json!({})).await;
        assert_eq!(list["resources"][0]["size"], 6, "what is listed is measured anew");
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
    plot.write("resources/note.md", "second");
    plot.save("resources/note.md", "second");
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn a_watched_file_that_goes_and_comes_back_is_told_twice() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    let uri = plot.uri("resources/note.md");
    listeners.subscribe(&uri).await;
    plot.remove("resources/note.md");
    yard.fence(&mut listeners).await;
    listeners.told(&[("resources", 1), ("updated note.md", 1)]).await;
    for listener in &mut listeners.0 {
        let answer = listener.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }
    plot.write("resources/note.md", "back");
    yard.fence(&mut listeners).await;
    listeners.told(&[("resources", 1), ("updated note.md", 1)]).await;
    assert_eq!(listeners.0[1].text(&uri).await, "back");
}

#[tokio::test]
async fn a_file_that_a_template_stands_for_is_told_under_its_own_address_only() {
    let mut yard = Yard::new(|plot| {
        garden(plot);
        let meta = json!({
            "name": "entries", "uriTemplate": "diary://{day}", "path": "days/{day}.md",
        });
        plot.write("resources/diary.meta.json", meta.to_string());
        plot.write("resources/days/monday.md", "rain");
        plot.write("resources/days/tuesday.md", "sun");
    })
    .await;
    let mut listeners = yard.listeners().await;
    listeners.subscribe("diary://monday").await;
    listeners.subscribe("diary://tuesday").await;
    yard.plot().save("resources/days/monday.md", "snow");
    yard.fence(&mut listeners).await;
    listeners.told(&[("updated monday", 1)]).await;
    assert_eq!(listeners.0[0].text("diary://monday").await, "snow");
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "diary://{day}" },
        "argument": { "name": "day", "value": "t" },
    });
    let answer = listeners.0[0].ask("completion/complete", params).await;
    assert_eq!(answer["completion"]["values"], json!(["tuesday"]));
}

#[tokio::test]
async fn a_new_file_is_one_notice_of_the_list() {
    let mut yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    yard.plot().write("resources/a folder/new note.txt", "hello");
    yard.fence(&mut listeners).await;
    listeners.told(&[("resources", 1)]).await;
    let uri = yard.plot().uri("resources/a folder/new note.txt");
    assert_eq!(listeners.0[0].text(&uri).await, "hello");
}

#[tokio::test]
async fn the_folder_itself_may_go_and_come_back() {
    let yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    let away = yard.directory.path().with_extension("away");
    std::fs::rename(yard.directory.path(), &away).unwrap();
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
        while !listener.names("tools").await.is_empty() {
            listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
        }
    }
    std::fs::rename(&away, yard.directory.path()).unwrap();
    for listener in &mut listeners.0 {
        listener.until_listed("tools", "count").await;
    }
    yard.plot().tool("weigh", "Weighs", "echo 2");
    for listener in &mut listeners.0 {
        listener.until_listed("tools", "weigh").await;
    }
}

#[tokio::test]
async fn a_folder_that_is_replaced_by_an_empty_one_is_followed_on() {
    let yard = Yard::new(garden).await;
    let mut listeners = yard.listeners().await;
    std::fs::remove_dir_all(yard.directory.path()).unwrap();
    std::fs::create_dir(yard.directory.path()).unwrap();
    for listener in &mut listeners.0 {
        while !listener.names("tools").await.is_empty() {
            listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
        }
    }
    yard.plot().script("tools/weigh.sh", "# @describe Weighs");
    for listener in &mut listeners.0 {
        listener.until_listed("tools", "weigh").await;
    }
}

#[tokio::test]
async fn a_registration_program_that_goes_leaves_nothing_of_it() {
    let yard = Yard::with(
        |plot| {
            garden(plot);
            let entry = r#"{"tools":[{"name":"only","description":"O","path":"count/tool.sh"}]}"#;
            plot.script("server.d/register.sh", &format!("echo '{entry}'"));
        },
        Merging::default(),
        |config| config.register = Some(Duration::from_mins(1)),
    )
    .await;
    let mut listeners = yard.listeners().await;
    assert_eq!(listeners.0[0].names("tools").await, ["only"]);
    yard.plot().remove("server.d/register.sh");
    for listener in &mut listeners.0 {
        listener.until_listed("tools", "count").await;
        assert_eq!(listener.names("tools").await, ["count"]);
    }
}

#[tokio::test]
async fn what_is_wrong_is_told_while_something_else_never_rests() {
    let mut yard = Yard::new(garden).await;
    let plot = yard.plot();
    plot.save("tools/count/tool.meta.json", "{");
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    let writing = async {
        for number in 0_u64.. {
            plot.write("resources/log.txt", number.to_string());
            pace.tick().await;
        }
    };
    let told = async {
        loop {
            let report = yard.report().await;
            if !report.problems.is_empty() {
                break;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = told => {}
    }
}

#[tokio::test]
async fn a_name_that_another_source_has_is_taken_over_when_it_is_free() {
    let mut config = tidings_server::Config::new("two", "1");
    config.greeting = tidings_server::Greeting::Silent;
    let hub = tidings_server::Hub::with_config(config);
    let folders: Vec<_> = ["one", "two"]
        .map(|name| {
            let directory = tempfile::tempdir().unwrap();
            let plot = Plot(directory.path().to_owned());
            plot.write("prompts/x.md", format!("---\ndescription: of {name}\n---\n"));
            plot.script("tools/x.sh", &format!("# @describe Of {name}"));
            (directory, plot, name)
        })
        .into();
    for (directory, _, name) in &folders {
        let config = tidings_folder::Config::new(directory.path().to_owned());
        let folder = tidings_folder::Folder::open(config).await.unwrap();
        hub.add(name, |shelf| Ok(folder.on(shelf))).await.unwrap();
    }
    let router = tidings_server::http::router(&hub, tidings_server::http::HttpConfig::default());
    let mut listener = super::listener(crate::support::client::Way::Stdio, &hub, &router).await;
    let described = async |listener: &mut super::Listener| {
        let answer = listener.ask("tools/list", json!({})).await;
        answer["tools"][0]["description"].as_str().map(str::to_owned)
    };
    assert_eq!(described(&mut listener).await.as_deref(), Some("Of one"));
    folders[0].1.remove("tools/x.sh");
    while described(&mut listener).await.as_deref() != Some("Of two") {
        listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
    }
}

#[tokio::test]
async fn a_file_system_that_tells_nothing_is_looked_at_by_itself() {
    let mut yard = Yard::with(garden, Merging::default(), |config| {
        config.poll = Some(Duration::from_millis(50));
    })
    .await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    let uri = plot.uri("resources/note.md");
    listeners.subscribe(&uri).await;
    plot.save("resources/note.md", "second");
    plot.tool("weigh", "Weighs", "echo 2");
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "params": { "uri": uri } })).await;
        listener.until_listed("tools", "weigh").await;
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn a_tool_is_offered_while_its_command_says_so() {
    let mut yard = Yard::new(|plot| {
        garden(plot);
        plot.script("tools/beta/tool.sh", "echo beta");
        let meta = json!({
            "name": "beta", "description": "Tried out", "enabled": "test -e ../../flags/beta",
        });
        plot.write("tools/beta/tool.meta.json", meta.to_string());
        std::fs::create_dir(plot.at("flags")).unwrap();
    })
    .await;
    let mut listeners = yard.listeners().await;
    assert_eq!(listeners.0[0].names("tools").await, ["count"]);
    yard.plot().write("flags/beta", "");
    for listener in &mut listeners.0 {
        listener.until_listed("tools", "beta").await;
    }
    yard.plot().remove("flags/beta");
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "method": "notifications/tools/list_changed" })).await;
        assert_eq!(listener.names("tools").await, ["count"]);
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn a_policy_takes_off_the_list_what_it_denies() {
    let mut yard = Yard::new(|plot| {
        garden(plot);
        plot.tool("burn", "Burns everything", "echo ash");
        plot.write("resources/private/key.txt", "secret");
    })
    .await;
    let mut listeners = yard.listeners().await;
    let plot = yard.plot();
    let private = plot.uri("resources/private/key.txt");
    let policy = "[tools]\ndeny = [\"burn*\"]\n[paths]\ndeny = [\"resources/private/**\"]\n";
    plot.write("server.d/policy.toml", policy);
    yard.fence(&mut listeners).await;
    listeners.told(&[("resources", 1), ("tools", 1)]).await;
    assert_eq!(listeners.0[0].names("tools").await, ["count"]);
    assert_eq!(listeners.0[0].names("resources").await, ["note.md"]);
    let answer = listeners.0[1].ask("resources/read", json!({ "uri": private })).await;
    assert_eq!(answer["error"]["code"], -32002);
    let answer = listeners.0[1].ask("tools/call", json!({ "name": "burn" })).await;
    assert_eq!(answer["error"]["code"], -32602);
    // A policy that cannot be understood opens nothing.
    plot.write("server.d/policy.toml", "[tools\n");
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}
