//! The console over a server in memory: what a viewer sees.

use super::*;

#[test]
fn the_filter_of_a_timeline_is_no_part_of_its_revision() {
    assert_eq!(base("s/1/log?subject:a/log?b"), "s/1/log");
    assert_eq!(base("s/1/watched/a:log?x"), "s/1/watched/a:log?x");
    assert_eq!(base("servers"), "servers");
    assert_eq!(base("s/1/latency"), "s/1/log");
    assert_eq!(base("s/1/watched/a:/latency"), "s/1/watched/a:/latency");
}

#[tokio::test(start_paused = true)]
async fn a_view_waits_until_one_of_its_things_changes() {
    let console = Console::default();
    let view = Wanted { since: 1, see: vec![SERVERS.to_owned()], also: Vec::new() };
    let idle = console.state(&view, Duration::from_secs(25)).await;
    assert_eq!((&idle["things"], &idle["rev"]), (&json!({}), &1.into()));
    let waiting = console.state(&view, Duration::from_secs(25));
    let touching = async {
        console.inner.revisions.touch(&["something else"]);
        console.inner.revisions.touch(&[SERVERS])
    };
    let (news, revision) = tokio::join!(waiting, touching);
    assert_eq!((&news["things"][SERVERS], &news["rev"]), (&json!([]), &revision.into()));
}

#[tokio::test]
async fn a_thing_that_does_not_exist_is_gone_and_a_foreign_cursor_starts_again() {
    let console = Console::default();
    let view = Wanted { since: 0, see: vec!["s/7/log".to_owned()], also: Vec::new() };
    assert_eq!(console.state(&view, Duration::ZERO).await["gone"], json!(["s/7/log"]));
    let view = Wanted { since: 99, see: vec![SERVERS.to_owned()], also: Vec::new() };
    assert_eq!(console.state(&view, Duration::ZERO).await["things"][SERVERS], json!([]));
}
