//! The tables of a run, as Markdown: figures, ratios, and which targets are met.

use crate::client::{Figures, Idle};
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
            if of(|figures| figures.rate).is_nan() {
                continue;
            }
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
        for target in targets(setting).iter().filter(|target| !target.is.is_nan()) {
            target.print(setting);
        }
    }
    for setting in settings.iter().filter(|setting| !setting.stalled(|it| it.with).is_nan()) {
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

/// Prints what idle listeners cost.
pub(crate) fn print_idle(rows: &[(Era, usize, &str, Idle)]) {
    println!(
        "\n| era | listeners | server | KiB/listener | connected in s | peak, MiB more | \
         after all left, MiB more than before |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: |");
    for (era, listeners, name, idle) in rows {
        println!(
            "| {era} | {listeners} | {name} | {:.2} | {:.2} | {:.1} | {:.1} |",
            idle.kib, idle.seconds, idle.peak, idle.left
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
        println!("| {era} | {listeners} | {what} {sign} {limit} | {:.2} | {verdict} |", self.is);
    }
}

fn targets(setting: &Setting) -> Vec<Target> {
    let [ours, raw, floor, rmcp] = [0, 1, 2, 3];
    let memory = setting.figure(ours, |figures| figures.kib);
    let p99 = setting.ratio(ours, raw, |figures| figures.p99);
    let target = |what, is, wanted| Target { what, is, wanted };
    let rate = |other| setting.ratio(ours, other, |figures| figures.rate);
    let cpu = |other| setting.ratio(ours, other, |figures| figures.cpu);
    let stalled = setting.stalled(|round| round.with / round.without);
    vec![
        target("deliveries/s against raw sockets", rate(raw), Wanted::AtLeast(0.9)),
        target("CPU per delivery against raw sockets", cpu(raw), Wanted::AtMost(1.1)),
        target("p99 against raw sockets", p99, Wanted::AtMost(1.1)),
        target("KiB per idle listener", memory, Wanted::AtMost(4.0)),
        target("deliveries/s against the floor", rate(floor), Wanted::AtLeast(0.8)),
        target("deliveries/s against rmcp", rate(rmcp), Wanted::AtLeast(2.5)),
        target("CPU per delivery against the floor", cpu(floor), Wanted::AtMost(1.25)),
        target("p99 beside stalled readers", stalled, Wanted::AtMost(1.3)),
    ]
}
