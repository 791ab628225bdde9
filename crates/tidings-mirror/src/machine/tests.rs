//! The machine alone, one behaviour each: what a law about the end cannot see on the way there.

use std::time::{Duration, SystemTime};

use rmcp::model::{ErrorCode, ErrorData, JsonObject, ResourceContents};

use super::*;
use crate::cache;
use crate::config::CacheLimits;
use crate::events::Events;

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
        let rules = Rules { merging, max_items: 100, resubscribe: true };
        let machine = Machine::new(rules, writer, sender);
        let mut bench = Self { machine, reader, events, now: Instant::now() };
        bench.connect();
        bench
    }

    fn connect(&mut self) {
        let offer =
            Offer { lists: vec![List::Tools], announced: ListKinds::ALL, is_restored: false };
        let requests = self.tell(Input::Connected(offer));
        let Some(Request::Page { ticket, .. }) = requests.first() else { panic!("{requests:?}") };
        self.page(*ticket, &[], None);
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
        let tool = |name: &&str| Tool::new((*name).to_owned(), "", JsonObject::new());
        let items = names.iter().map(tool).collect();
        let answer = PageAnswer::Tools(Ok(Page { items, next: next.map(str::to_owned) }));
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
    ResourceContent {
        contents: vec![ResourceContents::text(text, URI)],
        read_at: SystemTime::UNIX_EPOCH,
        ttl: None,
        private: false,
    }
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

const NOTICE: Input = Input::ListNotice(ListKind::Tools);

#[tokio::test(start_paused = true)]
async fn paging_that_is_overtaken_starts_again_and_no_mixture_is_told() {
    let mut bench = Bench::new();
    let (first, _) = page_of(&bench.tell(NOTICE));
    let (second, cursor) = page_of(&bench.page(first, &["a", "b"], Some("2")));
    assert_eq!(cursor.as_deref(), Some("2"));
    assert!(bench.tell(NOTICE).is_empty(), "one listing at a time");
    let (again, cursor) = page_of(&bench.page(second, &["d"], None));
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
    bench.tell(Input::Updated(URI.into()));
    let again = read_of(&bench.read(ticket, "old"));
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
async fn a_watched_resource_that_is_gone_is_not_kept() {
    let mut bench = Bench::new();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let first = read_of(&bench.subscribe());
    bench.told();
    bench.reread(first, Err(refused(-32002)));
    assert_eq!(bench.kept(), None);
    assert_eq!(bench.told()[0], "dropped Gone");
    assert!(bench.machine.deadline().is_none(), "and not tried again");
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
    bench.tell(Input::Updated(URI.into()));
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
async fn content_of_a_resource_that_is_not_listed_any_longer_goes_although_it_is_watched() {
    let mut bench = Bench::new();
    let offer =
        Offer { lists: vec![List::Resources], announced: ListKinds::ALL, is_restored: false };
    let (ticket, _) = page_of(&bench.tell(Input::Connected(offer)));
    let page = |uris: &[&str]| {
        let items = uris.iter().map(|uri| Resource::new(*uri, "r")).collect();
        PageAnswer::Resources(Ok(Page { items, next: None }))
    };
    bench.tell(Input::Page { ticket, answer: page(&[URI]) });
    bench.subscribe();
    let ticket = bench.machine.ticket();
    bench.read(ticket, "one");
    let (ticket, _) = page_of(&bench.tell(Input::ListNotice(ListKind::Resources)));
    bench.told();
    bench.tell(Input::Page { ticket, answer: page(&["test://2"]) });
    assert_eq!(bench.kept(), None);
    assert!(bench.told().contains(&"dropped Gone".to_owned()));
}
