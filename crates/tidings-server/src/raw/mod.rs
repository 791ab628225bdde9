//! Raw JSON of a source: text that reaches the client unchanged, whether the protocol library knows
//! it or not.

mod canonical;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use tidings_core::Fingerprint;

pub(crate) use text::{Member, has_string, members};

/// The maximum depth of values: common parsers refuse deeper ones, so no client could read them.
const DEPTH: usize = 128;

/// Entries of `_meta` about one connection, without meaning behind the next one.
const HOP: [&str; 2] =
    ["io.modelcontextprotocol/serverInfo", "io.modelcontextprotocol/subscriptionId"];

/// A `T` of the protocol as the text of a JSON object, for sources that relay other servers.
///
/// Everything that the protocol library does not know reaches the client unchanged: unknown fields
/// and kinds of content, the order of keys, numbers of any size, the spelling of strings. White
/// space between values is removed, because a message is one line.
///
/// | `T` | used as |
/// |---|---|
/// | [`Tool`], [`Prompt`], [`Resource`], [`ResourceTemplate`] | an item on a [`Shelf`](crate::Shelf) |
/// | [`CallToolResponse`], [`GetPromptResponse`] | what [`Source::call`] and [`Source::prompt`] return |
/// | [`ReadResourceResponse`] | [`Contents::raw`](crate::Contents::raw) |
/// | [`CompleteResult`] | [`Completions::raw`](crate::Completions::raw) |
/// | [`ErrorData`] | [`AnswerError::Raw`](crate::AnswerError::Raw) |
///
/// The function of an [`Offer`](crate::Offer) may return a raw result, too.
///
/// The hub sets only the fields it is responsible for: `resultType`, and `ttlMs` and `cacheScope`
/// of reads, are those of the client's revision, and entries of `_meta` about a single connection
/// (`io.modelcontextprotocol/serverInfo`, `…/subscriptionId`) are removed.
///
/// ```
/// use tidings_server::model::{CallToolRequestParams, CallToolResponse, Tool};
/// use tidings_server::{Answer, AnswerError, Context, Hub, Raw, Source};
///
/// struct Upstream;
///
/// impl Source for Upstream {
///     async fn call(
///         &self,
///         _: CallToolRequestParams,
///         _: &Context,
///     ) -> Result<Answer<CallToolResponse>, AnswerError> {
///         let result = r#"{"content":[{"type":"hologram","z":1,"a":18446744073709551615}]}"#;
///         let result = Raw::parse(result).map_err(|error| AnswerError::Failed(error.to_string()))?;
///         Ok(result.into())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// // A tool with a field that nobody here knows, offered under another name.
/// let tool = Raw::<Tool>::parse(r#"{"colour":"red","name":"scan","inputSchema":{}}"#)?;
/// let tool = tool.with("name", "lab__scan");
/// assert_eq!(tool.as_str(), r#"{"colour":"red","name":"lab__scan","inputSchema":{}}"#);
///
/// let hub = Hub::new("relay", "1.0");
/// hub.add("lab", |shelf| {
///     shelf.add(tool)?;
///     Ok(Upstream)
/// })
/// .await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Tool`]: crate::model::Tool
/// [`Prompt`]: crate::model::Prompt
/// [`Resource`]: crate::model::Resource
/// [`ResourceTemplate`]: crate::model::ResourceTemplate
/// [`CallToolResponse`]: crate::model::CallToolResponse
/// [`GetPromptResponse`]: crate::model::GetPromptResponse
/// [`ReadResourceResponse`]: crate::model::ReadResourceResponse
/// [`CompleteResult`]: crate::model::CompleteResult
/// [`ErrorData`]: crate::model::ErrorData
/// [`Source::call`]: crate::Source::call
/// [`Source::prompt`]: crate::Source::prompt
pub struct Raw<T> {
    /// Invariant: a JSON object without white space between its values, at most [`DEPTH`] deep.
    text: Arc<str>,
    of: PhantomData<fn() -> T>,
}

/// Why a text cannot be used as raw JSON.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// It is not JSON.
    #[error("the text is not JSON")]
    Syntax(#[source] serde_json::Error),
    /// It is JSON, but not an object.
    #[error("the JSON text is not an object")]
    NotAnObject,
    /// No client could read it.
    #[error("the JSON text is nested more than {DEPTH} levels deep")]
    TooDeep,
    /// It is too long.
    #[error("the JSON text has 4 GiB or more")]
    TooLong,
}

impl<T> Raw<T> {
    /// Takes the text of a JSON object. Only the syntax is checked: an item without a name is
    /// refused when it is offered.
    ///
    /// # Errors
    ///
    /// The text is not a JSON object.
    pub fn parse(text: impl Into<String>) -> Result<Self, RawError> {
        let text = text.into();
        if u32::try_from(text.len()).is_err() {
            return Err(RawError::TooLong);
        }
        serde_json::from_str::<&serde_json::value::RawValue>(&text).map_err(RawError::Syntax)?;
        let layout = text::layout(&text);
        if layout.depth > DEPTH {
            return Err(RawError::TooDeep);
        }
        let text = if layout.is_compact { text } else { text::compact(&text) };
        if !text.starts_with('{') {
            return Err(RawError::NotAnObject);
        }
        Ok(Self::of(text))
    }

    /// Invariant: the text satisfies the conditions of [`Self::text`].
    fn of(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), of: PhantomData }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The JSON text of a member's value. Of several with that name it is the last, as for most
    /// parsers.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        members(&self.text).filter(|member| member.is(name)).map(|member| member.value).last()
    }

    /// The same with another value of a member, which keeps its position; a new one comes last.
    #[must_use]
    pub fn with(&self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into().to_string();
        let mut is_there = false;
        let mut text = text::edited(&self.text, |member| {
            if !member.is(name) {
                return Some(member.value);
            }
            (!std::mem::replace(&mut is_there, true)).then_some(&value)
        });
        if !is_there {
            text::push_member(&mut text, name, &value);
        }
        Self::of(text)
    }

    /// The same with another value of a member, as JSON text.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or too deep.
    pub fn with_json(&self, name: &str, value: &str) -> Result<Self, RawError> {
        // A name that needs no escape, to have the value checked and brought into form.
        let value = Raw::<Value>::parse(format!("{{\"value\":{value}}}"))?;
        let value = value.get("value").unwrap_or("null");
        if self.get(name).is_none() {
            let mut text = self.text.to_string();
            text::push_member(&mut text, name, value);
            return Ok(Self::of(text));
        }
        Ok(Self::of(text::edited(&self.text, |member| {
            Some(if member.is(name) { value } else { member.value })
        })))
    }

    /// The same without a member.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let kept = |member: &Member<'_>| !member.is(name);
        if members(&self.text).all(|member| kept(&member)) {
            return self.clone();
        }
        Self::of(text::edited(&self.text, |member| kept(member).then_some(member.value)))
    }

    /// A fingerprint of the value, independent of the order of its keys and the spelling of its
    /// strings.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_canonical_json(&canonical::of(&self.text))
    }

    /// The same without the entries of `_meta` about its connection.
    pub(crate) fn beyond_hop(&self) -> Self {
        let Some(meta) = self.get("_meta") else { return self.clone() };
        match beyond_hop(meta) {
            Some(Cow::Borrowed(_)) => self.clone(),
            Some(Cow::Owned(meta)) => self.with_object("_meta", &Raw::of(meta)),
            None => self.without("_meta"),
        }
    }

    /// A member that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Raw<Value>> {
        self.get(name).filter(|value| value.starts_with('{')).map(Raw::of)
    }

    /// The number of members with this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        members(&self.text).filter(|member| member.is(name)).count()
    }

    /// A member that is a text.
    pub(crate) fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// The same with another object as a member; without it if the object is empty.
    pub(crate) fn with_object(&self, name: &str, object: &Raw<Value>) -> Self {
        if object.as_str() == "{}" {
            return self.without(name);
        }
        Self::of(text::edited(&self.text, |member| {
            Some(if member.is(name) { object.as_str() } else { member.value })
        }))
    }
}

/// A `_meta` without the entries about its connection; `None` if nothing else is left.
pub(crate) fn beyond_hop(meta: &str) -> Option<Cow<'_, str>> {
    let is_of_hop = |member: &Member<'_>| HOP.iter().any(|name| member.is(name));
    if !members(meta).any(|member| is_of_hop(&member)) {
        return Some(Cow::Borrowed(meta));
    }
    let kept = text::edited(meta, |member| (!is_of_hop(member)).then_some(member.value));
    (kept != "{}").then_some(Cow::Owned(kept))
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        Self::of(self.text.clone())
    }
}

/// Equal if the texts are.
impl<T> PartialEq for Raw<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<T> Eq for Raw<T> {}

impl<T> fmt::Debug for Raw<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Raw").field(&self.text).finish()
    }
}

impl<T> fmt::Display for Raw<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::weight::tests::value;

    fn raw(text: &str) -> Raw<Value> {
        Raw::parse(text).unwrap()
    }

    #[test]
    fn only_space_between_values_is_left_out() {
        let text = "{ \"b\" : [ 1 ,\n 2.50e+1 ] ,\t\"a \\n\": \" x  y \",\r\n\"n\":18446744073709551616 }\n";
        let compact = r#"{"b":[1,2.50e+1],"a \n":" x  y ","n":18446744073709551616}"#;
        assert_eq!(raw(text).as_str(), compact);
        assert_eq!(raw(compact).as_str(), compact);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let refused = |text: &str| Raw::<Value>::parse(text).unwrap_err();
        assert!(matches!(refused("{"), RawError::Syntax(_)));
        assert!(matches!(refused(r#"{"a":1} x"#), RawError::Syntax(_)));
        assert!(matches!(refused(" [1]"), RawError::NotAnObject));
        assert!(matches!(refused("\"{}\""), RawError::NotAnObject));
        let nested = |depth: usize| {
            format!("{{\"[[[\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1))
        };
        assert_eq!(raw(&nested(DEPTH)).as_str(), nested(DEPTH));
        assert!(matches!(refused(&nested(DEPTH + 1)), RawError::TooDeep));
        assert!(matches!(refused(&nested(100_000)), RawError::TooDeep));
    }

    #[test]
    fn members_are_found_replaced_and_removed_in_their_place() {
        let object = raw(r#"{"z":{"a":1},"n\u0061me":"x","a":[{"name":2}],"":0}"#);
        assert_eq!(object.get("name"), Some("\"x\""));
        assert_eq!(object.get("a"), Some(r#"[{"name":2}]"#));
        assert_eq!((object.get(""), object.get("b")), (Some("0"), None));
        let renamed = object.with("name", "y\"");
        assert_eq!(renamed.as_str(), r#"{"z":{"a":1},"n\u0061me":"y\"","a":[{"name":2}],"":0}"#);
        assert_eq!(object.with("b", json!([null])).get("b"), Some("[null]"));
        let less = object.without("z").without("").without("name").without("none");
        assert_eq!(less.as_str(), r#"{"a":[{"name":2}]}"#);
        assert_eq!(less.without("a").as_str(), "{}");
        assert_eq!(less.without("a").with("b", 1).as_str(), r#"{"b":1}"#);
        assert_eq!(raw(r#"{"a":1,"b":2,"a":3}"#).with("a", 4).as_str(), r#"{"a":4,"b":2}"#);
        assert_eq!(raw(r#"{"a":1,"b":2,"a":3}"#).get("a"), Some("3"));
    }

    #[test]
    fn a_member_can_be_replaced_by_text_that_stays_as_it_is() {
        let object = raw(r#"{"a":1,"b":2}"#);
        let with = |name: &str, text: &str| object.with_json(name, text).unwrap().to_string();
        assert_eq!(with("a", "[ 1.0,{\"z\":1,\"y\":2} ]"), r#"{"a":[1.0,{"z":1,"y":2}],"b":2}"#);
        assert_eq!(with("c", "18446744073709551616"), r#"{"a":1,"b":2,"c":18446744073709551616}"#);
        assert!(object.with_json("a", "1,\"c\":2").is_ok_and(|it| it.get("c").is_none()));
        assert!(matches!(object.with_json("a", "["), Err(RawError::Syntax(_))));
    }

    #[test]
    fn a_fingerprint_moves_with_any_value_and_with_no_spelling() {
        let same = |one: &str, other: &str| raw(one).fingerprint() == raw(other).fingerprint();
        assert!(same(r#"{"a":{"c":1,"b":[2]},"é":""}"#, r#"{ "\u00e9":"", "a":{"b":[2],"c":1}}"#));
        assert!(!same(r#"{"a":18446744073709551616}"#, r#"{"a":18446744073709551617}"#));
        assert!(!same(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#));
        assert!(!same(r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#));
        // Half of a surrogate pair can be sent, but is no character.
        assert!(!same(r#"{"\ud800":1}"#, r#"{"\ud801":1}"#));
        assert!(same(r#"{"\ud800":1,"a":2}"#, r#"{"a":2,"\ud800":1}"#));
    }

    #[test]
    fn a_string_is_found_however_it_is_written() {
        assert!(has_string(r#"{"a":[{"x\u002dy":1}]}"#, "x-y"));
        assert!(has_string(r#"{"a\"":"\\","x-y":1}"#, "x-y"));
        assert!(!has_string(r#"{"a":"\"x-y\"","b":"x-y "}"#, "x-y"));
        assert!(!has_string("{}", "x-y"));
    }

    #[test]
    fn what_is_said_of_a_connection_stays_behind() {
        let check = |meta: &str, wanted: Option<&str>| {
            let object = raw(&format!(r#"{{"a":1,"_meta":{meta},"b":2}}"#));
            assert_eq!(object.beyond_hop().get("_meta"), wanted);
            assert_eq!(object.beyond_hop().without("_meta").as_str(), r#"{"a":1,"b":2}"#);
        };
        let hop = r#""io.modelcontextprotocol/serverInfo":{"name":"x"}"#;
        check(&format!(r#"{{"z":1.0,{hop},"y":2}}"#), Some(r#"{"z":1.0,"y":2}"#));
        check(&format!("{{{hop}}}"), None);
        for other in ["{}", "null", "\"\"", "[\"\"]", "7", r#"{"traceparent":"t"}"#] {
            check(other, Some(other));
        }
    }

    /// A value with its keys the other way round, and each character of a text as an escape.
    fn turned(value: &Value) -> String {
        match value {
            Value::String(text) => {
                let spelt = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
                let spelt = spelt.collect::<Vec<_>>().concat();
                format!("\"{spelt}\"")
            }
            Value::Array(all) => {
                format!("[{}]", all.iter().map(turned).collect::<Vec<_>>().join(","))
            }
            Value::Object(all) => {
                let members = all.iter().rev().map(|(name, value)| {
                    format!("{} : {}", turned(&name.as_str().into()), turned(value))
                });
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn a_text_has_the_fingerprint_of_its_value(value in value(), pretty in any::<bool>()) {
            let value = json!({ "value": value });
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let raw = raw(&text);
            prop_assert_eq!(raw.as_str(), value.to_string());
            prop_assert_eq!(raw.fingerprint(), Fingerprint::of_json(&value));
        }

        #[test]
        fn editing_is_what_it_is_for_values(value in value(), name in "[ab\"\\\\é]?") {
            let mut object = json!({ "a": value, "b": [value], "é": {} });
            let text = raw(&object.to_string());
            let with = text.with(&name, value.clone());
            let without = text.without(&name);
            object[&name] = value;
            prop_assert_eq!(&serde_json::from_str::<Value>(with.as_str()).unwrap(), &object);
            object.as_object_mut().unwrap().remove(&name);
            prop_assert_eq!(serde_json::from_str::<Value>(without.as_str()).unwrap(), object);
        }

        #[test]
        fn neither_order_nor_spelling_moves_a_fingerprint(value in value()) {
            let value = json!({ "value": value, "é": 1 });
            let turned = raw(&turned(&value));
            prop_assert_eq!(turned.fingerprint(), raw(&value.to_string()).fingerprint());
            prop_assert_eq!(turned.get("é"), Some("1"));
        }
    }
}
