//! The tables of a run, as Markdown: figures, ratios, and which targets are met.

use crate::client::Figures;
use crate::plan::Era;
use crate::process::SERVERS;
use crate::round::Setting;

/// Targets hold from this many listeners on; fewer say little about fan-out.
const JUDGED: usize = 1_000;

/// Prints everything.
pub(crate) fn print(settings: &[Setting], rounds: usize) {
    println!("\nMedians of {rounds} rounds.\n");
    println!(
        "| era | listeners | server | deliveries/s | CPU µs/delivery | p50 ms | p99 ms | \
         KiB/listener | burst ms | burst CPU µs | burst notices |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for setting in settings {
        for (server, name) in SERVERS.iter().enumerate() {
            let of = |field: fn(&Figures) -> f64| setting.figure(server, field);
            println!(
                "| {} | {} | {name} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.2} | {:.2} |",
                setting.era,
                setting.listeners,
                of(|figures| figures.rate),
                of(|figures| figures.cpu),
                of(|figures| figures.p50 / 1e3),
                of(|figures| figures.p99 / 1e3),
                of(|figures| figures.kib),
                of(|figures| figures.burst),
                of(|figures| figures.burst_cpu),
                of(|figures| figures.burst_notices),
            );
        }
    }
    println!("\n| era | listeners | target | is | |");
    println!("| --- | ---: | --- | ---: | --- |");
    for setting in settings {
        for target in targets(setting) {
            target.print(setting);
        }
    }
    for setting in settings {
        println!(
            "\nWith a tenth of {} {} listeners not reading, the others' p99 is {:.2} ms; without \
             them {:.2} ms.",
            setting.listeners,
            setting.era,
            setting.stalled(|round| round.with / 1e3),
            setting.stalled(|round| round.without / 1e3)
        );
    }
}

struct Target {
    what: &'static str,
    is: f64,
    wanted: Wanted,
}

enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn print(&self, setting: &Setting) {
        let (sign, limit, met) = match self.wanted {
            Wanted::AtLeast(limit) => ("≥", limit, self.is >= limit),
            Wanted::AtMost(limit) => ("≤", limit, self.is <= limit),
        };
        let verdict = match (setting.listeners >= JUDGED, met) {
            (false, _) => "not judged",
            (true, true) => "met",
            (true, false) => "missed",
        };
        let (era, listeners, what) = (setting.era, setting.listeners, self.what);
        println!(
            "| {era} | {listeners} | {what} {sign} {limit} × | {:.2} × | {verdict} |",
            self.is
        );
    }
}

fn targets(setting: &Setting) -> Vec<Target> {
    let [ours, floor, rmcp] = [0, 1, 2];
    let memory = if setting.era == Era::Modern { 1.3 } else { 1.6 };
    let target = |what, is, wanted| Target { what, is, wanted };
    let rate = |other| setting.ratio(ours, other, |figures| figures.rate);
    let cpu = setting.ratio(ours, floor, |figures| figures.cpu);
    let kib = setting.ratio(ours, floor, |figures| figures.kib);
    let stalled = setting.stalled(|round| round.with / round.without);
    vec![
        target("deliveries/s against the floor", rate(floor), Wanted::AtLeast(0.8)),
        target("deliveries/s against rmcp", rate(rmcp), Wanted::AtLeast(2.5)),
        target("CPU per delivery against the floor", cpu, Wanted::AtMost(1.25)),
        target("memory against the floor", kib, Wanted::AtMost(memory)),
        target("p99 beside stalled readers", stalled, Wanted::AtMost(1.3)),
    ]
}
