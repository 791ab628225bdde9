//! Progress and log messages of a running tool, as a client gets them.

use super::*;

#[tokio::test]
async fn thousands_of_log_lines_come_in_order_before_the_result() {
    let count = "i=0; while [ $i -lt 5000 ]; do echo \"::log info $i\" >&2; i=$((i+1)); done";
    let yard = Yard::new(|plot| plot.tool("count", "Counts", count)).await;
    for way in [Way::Stdio, Way::Http] {
        let mut listener = yard.listener(way).await;
        let answer = listener.ask("tools/call", json!({ "name": "count" })).await;
        assert_ne!(answer["isError"], true, "{answer}");
        let wanted = json!({ "method": "notifications/message" });
        let said = std::iter::from_fn(|| listener.client.take(&wanted));
        let said: Vec<_> = said.map(|line| line["params"]["data"].clone()).collect();
        let all: Vec<_> = (0..5000).map(|number: u32| json!(number.to_string())).collect();
        assert!(said == all, "{} lines, the last {:?}", said.len(), said.last());
    }
}
