//! Selection: which described items are offered, by registrations, policy and conflicting names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Problem;
use crate::describe::Confines;
use crate::offer::{ContentOrigin, Key, Kind, Offered, TemplateOrigin};
use crate::provider::ECHO;
use crate::stock::{REGISTER, Stock};

impl Stock {
    /// The item that is offered under a name.
    pub(crate) fn selected(&self, key: &Key) -> Option<Arc<Offered>> {
        let (_, offered) = self.claimants(key).next()?;
        self.allows(offered).then(|| self.for_its_audience(offered))
    }

    /// The item for the audience that the policy names, or else its description.
    fn for_its_audience(&self, offered: &Arc<Offered>) -> Arc<Offered> {
        let tool = match &**offered {
            Offered::Tool(offer) => Some(&*offer.script.tool.name),
            _ => None,
        };
        let file = self.file_of(offered);
        let target = file.as_ref().and_then(|file| self.files.get(file)?.target.as_deref());
        let policy = self.policy.audience(tool, file.as_deref());
        // Whoever may not see a file may not see it through a link.
        let policy = policy.or_else(|| self.policy.audience(None, target));
        match policy {
            Some(labels) if labels != offered.audience() => {
                Arc::new(Offered::clone(offered).with_audience(labels))
            }
            _ => offered.clone(),
        }
    }

    /// Every claimed name, offered or not.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.claims.keys()
    }

    /// The claims to a name, the winning one first. If a kind is registered, items found in files
    /// do not count; registered templates are added to those that are found.
    fn claimants(&self, key: &Key) -> impl Iterator<Item = &(PathBuf, Arc<Offered>)> {
        let registered = self.registered.contains(&key.0);
        let is_register = |unit: &Path| unit == Path::new(REGISTER);
        let claims = self.claims.get(key).map_or(&[][..], Vec::as_slice);
        let added = key.0 == Kind::Template && !registered;
        let first = claims.iter().filter(move |(unit, _)| added && is_register(unit));
        let others = claims.iter().filter(move |(unit, offered)| {
            is_register(unit) == registered && !self.is_replaced(offered) || is_implied(offered)
        });
        first.chain(others)
    }

    /// Whether a registered template replaces this one, which was found in a file.
    fn is_replaced(&self, offered: &Offered) -> bool {
        let Offered::Template(offer) = offered else { return false };
        let Some(register) = self.units.get(Path::new(REGISTER)) else { return false };
        let templates = register.keys.iter().filter(|(kind, _)| *kind == Kind::Template);
        templates.filter_map(|key| self.claims.get(key)).flatten().any(|(unit, registered)| {
            unit == Path::new(REGISTER)
                && matches!(&**registered, Offered::Template(it)
                    if it.template.name == offer.template.name)
        })
    }

    fn allows(&self, offered: &Offered) -> bool {
        let allows = |path: PathBuf| {
            // The target of a link must be allowed too.
            let target = self.files.get(&path).and_then(|stat| stat.target.as_deref());
            self.policy.allows_path(&path)
                && target.is_none_or(|target| {
                    self.policy.allows_path(target) && !self.hidden.hides_target(target)
                })
        };
        !self.policy.is_closed()
            && self.file_of(offered).is_none_or(allows)
            && match offered {
                Offered::Tool(offer) => {
                    let name = &offer.script.tool.name;
                    self.confines != Confines::Nowhere
                        && self.policy.allows_tool(name)
                        && (!self.asks
                            || offer.check.is_none()
                            || self.verdicts.get(&**name) == Some(&true))
                }
                Offered::Resource(offer) => match &offer.origin {
                    ContentOrigin::File(_) => true,
                    ContentOrigin::Provider(scheme) => {
                        self.policy.allows_uri(&offer.resource.uri) && self.has_provider(scheme)
                    }
                },
                Offered::Template(offer) => match &offer.origin {
                    TemplateOrigin::Provider { scheme, implied } => {
                        // A host that is a variable is checked when its value is known.
                        let prefix = offer.parsed.literal_prefix();
                        let named =
                            prefix.split_once("://").is_some_and(|(_, it)| it.contains('/'));
                        (!named || self.policy.allows_uri(prefix))
                            && self.has_provider(scheme)
                            && !(*implied && self.has_template(scheme))
                    }
                    TemplateOrigin::Files | TemplateOrigin::Paths { .. } => true,
                },
                Offered::Prompt(_) | Offered::Provider(..) | Offered::Completion(_) => true,
            }
    }

    fn has_provider(&self, scheme: &str) -> bool {
        scheme == ECHO || self.selected(&(Kind::Provider, scheme.into())).is_some()
    }

    /// Whether a template of this scheme is described.
    fn has_template(&self, scheme: &str) -> bool {
        let templates = self.claims.range((Kind::Template, "".into())..);
        templates.flat_map(|(_, claims)| claims).any(|(_, offered)| {
            matches!(&**offered, Offered::Template(offer) if matches!(
                &offer.origin,
                TemplateOrigin::Provider { scheme: other, implied: false } if other == scheme
            ))
        })
    }

    /// The file without which an item cannot be offered, relative to the folder.
    pub(super) fn file_of(&self, offered: &Offered) -> Option<PathBuf> {
        match offered {
            Offered::Tool(offer) => self.root.relative(&offer.script.program.path),
            Offered::Prompt(text) => Some(text.file.clone()),
            Offered::Provider(_, program) => self.root.relative(&program.path),
            Offered::Completion(offer) => self.root.relative(&offer.program.path),
            Offered::Resource(offer) => match &offer.origin {
                ContentOrigin::File(file) => Some(file.clone()),
                ContentOrigin::Provider(_) => None,
            },
            Offered::Template(_) => None,
        }
    }

    pub(super) fn is_there(&self, offered: &Offered) -> bool {
        self.file_of(offered).is_none_or(|path| self.root.absolute(&path).is_file())
    }

    /// Problems between items: names claimed twice, and URIs without a provider.
    pub(super) fn conflicts(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (key, claims) in &self.claims {
            let (kind, name) = key;
            let mut claimants = self.claimants(key);
            let Some((first, offered)) = claimants.next() else { continue };
            for (unit, other) in claimants {
                let other = self.file_of(other).unwrap_or_else(|| unit.clone());
                let first = self.file_of(offered).unwrap_or_else(|| first.clone());
                let reason = format!(
                    "the {} `{name}` is described at `{}` already, which is served",
                    kind.word(),
                    first.display()
                );
                problems.push(Problem::error(other, reason, "give one of them another name"));
            }
            let needed = match &**offered {
                Offered::Resource(offer) => match &offer.origin {
                    ContentOrigin::Provider(scheme) => Some(scheme),
                    ContentOrigin::File(_) => None,
                },
                Offered::Template(offer) => match &offer.origin {
                    TemplateOrigin::Provider { scheme, .. } => Some(scheme),
                    _ => None,
                },
                _ => None,
            };
            if let Some(scheme) = needed.filter(|scheme| !self.has_provider(scheme)) {
                let reason = format!("`{name}` cannot be read: there is no provider `{scheme}`");
                let advice = format!("add an executable `providers/{scheme}.sh`");
                problems.extend(
                    claims.iter().map(|(unit, _)| {
                        Problem::error(unit.clone(), reason.clone(), advice.clone())
                    }),
                );
            }
        }
        problems.extend(self.idle_completions());
        problems
    }

    /// Problems of completions for prompts or templates that do not exist.
    fn idle_completions(&self) -> Vec<Problem> {
        let of = |wanted: Kind| {
            let keys = self.claims.range((wanted, "".into())..).map(|(key, _)| key);
            let keys = keys.take_while(move |(kind, _)| *kind == wanted);
            // If a kind is registered, items found in files are not offered.
            keys.flat_map(|key| self.claimants(key))
        };
        let templates: Vec<_> = of(Kind::Template)
            .filter_map(|(_, offered)| match &**offered {
                Offered::Template(offer) => Some(offer.template.name.as_str()),
                _ => None,
            })
            .collect();
        let idle = of(Kind::Completion).filter_map(|(_, offered)| {
            let Offered::Completion(offer) = &**offered else { return None };
            let prompt = (Kind::Prompt, offer.name.as_str().into());
            let known =
                self.claimants(&prompt).next().is_some() || templates.contains(&&*offer.name);
            (!known).then_some((offer, offered))
        });
        idle.filter_map(|(offer, offered)| {
            let reason = format!("there is no prompt or template `{}` to complete", offer.name);
            let advice = "rename it after an existing one";
            Some(Problem::warning(self.file_of(offered)?, reason, advice))
        })
        .collect()
    }
}

/// Whether a template is added by its provider; registrations do not replace those.
fn is_implied(offered: &Offered) -> bool {
    matches!(offered, Offered::Template(offer) if matches!(
        offer.origin,
        TemplateOrigin::Provider { implied: true, .. }
    ))
}
