//! Which of what is described is offered: registrations, policy, names that two want.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::folder::Problem;
use crate::folder::offer::{Key, Kind, Offered, Origin, TemplateOrigin};
use crate::folder::stock::{REGISTER, Stock};

impl Stock {
    /// What is offered under a name.
    pub(crate) fn selected(&self, key: &Key) -> Option<Arc<Offered>> {
        let (_, offered) = self.claimants(key).next()?;
        self.allows(offered).then(|| offered.clone())
    }

    /// Every name that somebody wants, offered or not.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.claims.keys()
    }

    /// Who wants a name, the one that has it first. A kind that is registered is not looked for.
    fn claimants(&self, key: &Key) -> impl Iterator<Item = &(PathBuf, Arc<Offered>)> {
        let registered = self.registered.contains(&key.0);
        let claims = self.claims.get(key).into_iter().flatten();
        claims.filter(move |(unit, offered)| {
            (unit.as_path() == Path::new(REGISTER)) == registered || is_implied(offered)
        })
    }

    fn allows(&self, offered: &Offered) -> bool {
        let allows = |path: PathBuf| {
            // Behind a link the same holds as before it.
            let target = self.files.get(&path).and_then(|stat| stat.target.as_deref());
            self.policy.allows_path(&path)
                && target.is_none_or(|target| {
                    self.policy.allows_path(target) && !self.hidden.hides_any(target, false)
                })
        };
        !self.policy.is_closed()
            && self.file_of(offered).is_none_or(allows)
            && match offered {
                Offered::Tool(offer) => {
                    let name = &offer.script.tool.name;
                    self.policy.allows_tool(name)
                        && (!self.asks
                            || offer.check.is_none()
                            || self.verdicts.get(&**name) == Some(&true))
                }
                Offered::Resource(offer) => match &offer.origin {
                    Origin::File(_) => true,
                    Origin::Provider(scheme) => {
                        self.policy.allows_uri(&offer.resource.uri) && self.has_provider(scheme)
                    }
                },
                Offered::Template(offer) => match &offer.origin {
                    TemplateOrigin::Provider { scheme, implied } => {
                        // Hosts that are variables are judged when they are known.
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
        self.selected(&(Kind::Provider, scheme.into())).is_some()
    }

    /// Whether somebody described a template of a scheme.
    fn has_template(&self, scheme: &str) -> bool {
        let templates = self.claims.range((Kind::Template, "".into())..);
        templates.flat_map(|(_, claims)| claims).any(|(_, offered)| {
            matches!(&**offered, Offered::Template(offer) if matches!(
                &offer.origin,
                TemplateOrigin::Provider { scheme: other, implied: false } if other == scheme
            ))
        })
    }

    /// The file that an offer stands or falls with, relative to the folder.
    pub(super) fn file_of(&self, offered: &Offered) -> Option<PathBuf> {
        match offered {
            Offered::Tool(offer) => self.root.relative(&offer.script.program.path),
            Offered::Prompt(text) => Some(text.file.clone()),
            Offered::Provider(_, program) => self.root.relative(&program.path),
            Offered::Completion(offer) => self.root.relative(&offer.program.path),
            Offered::Resource(offer) => match &offer.origin {
                Origin::File(file) => Some(file.clone()),
                Origin::Provider(_) => None,
            },
            Offered::Template(_) => None,
        }
    }

    pub(super) fn is_there(&self, offered: &Offered) -> bool {
        self.file_of(offered).is_none_or(|path| self.root.absolute(&path).is_file())
    }

    /// Names that two want, and addresses that nobody answers for.
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
                    Origin::Provider(scheme) => Some(scheme),
                    Origin::File(_) => None,
                },
                Offered::Template(offer) => match &offer.origin {
                    TemplateOrigin::Provider { scheme, .. } => Some(scheme),
                    _ => None,
                },
                _ => None,
            };
            if let Some(scheme) = needed.filter(|scheme| !self.has_provider(scheme)) {
                let reason =
                    format!("nobody answers for `{name}`: there is no provider `{scheme}`");
                let advice = format!("add an executable `providers/{scheme}.sh`");
                problems.extend(
                    claims.iter().map(|(unit, _)| {
                        Problem::error(unit.clone(), reason.clone(), advice.clone())
                    }),
                );
            }
        }
        problems
    }
}

/// Whether a template is a provider's own, which no registration speaks of.
fn is_implied(offered: &Offered) -> bool {
    matches!(offered, Offered::Template(offer) if matches!(
        offer.origin,
        TemplateOrigin::Provider { implied: true, .. }
    ))
}
