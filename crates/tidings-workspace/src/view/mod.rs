//! URIs of a workspace: parse and build them; pure.

mod parameters;
#[cfg(test)]
mod tests;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tidings_core::ResourceUri;
use tidings_server::AnswerError;

pub(crate) use self::parameters::Range;
use crate::store::{ArtifactList, is_hash};

pub(crate) const SUMMARY: &str = "artifacts://summary";
pub(crate) const RECENT: &str = "artifacts://recent";
pub(crate) const IDENTITIES: &str = "graph://identities";
pub(crate) const CONNECTIONS: &str = "graph://connections";
pub(crate) const EVENTS: &str = "events://recent";

const BY_TAG: &str = "artifacts://by-tag/";
const BY_CREATOR: &str = "artifacts://by-creator/";
const SET: &str = "artifacts://set/";
const LINEAGE: &str = "artifacts://lineage/";
const ARTIFACT: &str = "artifacts://artifact/";
const CAS: &str = "cas://";
const IDENTITY: &str = "graph://identity/";
const SINCE: &str = "events://since/";

/// Characters that templates percent-encode: all but the unreserved ones of RFC 3986.
const EXPANDED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// A resource template with its name and description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) template: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

const fn family(template: &'static str, name: &'static str, description: &'static str) -> Family {
    Family { template, name, description }
}

/// All templates.
pub(crate) const FAMILIES: [Family; 13] = [
    family(
        "artifacts://recent{?limit,after}",
        "recent",
        "Artifacts, newest first: at most `limit` after the one with the id `after`",
    ),
    family(
        "artifacts://by-tag/{tag}{?limit,after}",
        "by-tag",
        "Artifacts with a tag, newest first",
    ),
    family(
        "artifacts://by-tag/{category}:{value}{?limit,after}",
        "by-category",
        "Artifacts with a tag of a category, newest first",
    ),
    family(
        "artifacts://by-creator/{creator}{?limit,after}",
        "by-creator",
        "Artifacts of a creator, newest first",
    ),
    family("artifacts://set/{set}{?limit,after}", "set", "The artifacts of a set in its order"),
    family(
        "artifacts://lineage/{id}",
        "lineage",
        "An artifact and all it was made from, roots first",
    ),
    family("artifacts://artifact/{id}", "artifact", "One artifact with its details"),
    family("cas://{hash}", "cas", "Bytes by their BLAKE3 hash"),
    family(
        "graph://identities{?limit,after}",
        "identities-page",
        "Identities in order of their ids: at most `limit` after `after`",
    ),
    family("graph://identity/{id}", "identity", "One identity with its hints and connections"),
    family(
        "graph://connections{?limit,after}",
        "connections-page",
        "Connections in the order they were made: at most `limit` after the `next` of a page",
    ),
    family("events://recent{?limit}", "events-page", "The newest events: at most `limit`"),
    family(
        "events://since/{n}{?limit}",
        "events-since",
        "Events after event `n`: at most `limit`, 100 if not given",
    ),
];

/// What a URI refers to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum View {
    Summary,
    ArtifactList(ArtifactList, Range),
    Lineage(String),
    Artifact(String),
    Blob(String),
    Identities(Range),
    Identity(String),
    Connections(Range),
    Events(Range),
    Since(u64, Range),
}

impl View {
    /// Whether a URI has a scheme of workspaces.
    pub(crate) fn is_ours(uri: &ResourceUri) -> bool {
        ["artifacts://", "cas://", "graph://", "events://"]
            .iter()
            .any(|scheme| uri.as_ref().starts_with(scheme))
    }

    /// Parses a URI.
    pub(crate) fn parse(uri: &ResourceUri) -> Result<Self, AnswerError> {
        let range = || Range::parse(uri.query().unwrap_or_default());
        match uri.without_query() {
            SUMMARY => return Self::Summary.without_parameters(uri),
            RECENT => return Ok(Self::ArtifactList(ArtifactList::Recent, range()?)),
            IDENTITIES => return Ok(Self::Identities(range()?)),
            CONNECTIONS => return Ok(Self::Connections(range()?.numbered()?)),
            EVENTS => return Ok(Self::Events(range()?.without_after()?)),
            _ => {}
        }
        if let Some(tag) = value_after(BY_TAG, uri)? {
            return Ok(Self::ArtifactList(ArtifactList::Tag(tag), range()?));
        }
        if let Some(creator) = value_after(BY_CREATOR, uri)? {
            return Ok(Self::ArtifactList(ArtifactList::Creator(creator), range()?));
        }
        if let Some(set) = value_after(SET, uri)? {
            return Ok(Self::ArtifactList(ArtifactList::Set(set), range()?));
        }
        if let Some(id) = value_after(LINEAGE, uri)? {
            return Self::Lineage(id).without_parameters(uri);
        }
        if let Some(id) = value_after(ARTIFACT, uri)? {
            return Self::Artifact(id).without_parameters(uri);
        }
        if let Some(id) = value_after(IDENTITY, uri)? {
            return Self::Identity(id).without_parameters(uri);
        }
        if let Some(hash) = value_after(CAS, uri)? {
            return Self::blob(hash)?.without_parameters(uri);
        }
        if let Some(number) = value_after(SINCE, uri)? {
            return Ok(Self::Since(event_number(number)?, range()?.without_after()?));
        }
        Err(AnswerError::not_found(uri.as_ref()))
    }

    fn blob(hash: String) -> Result<Self, AnswerError> {
        if is_hash(&hash) {
            return Ok(Self::Blob(hash));
        }
        let details = "a hash is 64 hexadecimal digits, in lower case";
        Err(AnswerError::invalid("hash", hash, details))
    }

    /// The view itself, unless the URI has a query.
    fn without_parameters(self, uri: &ResourceUri) -> Result<Self, AnswerError> {
        match uri.query().filter(|query| !query.is_empty()) {
            None => Ok(self),
            Some(query) => {
                Err(AnswerError::invalid("uri", query, "this resource takes no parameters"))
            }
        }
    }
}

/// The decoded value after a prefix, if the URI begins with it. Values that are written differently
/// from how templates expand are refused: their watchers would not be notified.
fn value_after(prefix: &str, uri: &ResourceUri) -> Result<Option<String>, AnswerError> {
    let address = uri.without_query();
    let Some(rest) = address.strip_prefix(prefix) else { return Ok(None) };
    if rest.is_empty() || rest.contains('/') {
        return Err(AnswerError::not_found(uri.as_ref()));
    }
    let value = decoded(uri, rest)?;
    let known = if prefix == BY_TAG { by_tag(&value) } else { spellings(prefix, &value) };
    if known.iter().any(|it| it == address) {
        return Ok(Some(value));
    }
    let details = format!("it is written `{}`", expanded(prefix, &value));
    Err(AnswerError::invalid("uri", uri.as_ref(), details))
}

fn event_number(text: String) -> Result<u64, AnswerError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = text.parse().ok().filter(|_| is_number) {
        return Ok(number);
    }
    let details = "it must be the number of an event, 0 or more";
    Err(AnswerError::invalid("n", text, details))
}

fn decoded(uri: &ResourceUri, text: &str) -> Result<String, AnswerError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| {
        AnswerError::invalid("uri", uri.as_ref(), "percent-encoded bytes must be UTF-8")
    })?;
    Ok(decoded.into_owned())
}

/// A URI as a template expands it.
fn expanded(prefix: &str, value: &str) -> String {
    format!("{prefix}{}", utf8_percent_encode(value, EXPANDED))
}

/// The accepted spellings of a URI: as a template expands it, and with non-ASCII characters as they
/// are. Changes are announced under each spelling, so others are refused.
fn spellings(prefix: &str, value: &str) -> Vec<String> {
    let bare: String = value
        .chars()
        .map(|it| match it {
            it if it.is_ascii() => {
                utf8_percent_encode(it.encode_utf8(&mut [0; 4]), EXPANDED).to_string()
            }
            it => it.to_string(),
        })
        .collect();
    let mut all = vec![expanded(prefix, value), format!("{prefix}{bare}")];
    all.dedup();
    all
}

pub(crate) fn artifact_uri(id: &str) -> String {
    expanded(ARTIFACT, id)
}

pub(crate) fn identity_uri(id: &str) -> String {
    expanded(IDENTITY, id)
}

pub(crate) fn cas_uri(hash: &str) -> String {
    format!("{CAS}{hash}")
}

/// The URIs of the list of a tag: the colon after a category may stay unencoded.
pub(crate) fn by_tag(tag: &str) -> Vec<String> {
    let mut all = spellings(BY_TAG, tag);
    let categories: Vec<_> = all
        .iter()
        .filter(|uri| uri.contains("%3A"))
        .map(|uri| uri.replacen("%3A", ":", 1))
        .collect();
    all.extend(categories);
    all
}

/// The URIs of the list of a creator.
pub(crate) fn by_creator(creator: &str) -> Vec<String> {
    spellings(BY_CREATOR, creator)
}

/// The URIs of a set.
pub(crate) fn set(set: &str) -> Vec<String> {
    spellings(SET, set)
}

/// The URIs of an identity.
pub(crate) fn identity(id: &str) -> Vec<String> {
    spellings(IDENTITY, id)
}

/// The URIs of every lineage.
pub(crate) const LINEAGES: &str = "artifacts://lineage/*";
/// The URIs of events after any number.
pub(crate) const ALL_SINCE: &str = "events://since/*";
