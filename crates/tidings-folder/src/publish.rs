//! Publishing: bring the shelf up to date with the stock, and announce changed contents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tidings_core::ResourceUri;
use tidings_server::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_server::{Change, EditError, Item, Labels, Offer, Pace, Shelf, Transaction};

use crate::describe::{Policy, encoded};
use crate::hidden::Hidden;
use crate::offer::{ContentOrigin, Key, Kind, Offered, TemplateOrigin};
use crate::stock::{Affected, Stock};
use crate::{Problem, Report};

/// What reads and calls see. New items are added here before they are listed, and removed after
/// they are unlisted, so that every listed item can be used.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) offered: BTreeMap<Key, Arc<Offered>>,
    pub(crate) policy: Policy,
    pub(crate) hidden: Hidden,
    /// The files that are not for everyone.
    audiences: BTreeMap<PathBuf, Labels>,
}

impl View {
    /// Whether a template with this audience may lead to a file: only if everyone who sees the
    /// template sees the file.
    pub(crate) fn opens(&self, audience: &Labels, file: &Path) -> bool {
        let policy = || self.policy.audience(None, Some(file));
        let Some(labels) = self.audiences.get(file).or_else(policy) else { return true };
        labels.is_empty()
            || !audience.is_empty() && audience.iter().all(|label| labels.contains(label))
    }

    fn note_audience(&mut self, offered: &Offered) {
        let Offered::Resource(offer) = offered else { return };
        let ContentOrigin::File(file) = &offer.origin else { return };
        if offer.audience.is_empty() {
            self.audiences.remove(file);
        } else {
            self.audiences.insert(file.clone(), offer.audience.clone());
        }
    }
}

/// The stock and the part of it that is on the shelf. Only the folder's task changes it.
pub(crate) struct Publisher {
    pub(crate) stock: Stock,
    shown: BTreeMap<Key, Arc<Offered>>,
    /// The URIs under which each file can be read.
    addresses: BTreeMap<PathBuf, Vec<Arc<str>>>,
    /// Names that another source has taken, with the reason.
    refused: BTreeMap<Key, String>,
    view: Arc<RwLock<View>>,
    /// Whether items are shown to their audience only; for the owner of the folder, to everyone.
    pub(crate) audiences: bool,
}

impl Publisher {
    pub(crate) fn new(stock: Stock, view: Arc<RwLock<View>>) -> Self {
        Self {
            stock,
            shown: BTreeMap::new(),
            addresses: BTreeMap::new(),
            refused: BTreeMap::new(),
            view,
            audiences: true,
        }
    }

    /// Updates the affected items on the shelf in one edit, and announces the contents that may
    /// have changed.
    pub(crate) fn update_shelf(&mut self, shelf: &Shelf, affected: &Affected, report: &mut Report) {
        let retried: Vec<_> = std::mem::take(&mut self.refused).into_keys().collect();
        let keys: BTreeSet<_> = affected.keys.iter().chain(&retried).cloned().collect();
        let wanted: Vec<_> = keys
            .into_iter()
            .map(|key| {
                let offered = self.stock.selected(&key);
                (key, offered)
            })
            .filter(|(key, offered)| self.differs(key, offered.as_ref()))
            .collect();
        self.show(&wanted);
        if !wanted.is_empty() {
            self.commit(shelf, &wanted);
            for (key, offered) in wanted {
                self.note(&key, offered, report);
            }
            self.hide();
        }
        for file in &affected.files {
            self.announce(shelf, file, affected.complete.contains(file));
        }
        self.report_refused();
    }

    /// Removes from `affected` the names whose lists would change, and returns them: they can wait
    /// for more changes.
    pub(crate) fn take_moved(&self, affected: &mut Affected) -> BTreeSet<Key> {
        let moved = |key: &Key| {
            let listed = !matches!(key.0, Kind::Provider | Kind::Completion);
            listed
                && match (self.shown.get(key), self.stock.selected(key)) {
                    (None, None) => false,
                    (Some(shown), Some(offered)) => !is_alike(shown, &offered),
                    _ => true,
                }
        };
        affected.keys.extract_if(.., moved).collect()
    }

    /// The affected files that have no URI yet.
    pub(crate) fn unaddressed(&self, affected: &Affected) -> BTreeSet<PathBuf> {
        let new = affected.files.iter().filter(|file| !self.addresses.contains_key(*file));
        new.cloned().collect()
    }

    fn differs(&self, key: &Key, offered: Option<&Arc<Offered>>) -> bool {
        match (self.shown.get(key), offered) {
            (None, None) => false,
            (Some(shown), Some(offered)) => !Arc::ptr_eq(shown, offered),
            _ => true,
        }
    }

    /// Makes new and changed items usable, before they are listed.
    fn show(&self, wanted: &[(Key, Option<Arc<Offered>>)]) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.policy = self.stock.policy().clone();
        view.hidden = self.stock.hidden().clone();
        for (key, offered) in wanted {
            if let Some(offered) = offered {
                view.note_audience(offered);
                view.offered.insert(key.clone(), offered.clone());
            }
        }
    }

    /// Makes items unusable that are no longer listed.
    fn hide(&self) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.offered.retain(|key, _| self.shown.contains_key(key));
    }

    /// Edits the shelf in one step. Names that another source has taken are left out.
    fn commit(&mut self, shelf: &Shelf, wanted: &[(Key, Option<Arc<Offered>>)]) {
        let mut transaction = shelf.transaction();
        for (key, offered) in wanted {
            if let Err(error) = edit(&mut transaction, key, offered.as_deref(), self.audiences) {
                self.refused.insert(key.clone(), error.to_string());
            }
        }
        // Without a hub nothing is offered, and nothing refused.
        for error in transaction.commit_possible().unwrap_or_default() {
            let EditError::Claimed { kind, key, .. } = &error else { continue };
            let named = |(it, name): &&Key| it.catalog_word() == *kind && **name == **key;
            if let Some(key) = wanted.iter().map(|(wanted, _)| wanted).find(named) {
                self.refused.insert(key.clone(), error.to_string());
            }
        }
    }

    /// Records what is on the shelf now.
    fn note(&mut self, key: &Key, offered: Option<Arc<Offered>>, report: &mut Report) {
        if self.refused.contains_key(key) {
            return;
        }
        let before = self.shown.remove(key);
        if let Some(before) = &before {
            self.address(before, |addresses| addresses.retain(|it| *it != key.1));
        }
        let listed = !matches!(key.0, Kind::Provider | Kind::Completion);
        match (&before, &offered) {
            (None, Some(offered)) if listed => report.added.push(offered.label()),
            (Some(before), None) if listed => report.removed.push(before.label()),
            (Some(before), Some(offered)) if listed && !is_alike(before, offered) => {
                report.changed.push(offered.label());
            }
            _ => {}
        }
        if let Some(offered) = offered {
            self.address(&offered, |addresses| addresses.push(key.1.clone()));
            self.shown.insert(key.clone(), offered);
        }
    }

    fn address(&mut self, offered: &Offered, edit: impl FnOnce(&mut Vec<Arc<str>>)) {
        let Offered::Resource(offer) = offered else { return };
        let ContentOrigin::File(file) = &offer.origin else { return };
        let addresses = self.addresses.entry(file.clone()).or_insert_with(|| Vec::with_capacity(1));
        edit(addresses);
        if addresses.is_empty() {
            self.addresses.remove(file);
        }
    }

    /// Announces that the content of a file may have changed, under each of its URIs. A file that
    /// was closed after writing needs no quiet time.
    fn announce(&self, shelf: &Shelf, file: &Path, complete: bool) {
        let pace = if complete { Pace::Settled } else { Pace::Unsettled };
        let announce = |uri: &str| match Change::try_from(uri) {
            Ok(change) => {
                let Ok(()) = shelf.changed(change.at(pace));
            }
            Err(error) => tracing::error!(uri, %error, "a change cannot be announced"),
        };
        for (_, shown) in self.shown.range((Kind::Template, "".into())..) {
            let Offered::Template(offer) = &**shown else { continue };
            match &offer.origin {
                TemplateOrigin::Paths { directory, path } => {
                    let below = file.strip_prefix(directory).ok().map(encoded);
                    if let Some(variables) = below.and_then(|below| path.matches(&below))
                        && let Ok(uri) = ResourceUri::parse(&offer.parsed.expand(&variables))
                    {
                        announce(uri.as_ref());
                    }
                }
                // A file has several URIs: with and without encoded slashes.
                TemplateOrigin::Files if file.starts_with("resources") => {
                    let Ok(()) = shelf.changed(Change::below("file:"));
                }
                TemplateOrigin::Files | TemplateOrigin::Provider { .. } => {}
            }
        }
        for uri in self.addresses.get(file).into_iter().flatten() {
            announce(uri);
        }
    }

    /// Whether another source has taken a name of this folder.
    pub(crate) fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The schemes of providers, which report no changes of their contents.
    pub(crate) fn schemes(&self) -> Vec<String> {
        let providers = self.shown.range((Kind::Provider, "".into())..);
        let providers = providers.take_while(|((kind, _), _)| *kind == Kind::Provider);
        providers.map(|((_, scheme), _)| scheme.to_string()).collect()
    }

    fn report_refused(&mut self) {
        let about = Path::new("");
        let problem = self.refused.iter().next().map(|((kind, name), reason)| {
            let reason = format!("the {} `{name}` is not served: {reason}", kind.word());
            Problem::error(about, reason, "give it another name")
        });
        self.stock.set_problem(about, problem);
    }
}

/// One edit: puts an item on the shelf, or removes the item of that name. Providers and completions
/// are not listed.
fn edit(
    transaction: &mut Transaction,
    (kind, name): &Key,
    offered: Option<&Offered>,
    audiences: bool,
) -> Result<(), EditError> {
    let Some(offered) = offered else {
        match kind {
            Kind::Tool => transaction.take::<Tool>(name),
            Kind::Prompt => transaction.take::<Prompt>(name),
            Kind::Resource => transaction.take::<Resource>(name),
            Kind::Template => transaction.take::<ResourceTemplate>(name),
            Kind::Provider | Kind::Completion => {}
        }
        return Ok(());
    };
    let audience = audiences.then(|| offered.audience());
    match offered {
        Offered::Tool(it) => transaction.put(restricted(it.script.tool.clone(), audience)),
        Offered::Prompt(it) => transaction.put(restricted(it.prompt.clone(), audience)),
        Offered::Resource(it) => transaction.put(restricted(it.resource.clone(), audience)),
        Offered::Template(it) => transaction.put(restricted(it.template.clone(), audience)),
        Offered::Provider(..) | Offered::Completion(_) => Ok(()),
    }
}

/// The offer of an item to its audience.
fn restricted<T: Item>(item: impl Into<Offer<T>>, audience: Option<&Labels>) -> Offer<T> {
    match audience.filter(|labels| !labels.is_empty()) {
        Some(labels) => item.into().audience(labels.clone()),
        None => item.into(),
    }
}

/// Whether two items look the same in a list, apart from details that change with every save.
fn is_alike(one: &Offered, other: &Offered) -> bool {
    let timeless = |resource: &Resource| {
        let mut resource = resource.clone();
        resource.size = None;
        if let Some(annotations) = &mut resource.annotations {
            annotations.last_modified = None;
        }
        resource
    };
    if one.audience() != other.audience() {
        return false;
    }
    match (one, other) {
        (Offered::Tool(one), Offered::Tool(other)) => one.script.tool == other.script.tool,
        (Offered::Prompt(one), Offered::Prompt(other)) => one.prompt == other.prompt,
        (Offered::Resource(one), Offered::Resource(other)) => {
            timeless(&one.resource) == timeless(&other.resource)
        }
        (Offered::Template(one), Offered::Template(other)) => one.template == other.template,
        _ => false,
    }
}
