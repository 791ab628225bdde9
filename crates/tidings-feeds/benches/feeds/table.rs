//! A table of figures: ours, its floor, another program, and what is allowed.

/// One figure in milliseconds.
pub(crate) struct Row<'a> {
    pub(crate) what: &'a str,
    pub(crate) ours: f64,
    /// What cannot be less.
    pub(crate) floor: Option<f64>,
    /// What another reader of feeds takes.
    pub(crate) peer: Option<f64>,
    /// Nothing where nothing is asked for.
    pub(crate) allowed: &'a str,
    pub(crate) is_met: bool,
}

impl Row<'_> {
    pub(crate) fn head() {
        println!("\n| median ms | ours | floor | ours : floor | feed-rs | allowed | |");
        println!("| --- | ---: | ---: | ---: | ---: | --- | --- |");
    }

    pub(crate) fn print(self) {
        let shown = |value: Option<f64>| value.map(|it| format!("{it:.2}")).unwrap_or_default();
        let ratio = self.floor.map(|floor| format!("{:.1} ×", self.ours / floor));
        let verdict = match (self.allowed, self.is_met) {
            ("", _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        println!(
            "| {} | {:.2} | {} | {} | {} | {} | {verdict} |",
            self.what,
            self.ours,
            shown(self.floor),
            ratio.unwrap_or_default(),
            shown(self.peer),
            self.allowed,
        );
    }
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
