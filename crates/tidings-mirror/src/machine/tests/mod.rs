//! The machine alone, one behaviour each: what a law about the end cannot see on the way there.

mod convergence;
mod notices;

use std::time::{Duration, SystemTime};

use rmcp::model::{ErrorCode, ErrorData, JsonObject, ResourceContents};
use tidings_core::ListKind;

use super::*;
use crate::cache::{self, ResourceContent};
use crate::config::CacheLimits;
use crate::events::Events;
use crate::lists::Page;

const URI: &str = "test://1";

struct Bench {
    machine: Machine,
    reader: cache::Reader,
    events: Events,
    now: Instant,
}

impl Bench {
    /// Connected, with its lists loaded and empty.
    fn new() -> Self {
        let sender = Sender::new(1024);
        let events = sender.receiver();
        let (reader, writer) = cache::cache(CacheLimits::default(), sender.clone());
        let merging =
            Merging { quiet: Duration::from_millis(25), max_wait: Duration::from_millis(250) };
        let rules = Rules::of(merging, 100);
        let machine = Machine::new(rules, writer, sender);
        let mut bench = Self { machine, reader, events, now: Instant::now() };
        bench.connect();
        bench
    }

    fn connect(&mut self) {
        let announced = ListKinds::ALL;
        let offer = Offer { lists: vec![List::Tools], announced, ..Offer::default() };
        let requests = self.tell(Input::Connected(offer));
        let Some(Request::Page { ticket, .. }) = requests.first() else { panic!("{requests:?}") };
        self.page(*ticket, &[], None);
        self.wait(1000);
        self.told();
    }

    fn tell(&mut self, input: Input) -> Vec<Request> {
        self.machine.step(input, self.now)
    }

    fn wait(&mut self, ms: u64) -> Vec<Request> {
        self.now += Duration::from_millis(ms);
        self.tell(Input::Tick)
    }

    fn page(&mut self, ticket: u64, names: &[&str], next: Option<&str>) -> Vec<Request> {
        let tool = |name: &&str| Tool::new((*name).to_owned(), "", JsonObject::new()).into();
        let items = names.iter().map(tool).collect();
        let answer =
            PageAnswer::Tools(Ok(Page { items, odd: Vec::new(), next: next.map(str::to_owned) }));
        self.tell(Input::Page { ticket, answer })
    }

    fn subscribe(&mut self) -> Vec<Request> {
        self.tell(Input::Subscribed { uris: vec![URI.into()], refused: Vec::new() })
    }

    fn read(&mut self, ticket: u64, text: &str) -> Vec<Request> {
        self.tell(Input::Read { uri: URI.into(), ticket, content: Arc::new(content(text)) })
    }

    fn reread(&mut self, ticket: u64, answer: Result<&str, RequestError>) -> Vec<Request> {
        let answer = answer.map(content);
        self.tell(Input::Reread { uri: URI.into(), ticket, answer })
    }

    fn kept(&self) -> Option<String> {
        match &self.reader.resource(URI)?.contents[0] {
            ResourceContents::TextResourceContents { text, .. } => Some(text.clone()),
            _ => None,
        }
    }

    /// What was told since, in short.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(event) = self.events.try_next() {
            told.push(match event {
                Event::ToolsChanged(change) => {
                    let names: Vec<_> = change.items.iter().map(|tool| tool.name.clone()).collect();
                    format!("tools {}", names.join(" "))
                }
                Event::ResourceContentChanged { content, cause, .. } => {
                    let ResourceContents::TextResourceContents { text, .. } = &content.contents[0]
                    else {
                        panic!("text")
                    };
                    format!("content {text} {cause:?}")
                }
                Event::ResourceUpdated { cause, .. } => format!("updated {cause:?}"),
                Event::ResourceGone { reason, cause, .. } => format!("gone {cause:?}: {reason}"),
                Event::SubscriptionsChanged { uris, .. } => format!("watching {}", uris.len()),
                Event::ContentDropped { why, .. } => format!("dropped {why:?}"),
                Event::Warning(warning) => format!("warning: {warning}"),
                Event::Connection(state) => state.to_string(),
                other => format!("{other:?}"),
            });
        }
        told
    }
}

fn content(text: &str) -> ResourceContent {
    let read_at = SystemTime::UNIX_EPOCH;
    ResourceContent { read_at, ..ResourceContent::of_text(URI, text) }
}

#[track_caller]
fn page_of(requests: &[Request]) -> (u64, Option<String>) {
    match requests {
        [Request::Page { ticket, cursor, .. }] => (*ticket, cursor.clone()),
        other => panic!("one page was to be asked for, not {other:?}"),
    }
}

#[track_caller]
fn read_of(requests: &[Request]) -> u64 {
    match requests {
        [Request::Read { ticket, .. }] => *ticket,
        other => panic!("one read was to be asked for, not {other:?}"),
    }
}

fn refused(code: i32) -> RequestError {
    RequestError::Refused(ErrorData::new(ErrorCode(code), "no", None))
}

const NOTICE: Input = Input::ListNotice(ListKind::Tools, None);

#[tokio::test(start_paused = true)]
async fn paging_that_is_overtaken_starts_again_and_no_mixture_is_told() {
    let mut bench = Bench::new();
    let (first, _) = page_of(&bench.tell(NOTICE));
    let (second, cursor) = page_of(&bench.page(first, &["a", "b"], Some("2")));
    assert_eq!(cursor.as_deref(), Some("2"));
    assert!(bench.tell(NOTICE).is_empty(), "one listing at a time");
    assert!(bench.page(second, &["d"], None).is_empty(), "not before the changes rest");
    let (again, cursor) = page_of(&bench.wait(25));
    assert_eq!(cursor, None, "from the first page");
    assert!(bench.told().is_empty());
    let (last, _) = page_of(&bench.page(again, &["b", "c"], Some("2")));
    bench.page(last, &["d"], None);
    assert_eq!(bench.told(), ["tools b c d"]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_not_valid_any_longer_starts_again() {
    let mut bench = Bench::new();
    let (first, _) = page_of(&bench.tell(NOTICE));
    let (second, _) = page_of(&bench.page(first, &["a"], Some("2")));
    let answer = PageAnswer::Tools(Err(refused(-32602)));
    let (again, cursor) = page_of(&bench.tell(Input::Page { ticket: second, answer }));
    assert_eq!(cursor, None);
    bench.page(again, &["b"], None);
    assert_eq!(bench.told(), ["tools b"]);
}

#[tokio::test(start_paused = true)]
async fn an_equal_list_is_silence() {
    let mut bench = Bench::new();
    let (ticket, _) = page_of(&bench.tell(NOTICE));
    bench.page(ticket, &["a"], None);
    assert_eq!(bench.told(), ["tools a"]);
    bench.wait(1000);
    let (ticket, _) = page_of(&bench.tell(NOTICE));
    bench.page(ticket, &["a"], None);
    assert!(bench.told().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_is_over_is_not_heard() {
    let mut bench = Bench::new();
    let (old, _) = page_of(&bench.tell(NOTICE));
    bench.tell(Input::Gone { keep: true });
    bench.connect();
    let (new, _) = page_of(&bench.tell(NOTICE));
    assert!(bench.page(old, &["stale"], None).is_empty() && bench.told().is_empty());
    bench.page(new, &["fresh"], None);
    assert_eq!(bench.told(), ["tools fresh"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_begun_before_a_notice_is_followed_by_another() {
    let mut bench = Bench::new();
    bench.subscribe();
    let ticket = bench.machine.ticket();
    bench.tell(Input::Updated(URI.into(), None));
    assert!(bench.read(ticket, "old").is_empty());
    let again = read_of(&bench.wait(25));
    assert_eq!(bench.kept().as_deref(), Some("old"));
    assert!(bench.machine.cache().fresh(URI, bench.now).is_none(), "it is not sure to be current");
    bench.reread(again, Ok("new"));
    assert_eq!(
        bench.told(),
        ["watching 1", "updated Notice", "content old Asked", "content new Notice"]
    );
    assert!(bench.machine.cache().fresh(URI, bench.now).is_some());
}

#[tokio::test(start_paused = true)]
async fn without_a_stream_nothing_watched_is_sure_to_be_current() {
    for (input, back) in [(Input::NoStream, false), (Input::StreamLost, true)] {
        let mut bench = Bench::new();
        bench.subscribe();
        bench.tell(input);
        let ticket = bench.machine.ticket();
        bench.read(ticket, "one");
        assert!(bench.machine.cache().fresh(URI, bench.now).is_none());
        if back {
            let requests = bench.tell(Input::StreamBack);
            let reads = requests.iter().filter(|request| matches!(request, Request::Read { .. }));
            assert_eq!(reads.count(), 1, "it is read again");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_a_lost_connection_does_not_end_that_of_the_new_one() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let old = read_of(&bench.subscribe());
    bench.tell(Input::Gone { keep: true });
    assert_eq!(bench.tell(Input::Connected(Offer::default())), [Request::Restore]);
    let new = read_of(&bench.subscribe());
    bench.told();
    bench.reread(old, Ok("of the old server"));
    assert!(bench.told().is_empty());
    bench.reread(new, Ok("two"));
    assert_eq!(bench.told(), ["content two Resync"]);
}

#[tokio::test(start_paused = true)]
async fn a_watched_resource_that_cannot_be_read_is_tried_again() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.told();
    bench.reread(first, Err(refused(-32603)));
    assert_eq!(bench.told(), ["warning: `test://1` could not be read: no (-32603)"]);
    assert!(bench.wait(500).is_empty());
    let second = read_of(&bench.wait(600));
    bench.reread(second, Ok("two"));
    assert_eq!(bench.told(), ["content two Resync"]);
}

#[tokio::test(start_paused = true)]
async fn a_watched_resource_that_goes_is_told_once_and_so_is_its_return() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.told();
    bench.reread(first, Err(refused(-32002)));
    assert_eq!(bench.kept(), None);
    assert_eq!(bench.told(), ["dropped Gone", "gone Resync: no (-32002)"]);
    assert!(bench.machine.deadline().is_none(), "and not tried again");
    bench.wait(1000);
    let again = read_of(&bench.tell(Input::Updated(URI.into(), None)));
    bench.reread(again, Err(refused(-32002)));
    assert!(bench.told().is_empty(), "it still is");
    bench.wait(1000);
    let back = read_of(&bench.tell(Input::Updated(URI.into(), None)));
    bench.reread(back, Ok("two"));
    assert_eq!(bench.told(), ["content two Returned"]);
    assert!(bench.machine.cache().fresh(URI, bench.now).is_some());
    bench.wait(1000);
    let changed = read_of(&bench.tell(Input::Updated(URI.into(), None)));
    bench.reread(changed, Ok("three"));
    assert_eq!(bench.told(), ["content three Notice"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_a_resource_went_does_not_bring_it_back() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.reread(first, Ok("one"));
    bench.wait(1000);
    let slow = bench.machine.ticket();
    let second = read_of(&bench.tell(Input::Updated(URI.into(), None)));
    bench.reread(second, Err(refused(-32002)));
    bench.told();
    bench.wait(1000);
    let third = read_of(&bench.read(slow, "one"));
    assert_eq!((bench.kept(), bench.told()), (None, Vec::new()));
    bench.reread(third, Err(refused(-32002)));
    assert!(bench.told().is_empty());
}

/// A late answer on a lost connection was kept, and told as if it had never been gone.
#[tokio::test(start_paused = true)]
async fn an_answer_of_a_lost_connection_does_not_bring_a_resource_back() {
    let mut bench = Bench::new();
    let slow = bench.machine.ticket();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.reread(first, Err(refused(-32002)));
    bench.tell(Input::Gone { keep: true });
    bench.told();
    bench.read(slow, "one");
    assert_eq!((bench.kept(), bench.told()), (None, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_refuses_to_watch_because_it_is_gone_is_looked_for_until_it_is_back() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.reread(first, Ok("one"));
    bench.wait(1000);
    bench.told();
    let refusal = || Input::Subscribed { uris: Vec::new(), refused: vec![URI.into()] };
    let read = read_of(&bench.tell(refusal()));
    bench.reread(read, Err(refused(-32002)));
    assert_eq!(bench.told(), ["dropped Gone", "gone Resync: no (-32002)"]);
    let look = read_of(&bench.wait(1000));
    bench.reread(look, Err(refused(-32002)));
    let look = read_of(&bench.wait(2000));
    assert_eq!(bench.reread(look, Ok("two")), [Request::Watch { uri: URI.into() }]);
    assert_eq!(bench.told(), ["content two Returned"]);
    // It is refused for another reason then.
    bench.wait(1000);
    let read = read_of(&bench.tell(refusal()));
    bench.reread(read, Ok("two"));
    assert_eq!(bench.told(), ["watching 0"]);
    assert!(bench.machine.deadline().is_none());
}

#[tokio::test(start_paused = true)]
async fn many_subscriptions_are_told_together_and_one_that_hangs_holds_up_none() {
    let mut bench = Bench::new();
    let uris: Vec<Arc<str>> = (0..5000).map(|number| format!("test://{number}").into()).collect();
    bench.tell(Input::Subscribing { uris: uris.clone() });
    for uri in &uris[1..] {
        bench.tell(Input::Subscribed { uris: vec![uri.clone()], refused: Vec::new() });
    }
    assert!(bench.told().is_empty());
    bench.wait(1000);
    assert_eq!(bench.told(), ["watching 4999"]);
    bench.tell(Input::SubscribingEnded { uris: vec![uris[0].clone()] });
    assert!(bench.told().is_empty() && bench.machine.deadline().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_notice_may_spell_a_watched_resource_in_another_way() {
    let mut bench = Bench::new();
    let uri: Arc<str> = "https://example.com".into();
    bench.tell(Input::Subscribed { uris: vec![uri.clone()], refused: Vec::new() });
    bench.told();
    bench.tell(Input::Updated("https://example.com/".into(), None));
    assert_eq!(bench.told(), ["updated Notice"]);
    bench.tell(Input::Unsubscribed { uris: vec![uri] });
    bench.told();
    bench.tell(Input::Updated("https://example.com/".into(), None));
    assert!(bench.told()[0].contains("is not subscribed to"));
}

/// How many of the events and requests of a thousand notices, one each millisecond, are of a kind.
fn flood(bench: &mut Bench, uri: impl Fn(u64) -> String) -> (usize, usize) {
    let (mut reads, mut updated) = (0, 0);
    for number in 0..1000 {
        let mut requests = bench.wait(1);
        requests.extend(bench.tell(Input::Updated(uri(number).into(), None)));
        for request in requests {
            if let Request::Read { ticket, .. } = request {
                reads += 1;
                bench.reread(ticket, Ok("same"));
            }
        }
        updated += bench.told().iter().filter(|told| *told == "updated Notice").count();
    }
    (reads, updated)
}

#[tokio::test(start_paused = true)]
async fn notices_of_what_nobody_read_are_merged_too() {
    let mut bench = Bench::new();
    bench.subscribe();
    assert_eq!(flood(&mut bench, |_| URI.to_owned()), (0, 4));
    bench.wait(25);
    assert_eq!(bench.told(), ["updated Notice"], "and the last");
}

#[tokio::test(start_paused = true)]
async fn notices_of_sub_resources_are_merged_with_those_of_their_parent() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "same");
    let first = read_of(&bench.subscribe());
    bench.reread(first, Ok("same"));
    bench.wait(1000);
    bench.told();
    assert_eq!(flood(&mut bench, |_| format!("{URI}/part")), (4, 4));
    let last = read_of(&bench.wait(25));
    bench.reread(last, Ok("same"));
    bench.wait(1000);
    bench.told();
    let (reads, updated) = flood(&mut bench, |number| format!("{URI}/{number}"));
    assert!(reads <= 5 && updated > 700, "{reads} reads, {updated} told");
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_read_again_also_if_its_sub_resource_is_watched() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.reread(first, Ok("one"));
    let part: Arc<str> = format!("{URI}/part").into();
    bench.tell(Input::Subscribed { uris: vec![part.clone()], refused: Vec::new() });
    bench.wait(1000);
    bench.told();
    let again = read_of(&bench.tell(Input::Updated(part, None)));
    bench.reread(again, Ok("two"));
    assert_eq!(bench.told(), ["updated Notice", "content two Notice"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_may_be_said_in_words() {
    let error =
        |message: &'static str| RequestError::Refused(ErrorData::new(ErrorCode(0), message, None));
    for (message, is_gone) in [
        ("Unknown resource: test://1", true),
        ("Resource not found", true),
        ("Resource test://1 not found", true),
        ("ENOENT: no such file or directory, open '1'", true),
        ("Resource temporarily unavailable", false),
        ("host not found", false),
    ] {
        let mut bench = Bench::new();
        let ticket = bench.machine.ticket();
        bench.read(ticket, "one");
        let read = read_of(&bench.subscribe());
        bench.reread(read, Err(error(message)));
        let told = bench.told();
        assert_eq!(told.iter().any(|told| told.starts_with("gone")), is_gone, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_its_own_cursor_keeps_its_first_page() {
    let mut bench = Bench::new();
    let (mut page, _) = page_of(&bench.tell(NOTICE));
    loop {
        let (next, _) = page_of(&bench.page(page, &["a"], Some("2")));
        let answer = PageAnswer::Tools(Err(refused(-32602)));
        match bench.tell(Input::Page { ticket: next, answer }).as_slice() {
            [Request::Page { ticket, .. }] => page = *ticket,
            _ => break,
        }
    }
    let told = bench.told();
    assert_eq!(told[0], "tools a");
    assert!(told[1].contains("refuses a cursor"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_cleared_while_it_was_read_stays_cleared() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.reader.clear_resource(URI);
    bench.told();
    bench.reread(first, Ok("two"));
    assert_eq!(bench.told(), ["updated Resync"]);
    assert_eq!(bench.kept(), None);
}

#[tokio::test(start_paused = true)]
async fn a_loss_without_coming_back_clears_everything_and_tells_it() {
    let mut bench = Bench::new();
    let (ticket, _) = page_of(&bench.tell(NOTICE));
    bench.page(ticket, &["a"], None);
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    bench.subscribe();
    bench.told();
    bench.tell(Input::Gone { keep: false });
    assert_eq!(bench.told(), ["watching 0", "tools ", "dropped Disconnected"]);
    assert!(bench.tell(NOTICE).is_empty(), "nobody is there to ask");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_offered_any_longer_is_empty() {
    let mut bench = Bench::new();
    let (ticket, _) = page_of(&bench.tell(NOTICE));
    bench.page(ticket, &["a"], None);
    bench.told();
    bench.tell(Input::Gone { keep: true });
    bench.tell(Input::Connected(Offer::default()));
    assert_eq!(bench.told(), ["tools "]);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_comes_before_the_answer_to_subscribing_is_told() {
    let mut bench = Bench::new();
    bench.tell(Input::Subscribing { uris: vec![URI.into()] });
    bench.tell(Input::Updated(URI.into(), None));
    bench.subscribe();
    assert_eq!(bench.told(), ["watching 1", "updated Notice"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_stops_watching_does_not_count_as_current() {
    let mut bench = Bench::new();
    bench.subscribe();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    assert!(bench.machine.cache().fresh(URI, bench.now).is_some());
    bench.tell(Input::Subscribed { uris: Vec::new(), refused: vec![URI.into()] });
    assert!(bench.machine.cache().fresh(URI, bench.now).is_none());
}

#[tokio::test(start_paused = true)]
async fn private_content_of_another_authorisation_is_not_kept() {
    let mut bench = Bench::new();
    let (before, public) = (bench.machine.ticket(), bench.machine.ticket());
    bench.tell(Input::Reauthorized);
    let content = Arc::new(ResourceContent { private: true, ..content("secret") });
    bench.tell(Input::Read { uri: URI.into(), ticket: before, content });
    assert_eq!(bench.kept(), None);
    bench.read(public, "for everybody");
    assert!(bench.kept().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_everything_was_cleared_is_not_kept() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.tell(Input::Gone { keep: false });
    bench.read(ticket, "late");
    assert_eq!(bench.kept(), None);
}

#[tokio::test(start_paused = true)]
async fn pages_without_items_do_not_go_on_for_ever() {
    let mut bench = Bench::new();
    let (mut ticket, _) = page_of(&bench.tell(NOTICE));
    for page in 0..1000 {
        match bench.page(ticket, &[], Some(&page.to_string())).as_slice() {
            [Request::Page { ticket: next, .. }] => ticket = *next,
            _ => return,
        }
    }
    panic!("it goes on for ever");
}

#[tokio::test(start_paused = true)]
async fn a_watched_resource_that_is_not_listed_any_longer_is_read_to_see_whether_it_is_gone() {
    let mut bench = Bench::new();
    let offer =
        Offer { lists: vec![List::Resources], announced: ListKinds::ALL, ..Offer::default() };
    let (ticket, _) = page_of(&bench.tell(Input::Connected(offer)));
    let page = |uris: &[&str]| {
        let items = uris.iter().map(|uri| Resource::new(*uri, "r").into()).collect();
        PageAnswer::Resources(Ok(Page { items, odd: Vec::new(), next: None }))
    };
    bench.tell(Input::Page { ticket, answer: page(&[URI]) });
    bench.subscribe();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    bench.wait(1000);
    let (ticket, _) = page_of(&bench.tell(Input::ListNotice(ListKind::Resources, None)));
    bench.told();
    let read = read_of(&bench.tell(Input::Page { ticket, answer: page(&["test://2"]) }));
    assert!(bench.machine.cache().fresh(URI, bench.now).is_none(), "it is not sure to be there");
    bench.told();
    // Whatever its code: it refuses what it does not list any longer.
    bench.reread(read, Err(refused(-32603)));
    assert_eq!(bench.told(), ["dropped Gone", "gone Notice: no (-32603)"]);
    bench.wait(1000);
    let (ticket, _) = page_of(&bench.tell(Input::ListNotice(ListKind::Resources, None)));
    let read = read_of(&bench.tell(Input::Page { ticket, answer: page(&[URI]) }));
    bench.told();
    bench.reread(read, Ok("two"));
    assert_eq!(bench.told(), ["content two Returned"]);
}
