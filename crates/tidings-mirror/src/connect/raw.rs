//! Results as the server sent them, kept beside the protocol library's types.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions as _, RequestId};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::item::{Item, says_more};
use crate::odd::Odd;

/// Requests remembered on one connection before those without a waiting caller are dropped.
const MANY: usize = 256;

type RawSlot = Mutex<Option<Sent>>;

/// The answer to one request, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    Result(Arc<str>),
    Error(Arc<str>),
}

/// The place for the raw result of one request. It travels with the request, never on the wire.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw(Arc<RawSlot>);

impl Raw {
    /// Requests the raw result.
    pub(super) fn ask(request: &mut ClientRequest) -> Self {
        let raw = Self::default();
        request.extensions_mut().insert(raw.clone());
        raw
    }

    /// The request, and the place for its raw result, if that is wanted.
    pub(super) fn asked(message: &ClientJsonRpcMessage) -> Option<(RequestId, Option<Self>)> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        Some((request.id.clone(), request.request.extensions().get::<Self>().cloned()))
    }

    /// Takes the result of this request from a message.
    pub(super) fn keep(&self, id: &RequestId, message: &[u8]) {
        if let Some((_, sent)) = answer(message).filter(|(answered, _)| answered == id) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
        }
    }

    /// The raw result.
    pub(super) fn take(&self) -> Option<Arc<str>> {
        match self.taken()? {
            Sent::Result(result) => Some(result),
            Sent::Error(_) => None,
        }
    }

    /// The raw error.
    pub(super) fn take_error(&self) -> Option<Arc<str>> {
        match self.taken()? {
            Sent::Error(error) => Some(error),
            Sent::Result(_) => None,
        }
    }

    fn taken(&self) -> Option<Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The raw result, if it has more than `typed`.
    pub(super) fn beyond(&self, typed: &impl Serialize) -> Option<Arc<str>> {
        self.take().filter(|sent| says_more(sent, typed))
    }

    /// The items of a list, each with its raw form if that has more, or always. `odd` are the items of this
    /// page that violate the protocol; the unusable ones are not in `known`.
    pub(super) fn items<T: Serialize>(
        &self,
        key: &str,
        known: Vec<T>,
        odd: &[Odd],
        always: bool,
    ) -> Vec<Item<T>> {
        let sent = self.take();
        let texts = sent.as_deref().and_then(|sent| texts(sent, key, odd)).unwrap_or_default();
        // Items are not paired by guessing.
        if texts.len() != known.len() {
            return known.into_iter().map(Item::from).collect();
        }
        known
            .into_iter()
            .zip(texts)
            .map(|(known, sent)| Item::new(known, sent.get(), always))
            .collect()
    }
}

/// The usable items of a raw result, in the server's order.
fn texts<'a>(sent: &'a str, key: &str, odd: &[Odd]) -> Option<Vec<&'a RawValue>> {
    let mut reader = serde_json::Deserializer::from_str(sent);
    let items = reader.deserialize_map(ItemTexts { key }).ok()??;
    let left_out: HashSet<_> = odd.iter().filter(|odd| !odd.usable).map(|odd| odd.index).collect();
    let usable = items.into_iter().enumerate().filter(|(index, _)| !left_out.contains(index));
    Some(usable.map(|(_, item)| item).collect())
}

/// Finds the items of a list in one pass over a result.
struct ItemTexts<'k> {
    key: &'k str,
}

impl<'a> Visitor<'a> for ItemTexts<'_> {
    type Value = Option<Vec<&'a RawValue>>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a result")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut items = None;
        while let Some(name) = fields.next_key::<Cow<'_, str>>()? {
            if name == self.key {
                items = Some(fields.next_value()?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(items)
    }
}

/// The wanted results, on a connection where answers come in any order.
#[derive(Debug, Default)]
pub(super) struct Wanted(HashMap<RequestId, Weak<RawSlot>>);

impl Wanted {
    /// A request is sent.
    pub(super) fn note(&mut self, message: &ClientJsonRpcMessage) {
        let Some((id, Some(raw))) = Raw::asked(message) else { return };
        if self.0.len() >= MANY {
            // A caller that gave up dropped its place.
            self.0.retain(|_, place| place.strong_count() > 0);
        }
        self.0.insert(id, Arc::downgrade(&raw.0));
    }

    /// A message arrived.
    pub(super) fn keep(&mut self, message: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let Some((id, sent)) = answer(message) else { return };
        if let Some(place) = self.0.remove(&id).and_then(|place| place.upgrade()) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
        }
    }
}

/// The request that a message answers, and its result or error.
fn answer(message: &[u8]) -> Option<(RequestId, Sent)> {
    #[derive(Deserialize)]
    struct AnswerMessage<'a> {
        id: RequestId,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let AnswerMessage { id, result, error } = serde_json::from_slice(message).ok()?;
    match (result, error) {
        (Some(result), _) => Some((id, Sent::Result(result.get().into()))),
        (None, Some(error)) => Some((id, Sent::Error(error.get().into()))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_kept_if_it_says_more_than_was_understood() {
        let id = RequestId::Number(7);
        let raw = Raw::default();
        let sent = br#"{"jsonrpc":"2.0","id":7,"result":{"a":1,"new":2}}"#;
        raw.keep(&RequestId::Number(8), sent);
        assert_eq!(raw.beyond(&json!({ "a": 1 })), None, "it answers another request");
        raw.keep(&id, sent);
        assert_eq!(raw.beyond(&json!({ "a": 1 })).as_deref(), Some(r#"{"a":1,"new":2}"#));
        raw.keep(&id, sent);
        assert_eq!(raw.beyond(&json!({ "new": 2, "a": 1 })), None, "all of it was understood");
    }

    #[test]
    fn an_error_is_kept_as_it_was_sent() {
        let raw = Raw::default();
        let sent = br#"{"id":7,"error":{"message":"no","code":-32050,"data":{"b":1,"a":2}}}"#;
        raw.keep(&RequestId::Number(7), sent);
        assert_eq!(raw.take(), None, "it is no result");
        raw.keep(&RequestId::Number(7), sent);
        let error = r#"{"message":"no","code":-32050,"data":{"b":1,"a":2}}"#;
        assert_eq!(raw.take_error().as_deref(), Some(error));
    }

    #[test]
    fn items_are_paired_with_what_was_sent_of_them() {
        let raw = Raw::default();
        let sent = br#"{"id":7,"result":{"tools":[{"a":1},5,{"a":2,"new":3}]}}"#;
        let listed = || vec![json!({ "a": 1 }), json!({ "a": 2 })];
        raw.keep(&RequestId::Number(7), sent);
        let items = raw.items("tools", listed(), &[Odd::new(1, "no object", json!(5))], false);
        let raws: Vec<_> = items.iter().map(Item::raw).collect();
        assert_eq!(raws, [json!({ "a": 1 }), json!({ "a": 2, "new": 3 })]);
        raw.keep(&RequestId::Number(7), sent);
        let unpaired = raw.items("tools", listed(), &[], false);
        assert_eq!(unpaired[1].raw(), json!({ "a": 2 }), "nobody knows which is which");
    }

    #[test]
    fn answers_that_nobody_waits_for_are_forgotten() {
        let mut wanted = Wanted::default();
        for id in 0..MANY {
            let id = RequestId::String(id.to_string().into());
            wanted.0.insert(id, Weak::new());
        }
        let request = json!({
            "jsonrpc": "2.0", "id": 1000, "method": "tools/call", "params": { "name": "a" },
        });
        let mut request: ClientJsonRpcMessage = serde_json::from_value(request).unwrap();
        let ClientJsonRpcMessage::Request(inner) = &mut request else { panic!("a request") };
        let raw = Raw::ask(&mut inner.request);
        wanted.note(&request);
        assert_eq!(wanted.0.len(), 1);
        wanted.keep(br#"{"jsonrpc":"2.0","id":1000,"result":{"x":[]}}"#);
        assert!(wanted.0.is_empty());
        assert_eq!(raw.beyond(&json!({})).as_deref(), Some(r#"{"x":[]}"#));
    }
}
