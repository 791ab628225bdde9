//! The station without any protocol: ports, modules, a log, and the next event.

use std::collections::VecDeque;

/// How many ports the station has.
pub(crate) const PORTS: usize = 4;
/// How many lines the log keeps.
const LOG: usize = 50;
/// The modules that come and go.
const FLEET: [&str; 9] = [
    "aurora",
    "beagle",
    "cassini",
    "discovery",
    "endeavour",
    "fram",
    "galathea",
    "horizon",
    "iris",
];

/// A space station.
#[derive(Clone, Debug)]
pub(crate) struct State {
    ports: [Option<Module>; PORTS],
    log: VecDeque<String>,
    lines: u64,
    random: u64,
}

/// A module at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) samples: u32,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Docked { module: &'static str, port: usize },
    Left { module: &'static str, port: usize },
    Sampled { module: &'static str, samples: u32 },
}

impl std::fmt::Display for Happening {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Docked { module, port } => write!(formatter, "{module} docked at port {port}"),
            Self::Left { module, port } => write!(formatter, "{module} left port {port}"),
            Self::Sampled { module, samples } => {
                write!(formatter, "{module} took sample {samples}")
            }
        }
    }
}

impl State {
    /// A station with two modules docked.
    pub(crate) fn new(seed: u64) -> Self {
        let mut state =
            Self { ports: Default::default(), log: VecDeque::new(), lines: 0, random: seed | 1 };
        for module in FLEET.iter().take(2) {
            state.dock(module);
        }
        state
    }

    /// The next event: a module docks, leaves or works.
    pub(crate) fn step(&mut self) -> Happening {
        let docked = self.docked().count();
        let choice = self.next_random() % 5;
        let happening = match choice {
            0 | 1 if docked < PORTS => self.absent_module().and_then(|name| self.dock(name)),
            2 if docked > 1 => self.some_module().and_then(|name| self.undock(name)),
            _ if docked == PORTS => self.some_module().and_then(|name| self.undock(name)),
            _ => None,
        };
        happening.or_else(|| self.sample()).unwrap_or_else(|| {
            self.dock(FLEET[0]).expect("a station without modules has a free port")
        })
    }

    /// Docks a module; `None` if it is docked, unknown, or no port is free.
    pub(crate) fn dock(&mut self, name: &str) -> Option<Happening> {
        let module = *FLEET.iter().find(|known| **known == name)?;
        if self.find(module).is_some() {
            return None;
        }
        let port = self.ports.iter().position(Option::is_none)?;
        self.ports[port] = Some(Module { name: module, samples: 0 });
        Some(self.note(Happening::Docked { module, port: port + 1 }))
    }

    /// Undocks a module; `None` if it is not docked.
    pub(crate) fn undock(&mut self, name: &str) -> Option<Happening> {
        let port =
            self.ports.iter().position(|port| port.as_ref().is_some_and(|it| it.name == name))?;
        let module = self.ports[port].take()?.name;
        Some(self.note(Happening::Left { module, port: port + 1 }))
    }

    fn sample(&mut self) -> Option<Happening> {
        let name = self.some_module()?;
        let module = self.ports.iter_mut().flatten().find(|module| module.name == name)?;
        module.samples += 1;
        let happening = Happening::Sampled { module: module.name, samples: module.samples };
        Some(self.note(happening))
    }

    fn note(&mut self, happening: Happening) -> Happening {
        self.lines += 1;
        self.log.push_back(format!("{:04} {happening}", self.lines));
        if self.log.len() > LOG {
            self.log.pop_front();
        }
        happening
    }

    /// The ports in order, from 1.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (usize, Option<&Module>)> {
        self.ports.iter().enumerate().map(|(index, module)| (index + 1, module.as_ref()))
    }

    /// The docked modules.
    pub(crate) fn docked(&self) -> impl Iterator<Item = &Module> {
        self.ports.iter().flatten()
    }

    /// A docked module.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &Module)> {
        self.ports()
            .find_map(|(port, module)| module.filter(|it| it.name == name).map(|it| (port, it)))
    }

    /// The names of modules that are not docked.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &'static str> {
        FLEET.iter().copied().filter(|name| self.find(name).is_none())
    }

    /// The log, newest line last.
    pub(crate) fn log(&self) -> String {
        self.log.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    fn absent_module(&mut self) -> Option<&'static str> {
        let absent: Vec<_> = self.absent().collect();
        self.pick(&absent)
    }

    fn some_module(&mut self) -> Option<&'static str> {
        let docked: Vec<_> = self.docked().map(|module| module.name).collect();
        self.pick(&docked)
    }

    fn pick(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let count = u64::try_from(names.len()).ok().filter(|count| *count > 0)?;
        let index = usize::try_from(self.next_random() % count).ok()?;
        names.get(index).copied()
    }

    /// Xorshift: a demo needs variety, not secrecy.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_of_events_keeps_the_station_in_order() {
        let mut state = State::new(7);
        let (mut full, mut docked, mut left) = (0, 0, 0);
        for _ in 0..10_000 {
            match state.step() {
                Happening::Docked { .. } => docked += 1,
                Happening::Left { .. } => left += 1,
                Happening::Sampled { .. } => {}
            }
            let here = state.docked().count();
            assert!((1..=PORTS).contains(&here));
            full += usize::from(here == PORTS);
            assert!(state.log().lines().count() <= LOG);
        }
        assert!(full > 100 && docked > 100 && left > 100, "{full} {docked} {left}");
    }

    #[test]
    fn a_module_docks_once_and_only_where_a_port_is_free() {
        let mut state = State::new(1);
        assert_eq!(state.dock("aurora"), None);
        assert_eq!(state.dock("nautilus"), None);
        assert!(state.dock("iris").is_some() && state.dock("fram").is_some());
        assert_eq!(state.dock("horizon"), None, "every port is taken");
        assert_eq!(state.undock("horizon"), None);
        assert_eq!(state.undock("iris"), Some(Happening::Left { module: "iris", port: 3 }));
    }
}
