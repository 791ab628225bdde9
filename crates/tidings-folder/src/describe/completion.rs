//! Descriptions of providers and completions: executables that answer instead of a file.

use std::path::Path;
use std::sync::Arc;

use tidings_core::Template;
use tidings_server::Labels;
use tidings_server::model::ResourceTemplate;

use super::Describer;
use super::program::is_description;
use crate::Problem;
use crate::offer::{CompletionOffer, Offered, TemplateOffer, TemplateOrigin};

impl Describer<'_> {
    /// `providers/<scheme>.*`
    pub(super) fn provider_unit(&mut self, path: &Path) {
        if self.stat(path).is_none() || path.components().count() != 2 || self.is_plain(path) {
            return;
        }
        let scheme = path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let text = format!("{scheme}:{{+rest}}");
        let well_formed = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
        let parsed = Template::parse(&text).ok().filter(|_| well_formed);
        let Some(parsed) = parsed else {
            let reason = format!("`{scheme}` cannot be the scheme of a URI");
            let advice = "name the file for the scheme it answers, as `weather.sh`";
            self.report(Problem::error(path, reason, advice));
            return;
        };
        if scheme == "file" {
            let reason = "`file` resources are read from the folder itself";
            self.report(Problem::warning(path, reason, "remove it, or give it another scheme"));
            return;
        }
        let Some(program) = self.program(path) else { return };
        let mut template = ResourceTemplate::new(text, scheme.clone());
        template.description = Some(format!("What the `{scheme}` provider answers"));
        let origin = TemplateOrigin::Provider { scheme: scheme.clone(), implied: true };
        let offer =
            TemplateOffer { template, parsed: Arc::new(parsed), origin, audience: Labels::NONE };
        self.result.items.push(Offered::Provider(scheme, program));
        self.result.items.push(Offered::Template(offer));
    }

    /// `completions/<name>.*` for every argument, `completions/<name>/<argument>.*` for one.
    pub(super) fn completion_unit(&mut self, path: &Path) {
        if self.stat(path).is_none() || self.is_plain(path) {
            return;
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let above = path.parent().and_then(|above| above.strip_prefix("completions").ok());
        let above = above.map(|above| above.to_string_lossy().into_owned()).unwrap_or_default();
        let (name, argument) = if above.is_empty() { (stem, None) } else { (above, Some(stem)) };
        let Some(program) = self.program(path) else { return };
        self.result.items.push(Offered::Completion(CompletionOffer { name, argument, program }));
    }

    /// Whether a file is not a program: neither executable nor a script.
    fn is_plain(&mut self, path: &Path) -> bool {
        let executable = self.stat(path).is_some_and(|stat| stat.executable);
        is_description(path) || (!executable && self.interpreter(path).is_empty())
    }
}
