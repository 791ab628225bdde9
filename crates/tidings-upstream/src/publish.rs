//! Brings the shelf up to date with what the upstream offers: names, conflicts, selections.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use tidings_mirror::events::Items;
use tidings_mirror::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_mirror::{List, Mirror};
use tidings_server::{EditError, Item, Offer, Raw, Shelf, Transaction};

use crate::config::{Config, Selection};
use crate::names;
use crate::neighbours::ClaimRank;
use crate::pin::Pins;

/// A kind of item.
pub(crate) trait Kind: Serialize {
    const LIST: List;
    /// The member that has its name or URI.
    const FIELD: &'static str;

    fn key(&self) -> &str;
    fn selection(config: &Config) -> &Selection;
}

macro_rules! kinds {
    ($($item:ident, $field:literal, $key:ident, $list:ident, $selection:ident;)*) => {
        $(impl Kind for $item {
            const LIST: List = List::$list;
            const FIELD: &'static str = $field;

            fn key(&self) -> &str {
                &self.$key
            }

            fn selection(config: &Config) -> &Selection {
                &config.$selection
            }
        })*
    };
}

kinds! {
    Tool, "name", name, Tools, tools;
    Prompt, "name", name, Prompts, prompts;
    Resource, "uri", uri, Resources, resources;
    ResourceTemplate, "uriTemplate", uri_template, Templates, resources;
}

/// An item as the upstream has it.
#[derive(Debug)]
pub(crate) struct Original<T> {
    pub(crate) key: Arc<str>,
    pub(crate) raw: Raw<T>,
}

impl<T> Clone for Original<T> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), raw: self.raw.clone() }
    }
}

/// All that an upstream offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stock {
    pub(crate) tools: Vec<Original<Tool>>,
    pub(crate) prompts: Vec<Original<Prompt>>,
    pub(crate) resources: Vec<Original<Resource>>,
    pub(crate) templates: Vec<Original<ResourceTemplate>>,
    pub(crate) problems: Vec<String>,
    /// The lists that are not loaded: their items are those of before.
    pub(crate) missing: Vec<List>,
}

impl Stock {
    /// What a mirror has now, and of lists that it could not load what was there before.
    pub(crate) fn of(mirror: &Mirror, before: &Self) -> Self {
        let mut problems = Vec::new();
        for list in List::ALL {
            if let Some(error) = mirror.list_error(list) {
                problems.push(format!("its {list} could not be listed: {error}"));
            }
            if let Some(cut) = mirror.incomplete(list) {
                problems.push(format!("its {list} are not complete: {cut}"));
            }
            for odd in mirror.odd(list).iter() {
                problems.push(format!("one of its {list} is not valid: {}", odd.reason));
            }
        }
        let missing: Vec<_> =
            List::ALL.into_iter().filter(|list| !mirror.has_list(*list)).collect();
        let mut loaded = Loaded { problems, missing };
        Self {
            tools: loaded.originals(&mirror.tools(), &before.tools),
            prompts: loaded.originals(&mirror.prompts(), &before.prompts),
            resources: loaded.originals(&mirror.resources(), &before.resources),
            templates: loaded.originals(&mirror.templates(), &before.templates),
            problems: loaded.problems,
            missing: loaded.missing,
        }
    }

    /// Whether all lists are the server's own of now.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether all that can be pinned is the server's own of now.
    pub(crate) fn has_definitions(&self) -> bool {
        !self.missing.iter().any(|list| matches!(list, List::Tools | List::Prompts))
    }
}

/// What is known about lists while they are taken from a mirror.
struct Loaded {
    problems: Vec<String>,
    missing: Vec<List>,
}

impl Loaded {
    fn originals<T: Kind>(&mut self, items: &Items<T>, before: &[Original<T>]) -> Vec<Original<T>> {
        if self.missing.contains(&T::LIST) {
            return before.to_vec();
        }
        originals(items, &mut self.problems)
    }
}

fn originals<T: Kind>(items: &Items<T>, problems: &mut Vec<String>) -> Vec<Original<T>> {
    let mut originals = Vec::with_capacity(items.len());
    for item in items.iter() {
        match Raw::parse(item.raw_json()) {
            Ok(raw) => originals.push(Original { key: item.key().into(), raw }),
            Err(error) => problems.push(format!("`{}` cannot be relayed: {error}", item.key())),
        }
    }
    originals
}

/// What leads from a name here to the upstream's own.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) tools: HashMap<String, ToolRoute>,
    pub(crate) prompts: HashMap<String, Arc<str>>,
    pub(crate) templates: HashMap<String, Arc<str>>,
    pub(crate) resources: usize,
    pub(crate) problems: Vec<String>,
    /// The keys that this upstream has although others want them.
    plain: HashSet<(List, Arc<str>)>,
}

impl Routes {
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
            && self.prompts.is_empty()
            && self.templates.is_empty()
            && self.resources == 0
    }
}

/// A tool, by its own name.
#[derive(Clone, Debug)]
pub(crate) struct ToolRoute {
    pub(crate) original: Arc<str>,
    /// Whether it says that it changes nothing.
    pub(crate) is_read_only: bool,
}

/// Puts the stock of an upstream on its shelf.
pub(crate) struct Publisher<'a> {
    pub(crate) shelf: &'a Shelf,
    pub(crate) config: &'a Config,
    pub(crate) place: ClaimRank,
    pub(crate) pins: Option<&'a Pins>,
    /// Whether its names stay its own although it offers nothing: its server is down.
    pub(crate) keeps_claims: bool,
}

/// An item with the names it may have here.
struct Candidate<T> {
    original: Original<T>,
    first: Arc<str>,
    second: String,
}

/// An item with the name that it has here.
struct Named<T> {
    key: String,
    original: Arc<str>,
    raw: Raw<T>,
}

impl Publisher<'_> {
    /// Offers exactly this stock. Names it does not get are reported to the neighbours, so that
    /// others can take them.
    pub(crate) fn publish(&self, stock: &Stock, before: &Routes) -> Result<Routes, EditError> {
        let mut problems = stock.problems.clone();
        let tools = self.candidates(&stock.tools, &mut problems);
        let prompts = self.candidates(&stock.prompts, &mut problems);
        let resources = self.candidates(&stock.resources, &mut problems);
        let templates = self.candidates(&stock.templates, &mut problems);
        let mut lost = HashSet::new();
        self.claim(&tools, &mut lost);
        self.claim(&prompts, &mut lost);
        self.claim(&resources, &mut lost);
        self.claim(&templates, &mut lost);
        // A name that another source has shows when the shelf refuses it; then the second is tried.
        let routes = loop {
            let mut transaction = self.shelf.transaction();
            let mut routes = Routes { problems: problems.clone(), ..Routes::default() };
            for named in offer(&mut transaction, &tools, &lost, &mut routes) {
                let is_read_only = is_read_only(&named.raw);
                let route = ToolRoute { original: named.original, is_read_only };
                routes.tools.insert(named.key, route);
            }
            let offered = offer(&mut transaction, &prompts, &lost, &mut routes);
            routes.prompts = offered.into_iter().map(|it| (it.key, it.original)).collect();
            routes.resources = offer(&mut transaction, &resources, &lost, &mut routes).len();
            let offered = offer(&mut transaction, &templates, &lost, &mut routes);
            routes.templates = offered.into_iter().map(|it| (it.key, it.original)).collect();
            let refused = transaction.commit_possible()?;
            if !self.has_second_choice(&refused, &mut lost) {
                routes.problems.extend(refused.iter().map(ToString::to_string));
                break routes;
            }
        };
        if before.plain.iter().any(|key| lost.contains(key)) {
            self.config.neighbours.announce();
        }
        Ok(routes)
    }

    /// The items that are selected, with their names.
    fn candidates<T: Kind>(
        &self,
        originals: &[Original<T>],
        problems: &mut Vec<String>,
    ) -> Vec<Candidate<T>> {
        let (config, selection) = (self.config, T::selection(self.config));
        let is_named = T::FIELD == "name";
        let mut candidates = Vec::with_capacity(originals.len());
        for original in originals.iter().filter(|original| selection.has(&original.key)) {
            let key = &*original.key;
            let (first, second) = if is_named {
                let first = names::offered(config, selection, key);
                (first, names::second_choice(config, selection, key))
            } else {
                (key.to_owned(), names::address(&config.name, key))
            };
            let came_round = if is_named {
                names::is_round(&first)
            } else {
                names::within(&config.name, key).is_some()
            };
            if came_round {
                problems.push(format!(
                    "`{first}` is left out: it came through `{}` before",
                    config.name
                ));
                continue;
            }
            if is_named && first.len() > names::TOO_LONG {
                problems.push(format!(
                    "`{first}` is left out: a name has at most {} characters; `rename` it",
                    names::TOO_LONG
                ));
                continue;
            }
            if is_named && let Some(doubt) = names::doubt(&first) {
                problems.push(doubt);
            }
            if self.pins.is_some_and(|pins| pins.holds(T::LIST, key, original.raw.as_str())) {
                continue;
            }
            let mut original = original.clone();
            if let Some(description) = selection.describe.get(key) {
                original.raw = original.raw.with("description", description.as_str());
            }
            candidates.push(Candidate { original, first: first.into(), second });
        }
        candidates
    }

    fn claim<T: Kind>(&self, candidates: &[Candidate<T>], lost: &mut HashSet<(List, Arc<str>)>) {
        if self.keeps_claims {
            return;
        }
        let keys = candidates.iter().map(|candidate| candidate.first.clone()).collect();
        let others = self.config.neighbours.claim(self.place, T::LIST, &keys);
        lost.extend(others.into_iter().map(|key| (T::LIST, key)));
    }

    /// Whether an item was refused because a source that is no upstream has its name. An upstream
    /// gives the name up by itself, and says so.
    fn has_second_choice(
        &self,
        refused: &[EditError],
        lost: &mut HashSet<(List, Arc<str>)>,
    ) -> bool {
        let mut is_moved = false;
        for error in refused {
            let EditError::Claimed { kind, key, .. } = error else { continue };
            let Some(list) = list_of(kind) else { continue };
            if !self.config.neighbours.is_shared(self.place, list, key) {
                is_moved |= lost.insert((list, key.as_str().into()));
            }
        }
        is_moved
    }
}

/// Offers the items under the names that they have.
fn offer<T: Kind>(
    transaction: &mut Transaction,
    candidates: &[Candidate<T>],
    lost: &HashSet<(List, Arc<str>)>,
    routes: &mut Routes,
) -> Vec<Named<T>>
where
    Raw<T>: Item + Into<Offer<Raw<T>>>,
{
    let (mut offered, mut keys) = (Vec::with_capacity(candidates.len()), HashSet::new());
    for candidate in candidates {
        let place = (T::LIST, candidate.first.clone());
        let key = if lost.contains(&place) {
            candidate.second.clone()
        } else {
            routes.plain.insert(place);
            candidate.first.to_string()
        };
        if !keys.insert(key.clone()) {
            routes.problems.push(format!("`{key}` is offered twice; the first is kept"));
            continue;
        }
        let (original, raw) = (&candidate.original.key, &candidate.original.raw);
        let is_kept = **original == *key;
        let raw = if is_kept { raw.clone() } else { raw.with(T::FIELD, key.as_str()) };
        offered.push(Named { key, original: original.clone(), raw });
    }
    let refused = transaction.replace(offered.iter().map(|named| named.raw.clone()));
    routes.problems.extend(refused.iter().map(ToString::to_string));
    offered
}

/// The list of a kind, by the word that the hub has for it.
fn list_of(kind: &str) -> Option<List> {
    match kind {
        "tool" => Some(List::Tools),
        "prompt" => Some(List::Prompts),
        "resource" => Some(List::Resources),
        "resource template" => Some(List::Templates),
        _ => None,
    }
}

fn is_read_only(tool: &Raw<Tool>) -> bool {
    let annotations = tool.get("annotations").and_then(|text| Raw::<()>::parse(text).ok());
    annotations.is_some_and(|annotations| annotations.get("readOnlyHint") == Some("true"))
}
