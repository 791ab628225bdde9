//! URIs inside results: those that lead elsewhere here are given as addresses of this upstream.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;
use tidings_server::Raw;

/// So many links of results are remembered, the newest.
const REMEMBERED: usize = 10_000;

/// URIs that this upstream named in results, whether it lists them or not: they can be read here.
#[derive(Debug, Default)]
pub(crate) struct Links {
    known: HashSet<Arc<str>>,
    order: VecDeque<Arc<str>>,
}

impl Links {
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.known.contains(uri)
    }

    /// Remembers a link. Returns the one that is forgotten for it.
    pub(crate) fn remember(&mut self, uri: &str) -> Option<Arc<str>> {
        if self.known.contains(uri) {
            return None;
        }
        let uri: Arc<str> = uri.into();
        self.known.insert(uri.clone());
        self.order.push_back(uri);
        if self.order.len() <= REMEMBERED {
            return None;
        }
        let oldest = self.order.pop_front()?;
        self.known.take(&oldest)
    }
}

/// The result of a call with its links and embedded resources under the addresses that `address`
/// returns; unchanged where it returns `None`.
pub(crate) fn in_call<T>(result: Raw<T>, address: impl Fn(&str) -> Option<String>) -> Raw<T> {
    in_blocks(result, "content", address, |block, edit| edit(block))
}

/// The same for the messages of a prompt.
pub(crate) fn in_prompt<T>(result: Raw<T>, address: impl Fn(&str) -> Option<String>) -> Raw<T> {
    in_blocks(result, "messages", address, |message, edit| {
        let message = Raw::<()>::parse(message).ok()?;
        let block = edit(message.get("content")?)?;
        message.with_json("content", &block).ok().map(|it| it.to_string())
    })
}

/// The result of a read, with the URIs of its contents.
pub(crate) fn in_contents<T>(result: Raw<T>, address: impl Fn(&str) -> Option<String>) -> Raw<T> {
    let edit = |content: &str| with_address(&Raw::<()>::parse(content).ok()?, &address);
    edited(result, "contents", edit)
}

fn in_blocks<T>(
    result: Raw<T>,
    member: &str,
    address: impl Fn(&str) -> Option<String>,
    each: impl Fn(&str, &dyn Fn(&str) -> Option<String>) -> Option<String>,
) -> Raw<T> {
    // Most results have no link.
    if !result.as_str().contains("resource") {
        return result;
    }
    let edit = |block: &str| {
        let block = Raw::<()>::parse(block).ok()?;
        match block.get("type") {
            Some(r#""resource_link""#) => with_address(&block, &address),
            Some(r#""resource""#) => {
                let resource = Raw::<()>::parse(block.get("resource")?).ok()?;
                let resource = with_address(&resource, &address)?;
                block.with_json("resource", &resource).ok().map(|it| it.to_string())
            }
            _ => None,
        }
    };
    edited(result, member, |item| each(item, &edit))
}

/// An object with another address as its `uri`, if it has another.
fn with_address(object: &Raw<()>, address: impl Fn(&str) -> Option<String>) -> Option<String> {
    let uri: String = serde_json::from_str(object.get("uri")?).ok()?;
    address(&uri).map(|address| object.with("uri", address).to_string())
}

/// A result with some items of a list changed, and everything else as it was sent.
fn edited<T>(result: Raw<T>, member: &str, edit: impl Fn(&str) -> Option<String>) -> Raw<T> {
    let items =
        result.get(member).and_then(|text| serde_json::from_str::<Vec<&RawValue>>(text).ok());
    let Some(items) = items else { return result };
    let changed: Vec<_> = items.iter().map(|item| edit(item.get())).collect();
    if changed.iter().all(Option::is_none) {
        return result;
    }
    let texts = items.iter().zip(&changed);
    let texts = texts.map(|(item, changed)| changed.as_deref().unwrap_or(item.get()));
    let list = format!("[{}]", texts.collect::<Vec<_>>().join(","));
    result.with_json(member, &list).unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw<()> {
        Raw::parse(text).unwrap()
    }

    fn lost(uri: &str) -> Option<String> {
        uri.starts_with("a:").then(|| format!("git+{uri}"))
    }

    #[test]
    fn only_links_that_lead_elsewhere_change() {
        let sent = r#"{"z":1.0,"content":[{"type":"hologram","uri":"a:1","n":18446744073709551616},{"uri":"a:1","type":"resource_link","name":"x"},{"type":"resource","resource":{"text":"t","uri":"a:2"}},{"type":"resource_link","uri":"b:1"}],"a":2}"#;
        let expected = r#"{"z":1.0,"content":[{"type":"hologram","uri":"a:1","n":18446744073709551616},{"uri":"git+a:1","type":"resource_link","name":"x"},{"type":"resource","resource":{"text":"t","uri":"git+a:2"}},{"type":"resource_link","uri":"b:1"}],"a":2}"#;
        assert_eq!(in_call(raw(sent), lost).as_str(), expected);
        assert_eq!(in_call(raw(sent), |_| None).as_str(), sent);
    }

    #[test]
    fn links_of_prompts_and_the_uris_of_contents_change_too() {
        let sent =
            r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"a:1"}}]}"#;
        let expected = sent.replace("a:1", "git+a:1");
        assert_eq!(in_prompt(raw(sent), lost).as_str(), expected);
        let sent = r#"{"contents":[{"uri":"a:1","text":"x"},{"uri":"b:1","text":"y"}]}"#;
        assert_eq!(in_contents(raw(sent), lost).as_str(), sent.replace("a:1", "git+a:1"));
    }

    #[test]
    fn nonsense_is_left_alone() {
        for sent in [r#"{"content":"resource"}"#, r#"{"content":[1,{"type":"resource"}]}"#, "{}"] {
            assert_eq!(in_call(raw(sent), lost).as_str(), sent);
        }
    }

    #[test]
    fn the_oldest_links_are_forgotten() {
        let mut links = Links::default();
        for number in 0..=REMEMBERED {
            links.remember(&format!("a:{number}"));
            links.remember(&format!("a:{number}"));
        }
        assert!(!links.has("a:0") && links.has("a:1") && links.has(&format!("a:{REMEMBERED}")));
        assert_eq!(links.order.len(), REMEMBERED);
    }
}
