//! Metrics of a running hub, for people and Prometheus servers.

mod process;
mod sources;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::figure::Figure;
use crate::method::KNOWN_METHODS;

/// From the first change of a notice to the hand-over of its bytes to the transport, in seconds.
const LATENCY_BUCKETS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// So many names of tokens are counted by themselves; later ones are counted together.
const NAMES: usize = 256;

/// Methods without parameters of their own that are counted by name, besides [`KNOWN_METHODS`]. All
/// others are counted together.
const PLAIN_METHODS: [&str; 8] = [
    "notifications/cancelled",
    "notifications/initialized",
    "notifications/progress",
    "notifications/roots/list_changed",
    "ping",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
];

/// A request and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    method: Method,
    outcome: RequestOutcome,
}

impl RequestLabels {
    pub(crate) fn new(method: Option<&str>, outcome: RequestOutcome) -> Self {
        let mut all = KNOWN_METHODS.iter().chain(&PLAIN_METHODS);
        let known = method.and_then(|method| all.find(|known| **known == method));
        Self { method: Method(known.copied().unwrap_or("other")), outcome }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Method(&'static str);

impl EncodeLabelValue for Method {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0, encoder)
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestOutcome {
    /// It was answered, or a stream of answers began.
    Answered,
    /// The answer is a JSON-RPC error.
    Error,
    /// A guard, a limit or the transport refused it.
    Refused,
}

impl RequestOutcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Error => "error",
            Self::Refused => "refused",
        }
    }
}

impl EncodeLabelValue for RequestOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.word(), encoder)
    }
}

/// The name of the identity that sent a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabel {
    name: String,
}

/// The metrics of one hub.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// HTTP requests by method and outcome.
    pub(crate) requests: Family<RequestLabels, Counter>,
    /// HTTP requests by the name of their token; tokens without a name are not counted here.
    named_requests: Family<NameLabel, Counter>,
    /// The names that are counted by themselves.
    names: Mutex<BTreeSet<String>>,
    pub(crate) connections: Gauge,
    /// Connections that were closed or refused because there were too many.
    pub(crate) turned_away: Counter,
    pub(crate) in_flight: Gauge,
    pub(crate) over_budget: Counter,
    pub(crate) sessions: Gauge,
    pub(crate) listeners: Gauge,
    pub(crate) subscriptions: Gauge,
    pub(crate) views: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) changes: Counter,
    pub(crate) sent: Counter,
    pub(crate) suppressed: Counter,
    pub(crate) merged: Counter,
    pub(crate) refused: Counter,
    pub(crate) latency: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("tidings");
        let all = &mut registry;
        let latency = Histogram::new(LATENCY_BUCKETS);
        all.register(
            "notice_latency_seconds",
            "Time from the first change of a notice to the hand-over of its bytes to the transport",
            latency.clone(),
        );
        Self {
            requests: register(all, "http_requests", "HTTP requests by method and outcome"),
            named_requests: register(
                all,
                "token_requests",
                "HTTP requests by the name of their token",
            ),
            names: Mutex::default(),
            connections: register(all, "connections", "Open HTTP connections"),
            turned_away: register(
                all,
                "connections_turned_away",
                "HTTP connections closed or refused because there were too many",
            ),
            in_flight: register(
                all,
                "in_flight_bytes",
                "Bytes of requests and answers in progress",
            ),
            over_budget: register(
                all,
                "budget_refusals",
                "Requests and answers refused because too many bytes were in progress",
            ),
            sessions: register(all, "sessions", "Open legacy sessions"),
            listeners: register(
                all,
                "listeners",
                "Sessions and listen requests that can be notified",
            ),
            views: register(all, "views", "Different views of one list among listeners"),
            subscriptions: register(all, "subscriptions", "Watched URIs, once per listener"),
            waiting: register(all, "queue_depth", "Notices waiting to be sent to a listener"),
            changes: register(all, "changes", "Changes announced by sources"),
            sent: register(all, "notices_sent", "Notices handed to a transport"),
            suppressed: register(
                all,
                "notices_suppressed",
                "Notices not sent because the content was unchanged for the listener",
            ),
            merged: register(
                all,
                "notices_merged",
                "Changes merged into a notice that was already waiting",
            ),
            refused: register(all, "requests_refused", "Requests refused by a limit or a guard"),
            latency,
            registry,
        }
    }

    /// Counts a request of the identity with this name.
    pub(crate) fn requests_of(&self, name: &str) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let is_counted =
            names.contains(name) || names.len() < NAMES && names.insert(name.to_owned());
        drop(names);
        let name = if is_counted { name } else { "other" };
        self.named_requests.get_or_create(&NameLabel { name: name.to_owned() }).inc();
    }

    /// The metrics in the format of Prometheus, with the figures of the sources.
    pub(crate) fn text(&self, figures: &[(String, Vec<Figure>)]) -> String {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)
            .and_then(|()| encode_registry(&mut text, &sources::figures(figures)))
            .and_then(|()| encode_registry(&mut text, &process::figures()))
            .and_then(|()| encode_eof(&mut text))
            .expect("writing to a string cannot fail");
        text
    }
}

/// Registers a metric and returns the handle that counts.
fn register<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tokens_are_bounded() {
        let metrics = Metrics::new();
        for number in 0..NAMES + 2 {
            metrics.requests_of(&format!("token-{number}"));
        }
        metrics.requests_of("token-0");
        let text = metrics.text(&[]);
        assert!(text.contains("tidings_token_requests_total{name=\"token-0\"} 2\n"), "{text}");
        assert!(text.contains("tidings_token_requests_total{name=\"other\"} 2\n"), "{text}");
        assert_eq!(text.matches("tidings_token_requests_total{").count(), NAMES + 1);
    }
}
