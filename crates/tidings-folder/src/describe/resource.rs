//! Descriptions of resources: plain files, files with a description, and URIs of providers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::Deserialize;
use serde_json::Value;
use tidings_core::{ResourceUri, Template};
use tidings_server::Labels;
use tidings_server::model::{Annotations, Icon, MetaObject, Resource, ResourceTemplate};
use tidings_store::date::Moment;
use tidings_store::mime;

use super::tool::DescriptionText;
use super::{Describer, META};

use crate::Problem;
use crate::offer::{ContentOrigin, Offered, ResourceOffer, TemplateOffer, TemplateOrigin};
use crate::tree::{Root, join};

const KNOWN: &str = "name, title, description, uri, uriTemplate, path, mimeType, provider, icons, \
                     annotations, audience, _meta";
/// Characters that are percent-encoded in the path of a `file:` URI.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'%')
    .add(b'[')
    .add(b']')
    .add(b'\\')
    .add(b'^')
    .add(b'|');

/// The fields of a resource's description.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceMeta {
    pub(super) name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    uri: Option<String>,
    uri_template: Option<String>,
    /// The file with the content, or a template of such files.
    pub(super) path: Option<String>,
    mime_type: Option<String>,
    provider: Option<String>,
    icons: Option<Vec<Icon>>,
    annotations: Option<Annotations>,
    audience: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

impl Describer<'_> {
    pub(super) fn resource_unit(&mut self, unit: &Path) {
        let siblings = self.siblings(unit);
        let (metas, files): (Vec<_>, Vec<_>) = siblings
            .into_iter()
            .map(|(path, _)| path)
            .partition(|path| path.to_string_lossy().ends_with(META));
        let mut described = Vec::new();
        for meta in metas {
            let Some((document, text)) = self.document::<ResourceMeta>(meta) else {
                // While the description is invalid, its files keep their last valid one.
                return;
            };
            let written = DescriptionText { file: meta, text: &text, line: None };
            let beside = beside(meta, &files);
            described.extend(self.resource(document, &written, beside));
        }
        for file in files {
            if !described.contains(&file.to_owned()) {
                self.plain(file);
            }
        }
    }

    /// Adds a file without a description.
    fn plain(&mut self, file: &Path) {
        let name = file.strip_prefix("resources").unwrap_or(file).to_string_lossy().into_owned();
        let Ok(uri) = ResourceUri::parse(&file_uri(self.root(), file)) else {
            let reason = "its name cannot be part of a URI";
            self.report(Problem::error(file, reason, "give it another name"));
            return;
        };
        let resource = Resource::new(uri.as_ref(), printable(&name));
        if let Some(resource) = self.measured(resource, file, None) {
            let origin = ContentOrigin::File(file.to_owned());
            let audience = Labels::NONE;
            let offer = ResourceOffer { resource, origin, audience };
            self.result.items.push(Offered::Resource(offer));
        }
    }

    /// Adds size, type and time of the file. An unreadable file is reported and not offered.
    fn measured(
        &mut self,
        mut resource: Resource,
        file: &Path,
        annotations: Option<Annotations>,
    ) -> Option<Resource> {
        let head = match self.root().head(file, mime::HEAD) {
            Ok(head) => head,
            Err(error) => {
                let reason = super::document::reason(&error);
                let advice = "correct its permissions, or name it in `.tidingsignore`";
                self.report(Problem::error(file, reason, advice));
                return None;
            }
        };
        let stat = self.surroundings.files.get(file)?;
        if resource.mime_type.is_none() {
            resource.mime_type = Some(mime::of(file, &head));
        }
        resource.size = Some(stat.size);
        let mut annotations = annotations.unwrap_or_default();
        if annotations.last_modified.is_none() {
            annotations.last_modified = Some(Moment::from(stat.modified).to_string());
        }
        resource.annotations = Some(annotations);
        Some(resource)
    }

    /// Adds a described resource or template; returns the file it describes.
    pub(super) fn resource(
        &mut self,
        meta: ResourceMeta,
        written: &DescriptionText<'_>,
        beside: Option<&Path>,
    ) -> Option<PathBuf> {
        self.unknown_keys(written.file, written.text, meta.unknown.keys(), KNOWN);
        match (&meta.uri, &meta.uri_template) {
            (Some(_), Some(_)) => {
                let reason = "it has both `uri` and `uriTemplate`";
                let problem = Problem::error(written.file, reason, "keep one of them");
                self.reject(Problem { line: written.at("uriTemplate"), ..problem });
                None
            }
            (None, Some(_)) => {
                self.template(meta, written);
                None
            }
            _ => self.single_resource(meta, written, beside),
        }
    }

    /// Adds a described resource; returns the file it describes.
    fn single_resource(
        &mut self,
        mut meta: ResourceMeta,
        written: &DescriptionText<'_>,
        beside: Option<&Path>,
    ) -> Option<PathBuf> {
        let (uri, origin) = self.address(&meta, written, beside)?;
        let audience = self.audience(meta.audience.as_ref(), &meta.unknown, written)?;
        let fallback = match &origin {
            ContentOrigin::File(file) => {
                file.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            ContentOrigin::Provider(_) => uri.as_ref().to_owned(),
        };
        let name = meta.name.take().unwrap_or(fallback);
        let mut resource = Resource::new(uri.as_ref(), printable(&name));
        resource.title = meta.title;
        resource.description = meta.description;
        resource.mime_type = meta.mime_type;
        resource.icons = self.icons(written.file, meta.icons);
        resource.meta = meta.meta;
        let file = match &origin {
            ContentOrigin::File(file) => {
                if self.stat(file).is_none() {
                    // The file may be created later; until then there is nothing to read.
                    let reason = format!("there is no `{}`", file.display());
                    let advice = "create the file, or correct the description";
                    self.report(Problem::error(written.file, reason, advice));
                    return None;
                }
                resource = self.measured(resource, file, meta.annotations)?;
                Some(file.clone())
            }
            ContentOrigin::Provider(_) => {
                resource.annotations = meta.annotations;
                beside.map(Path::to_owned)
            }
        };
        let offer = ResourceOffer { resource, origin, audience };
        self.result.items.push(Offered::Resource(offer));
        file
    }

    /// The URI of a described resource and where its content is; `None` after a problem was
    /// reported.
    fn address(
        &mut self,
        meta: &ResourceMeta,
        written: &DescriptionText<'_>,
        beside: Option<&Path>,
    ) -> Option<(ResourceUri, ContentOrigin)> {
        let file = match &meta.path {
            Some(path) => match join(&content_directory(written), path) {
                Some(path) => Some(path),
                None => return self.outside(written, "path"),
            },
            None => beside.map(Path::to_owned),
        };
        let uri = self.uri(meta, written, file.as_deref())?;
        let provider = meta.provider.clone().unwrap_or_else(|| uri.scheme().to_owned());
        let named = file_of(self.root(), uri.as_ref());
        let origin = match (provider.as_str(), named, file) {
            ("file", Some(named), _) => ContentOrigin::File(named),
            ("file", None, Some(file)) => ContentOrigin::File(file),
            ("file", None, None) => return self.outside(written, "uri"),
            // Without a provider, the description is about the file beside it.
            (_, _, Some(file)) if meta.provider.is_none() => ContentOrigin::File(file),
            _ => ContentOrigin::Provider(provider),
        };
        Some((uri, origin))
    }

    /// The URI in a description, or that of its file; `None` after a problem was reported.
    fn uri(
        &mut self,
        meta: &ResourceMeta,
        written: &DescriptionText<'_>,
        file: Option<&Path>,
    ) -> Option<ResourceUri> {
        match (&meta.uri, file) {
            (Some(uri), _) => match ResourceUri::parse(uri) {
                Ok(parsed) => Some(parsed),
                Err(error) => {
                    let reason = format!("`{uri}` is not a URI: {error}");
                    let problem = Problem::error(written.file, reason, "write `scheme://name`");
                    self.reject(Problem { line: written.at("uri"), ..problem });
                    None
                }
            },
            (None, Some(file)) => ResourceUri::parse(&file_uri(self.root(), file)).ok(),
            (None, None) => {
                let reason = "it describes neither a file beside it nor a URI";
                let advice = "add `uri`, `uriTemplate` or `path`, or put the file beside it";
                self.report(Problem::error(written.file, reason, advice));
                None
            }
        }
    }

    fn template(&mut self, meta: ResourceMeta, written: &DescriptionText<'_>) {
        let Some(audience) = self.audience(meta.audience.as_ref(), &meta.unknown, written) else {
            return;
        };
        let text = meta.uri_template.unwrap_or_default();
        let parsed = match Template::parse(&text) {
            Ok(parsed) if parsed.variables().next().is_some() => parsed,
            outcome => {
                let reason = match outcome {
                    Ok(_) => format!("`{text}` has no variable"),
                    Err(error) => format!("`{text}` is not a URI template: {error}"),
                };
                let advice = "write it as `scheme://{name}`; `uri` names a single resource";
                let problem = Problem::error(written.file, reason, advice);
                self.reject(Problem { line: written.at("uriTemplate"), ..problem });
                return;
            }
        };
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        let provider = meta.provider.as_deref().unwrap_or(scheme);
        let origin = match &meta.path {
            Some(path) => {
                let Ok(path) = Template::parse(path) else {
                    let reason = format!("`path` is not a template: `{path}`");
                    let advice = "write it as `notes/{name}.md`";
                    let problem = Problem::error(written.file, reason, advice);
                    self.reject(Problem { line: written.at("path"), ..problem });
                    return;
                };
                if let Some(name) =
                    path.variables().find(|name| !parsed.variables().any(|it| it == *name))
                {
                    let reason =
                        format!("`path` has the variable `{name}`, but `uriTemplate` does not");
                    let advice = "use the same variables in both";
                    let problem = Problem::error(written.file, reason, advice);
                    self.reject(Problem { line: written.at("path"), ..problem });
                    return;
                }
                let directory = content_directory(written);
                TemplateOrigin::Paths { directory, path: Arc::new(path) }
            }
            None if provider == "file" => {
                self.judge_files(&parsed, &text, written);
                TemplateOrigin::Files
            }
            None => TemplateOrigin::Provider { scheme: provider.to_owned(), implied: false },
        };
        let name = meta.name.unwrap_or_else(|| text.clone());
        let mut template = ResourceTemplate::new(text, printable(&name));
        template.title = meta.title;
        template.description = meta.description;
        template.mime_type = meta.mime_type;
        template.icons = self.icons(written.file, meta.icons);
        template.annotations = meta.annotations;
        template.meta = meta.meta;
        let offer = TemplateOffer { template, parsed: Arc::new(parsed), origin, audience };
        self.result.items.push(Offered::Template(offer));
    }

    /// Reports a template of files that are not served: it is listed, but nothing can be read.
    fn judge_files(&mut self, parsed: &Template, text: &str, written: &DescriptionText<'_>) {
        let prefix = parsed.literal_prefix();
        let served = file_uri(self.root(), Path::new("resources"));
        if prefix.starts_with("file://./")
            || served.starts_with(prefix)
            || prefix.starts_with(&served)
        {
            return;
        }
        let reason = format!("`{text}` matches no file below `resources`, so nothing can be read");
        let advice = "put the files there, or write a provider for a scheme of your own";
        let problem = Problem::warning(written.file, reason, advice);
        self.report(Problem { line: written.at("uriTemplate"), ..problem });
    }

    fn outside<T>(&mut self, written: &DescriptionText<'_>, key: &str) -> Option<T> {
        let reason = format!("`{key}` leads out of the folder");
        let problem = Problem::error(written.file, reason, "name a file in the folder");
        self.reject(Problem { line: written.at(key), ..problem });
        None
    }
}

/// The directory that the paths of a description are relative to.
fn content_directory(written: &DescriptionText<'_>) -> PathBuf {
    match written.file.parent() {
        Some(directory) if directory != Path::new("server.d") => directory.to_owned(),
        _ => PathBuf::from("resources"),
    }
}

/// The file that a description is about: `a.txt` for `a.txt.meta.json`, the first file with that
/// stem for `a.meta.json`.
fn beside<'a>(meta: &Path, files: &[&'a Path]) -> Option<&'a Path> {
    let name = meta.file_name()?.to_str()?.strip_suffix(META)?;
    let named = |file: &&&Path| file.file_name().is_some_and(|it| it == name);
    let stemmed = |file: &&&Path| file.file_stem().is_some_and(|it| it == name);
    files.iter().find(named).or_else(|| files.iter().find(stemmed)).copied()
}

/// A name with control characters replaced.
fn printable(name: &str) -> String {
    name.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect()
}

/// The URI of a file in the folder.
fn file_uri(root: &Root, relative: &Path) -> String {
    let absolute = root.absolute(relative);
    format!("file://{}", encoded(&absolute))
}

/// A path, percent-encoded for a URI.
pub(crate) fn encoded(path: &Path) -> String {
    percent_encode(path.as_os_str().as_encoded_bytes(), PATH).to_string()
}

/// The path of a percent-encoded text.
pub(crate) fn decoded(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(percent_decode_str(text).collect()).into()
}

/// The file that a `file:` URI names, by its absolute path or relative to the folder as
/// `file://./…`.
pub(crate) fn file_of(root: &Root, uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    if let Some(relative) = rest.strip_prefix("./") {
        return join(Path::new(""), decoded(relative).to_str()?);
    }
    let path = decoded(rest.strip_prefix("localhost").unwrap_or(rest));
    // A template like `file:///{path}` expands the slashes of a path inside its variable.
    let absolute = if path.starts_with("//") {
        Path::new("/").join(path.strip_prefix("/").unwrap_or(&path))
    } else {
        path
    };
    let relative = root.relative(&absolute)?;
    join(Path::new(""), relative.to_str()?)
}
