//! Icons: files of the folder are embedded in the list, URLs stay as they are.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tidings_server::model::Icon;
use tidings_store::mime;

use super::Describer;

use crate::Problem;
use crate::tree::join;

impl Describer<'_> {
    /// The icons as clients get them. An unreadable icon is reported and left out.
    pub(super) fn icons(&mut self, file: &Path, icons: Option<Vec<Icon>>) -> Option<Vec<Icon>> {
        let directory = file.parent().unwrap_or(Path::new("")).to_owned();
        let icons: Vec<_> =
            icons?.into_iter().filter_map(|icon| self.icon(file, &directory, icon)).collect();
        (!icons.is_empty()).then_some(icons)
    }

    fn icon(&mut self, file: &Path, directory: &Path, mut icon: Icon) -> Option<Icon> {
        let scheme = icon.src.split_once(':').map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| ["https", "http", "data"].contains(&scheme)) {
            return Some(icon);
        }
        let Some(path) = join(directory, &icon.src) else {
            let reason = format!("the icon `{}` is outside of the folder", icon.src);
            let advice = "put a copy into the folder, or give an https: address";
            self.report(Problem::error(file, reason, advice));
            return None;
        };
        self.result.reads.insert(path.clone());
        if !self.may_read(&path) {
            let reason = format!("the icon `{}` is hidden, or the policy denies it", icon.src);
            self.report(Problem::error(file, reason, "name a file that is served"));
            return None;
        }
        match self.root().read(&path, self.limits().icon) {
            Ok(bytes) => {
                let guess = mime::of(&path, &bytes[..bytes.len().min(512)]);
                let kind = icon.mime_type.get_or_insert(guess);
                icon.src = format!("data:{kind};base64,{}", STANDARD.encode(&bytes));
                Some(icon)
            }
            Err(error) => {
                let reason = format!("the icon `{}` is left out: {error}", icon.src);
                self.report(Problem::error(file, reason, "correct or remove it"));
                None
            }
        }
    }
}
