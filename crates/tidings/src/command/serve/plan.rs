//! What `tidings.toml` wants to be served, and the steps from one version of it to the next. Pure.

use std::path::{Path, PathBuf, absolute};

use tidings_upstream::Name;

use crate::args::{Limits, Serve};
use crate::hosts::{Kind, NamedServer};
use crate::settings::{FeedTable, HttpSettings, Serving, Settings, UpstreamTable};

/// The distance of ranks at the start, so that others fit between them.
const RANKS: usize = 1 << 16;

/// The part of the file that a running server follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The folders, in the order of the file, without those of the command line.
    pub(super) folders: Vec<PlannedFolder>,
    /// The upstreams, in order; those of the command line are the first.
    pub(super) upstreams: Vec<PlannedUpstream>,
    /// The feeds; `None` if no feeds are to be served.
    pub(super) feeds: Option<PlannedFeeds>,
    /// How feeds are stored and fetched, without the lists.
    serving: Serving,
    http: HttpSettings,
    limits: Limits,
}

/// One folder and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFolder {
    pub(super) path: PathBuf,
    /// Variables for its programs.
    pub(super) variables: Vec<String>,
}

impl PlannedFolder {
    pub(super) fn new(path: PathBuf, variables: &[String]) -> Self {
        Self { path, variables: variables.to_owned() }
    }
}

/// One upstream server and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedUpstream {
    pub(super) name: Name,
    pub(super) kind: Kind,
    pub(super) table: UpstreamTable,
    /// Of two upstreams with one name or URI, the one of the lower rank has it.
    pub(super) rank: usize,
}

impl PlannedUpstream {
    pub(super) fn new(name: Name, kind: Kind, table: UpstreamTable) -> Self {
        Self { name, kind, table, rank: 0 }
    }

    /// The same as an entry of an `mcp.json`.
    pub(super) fn entry(&self) -> NamedServer {
        let (name, kind) = (self.name.to_string(), self.kind.clone());
        NamedServer { name, file: PathBuf::new(), kind, is_disabled: false }
    }

    /// Whether another one can be had without a restart.
    fn is_adjustable_to(&self, other: &Self) -> bool {
        (&self.kind, self.rank, self.table.fixed())
            == (&other.kind, other.rank, other.table.fixed())
    }
}

/// The feeds, as the file names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlannedFeeds {
    feeds: Vec<FeedTable>,
    lists: Vec<String>,
}

/// One step from one version of the configuration to the next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    AddFolder(PlannedFolder),
    RemoveFolder(PathBuf),
    /// Serve a folder with other settings.
    ReplaceFolder(PlannedFolder),
    AddUpstream(PlannedUpstream),
    RemoveUpstream(Name),
    /// Connect to an upstream with other settings.
    ReplaceUpstream(PlannedUpstream),
    /// Offer an upstream in another way, without a restart.
    AdjustUpstream(PlannedUpstream),
    /// Begin to serve feeds.
    OpenFeeds,
    /// Serve other feeds.
    ConfigureFeeds,
    /// Serve no feeds any more.
    CloseFeeds,
    /// This key changed, and takes effect when the server is restarted.
    Restart(&'static str),
}

impl Plan {
    /// The plan of a file. `always` means that feeds are served whatever it says.
    pub(super) fn new(settings: &Settings, args: &Serve, always: bool) -> Self {
        let mut plan = Self::of_file(settings, always);
        let is_named = |path: &Path| {
            args.folder.iter().any(|named| absolute(named).is_ok_and(|named| named == path))
        };
        plan.folders.retain(|folder| !is_named(&folder.path));
        plan
    }

    fn of_file(settings: &Settings, always: bool) -> Self {
        let variables = settings.variables();
        let mut folders: Vec<PlannedFolder> = Vec::new();
        for path in settings.folder_paths() {
            if !folders.iter().any(|folder| folder.path == *path) {
                folders.push(PlannedFolder::new(path.clone(), variables));
            }
        }
        let mut serving = settings.serve.clone();
        let lists = std::mem::take(&mut serving.opml);
        let feeds = PlannedFeeds { feeds: settings.feeds.clone(), lists };
        Self {
            folders,
            upstreams: Vec::new(),
            feeds: (always || settings.names_feeds()).then_some(feeds),
            serving,
            http: settings.http.clone(),
            limits: settings.limits.clone().unwrap_or_default(),
        }
    }

    /// The steps to another plan, in the order to take them: what leaves makes room for what comes.
    pub(super) fn steps(&self, next: &Self) -> Vec<Step> {
        let mut steps = Vec::new();
        let find =
            |plan: &Self, path: &Path| plan.folders.iter().find(|it| it.path == path).cloned();
        for folder in &self.folders {
            if find(next, &folder.path).is_none() {
                steps.push(Step::RemoveFolder(folder.path.clone()));
            }
        }
        for folder in &next.folders {
            match find(self, &folder.path) {
                None => steps.push(Step::AddFolder(folder.clone())),
                Some(before) if before != *folder => {
                    steps.push(Step::ReplaceFolder(folder.clone()));
                }
                Some(_) => {}
            }
        }
        self.upstream_steps(next, &mut steps);
        match (&self.feeds, &next.feeds) {
            (None, Some(_)) => steps.push(Step::OpenFeeds),
            (Some(_), None) => steps.push(Step::CloseFeeds),
            (Some(old), Some(new)) if old != new => steps.push(Step::ConfigureFeeds),
            _ => {}
        }
        steps.extend(self.restarts(next).map(Step::Restart));
        steps
    }

    fn upstream_steps(&self, next: &Self, steps: &mut Vec<Step>) {
        let find =
            |plan: &Self, name: &Name| plan.upstreams.iter().find(|it| it.name == *name).cloned();
        for upstream in &self.upstreams {
            if find(next, &upstream.name).is_none() {
                steps.push(Step::RemoveUpstream(upstream.name.clone()));
            }
        }
        for upstream in &next.upstreams {
            steps.push(match find(self, &upstream.name) {
                None => Step::AddUpstream(upstream.clone()),
                Some(before) if before == *upstream => continue,
                Some(before) if before.is_adjustable_to(upstream) => {
                    Step::AdjustUpstream(upstream.clone())
                }
                Some(_) => Step::ReplaceUpstream(upstream.clone()),
            });
        }
    }

    /// Ranks the upstreams in their order. Those that are served keep their rank where the order
    /// allows it, because another rank means a restart.
    pub(super) fn rank(&mut self, served: &Self) {
        let served = |upstream: &PlannedUpstream| {
            served.upstreams.iter().find(|it| it.name == upstream.name).map(|it| it.rank)
        };
        let mut last = 0;
        for index in 0..self.upstreams.len() {
            let above = |rank: &usize| *rank > last;
            let kept = served(&self.upstreams[index]).filter(above);
            let next = || self.upstreams[index..].iter().filter_map(served).find(above);
            last = kept.unwrap_or_else(|| match next() {
                Some(next) => last + (next - last).div_ceil(2),
                None => last + RANKS,
            });
            self.upstreams[index].rank = last;
        }
    }

    /// Stores that an upstream is served like this.
    pub(super) fn serve_upstream(&mut self, upstream: &PlannedUpstream) {
        self.leave_upstream(&upstream.name);
        self.upstreams.push(upstream.clone());
    }

    /// Stores that an upstream is no longer served.
    pub(super) fn leave_upstream(&mut self, name: &Name) {
        self.upstreams.retain(|upstream| upstream.name != *name);
    }

    /// The keys that differ and that a running server cannot change: the feeds are opened with
    /// them, or the endpoint is set up with them.
    fn restarts(&self, next: &Self) -> impl Iterator<Item = &'static str> {
        let (old, new) = (&self.serving, &next.serving);
        let (was, is) = (&self.limits, &next.limits);
        let keys = [
            ("[http] tokens", self.http.tokens == next.http.tokens),
            ("[http] writers", self.http.writers == next.http.writers),
            ("[serve] data", old.data == new.data),
            ("[serve] in_memory", old.in_memory == new.in_memory),
            ("[serve] offline", old.offline == new.offline),
            ("[serve] read_only", old.read_only == new.read_only),
            ("[serve] allow_private", old.allow_private == new.allow_private),
            ("[serve] keep_items", old.keep_items == new.keep_items),
            ("[serve] keep_days", old.keep_days == new.keep_days),
            ("[limits] body_limit", was.body_limit == is.body_limit),
            ("[limits] memory", was.memory == is.memory),
            ("[limits] connections", was.connections == is.connections),
            ("[limits] sessions", was.sessions == is.sessions),
            ("[limits] listeners", was.listeners == is.listeners),
            ("[limits] subscriptions", was.subscriptions == is.subscriptions),
            ("[limits] drain", was.drain == is.drain),
        ];
        keys.into_iter().filter(|(_, is_equal)| !is_equal).map(|(key, _)| key)
    }

    /// Stores that a folder is served like this.
    pub(super) fn serve_folder(&mut self, folder: &PlannedFolder) {
        self.leave_folder(&folder.path);
        self.folders.push(folder.clone());
    }

    /// Stores that a folder is no longer served.
    pub(super) fn leave_folder(&mut self, path: &Path) {
        self.folders.retain(|folder| folder.path != path);
    }

    /// Stores that the feeds of another plan are served now.
    pub(super) fn take_feeds(&mut self, next: &Self) {
        if self.feeds.is_none() {
            self.serving = next.serving.clone();
        }
        self.feeds.clone_from(&next.feeds);
    }
}

impl PlannedFeeds {
    /// What differs from this to the next, in words. Addresses are shown as in the file, so that
    /// the values of variables stay secret.
    pub(super) fn difference(&self, next: &Self) -> String {
        let urls = |plan: &Self| -> Vec<String> {
            let feeds = plan.feeds.iter().map(|feed| feed.url.clone());
            feeds.chain(plan.lists.iter().cloned()).collect()
        };
        let (old, new) = (urls(self), urls(next));
        let without = |some: &[String], others: &[String]| -> Vec<String> {
            some.iter().filter(|url| !others.contains(url)).cloned().collect()
        };
        let changed: Vec<_> = next
            .feeds
            .iter()
            .filter(|feed| old.contains(&feed.url) && !self.feeds.contains(feed))
            .map(|feed| feed.url.clone())
            .collect();
        let parts = [
            ("added", without(&new, &old)),
            ("removed", without(&old, &new)),
            ("changed", changed),
        ];
        let parts = parts.iter().filter(|(_, urls)| !urls.is_empty());
        let parts: Vec<_> =
            parts.map(|(word, urls)| format!("{word} `{}`", urls.join("`, `"))).collect();
        if parts.is_empty() {
            "feeds: reordered".to_owned()
        } else {
            format!("feeds: {}", parts.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ServerOrigin;

    fn plan(text: &str) -> Plan {
        Plan::of_file(&Settings::parse(text, "tidings.toml").unwrap(), false)
    }

    fn folder(path: &str, variables: &[&str]) -> PlannedFolder {
        let variables: Vec<_> = variables.iter().map(|&it| it.to_owned()).collect();
        PlannedFolder::new(path.into(), &variables)
    }

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[Step]) {
        assert_eq!(plan(old).steps(&plan(new)), expected);
        assert_eq!(plan(new).steps(&plan(new)), []);
    }

    #[test]
    fn folders_come_and_go_and_the_others_stay() {
        check(
            "[folders]\npaths = ['a', 'b']",
            "[folders]\npaths = ['b', 'c']",
            &[Step::RemoveFolder("a".into()), Step::AddFolder(folder("c", &[]))],
        );
        check("[folders]\npaths = ['a', 'b']", "[folders]\npaths = ['b', 'a', 'b']", &[]);
    }

    #[test]
    fn another_environment_replaces_the_folders_that_stay() {
        check(
            "[folders]\npaths = ['a']\nenv = ['A=1']",
            "[folders]\npaths = ['a', 'b']\nenv = ['A=2']",
            &[Step::ReplaceFolder(folder("a", &["A=2"])), Step::AddFolder(folder("b", &["A=2"]))],
        );
    }

    fn upstreams(texts: &[(&str, &str)], served: &Plan) -> Plan {
        let upstream = |(name, text): &(&str, &str)| {
            let table: UpstreamTable = toml::from_str(text).unwrap();
            let Ok(ServerOrigin::Given(kind)) = table.origin(Path::new("/")) else {
                panic!("{text}")
            };
            PlannedUpstream::new(Name::parse(name).unwrap(), kind, table)
        };
        let mut plan = Plan { upstreams: texts.iter().map(upstream).collect(), ..Plan::default() };
        plan.rank(served);
        plan
    }

    /// The steps as words.
    fn words(steps: &[Step]) -> Vec<String> {
        let word = |step: &Step| match step {
            Step::AddUpstream(it) => format!("add {}", it.name),
            Step::RemoveUpstream(name) => format!("remove {name}"),
            Step::ReplaceUpstream(it) => format!("replace {}", it.name),
            Step::AdjustUpstream(it) => format!("adjust {}", it.name),
            other => format!("{other:?}"),
        };
        steps.iter().map(word).collect()
    }

    #[test]
    fn an_edit_restarts_only_the_upstream_whose_program_it_changes() {
        let (a, b) = (("a", "command = ['a']"), ("b", "command = ['b']"));
        let old = upstreams(&[a, b], &Plan::default());
        let steps = |texts: &[(&str, &str)]| words(&old.steps(&upstreams(texts, &old)));
        assert!(steps(&[a, b]).is_empty());
        assert_eq!(steps(&[a, ("b", "command = ['b', 'c']")]), ["replace b"]);
        assert_eq!(steps(&[a, ("b", "command = ['b']\nenv = { A = '1' }")]), ["replace b"]);
        assert_eq!(steps(&[a, ("b", "command = ['b']\ntools = { deny = ['x'] }")]), ["adjust b"]);
        assert_eq!(steps(&[b]), ["remove a"]);
        assert_eq!(steps(&[a, ("c", "url = 'http://c'")]), ["remove b", "add c"]);
    }

    #[test]
    fn an_upstream_between_others_leaves_them_alone() {
        let (a, b, c) =
            (("a", "command = ['a']"), ("b", "command = ['b']"), ("c", "command = ['c']"));
        let old = upstreams(&[a, b], &Plan::default());
        let steps = |texts: &[(&str, &str)]| words(&old.steps(&upstreams(texts, &old)));
        assert_eq!(steps(&[c, a, b]), ["add c"]);
        assert_eq!(steps(&[a, c, b]), ["add c"]);
        assert_eq!(steps(&[a, b, c]), ["add c"]);
        assert_eq!(steps(&[b, a]), ["replace a"]);
        let between = upstreams(&[a, c, b], &old);
        let ranks: Vec<_> = between.upstreams.iter().map(|it| it.rank).collect();
        assert!(ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
    }

    #[test]
    fn feeds_are_opened_configured_and_closed() {
        let (none, one) = ("[folders]\npaths = []", "[[feeds]]\nurl = 'https://a.org/f'\n");
        let two = "[[feeds]]\nurl = 'https://a.org/f'\ntitle = 'A'\n";
        check(none, one, &[Step::OpenFeeds]);
        check(one, two, &[Step::ConfigureFeeds]);
        check(two, none, &[Step::CloseFeeds]);
        check(one, &format!("# a comment\n{one}"), &[]);
    }

    #[test]
    fn feeds_of_the_command_line_stay() {
        let settings = |text: &str| Settings::parse(text, "tidings.toml").unwrap();
        let old = Plan::of_file(&settings("[[feeds]]\nurl = 'https://a.org/f'\n"), true);
        assert_eq!(old.steps(&Plan::of_file(&settings(""), true)), [Step::ConfigureFeeds]);
    }

    #[test]
    fn keys_that_need_a_restart_are_named() {
        check(
            "[serve]\nkeep_days = 3\n[limits]\nsessions = 5",
            "[serve]\nkeep_days = 4\n[limits]\nsessions = 6\ndrain = '1s'",
            &[
                Step::Restart("[serve] keep_days"),
                Step::Restart("[limits] sessions"),
                Step::Restart("[limits] drain"),
            ],
        );
    }

    #[test]
    fn what_differs_between_feeds_is_said_without_secrets() {
        let old = plan("[[feeds]]\nurl = 'https://${A:-x}/f'\n[[feeds]]\nurl = 'b'\n").feeds;
        let new = plan("[[feeds]]\nurl = 'b'\ntitle = 'B'\n[[feeds]]\nurl = 'c'\n").feeds;
        let said = old.unwrap().difference(&new.unwrap());
        assert_eq!(said, "feeds: added `c`; removed `https://${A:-x}/f`; changed `b`");
    }
}
