//! What is on the shelf, and how it gets there: the difference between the stock and the shelf.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tidings_core::ResourceUri;
use tidings_server::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_server::{EditError, Handle, Shelf, Transaction};

use crate::folder::describe::{Policy, encoded};
use crate::folder::hidden::Hidden;
use crate::folder::offer::{Key, Kind, Offered, Origin, TemplateOrigin};
use crate::folder::stock::{Stock, Touched};
use crate::folder::{Problem, Report};

/// What reads and calls see. It is written before the shelf where something comes, and after it
/// where something goes: what is listed can be used.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) offered: BTreeMap<Key, Arc<Offered>>,
    pub(crate) policy: Policy,
    pub(crate) hidden: Hidden,
}

/// The stock and what of it is on the shelf. One task works at it.
pub(crate) struct Bench {
    pub(crate) stock: Stock,
    shown: BTreeMap<Key, Shown>,
    /// The addresses under which a file is read.
    addresses: BTreeMap<PathBuf, Vec<Arc<str>>>,
    /// Names that another source has.
    refused: BTreeMap<Key, String>,
    view: Arc<RwLock<View>>,
}

struct Shown {
    offered: Arc<Offered>,
    handle: AnyHandle,
}

enum AnyHandle {
    Tool(Handle<Tool>),
    Prompt(Handle<Prompt>),
    Resource(Handle<Resource>),
    Template(Handle<ResourceTemplate>),
    /// It is not listed.
    None,
}

impl Bench {
    pub(crate) fn new(stock: Stock, view: Arc<RwLock<View>>) -> Self {
        Self {
            stock,
            shown: BTreeMap::new(),
            addresses: BTreeMap::new(),
            refused: BTreeMap::new(),
            view,
        }
    }

    /// Brings the shelf up to what was touched, as one edit, and says which contents may have
    /// moved.
    pub(crate) fn apply(&mut self, shelf: &Shelf, touched: &Touched, report: &mut Report) {
        let retried: Vec<_> = std::mem::take(&mut self.refused).into_keys().collect();
        let keys: BTreeSet<_> = touched.keys.iter().chain(&retried).cloned().collect();
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
            let handles = self.commit(shelf, &wanted);
            for (key, offered) in wanted {
                self.note(&key, offered, handles.get(&key), report);
            }
            self.hide();
        }
        for file in &touched.files {
            self.announce(shelf, file, touched.complete.contains(file));
        }
        self.complain();
    }

    fn differs(&self, key: &Key, offered: Option<&Arc<Offered>>) -> bool {
        match (self.shown.get(key), offered) {
            (None, None) => false,
            (Some(shown), Some(offered)) => !Arc::ptr_eq(&shown.offered, offered),
            _ => true,
        }
    }

    /// Lets what comes or changes be used, before it is listed.
    fn show(&self, wanted: &[(Key, Option<Arc<Offered>>)]) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.policy = self.stock.policy().clone();
        view.hidden = self.stock.hidden().clone();
        for (key, offered) in wanted {
            if let Some(offered) = offered {
                view.offered.insert(key.clone(), offered.clone());
            }
        }
    }

    /// Lets what is listed no more be used no more.
    fn hide(&self) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        view.offered.retain(|key, _| self.shown.contains_key(key));
    }

    /// Edits the shelf in one step; names that others have are left out.
    fn commit(
        &mut self,
        shelf: &Shelf,
        wanted: &[(Key, Option<Arc<Offered>>)],
    ) -> BTreeMap<Key, AnyHandle> {
        loop {
            let mut transaction = shelf.transaction();
            let mut handles = BTreeMap::new();
            for (key, offered) in wanted {
                if self.refused.contains_key(key) {
                    continue;
                }
                let before = self.shown.get(key).map(|shown| &shown.handle);
                match edit(&mut transaction, before, offered.as_deref()) {
                    Ok(Some(handle)) => drop(handles.insert(key.clone(), handle)),
                    Ok(None) => {}
                    Err(error) => drop(self.refused.insert(key.clone(), error.to_string())),
                }
            }
            let Err(error) = transaction.commit() else { return handles };
            let found = match &error {
                EditError::Claimed { kind, key, .. } => {
                    let named = |(it, name): &&Key| it.catalog_word() == *kind && **name == **key;
                    wanted.iter().map(|(wanted, _)| wanted).find(named)
                }
                _ => None,
            };
            // Each round refuses one more, or the source is being removed.
            let refused = found.map(|key| self.refused.insert(key.clone(), error.to_string()));
            if !matches!(refused, Some(None)) {
                tracing::debug!(%error, "the shelf was not edited");
                return BTreeMap::new();
            }
        }
    }

    /// Remembers what is on the shelf now.
    fn note(
        &mut self,
        key: &Key,
        offered: Option<Arc<Offered>>,
        handle: Option<&AnyHandle>,
        report: &mut Report,
    ) {
        if self.refused.contains_key(key) {
            return;
        }
        let before = self.shown.remove(key);
        if let Some(before) = &before {
            self.address(&before.offered, |addresses| addresses.retain(|it| *it != key.1));
        }
        let listed = !matches!(key.0, Kind::Provider | Kind::Completion);
        match (&before, &offered) {
            (None, Some(offered)) if listed => report.added.push(offered.label()),
            (Some(before), None) if listed => report.removed.push(before.offered.label()),
            (Some(before), Some(offered)) if listed && !is_alike(&before.offered, offered) => {
                report.changed.push(offered.label());
            }
            _ => {}
        }
        if let Some(offered) = offered {
            self.address(&offered, |addresses| addresses.push(key.1.clone()));
            let handle = match handle {
                Some(handle) => handle.clone(),
                None => before.map_or(AnyHandle::None, |before| before.handle),
            };
            self.shown.insert(key.clone(), Shown { offered, handle });
        }
    }

    fn address(&mut self, offered: &Offered, edit: impl FnOnce(&mut Vec<Arc<str>>)) {
        let Offered::Resource(offer) = offered else { return };
        let Origin::File(file) = &offer.origin else { return };
        let addresses = self.addresses.entry(file.clone()).or_insert_with(|| Vec::with_capacity(1));
        edit(addresses);
        if addresses.is_empty() {
            self.addresses.remove(file);
        }
    }

    /// Says that the content of a file may have moved, under every address it is read at. What was
    /// closed after writing need not be waited for.
    fn announce(&self, shelf: &Shelf, file: &Path, complete: bool) {
        let tell = |uri: &str| {
            if complete { shelf.notify_settled(uri) } else { shelf.notify_updated(uri) }
        };
        for (_, shown) in self.shown.range((Kind::Template, "".into())..) {
            let Offered::Template(offer) = &*shown.offered else { continue };
            match &offer.origin {
                TemplateOrigin::Paths { directory, path } => {
                    let below = file.strip_prefix(directory).ok().map(encoded);
                    if let Some(variables) = below.and_then(|below| path.matches(&below))
                        && let Ok(uri) = ResourceUri::parse(&offer.parsed.expand(&variables))
                    {
                        tell(uri.as_ref());
                    }
                }
                // One file has several addresses: with and without its slashes encoded.
                TemplateOrigin::Files if file.starts_with("resources") => {
                    shelf.notify_matching("file:*");
                }
                TemplateOrigin::Files | TemplateOrigin::Provider { .. } => {}
            }
        }
        for uri in self.addresses.get(file).into_iter().flatten() {
            tell(uri);
        }
    }

    /// Whether another source has names that are wanted here.
    pub(crate) fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// The schemes whose contents nobody tells of.
    pub(crate) fn schemes(&self) -> Vec<String> {
        let providers = self.shown.range((Kind::Provider, "".into())..);
        let providers = providers.take_while(|((kind, _), _)| *kind == Kind::Provider);
        providers.map(|((_, scheme), _)| scheme.to_string()).collect()
    }

    fn complain(&mut self) {
        let about = Path::new("");
        let problem = self.refused.iter().next().map(|((kind, name), reason)| {
            let reason = format!("the {} `{name}` is not served: {reason}", kind.word());
            Problem::error(about, reason, "give it another name")
        });
        self.stock.complain(about, problem);
    }
}

impl Clone for AnyHandle {
    fn clone(&self) -> Self {
        match self {
            Self::Tool(handle) => Self::Tool(handle.clone()),
            Self::Prompt(handle) => Self::Prompt(handle.clone()),
            Self::Resource(handle) => Self::Resource(handle.clone()),
            Self::Template(handle) => Self::Template(handle.clone()),
            Self::None => Self::None,
        }
    }
}

/// One edit; gives the handle of something new.
fn edit(
    transaction: &mut Transaction,
    before: Option<&AnyHandle>,
    offered: Option<&Offered>,
) -> Result<Option<AnyHandle>, EditError> {
    match (before, offered) {
        (None | Some(AnyHandle::None), Some(Offered::Tool(offer))) => {
            Ok(Some(AnyHandle::Tool(transaction.add(offer.script.tool.clone())?)))
        }
        (None | Some(AnyHandle::None), Some(Offered::Prompt(text))) => {
            Ok(Some(AnyHandle::Prompt(transaction.add(text.prompt.clone())?)))
        }
        (None | Some(AnyHandle::None), Some(Offered::Resource(offer))) => {
            Ok(Some(AnyHandle::Resource(transaction.add(offer.resource.clone())?)))
        }
        (None | Some(AnyHandle::None), Some(Offered::Template(offer))) => {
            Ok(Some(AnyHandle::Template(transaction.add(offer.template.clone())?)))
        }
        (Some(AnyHandle::Tool(handle)), Some(Offered::Tool(offer))) => {
            transaction.update(handle, offer.script.tool.clone())?;
            Ok(None)
        }
        (Some(AnyHandle::Prompt(handle)), Some(Offered::Prompt(text))) => {
            transaction.update(handle, text.prompt.clone())?;
            Ok(None)
        }
        (Some(AnyHandle::Resource(handle)), Some(Offered::Resource(offer))) => {
            transaction.update(handle, offer.resource.clone())?;
            Ok(None)
        }
        (Some(AnyHandle::Template(handle)), Some(Offered::Template(offer))) => {
            transaction.update(handle, offer.template.clone())?;
            Ok(None)
        }
        (Some(handle), None) => {
            match handle {
                AnyHandle::Tool(handle) => transaction.remove(handle),
                AnyHandle::Prompt(handle) => transaction.remove(handle),
                AnyHandle::Resource(handle) => transaction.remove(handle),
                AnyHandle::Template(handle) => transaction.remove(handle),
                AnyHandle::None => {}
            }
            Ok(None)
        }
        // Providers and completions are not listed.
        _ => Ok(None),
    }
}

/// Whether a list would show two the same way, but for what moves with every save.
fn is_alike(one: &Offered, other: &Offered) -> bool {
    let timeless = |resource: &Resource| {
        let mut resource = resource.clone();
        resource.size = None;
        if let Some(annotations) = &mut resource.annotations {
            annotations.last_modified = None;
        }
        resource
    };
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
