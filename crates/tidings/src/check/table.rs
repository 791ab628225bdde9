//! The table of checks: their public names, what they rest on, and what to do when they fail.

use tidings_mirror::Era;

use super::verdict::Severity;

/// What a check needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing: it only asks and listens.
    Passive,
    /// A change that somebody causes.
    Change,
    /// A restart of the server.
    Restart,
}

/// The eras a check concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eras {
    Both,
    Legacy,
    Modern,
}

/// One check. Its id is public and never changes its meaning.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    pub(crate) mode: Mode,
    pub(crate) eras: Eras,
    /// What must hold.
    pub(crate) says: &'static str,
    /// The clauses it rests on in the legacy and in the modern era, below
    /// `modelcontextprotocol.io/specification`; empty where the specification is silent.
    pub(crate) clauses: [&'static str; 2],
    /// What to do when it fails.
    pub(crate) remedy: &'static str,
}

impl Rule {
    pub(crate) fn concerns(&self, era: Era) -> bool {
        match self.eras {
            Eras::Both => true,
            Eras::Legacy => era == Era::Legacy,
            Eras::Modern => era == Era::Modern,
        }
    }

    /// The address of its clause; both eras together rest on the newer one.
    pub(crate) fn link(&self, era: Option<Era>) -> String {
        let [legacy, modern] = self.clauses;
        let clause = if era == Some(Era::Legacy) { legacy } else { modern };
        if clause.is_empty() {
            return format!("{DOCUMENTATION}#{}", self.id.replace('.', ""));
        }
        format!("{SPECIFICATION}{clause}")
    }
}

/// Where the clauses are.
const SPECIFICATION: &str = "https://modelcontextprotocol.io/specification/";
/// The page that describes every check.
pub(crate) const DOCUMENTATION: &str =
    "https://github.com/tidings-mcp/tidings/blob/main/docs/check.md";

/// The place of a check in the table.
///
/// # Panics
///
/// If there is no such check: ids are written in the program, never read.
pub(crate) fn place(id: &str) -> usize {
    CHECKS.iter().position(|check| check.id == id).expect("every id that is used is in the table")
}

use self::Eras::{Both, Legacy, Modern};
use self::Mode::{Change, Passive, Restart};
use super::verdict::Severity::{Advice, Error, Warning};

macro_rules! check {
    ($id:literal, $severity:ident, $mode:ident, $eras:ident, $legacy:literal, $modern:literal, $rule:literal, $remedy:literal) => {
        Rule {
            id: $id,
            severity: $severity,
            mode: $mode,
            eras: $eras,
            says: $rule,
            clauses: [$legacy, $modern],
            remedy: $remedy,
        }
    };
}

/// All checks, in the order of the documentation.
#[rustfmt::skip]
pub(crate) static CHECKS: [Rule; 44] = [
    check!("caps.list-served", Error, Passive, Both,
        "2025-11-25/server/tools#capabilities", "2026-07-28/server/tools#capabilities",
        "Every advertised list can be listed, and others are refused with -32601.",
        "Advertise exactly the capabilities that have handlers."),
    check!("caps.kinds-honest", Warning, Change, Both,
        "2025-11-25/server/tools#list-changed-notification", "2026-07-28/server/tools#list-changed-notification",
        "If `listChanged` is advertised, a changed list is announced.",
        "Send `notifications/…/list_changed` when the list changes, or stop advertising `listChanged`."),
    check!("caps.silent-change", Warning, Change, Both,
        "2025-11-25/server/tools#list-changed-notification", "2026-07-28/server/tools#list-changed-notification",
        "A list that changes is advertised with `listChanged`.",
        "Advertise `listChanged: true` for this list and announce its changes."),
    check!("caps.subscribe-works", Error, Passive, Both,
        "2025-11-25/server/resources#subscriptions", "2026-07-28/server/resources#subscriptions",
        "If `subscribe` is advertised, every listed resource can be subscribed to.",
        "Accept a subscription to every URI that `resources/list` returns."),
    check!("caps.subscribe-undeclared", Warning, Change, Both,
        "2025-11-25/server/resources#capabilities", "2026-07-28/basic/patterns/subscriptions#acknowledgment",
        "Without `subscribe`, a subscription is refused, or it is accepted and works.",
        "Refuse `resources/subscribe` with -32601, or advertise `subscribe: true` and send updates."),
    check!("caps.eras-agree", Warning, Passive, Both,
        "", "2026-07-28/basic/versioning#backward-compatibility-with-initialization-based-versions",
        "Both eras offer the same lists and flags.",
        "Register items once, for both eras, and derive capabilities from the same place."),
    check!("caps.depend-on-client", Advice, Passive, Both,
        "2025-11-25/basic/lifecycle#capability-negotiation", "",
        "Lists do not depend on the capabilities that the client declares.",
        "If items need a client's capability, say so in their descriptions."),
    check!("list.order-stable", Warning, Passive, Both,
        "", "2026-07-28/server/tools#capabilities",
        "Listing again, on any connection, returns the same items in the same order.",
        "Sort each list by name or URI before it is returned."),
    check!("list.per-connection", Error, Passive, Modern,
        "", "2026-07-28/server/tools#capabilities",
        "Two connections with the same credentials get the same lists.",
        "Keep what is listed in one place for all connections, not in the connection."),
    check!("list.pages-end", Error, Passive, Both,
        "2025-11-25/server/utilities/pagination#pagination-flow", "2026-07-28/server/utilities/pagination#pagination-flow",
        "Cursors advance and end, and no item is on two pages.",
        "Derive the cursor from the last item of the page, and leave it out on the last page."),
    check!("list.cursor-bad", Warning, Passive, Both,
        "2025-11-25/server/utilities/pagination#error-handling", "2026-07-28/server/utilities/pagination#error-handling",
        "An invalid cursor is refused with -32602.",
        "Validate cursors: return the error -32602 for one that was never issued."),
    check!("list.names-legal", Warning, Passive, Both,
        "2025-11-25/server/tools#tool-names", "2026-07-28/server/tools#tool-names",
        "Tool names are unique, have 1 to 128 characters, and use only letters, digits, `_`, `-` and `.`.",
        "Rename the tool; names of up to 64 characters work in every host."),
    check!("notice.delivered", Error, Change, Both,
        "2025-11-25/server/resources#subscriptions", "2026-07-28/basic/patterns/subscriptions#receiving-notifications",
        "After a change, the notice arrives within `--within`.",
        "Send the notice when the change is made, not at the next poll or request."),
    check!("notice.after-visible", Warning, Change, Both,
        "", "",
        "A list or read right after the notice shows the change.",
        "Apply the change first, then send the notice."),
    check!("notice.last-told", Warning, Change, Both,
        "", "",
        "After several quick changes, a notice follows the last one.",
        "If notices are throttled, send one more at the end of the pause."),
    check!("notice.not-starved", Warning, Change, Both,
        "", "",
        "While changes follow each other without pause, a notice still arrives within a second.",
        "Give the debounce a maximum wait."),
    check!("notice.spurious", Warning, Passive, Both,
        "", "",
        "No notice arrives while nothing has changed.",
        "Compare the new list or content with the old one before you announce it."),
    check!("notice.noop-silent", Warning, Change, Both,
        "", "",
        "A change that changes nothing is not announced.",
        "Compare the new list or content with the old one before you announce it."),
    check!("notice.storm", Warning, Passive, Both,
        "", "",
        "Notices are rare while nothing changes, and listing does not cause them.",
        "Do not announce a list because it was listed or rebuilt."),
    check!("notice.only-asked", Error, Change, Modern,
        "", "2026-07-28/basic/patterns/subscriptions#opening-a-stream",
        "Only the kinds and URIs of the filter arrive.",
        "Match each notice with the acknowledged filter of the stream before it is sent."),
    check!("notice.other-session", Warning, Change, Legacy,
        "2025-11-25/server/resources#subscriptions", "",
        "A change by one session reaches the others, and only those that subscribed.",
        "Keep subscriptions by session in one place, and notify every session that subscribed."),
    check!("notice.once", Warning, Change, Both,
        "2025-11-25/basic/transports#multiple-connections", "",
        "One change is one notice, on one stream.",
        "Merge the notices of one change, and send them on one stream of the session."),
    check!("notice.templates", Advice, Change, Both,
        "2025-11-25/server/resources#list-changed-notification", "2026-07-28/server/resources#list-changed-notification",
        "A changed list of templates is announced as `resources/list_changed`.",
        "Send `notifications/resources/list_changed` when a template is added or removed."),
    check!("sub.unsubscribe-quiet", Error, Change, Both,
        "2025-11-25/server/resources#subscriptions", "2026-07-28/basic/patterns/subscriptions#cancellation",
        "After unsubscribing, or cancelling a listen request, no update arrives.",
        "Remove the subscription before `resources/unsubscribe` is answered."),
    check!("sub.unknown-uri", Warning, Passive, Both,
        "2025-11-25/server/resources#error-handling", "2026-07-28/basic/patterns/subscriptions#acknowledgment",
        "A subscription to a resource that does not exist is refused, or left out of the acknowledgement.",
        "Look the URI up before you accept the subscription."),
    check!("sub.get-race", Warning, Change, Legacy,
        "2025-11-25/basic/transports#listening-for-messages-from-the-server", "",
        "A change between subscribing and opening the stream is announced when the stream opens.",
        "Keep what is to be announced per session, and send it when its stream opens."),
    check!("sub.second-stream", Warning, Change, Legacy,
        "2025-11-25/basic/transports#multiple-connections", "",
        "A client that opens its stream again hears notices on the new one.",
        "Send notices on the newest stream of a session: the client may have lost the old one."),
    check!("sub.idle", Warning, Change, Legacy,
        "2025-11-25/basic/transports#session-management", "",
        "A subscriber that only listens is still notified after a long silence.",
        "Do not expire sessions that have an open stream."),
    check!("listen.ack-first", Error, Passive, Modern,
        "", "2026-07-28/basic/patterns/subscriptions#acknowledgment",
        "The acknowledgement comes first, and has nothing that was not asked for or is not offered.",
        "Send `notifications/subscriptions/acknowledged` before any other message of the stream."),
    check!("listen.tagged", Error, Passive, Modern,
        "", "2026-07-28/basic/patterns/subscriptions#receiving-notifications",
        "Every message of a stream has the id of its request, with the same type.",
        "Copy the request's id, number or string, to `_meta` of every message."),
    check!("listen.parallel", Error, Change, Modern,
        "", "2026-07-28/basic/patterns/subscriptions#multiple-concurrent-subscriptions",
        "Two streams each get their own copy, and ending one leaves the other.",
        "Keep streams by request id, and end only the one that was cancelled."),
    check!("listen.ends-gracefully", Warning, Restart, Modern,
        "", "2026-07-28/basic/patterns/subscriptions#graceful-closure",
        "When the server stops, each stream ends with a result.",
        "On shutdown, answer every open listen request before you close the transport."),
    check!("listen.no-logs", Error, Change, Modern,
        "", "2026-07-28/server/utilities/logging#per-request-log-level",
        "Streams carry no log lines and no progress.",
        "Send log lines and progress on the stream of the request they belong to."),
    check!("listen.no-session", Warning, Passive, Modern,
        "", "2026-07-28/basic/transports/streamable-http#earlier-streamable-http-revisions",
        "Modern answers have no `Mcp-Session-Id`; GET and DELETE are refused with 405.",
        "Keep sessions for legacy clients only."),
    check!("cache.hints", Error, Passive, Modern,
        "", "2026-07-28/server/utilities/caching#cacheable-results",
        "Lists, reads and `server/discover` have `ttlMs` of at least 0 and a `cacheScope`, equal on all pages.",
        "Add `ttlMs: 0` and `cacheScope: \"private\"` unless you know better."),
    check!("cache.truth", Warning, Change, Modern,
        "", "2026-07-28/server/utilities/caching#interaction-with-notifications",
        "Content that can change within its `ttlMs` is announced.",
        "Announce its changes, or set `ttlMs` to 0."),
    check!("cache.scope", Warning, Passive, Modern,
        "", "2026-07-28/server/utilities/caching#security-considerations",
        "A list that depends on the token is not `public`.",
        "Use `cacheScope: \"private\"` for what depends on who asks."),
    check!("read.notfound", Error, Passive, Both,
        "2025-11-25/server/resources#error-handling", "2026-07-28/server/resources#error-handling",
        "Reading a resource that does not exist is an error, -32602 (or -32002 in the legacy era).",
        "Return the error instead of empty contents."),
    check!("read.stable", Advice, Passive, Both,
        "", "",
        "Reading twice returns the same content.",
        "Leave times and counters out of the content, or do not offer it for watching."),
    check!("recon.resume", Warning, Restart, Both,
        "2025-11-25/basic/transports#session-management", "2026-07-28/basic/transports/stdio#unexpected-termination",
        "After a restart a client can connect again; an unknown session is refused with 404.",
        "Return 404 for sessions you do not know, so that clients start a new one."),
    check!("recon.slow-reader", Warning, Change, Both,
        "", "",
        "A client that does not read delays neither its own requests nor other clients.",
        "Give each stream a bounded set of what is to be announced, and never wait for it."),
    check!("proc.eof-exit", Warning, Passive, Both,
        "2025-11-25/basic/lifecycle#stdio", "2026-07-28/basic/transports/stdio#shutdown",
        "The server exits within 2 s after its input is closed, with its child processes.",
        "Exit when standard input ends, and end your children."),
    check!("proc.stdout-clean", Error, Passive, Both,
        "2025-11-25/basic/transports#stdio", "2026-07-28/basic/transports/stdio",
        "Standard output has messages and nothing else.",
        "Log to standard error."),
    check!("http.origin", Error, Passive, Both,
        "2025-11-25/basic/transports#security-warning", "2026-07-28/basic/transports/streamable-http",
        "A request from a foreign origin is refused with 403.",
        "Compare the `Origin` header with a list of allowed origins."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_have_a_group() {
        let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), CHECKS.len());
        for check in &CHECKS {
            assert!(check.id.contains('.') && check.says.ends_with('.'), "{}", check.id);
        }
    }

    /// The page says of each check what the table says.
    #[test]
    fn every_check_is_documented() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.md");
        let page = std::fs::read_to_string(page).unwrap();
        for check in &CHECKS {
            let (_, rest) = page.split_once(&format!("### {}\n", check.id)).expect(check.id);
            let described = rest.split("\n#").next().unwrap_or_default();
            let needs = match check.mode {
                Mode::Passive => "needs nothing",
                Mode::Change => "needs a change",
                Mode::Restart => "needs a restart",
            };
            let eras = match check.eras {
                Eras::Both => "both eras",
                Eras::Legacy => "legacy era",
                Eras::Modern => "modern era",
            };
            let kind = format!("{}, {eras}, {needs}", check.severity.word());
            let clauses = check.clauses.iter().filter(|clause| !clause.is_empty());
            let links = clauses.map(|clause| format!("({SPECIFICATION}{clause})"));
            for said in
                [check.says.to_owned(), check.remedy.to_owned(), kind].into_iter().chain(links)
            {
                assert!(described.contains(&said), "{}: `{said}` is missing", check.id);
            }
        }
    }
}
