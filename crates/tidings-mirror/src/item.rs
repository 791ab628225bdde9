//! Items of lists: the known fields, and the whole item as the server sent it.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// An item of a list. It dereferences to its known fields; [`raw`](Self::raw) is the whole item as
/// the server sent it.
///
/// Two items are equal if the server sent the same, so a change of an unknown field changes the
/// list. As JSON it has the known fields only.
///
/// ```
/// use tidings_mirror::Item;
/// use tidings_mirror::model::Resource;
///
/// let item = Item::from(Resource::new("notes://all", "all"));
/// assert_eq!(item.uri, "notes://all");
/// assert_eq!(item.raw()["uri"], "notes://all");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Item<T> {
    known: T,
    /// The text that was sent, if it has more than the known fields. All clones share one text.
    raw: Option<Arc<str>>,
}

impl<T> Item<T> {
    /// Its known fields.
    pub fn known(&self) -> &T {
        &self.known
    }
}

impl<T: Serialize> Item<T> {
    /// An item from `sent`, which is kept if it has more than the known fields, or in any case.
    pub(crate) fn new(known: T, sent: &str, always: bool) -> Self {
        let raw = (always || says_more(sent, &known)).then(|| sent.into());
        Self { known, raw }
    }

    /// An item from its text as it was sent, such as in a file.
    ///
    /// # Errors
    ///
    /// If it is not such an item.
    pub fn parse(sent: &str) -> Result<Self, serde_json::Error>
    where
        T: DeserializeOwned,
    {
        Ok(Self::new(serde_json::from_str(sent)?, sent, false))
    }

    /// The item as the server sent it, with unknown fields.
    #[must_use]
    pub fn raw(&self) -> Value {
        let sent = self.raw.as_deref().and_then(|raw| serde_json::from_str(raw).ok());
        sent.unwrap_or_else(|| serde_json::to_value(&self.known).unwrap_or_default())
    }

    /// The same as one line of JSON. If there are unknown fields, the order is that of the server.
    #[must_use]
    pub fn raw_json(&self) -> String {
        match &self.raw {
            // Line ends inside strings are escaped, so all others are white space.
            Some(raw) => raw.replace(['\n', '\r'], " "),
            None => serde_json::to_string(&self.known).unwrap_or_default(),
        }
    }
}

/// An item with these fields only.
impl<T> From<T> for Item<T> {
    fn from(known: T) -> Self {
        Self { known, raw: None }
    }
}

impl<T> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<T: Serialize> Serialize for Item<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.known.serialize(to)
    }
}

/// Whether `sent` has more than `typed`, which was read from it.
pub(crate) fn says_more(sent: &str, typed: &impl Serialize) -> bool {
    // Most servers write the fields in the usual order, so nothing needs to be built.
    if serde_json::to_vec(typed).is_ok_and(|typed| typed == sent.as_bytes()) {
        return false;
    }
    serde_json::from_str::<Value>(sent)
        .is_ok_and(|sent| serde_json::to_value(typed).is_ok_and(|typed| typed != sent))
}

#[cfg(test)]
mod tests {
    use rmcp::model::Resource;
    use serde_json::json;

    use super::*;

    fn item(sent: &Value) -> Item<Resource> {
        let known = serde_json::from_value(sent.clone()).unwrap();
        Item::new(known, &sent.to_string(), false)
    }

    #[test]
    fn what_nobody_knows_is_kept_and_counts_as_a_difference() {
        let plain = item(&json!({ "uri": "a:b", "name": "b" }));
        assert_eq!((plain.raw.is_none(), plain.name.as_str()), (true, "b"));
        assert_eq!(plain, Resource::new("a:b", "b").into());
        let sent = json!({ "uri": "a:b", "name": "b", "colour": "red" });
        assert_eq!(item(&sent).raw(), sent);
        assert_ne!(item(&sent), plain);
        assert_ne!(item(&sent), item(&json!({ "uri": "a:b", "name": "b", "colour": "blue" })));
        assert_eq!(serde_json::to_value(item(&sent)).unwrap().get("colour"), None);
    }

    #[test]
    fn what_was_sent_is_kept_in_any_case_if_it_is_wanted_as_it_was_sent() {
        let sent = r#"{"uri":"a:b","name":"b"}"#;
        let known: Resource = serde_json::from_str(sent).unwrap();
        assert_eq!(Item::new(known.clone(), sent, true).raw_json(), sent);
        assert!(Item::new(known, sent, false).raw.is_none());
    }

    #[test]
    fn what_was_sent_is_one_line_in_the_order_of_the_server() {
        let known = Resource::new("a:b", "b");
        let sent = "{\"uri\": \"a:b\",\r\n \"name\": \"b\",\n \"colour\": \"a\\nb\"}";
        let item = Item::new(known, sent, false);
        let line = "{\"uri\": \"a:b\",   \"name\": \"b\",  \"colour\": \"a\\nb\"}";
        assert_eq!(item.raw_json(), line);
    }
}
