//! Which upstreams to serve: those of the command line, of `tidings.toml` and of an `mcp.json`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow};
use tidings_upstream::Name;

use super::plan::PlannedUpstream;
use crate::args::{Places, Serve};
use crate::hosts::{Kind, NamedServer, Surroundings, upstream_name};
use crate::report::Usage;
use crate::settings::{ServerOrigin, Settings, UpstreamTable};
use crate::target::{is_url, known, lookup};

/// The upstreams that could be found, and why others could not.
#[derive(Default)]
pub(super) struct Origins {
    pub(super) upstreams: Vec<PlannedUpstream>,
    /// The name of an upstream that is named but cannot be served, if it has one, and why.
    pub(super) problems: Vec<(Option<Name>, anyhow::Error)>,
}

impl Origins {
    /// Finds all upstreams, in the order of their rank: command line, file, `mcp.json`.
    pub(super) fn find(args: &Serve, settings: &Settings) -> Self {
        let mut origins = Self::default();
        let places = Places { mcp_file: args.mcp_file.clone() };
        let surroundings = Surroundings::new();
        for text in &args.upstream {
            let found = of_words(text, &places, &surroundings);
            origins.take(None, found.with_context(|| format!("`--upstream {text}`")));
        }
        for (name, table) in settings.upstreams() {
            if table.disabled {
                continue;
            }
            let found = of_table(name, table, settings, &places, &surroundings);
            let found = found.with_context(|| format!("`[upstream.{name}]`"));
            origins.take(Name::parse(name).ok(), found);
        }
        if args.mcp_file.is_some() {
            origins.take_file(&places, &surroundings);
        }
        origins
    }

    fn take(&mut self, name: Option<Name>, found: Result<PlannedUpstream>) {
        let upstream = match found {
            Ok(upstream) => upstream,
            Err(error) => return self.problems.push((name, error)),
        };
        if self.upstreams.iter().any(|other| other.name == upstream.name) {
            let error = anyhow!("two upstreams are named `{}`: the first is served", upstream.name);
            return self.problems.push((None, error));
        }
        self.upstreams.push(upstream);
    }

    /// Takes all servers of the `mcp.json`. Those named elsewhere are not taken twice.
    fn take_file(&mut self, places: &Places, surroundings: &Surroundings) {
        let found = match known(places, surroundings) {
            Ok(found) => found,
            Err(error) => return self.problems.push((None, error)),
        };
        self.problems.extend(found.problems.into_iter().map(|problem| (None, anyhow!(problem))));
        for entry in found.entries.iter().filter(|entry| !entry.is_disabled) {
            let is_named = |other: &PlannedUpstream| other.kind == entry.kind;
            if !self.upstreams.iter().any(is_named) {
                self.take(None, of_entry(entry));
            }
        }
    }
}

/// `NAME=TARGET` of the command line.
fn of_words(text: &str, places: &Places, surroundings: &Surroundings) -> Result<PlannedUpstream> {
    let Some((name, target)) = text.split_once('=').filter(|(_, target)| !target.is_empty()) else {
        let usage = Usage::new("a name and a TARGET are needed");
        return Err(usage
            .hint("write it as NAME=TARGET, such as `notes=http://127.0.0.1:8484/mcp`")
            .into());
    };
    let name = Name::parse(name).map_err(|error| Usage::new(error.to_string()))?;
    let kind = if is_url(target) {
        Kind::Http { url: target.to_owned(), headers: BTreeMap::new() }
    } else if target.contains(char::is_whitespace) || target.contains('/') {
        command(target)
    } else {
        match lookup(target, places, surroundings) {
            Ok(entry) => entry.kind,
            // A single word is a name first, and a program if there is none of that name.
            Err(_) if is_program(target) => command(target),
            Err(error) => return Err(error),
        }
    };
    Ok(PlannedUpstream::new(name, kind, UpstreamTable::default()))
}

/// A command whose words are separated by spaces.
fn command(text: &str) -> Kind {
    let mut words = text.split_whitespace().map(str::to_owned);
    Kind::Command {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        environment: BTreeMap::new(),
        folder: None,
    }
}

/// Whether a program of this name is in the `PATH`.
fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

fn of_table(
    name: &str,
    table: &UpstreamTable,
    settings: &Settings,
    places: &Places,
    surroundings: &Surroundings,
) -> Result<PlannedUpstream> {
    let name = Name::parse(name).map_err(|error| Usage::new(error.to_string()))?;
    let kind = match table.origin(&settings.base)? {
        ServerOrigin::Given(kind) => kind,
        ServerOrigin::Named(server) => lookup(&server, places, surroundings)?.kind,
    };
    Ok(PlannedUpstream::new(name, kind, table.clone()))
}

/// A server of an `mcp.json`, under the nearest name that an upstream can have.
fn of_entry(entry: &NamedServer) -> Result<PlannedUpstream> {
    let name = upstream_name(&entry.name);
    let name = Name::parse(&name).map_err(|_| {
        Usage::new(format!("the server `{}` has no name that an upstream can have", entry.name))
            .hint("rename it, or serve it with `--upstream NAME=TARGET`")
    })?;
    Ok(PlannedUpstream::new(name, entry.kind.clone(), UpstreamTable::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let surroundings = Surroundings { here: "/none".into(), home: None, configuration: None };
        let said = match of_words(text, &Places::default(), &surroundings) {
            Ok(upstream) => format!("{} {:?}", upstream.name, upstream.kind),
            Err(error) => format!("{error:#}"),
        };
        assert!(said.contains(expected), "{said}");
    }

    #[test]
    fn a_target_is_a_url_a_command_or_a_name() {
        check("a=https://a.org/mcp?x=1", "a Http(https://a.org/mcp?x=1, [])");
        check("a=npx -y server .", r#"a Command(npx, ["-y", "server", "."], [], None)"#);
        check("a=./server", "a Command(./server, [], [], None)");
        check("a=sh", "a Command(sh, [], [], None)");
        check("a=no-such-server", "no mcp.json has a server `no-such-server`");
        check("a_b=http://a", "`a_b` cannot name an upstream");
        check("a", "a name and a TARGET are needed");
        check("a=", "a name and a TARGET are needed");
    }
}
