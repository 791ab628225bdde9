//! Every check against a server that breaks it and no other, and against one that breaks none.

mod answers;
mod fixture;
mod serving;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidings_mirror::{Era, HttpTarget, Target};

use self::fixture::{COUNTER, Fixture};
use super::cause::{Act, Cause, Restart};
use super::client::{Meter, Probe};
use super::door::{Door, Site};
use super::table::{CHECKS, Mode};
use super::topic::Topic;
use super::verdict::{Finding, Trace, Verdict};
use super::{Report, Settings, run};

/// How a check is tried.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Pipes in memory, on a clock that runs as fast as nothing happens.
    Pipe,
    /// Sockets, in real time.
    Http,
}

/// Checks that need HTTP; all others are tried through pipes.
const OVER_HTTP: [&str; 9] = [
    "sub.get-race",
    "sub.second-stream",
    "listen.tagged",
    "listen.ends-gracefully",
    "listen.no-session",
    "cache.scope",
    "recon.resume",
    "recon.slow-reader",
    "http.origin",
];

fn way(id: &str) -> Way {
    if OVER_HTTP.contains(&id) { Way::Http } else { Way::Pipe }
}

/// A run that tries one check, with every other that can be tried along with it.
fn settings(id: &str, way: Way) -> Settings {
    let eras = match id {
        "list.per-connection"
        | "listen.tagged"
        | "listen.no-session"
        | "cache.scope"
        | "listen.ends-gracefully" => vec![Era::Modern],
        "sub.unsubscribe-quiet"
        | "sub.get-race"
        | "sub.second-stream"
        | "recon.resume"
        | "recon.slow-reader" => vec![Era::Legacy],
        _ => vec![Era::Legacy, Era::Modern],
    };
    let (call, expects) = match id {
        "notice.templates" => ("shape value={n}", vec![Topic::Templates]),
        "cache.truth" => ("set value={n}", vec![Topic::Uri(COUNTER.to_owned())]),
        _ => {
            ("set value={n}", vec![Topic::Tools, Topic::Resources, Topic::Uri(COUNTER.to_owned())])
        }
    };
    let settle = Duration::from_millis(if way == Way::Pipe { 300 } else { 60 });
    Settings {
        eras,
        within: Duration::from_millis(if way == Way::Pipe { 800 } else { 400 }),
        settle,
        quiet: settle * 5,
        rounds: 2,
        flood: if id == "recon.slow-reader" { 1500 } else { 0 },
        idle: (id == "sub.idle").then_some(Duration::from_secs(400)),
        cause: Some(Cause::new(Act::call(call).unwrap(), None)),
        expects,
        restart: None,
        other_token: (id == "cache.scope").then(|| "b".to_owned()),
    }
}

async fn judged(id: &'static str, is_broken: bool) -> Vec<Finding> {
    let fixture = Fixture::new(id, is_broken, id == "recon.slow-reader");
    let way = way(id);
    let mut settings = settings(id, way);
    let place = match way {
        Way::Pipe => Site::Pipes(serving::pipes(fixture.clone())),
        Way::Http => {
            let url = serving::http(&fixture).await;
            if CHECKS[super::table::place(id)].mode == Mode::Restart {
                settings.restart = Some(Restart::Exec(restarting(&url)));
            }
            Site::new(Target::Http(HttpTarget::new(url))).await.unwrap()
        }
    };
    tried(place, &settings, 50_000).await.findings
}

async fn tried(place: Site, settings: &Settings, most_requests: usize) -> Report {
    run(&door(place, most_requests), settings, &|_| {}).await.unwrap()
}

fn door(place: Site, most_requests: usize) -> Door {
    Door {
        place,
        meter: Arc::new(Meter::new(most_requests, Duration::from_hours(1))),
        trace: Trace::new(),
        timeout: Duration::from_secs(5),
    }
}

/// A command that tells the fixture to restart.
fn restarting(url: &str) -> String {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let (host, port) = address.split_once(':').unwrap();
    format!(
        "bash -c 'exec 3<>/dev/tcp/{host}/{port}; printf \"POST /restart HTTP/1.1\\r\\nhost: x\\r\\n\
         content-length: 0\\r\\nconnection: close\\r\\n\\r\\n\" >&3; cat <&3'"
    )
}

fn verdicts(findings: &[Finding], verdict: Verdict) -> BTreeSet<&'static str> {
    let with = findings.iter().filter(|finding| finding.verdict == verdict);
    with.map(|finding| finding.check.id).collect()
}

/// The eras in which a check was judged so, with what was said.
fn said<'a>(findings: &'a [Finding], id: &str, verdict: Verdict) -> Vec<(Option<Era>, &'a str)> {
    let of_it = findings.iter().filter(|finding| finding.check.id == id);
    let of_it = of_it.filter(|finding| finding.verdict == verdict);
    of_it.map(|finding| (finding.era, finding.said.as_str())).collect()
}

/// A server that breaks one rule fails its check, in every era, and no other; the same server without
/// the fault passes it in every era, and fails none.
async fn check(id: &'static str) {
    for is_broken in [true, false] {
        let found = judged(id, is_broken).await;
        let verdict = if is_broken { Verdict::Fail } else { Verdict::Pass };
        let all = found.iter().filter(|finding| finding.check.id == id).count();
        let right = said(&found, id, verdict).len();
        let rest = [Verdict::Fail, Verdict::NotTried, Verdict::NotOffered, Verdict::Pass]
            .map(|verdict| (verdict, said(&found, id, verdict)));
        assert!(right > 0 && right == all, "{id}, broken: {is_broken}: {rest:#?}");
        let others: Vec<_> = found
            .iter()
            .filter(|finding| finding.verdict == Verdict::Fail && finding.check.id != id)
            .map(|finding| (finding.check.id, finding.era, &finding.said, &finding.evidence))
            .collect();
        assert!(others.is_empty(), "{id}, broken: {is_broken}: also fails {others:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_server_over_http_are_answered() {
    let fixture = Fixture::new("notice.delivered", false, false);
    fixture.lock().asks = true;
    let url = serving::http(&fixture).await;
    let place = Site::new(Target::Http(HttpTarget::new(url))).await.unwrap();
    let roots = serde_json::json!({ "roots": {} });
    let client = Probe::connect(&door(place, 10), Era::Legacy, roots).await.unwrap();
    client.open_stream().await.unwrap();
    let answered = async {
        loop {
            if let Some(answer) = fixture.lock().answers.first() {
                return answer.clone();
            }
            tokio::task::yield_now().await;
        }
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), answered).await.unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["roots"]),
        (&"asked".into(), &serde_json::json!([]))
    );
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn only_harmless_tools_are_tried_unasked() {
    let fixture = Fixture::new("notice.delivered", false, false);
    let mut settings = settings("notice.delivered", Way::Pipe);
    settings.cause = Some(Cause::new(Act::Auto, None));
    settings.expects.clear();
    let report = tried(Site::Pipes(serving::pipes(fixture.clone())), &settings, 50_000).await;
    let passed = verdicts(&report.findings, Verdict::Pass);
    assert!(passed.contains("notice.delivered"), "{passed:?}");
    assert_eq!(fixture.lock().called, BTreeSet::from(["bump".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_to_its_requests_and_judges_nothing_without_them() {
    let fixture = Fixture::new("notice.delivered", false, false);
    let settings = settings("notice.delivered", Way::Pipe);
    let report = tried(Site::Pipes(serving::pipes(fixture)), &settings, 60).await;
    assert!(report.is_cut_short && report.requests <= 60, "{report:?}");
    assert_eq!(verdicts(&report.findings, Verdict::Fail), BTreeSet::new());
    assert!(verdicts(&report.findings, Verdict::NotTried).contains("notice.delivered"));
}

macro_rules! checks {
    (paused { $($paused:ident $paused_id:literal,)* } real { $($real:ident $real_id:literal,)* }) => {
        $(#[tokio::test(start_paused = true)]
        async fn $paused() {
            check($paused_id).await;
        })*
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $real() {
            check($real_id).await;
        })*

        #[test]
        fn every_check_has_a_server_that_fails_it_and_one_that_passes_it() {
            let tried: BTreeSet<_> = [$($paused_id,)* $($real_id,)*].into();
            let all: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
            assert_eq!(tried, all);
            let real: BTreeSet<_> = [$($real_id,)*].into();
            assert_eq!(real, OVER_HTTP.into());
        }
    };
}

checks! {
    paused {
    a_list_that_is_not_served "caps.list-served",
    a_flag_that_is_not_kept "caps.kinds-honest",
    a_list_that_changes_silently "caps.silent-change",
    a_listed_resource_that_cannot_be_subscribed_to "caps.subscribe-works",
    a_subscription_that_is_accepted_for_nothing "caps.subscribe-undeclared",
    eras_that_differ "caps.eras-agree",
    lists_that_depend_on_the_client "caps.depend-on-client",
    an_order_that_changes "list.order-stable",
    lists_that_depend_on_the_connection "list.per-connection",
    pages_without_end "list.pages-end",
    a_cursor_that_is_not_checked "list.cursor-bad",
    a_name_that_is_illegal "list.names-legal",
    an_update_that_is_never_sent "notice.delivered",
    a_notice_before_the_change "notice.after-visible",
    a_last_change_that_is_not_told "notice.last-told",
    a_debounce_without_end "notice.not-starved",
    a_notice_for_nothing "notice.spurious",
    the_same_change_told_twice "notice.noop-silent",
    a_notice_for_each_list "notice.storm",
    a_kind_that_was_not_asked_for "notice.only-asked",
    a_change_that_others_do_not_hear_of "notice.other-session",
    each_notice_twice "notice.once",
    templates_that_change_silently "notice.templates",
    an_unsubscribe_that_is_ignored "sub.unsubscribe-quiet",
    an_unknown_resource_that_is_accepted "sub.unknown-uri",
    an_idle_subscriber_that_is_forgotten "sub.idle",
    an_acknowledgement_that_is_late "listen.ack-first",
    one_stream_for_two "listen.parallel",
    logs_among_notices "listen.no-logs",
    a_result_without_hints "cache.hints",
    a_cache_that_lies "cache.truth",
    empty_contents "read.notfound",
    a_clock_among_resources "read.stable",
    a_server_that_does_not_exit "proc.eof-exit",
    words_on_standard_output "proc.stdout-clean",
    }
    real {
    a_change_before_the_stream_opens "sub.get-race",
    a_second_stream_that_is_deaf "sub.second-stream",
    a_tag_of_another_type "listen.tagged",
    a_stream_that_breaks_off "listen.ends-gracefully",
    a_session_in_the_modern_era "listen.no-session",
    a_public_list_that_depends_on_the_token "cache.scope",
    an_unknown_session_that_is_a_bad_request "recon.resume",
    a_server_that_waits_for_its_readers "recon.slow-reader",
    a_foreign_origin_that_is_served "http.origin",
    }
}
