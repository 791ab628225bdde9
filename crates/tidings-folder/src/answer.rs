//! Resource reads and completions: find the content of a URI and the known values of an argument.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_core::ResourceUri;
use tidings_server::{AnswerError, Completion, CompletionOf, Contents};
use tidings_store::mime;

use crate::offer::{
    ContentOrigin, Kind, Offered, Program, TemplateOffer, TemplateOrigin, completion_name,
};
use crate::tree::{ReadError, join};
use crate::{FolderInner, describe, provider};

/// Why a read ends with the runtime.
const CANCELLED: &str = "the read was cancelled";

impl FolderInner {
    /// Where the content of a URI comes from, and its declared MIME type.
    pub(super) fn origin(
        &self,
        uri: &ResourceUri,
    ) -> Result<(ContentOrigin, Option<String>), AnswerError> {
        let missing = || AnswerError::not_found(uri.as_ref());
        if let Some(offered) = self.offered(Kind::Resource, uri.as_ref())
            && let Offered::Resource(offer) = &*offered
        {
            return Ok((offer.origin.clone(), offer.resource.mime_type.clone()));
        }
        let view = self.view();
        let templates = view.offered.range((Kind::Template, "".into())..);
        let matching = templates.filter_map(|(_, offered)| match &**offered {
            Offered::Template(offer) => Some((offer, offer.parsed.matches(uri.as_ref())?)),
            _ => None,
        });
        let (offer, variables) = matching
            .max_by_key(|(offer, _)| offer.parsed.literal_prefix().len())
            .ok_or_else(missing)?;
        let mime_type = offer.template.mime_type.clone();
        let origin = match &offer.origin {
            TemplateOrigin::Provider { scheme, .. } => ContentOrigin::Provider(scheme.clone()),
            TemplateOrigin::Files => {
                let file = describe::file_of(&self.root, uri.as_ref()).ok_or_else(missing)?;
                ContentOrigin::File(file)
            }
            TemplateOrigin::Paths { directory, path } => {
                let below = describe::decoded(&path.expand(&variables));
                let below = below.to_str().ok_or_else(missing)?;
                let file = join(directory, below).ok_or_else(missing)?;
                ContentOrigin::File(file)
            }
        };
        if let ContentOrigin::File(file) = &origin
            && !view.opens(&offer.audience, file)
        {
            return Err(missing());
        }
        drop(view);
        // A URI made up by a client can only reach files that are served.
        let served = match &origin {
            ContentOrigin::File(file) => file.starts_with("resources") && self.serves(file),
            ContentOrigin::Provider(_) => self.view().policy.allows_uri(uri.as_ref()),
        };
        if served { Ok((origin, mime_type)) } else { Err(missing()) }
    }

    /// Whether a file is served: neither hidden nor denied by the policy.
    fn serves(&self, file: &Path) -> bool {
        let view = self.view();
        view.policy.allows_path(file) && !view.hidden.hides_any(file, false)
    }

    /// Like [`Self::serves`], for the target of a link.
    fn serves_target(&self, file: &Path) -> bool {
        let view = self.view();
        view.policy.allows_path(file) && !view.hidden.hides_target(file)
    }

    pub(super) async fn read_file(
        self: &Arc<Self>,
        uri: &ResourceUri,
        file: PathBuf,
        mime_type: Option<String>,
    ) -> Result<Contents, AnswerError> {
        // Held until the contents are built: the server's budget counts answers, which is too late for
        // thousands of large files at once.
        let _turn =
            self.turns.acquire().await.map_err(|_| AnswerError::Failed(CANCELLED.to_owned()))?;
        let inner = self.clone();
        let read = move || {
            // The target of a link must be served too.
            let bytes = match inner.root.resolve(&file) {
                Ok(real) if real != file && !inner.serves_target(&real) => Err(ReadError::Missing),
                Ok(real) => inner.root.read(&real, inner.config.limits.resource),
                Err(error) => Err(error),
            };
            (file, bytes)
        };
        let (file, bytes) = tokio::task::spawn_blocking(read)
            .await
            .map_err(|_| AnswerError::Failed(CANCELLED.to_owned()))?;
        let bytes = bytes.map_err(|error| match error {
            ReadError::Missing => AnswerError::not_found(uri.as_ref()),
            ReadError::TooLarge(_) | ReadError::Outside | ReadError::NotAFile => {
                AnswerError::Failed(format!("the file cannot be served: {error}"))
            }
            ReadError::Io(_) => AnswerError::Unavailable(error.to_string()),
        })?;
        let kind = mime_type
            .unwrap_or_else(|| mime::of(&file, &bytes[..bytes.len().min(mime::HEAD_LENGTH)]));
        Ok(provider::contents(uri, bytes, Some(&kind)))
    }

    pub(super) fn complete_from_values(
        &self,
        completion: &Completion,
    ) -> Result<(String, Vec<String>, Option<Program>), AnswerError> {
        let (name, values) = match &completion.of {
            CompletionOf::Prompt(name) => {
                let offered = self.offered(Kind::Prompt, name);
                let values = match offered.as_deref() {
                    Some(Offered::Prompt(text)) => text.values.get(&completion.argument).cloned(),
                    _ => return Err(AnswerError::not_found(name.clone())),
                };
                (name.clone(), values.unwrap_or_default())
            }
            CompletionOf::Template(template) => {
                match self.offered(Kind::Template, template).as_deref() {
                    Some(Offered::Template(offer)) => {
                        let values = self.values_of_paths(offer, completion);
                        (offer.template.name.clone(), values)
                    }
                    _ => return Err(AnswerError::not_found(template.clone())),
                }
            }
            _ => return Ok((String::new(), Vec::new(), None)),
        };
        let argument = Some(completion.argument.as_str());
        let program = [argument, None].into_iter().find_map(|argument| {
            match self.offered(Kind::Completion, &completion_name(&name, argument)).as_deref() {
                Some(Offered::Completion(offer)) => Some(offer.program.clone()),
                _ => None,
            }
        });
        let typed = completion.value.to_lowercase();
        let fitting = values.into_iter().filter(|it| it.to_lowercase().starts_with(&typed));
        Ok((name, fitting.collect(), program))
    }

    /// The values of a variable among the files that a template matches.
    fn values_of_paths(&self, offer: &TemplateOffer, completion: &Completion) -> Vec<String> {
        let TemplateOrigin::Paths { directory, path } = &offer.origin else { return Vec::new() };
        let publisher = self.publisher();
        let files = publisher.stock.files().range(directory.clone()..);
        let files = files.map(|(file, _)| file).take_while(|file| file.starts_with(directory));
        let opens = |file: &Path| self.view().opens(&offer.audience, file);
        let files = files.filter(|file| self.serves(file) && opens(file));
        let mut values: Vec<_> = files
            .filter_map(|file| path.matches(&describe::encoded(file.strip_prefix(directory).ok()?)))
            .filter(|variables| {
                let known = |(name, value): (&String, &String)| {
                    variables.get(name).is_none_or(|it| it == value)
                };
                completion.known.iter().all(known)
            })
            .filter_map(|mut variables| variables.remove(&completion.argument))
            .collect();
        values.sort();
        values.dedup();
        values
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::Fixture;
    use crate::{Folder, TURNS};

    #[tokio::test(start_paused = true)]
    async fn reads_of_files_wait_for_their_turn() {
        let fixture = Fixture::new();
        std::fs::create_dir(fixture.path().join("resources")).unwrap();
        std::fs::write(fixture.path().join("resources/a.txt"), "a").unwrap();
        let folder = Folder::open(fixture.config.clone()).await.unwrap();
        let uri = ResourceUri::parse("file:///a.txt").unwrap();
        let read = folder.0.read_file(&uri, "resources/a.txt".into(), None);
        let turns = folder.0.turns.acquire_many(TURNS.try_into().unwrap()).await.unwrap();
        // The clock stands still while a file is read, so this would end with its content.
        let mut read = std::pin::pin!(read);
        assert!(tokio::time::timeout(Duration::from_secs(1), &mut read).await.is_err());
        drop(turns);
        read.await.unwrap();
    }
}
