//! What a person or a Prometheus server can see of a running hub.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// From the first change a notice stands for to its bytes being taken for the wire, in seconds.
const LATENCY_BUCKETS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// The counters of one hub.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) sessions: Gauge,
    pub(crate) listeners: Gauge,
    pub(crate) subscriptions: Gauge,
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
        let sessions = Gauge::default();
        registry.register("sessions", "Legacy sessions that are open", sessions.clone());
        let listeners = Gauge::default();
        registry.register(
            "listeners",
            "Sessions and listen requests that can be told",
            listeners.clone(),
        );
        let subscriptions = Gauge::default();
        registry.register(
            "subscriptions",
            "Watched URIs, once per listener",
            subscriptions.clone(),
        );
        let waiting = Gauge::default();
        registry.register(
            "queue_depth",
            "Notices that wait to be read by a listener",
            waiting.clone(),
        );
        let changes = Counter::default();
        registry.register("changes", "Changes that sources spoke of", changes.clone());
        let sent = Counter::default();
        registry.register("notices_sent", "Notices handed to a transport", sent.clone());
        let suppressed = Counter::default();
        registry.register(
            "notices_suppressed",
            "Notices not sent because the content was what the listener knew",
            suppressed.clone(),
        );
        let merged = Counter::default();
        registry.register(
            "notices_merged",
            "Changes told by a notice that was waiting already",
            merged.clone(),
        );
        let refused = Counter::default();
        registry.register(
            "requests_refused",
            "Requests refused by a limit or a guard",
            refused.clone(),
        );
        let latency = Histogram::new(LATENCY_BUCKETS);
        registry.register(
            "notice_latency_seconds",
            "From the first change a notice stands for to its bytes being taken for the wire",
            latency.clone(),
        );
        Self {
            registry,
            sessions,
            listeners,
            subscriptions,
            waiting,
            changes,
            sent,
            suppressed,
            merged,
            refused,
            latency,
        }
    }

    /// The text a Prometheus server reads.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}
