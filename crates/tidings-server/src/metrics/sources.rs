//! The figures of all sources as metrics.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::figure::{Figure, FigureKind};

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;
type Counters = Family<Labels, Counter<f64, AtomicU64>>;

/// The figures of each source, by its name. A name that is used for both kinds is of the first.
pub(super) fn figures(sources: &[(String, Vec<Figure>)]) -> Registry {
    let mut registry = Registry::with_prefix("tidings");
    let mut gauges = BTreeMap::<&str, Gauges>::new();
    let mut counters = BTreeMap::<&str, Counters>::new();
    for (source, figures) in sources {
        for figure in figures {
            let mut labels = vec![("source", source.clone())];
            labels.extend(figure.label.map(|(key, value)| (key, value.to_owned())));
            match figure.kind {
                FigureKind::Gauge if !counters.contains_key(figure.name) => {
                    let family = gauges.entry(figure.name).or_insert_with(|| {
                        let family = Gauges::default();
                        registry.register(figure.name, figure.help, family.clone());
                        family
                    });
                    family.get_or_create(&labels).set(figure.value);
                }
                FigureKind::Counter if !gauges.contains_key(figure.name) => {
                    let family = counters.entry(figure.name).or_insert_with(|| {
                        let family = Counters::default();
                        registry.register(figure.name, figure.help, family.clone());
                        family
                    });
                    family.get_or_create(&labels).inc_by(figure.value);
                }
                _ => {}
            }
        }
    }
    registry
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode_registry;

    use super::*;

    #[test]
    fn figures_of_two_sources_are_one_metric() {
        let figures_of = |count| {
            vec![
                Figure::counter("up_requests", "Requests", count),
                Figure::gauge("up_state", "1 for the state it is in", 1.0).label("state", "ready"),
            ]
        };
        let sources = [("one".to_owned(), figures_of(2.0)), ("two".to_owned(), figures_of(3.0))];
        let mut text = String::new();
        encode_registry(&mut text, &figures(&sources)).unwrap();
        for line in [
            "tidings_up_requests_total{source=\"one\"} 2.0\n",
            "tidings_up_requests_total{source=\"two\"} 3.0\n",
            "tidings_up_state{source=\"two\",state=\"ready\"} 1.0\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(text.matches("# HELP").count(), 2, "{text}");
    }
}
