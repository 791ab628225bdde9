//! The cache alone: latest wins, room is made, and every loss is told.

use rmcp::model::GetPromptResult;

use super::*;
use crate::events::Events;

fn content(text: &str) -> Arc<ResourceContent> {
    Arc::new(plain(text))
}

fn plain(text: &str) -> ResourceContent {
    let read_at = SystemTime::UNIX_EPOCH;
    ResourceContent { read_at, ..ResourceContent::of_text("test://x", text) }
}

struct Bench {
    reader: Reader,
    writer: Writer,
    events: Events,
    ticket: u64,
}

impl Bench {
    fn new(limits: CacheLimits) -> Self {
        let sender = Sender::new(64);
        let events = sender.receiver();
        let (reader, writer) = cache(limits, sender);
        Self { reader, writer, events, ticket: 0 }
    }

    fn put(&mut self, uri: &str, text: &str) -> bool {
        self.ticket += 1;
        self.writer.put_resource(
            &uri.into(),
            content(text),
            self.ticket,
            Fresh::No,
            (Cause::Notice, None),
        )
    }

    fn text(&self, uri: &str) -> Option<String> {
        let content = self.reader.resource(uri)?;
        match &content.contents[0] {
            ResourceContents::TextResourceContents { text, .. } => Some(text.clone()),
            _ => None,
        }
    }

    fn dropped(&mut self) -> Vec<String> {
        let mut dropped = Vec::new();
        while let Some(event) = self.events.try_next() {
            if let Event::ContentDropped { what: ContentKey::Resource(uri), why } = event {
                dropped.push(format!("{uri} {why:?}"));
            }
        }
        dropped
    }
}

#[test]
fn entries_can_be_listed_without_being_used() {
    let mut bench = Bench::new(CacheLimits::new(None, Some(2)));
    bench.put("test://b", "four");
    let later = Instant::now() + Duration::from_mins(1);
    let fresh = Fresh::Until(later);
    bench.writer.put_resource(&"test://a".into(), content("six"), 9, fresh, (Cause::Notice, None));
    let entries = bench.reader.entries();
    let keys = ["test://a", "test://b"].map(|uri| ContentKey::Resource(uri.into()));
    assert_eq!(entries.iter().map(|entry| entry.what.clone()).collect::<Vec<_>>(), keys);
    assert_eq!((entries[0].bytes, entries[1].bytes), (3, 4));
    assert_eq!(entries[0].read_at, SystemTime::UNIX_EPOCH);
    assert!(matches!(entries[0].freshness, Freshness::For(left) if left.as_secs() <= 60));
    assert_eq!(entries[1].freshness, Freshness::Stale);
    assert_eq!(bench.reader.statistics().hits, 0);
    bench.ticket = 9;
    bench.put("test://c", "new");
    assert_eq!(bench.dropped(), ["test://b Evicted"], "the oldest goes, although it was listed");
}

#[test]
fn an_answer_to_an_older_question_does_not_replace_a_newer_one() {
    let mut bench = Bench::new(CacheLimits::default());
    bench.put("a", "first");
    bench.ticket = 10;
    bench.put("a", "newer");
    let uri: Arc<str> = "a".into();
    assert!(!bench.writer.put_resource(&uri, content("late"), 5, Fresh::No, (Cause::Asked, None)));
    assert_eq!(bench.text("a").as_deref(), Some("newer"));
}

#[test]
fn equal_content_is_silent_unless_somebody_asked() {
    let mut bench = Bench::new(CacheLimits::default());
    assert!(bench.put("a", "same"));
    assert!(!bench.put("a", "same"));
    assert!(matches!(bench.events.try_next(), Some(Event::ResourceContentChanged { .. })));
    assert!(bench.events.try_next().is_none());
    let uri: Arc<str> = "a".into();
    assert!(!bench.writer.put_resource(&uri, content("same"), 9, Fresh::No, (Cause::Asked, None)));
    assert!(matches!(bench.events.try_next(), Some(Event::ResourceContentChanged { .. })));
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let mut bench = Bench::new(CacheLimits::new(None, Some(2)));
    bench.put("a", "1");
    bench.put("b", "2");
    assert!(bench.text("a").is_some(), "a was used after b");
    bench.put("c", "3");
    assert_eq!(bench.dropped(), ["b Evicted"]);
    assert_eq!(bench.reader.statistics().evictions, 1);
    assert_eq!(bench.reader.statistics().entries, 2);
}

#[test]
fn bytes_are_counted_and_bounded() {
    let mut bench = Bench::new(CacheLimits::new(Some(10), None));
    bench.put("a", "12345");
    bench.put("b", "12345");
    assert_eq!(bench.reader.statistics().bytes, 10);
    bench.put("a", "123");
    assert_eq!(bench.reader.statistics().bytes, 8);
    bench.put("huge", "12345678901");
    assert_eq!(bench.dropped(), ["b Evicted", "a Evicted", "huge Evicted"]);
    assert_eq!(bench.reader.statistics().bytes, 0);
}

#[test]
fn hits_and_misses_are_counted() {
    let mut bench = Bench::new(CacheLimits::default());
    bench.put("a", "1");
    assert!(bench.reader.resource("a").is_some() && bench.reader.resource("b").is_none());
    let statistics = bench.reader.statistics();
    assert_eq!((statistics.hits, statistics.misses), (1, 1));
}

#[test]
fn clearing_one_leaves_the_others_and_is_told() {
    let mut bench = Bench::new(CacheLimits::default());
    bench.put("a", "1");
    bench.put("b", "2");
    bench.reader.clear_resource("a");
    bench.reader.clear_resource("never there");
    assert_eq!(bench.dropped(), ["a Cleared"]);
    bench.reader.clear_all();
    assert_eq!(bench.dropped(), ["b Cleared"]);
}

#[test]
fn private_content_goes_with_its_authorisation() {
    let mut bench = Bench::new(CacheLimits::default());
    bench.put("public", "1");
    let private = Arc::new(ResourceContent { private: true, ..plain("2") });
    bench.writer.put_resource(&"private".into(), private, 9, Fresh::No, (Cause::Asked, None));
    bench.writer.drop_private();
    assert_eq!(bench.dropped(), ["private OtherAuthorization"]);
    assert!(bench.text("public").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_fresh_until_its_time_or_a_notice() {
    let mut bench = Bench::new(CacheLimits::default());
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let uri: Arc<str> = "a".into();
    bench.writer.put_resource(
        &uri,
        content("1"),
        1,
        Fresh::Until(now + second),
        (Cause::Asked, None),
    );
    assert!(bench.writer.fresh("a", now).is_some());
    assert!(bench.writer.fresh("a", now + second).is_none());
    bench.writer.put_resource(&uri, content("1"), 2, Fresh::UntilNotice, (Cause::Asked, None));
    assert!(bench.writer.fresh("a", now + second * 1000).is_some());
    bench.writer.make_stale(Some("a"));
    assert!(bench.writer.fresh("a", now).is_none());
    assert!(bench.reader.resource("a").is_some(), "it is kept all the same");
}

#[test]
fn what_is_cleared_all_at_once_leaves_the_others() {
    let (reader, mut writer) = cache(CacheLimits::default(), Sender::new(8));
    let prompt = Arc::new(PromptContent::new([("a", "b")], GetPromptResult::new(Vec::new())));
    writer.put_prompt(&"one".into(), prompt.clone(), 1);
    writer.put_prompt(&"two".into(), prompt, 2);
    let content = Arc::new(ResourceContent::of_text("a:b", "kept"));
    writer.put_resource(&"a:b".into(), content, 3, Fresh::No, (Cause::Asked, None));
    reader.clear_prompts();
    assert!(reader.prompt("one").is_none() && reader.prompt("two").is_none());
    assert_eq!(reader.resource("a:b").map(|content| content.text()).as_deref(), Some("kept"));
    reader.clear_resources();
    assert_eq!(reader.statistics().entries, 0);
}
