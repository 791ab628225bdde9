//! Serialises answers with raw JSON: the hub's own fields, and the rest unchanged.

use std::borrow::Cow;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CacheScope, CallToolResponse, CallToolResult, CompleteResult, CreateTaskResult, ErrorCode,
    ErrorData, GetPromptResponse, GetPromptResult, InputRequiredResult, ReadResourceResponse,
    ReadResourceResult, RequestId, Task, TaskStatus,
};
use rmcp::service::RequestContext;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::answer::{AnswerError, error_code};
use crate::catalog::Stored;
use crate::handler::beside::{Beside, Part, RawMessage};
use crate::handler::{is_modern, refusal};
use crate::raw::{self, Member, Raw};

/// Room for the hub's fields and the end of a message.
const OWN: usize = 128;

/// Holds the answer to one request if it contains raw JSON. The transport sends it in place of the
/// stand-in that the protocol library gets.
pub(super) struct RawAnswerSlot {
    id: RequestId,
    beside: Option<Beside>,
    pub(super) cancelled: CancellationToken,
    /// Whether the client's revision has `resultType` and cache hints.
    pub(super) is_modern: bool,
}

impl RawAnswerSlot {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let beside = Beside::of(&context.extensions).cloned();
        let is_modern = is_modern(context);
        Self { id: context.id.clone(), beside, cancelled: context.ct.clone(), is_modern }
    }

    /// Stores an answer for the transport.
    pub(super) fn keep(
        &self,
        answer: impl FnOnce(&RequestId) -> RawMessage,
    ) -> Result<(), ErrorData> {
        // Nobody waits for the answer to a cancelled request, and its id may belong to another
        // request by now, which must not get the stand-in.
        let beside = self.beside.as_ref().filter(|_| !self.cancelled.is_cancelled());
        let beside = beside.ok_or_else(|| ErrorData::internal_error("Cancelled", None))?;
        beside.put_answer(answer(&self.id));
        Ok(())
    }

    /// Stores a result for the transport; `hints` are the cache hints of a read.
    pub(super) fn keep_result<T: StandIn>(
        &self,
        raw: &Raw<T>,
        hints: Option<(Duration, CacheScope)>,
    ) -> Result<T, ErrorData> {
        self.keep(|id| result(id, raw, self.is_modern, hints))?;
        Ok(T::of_kind(raw.string("resultType").as_deref()))
    }

    /// The error for a request whose `parameter` had this `value`. A relayed error is stored for
    /// the transport.
    pub(super) fn refuse(&self, parameter: &str, value: &str, error: AnswerError) -> ErrorData {
        let kept = match &error {
            AnswerError::Raw(raw) => self.keep(|id| relayed(id, raw, self.is_modern)),
            _ => Ok(()),
        };
        kept.err().unwrap_or_else(|| refusal::answer(parameter, value, error))
    }
}

/// The stand-in for a raw result. It has the same kind, so that the library refuses what this
/// client cannot take.
pub(super) trait StandIn {
    fn of_kind(kind: Option<&str>) -> Self;
}

fn input_required() -> InputRequiredResult {
    InputRequiredResult::from_request_state("")
}

impl StandIn for CallToolResponse {
    fn of_kind(kind: Option<&str>) -> Self {
        match kind {
            Some("input_required") => input_required().into(),
            Some("task") => {
                CreateTaskResult::new(Task::new("", TaskStatus::Working, "", "")).into()
            }
            _ => CallToolResult::default().into(),
        }
    }
}

impl StandIn for GetPromptResponse {
    fn of_kind(kind: Option<&str>) -> Self {
        match kind {
            Some("input_required") => input_required().into(),
            _ => GetPromptResult::default().into(),
        }
    }
}

impl StandIn for ReadResourceResponse {
    fn of_kind(kind: Option<&str>) -> Self {
        match kind {
            Some("input_required") => input_required().into(),
            _ => ReadResourceResult::new(Vec::new()).into(),
        }
    }
}

impl StandIn for CompleteResult {
    fn of_kind(_: Option<&str>) -> Self {
        Self::default()
    }
}

/// A result for the client.
fn result<T>(
    id: &RequestId,
    raw: &Raw<T>,
    is_modern: bool,
    hints: Option<(Duration, CacheScope)>,
) -> RawMessage {
    let members: Vec<_> = raw::members(raw.as_str()).collect();
    let mut own = own_fields(&members, is_modern, hints);
    let mut message = Message::new(id, Part::Result, raw.as_str().len());
    let mut mark = "{";
    let mut put = |key: &str, value: &str| {
        for text in [std::mem::replace(&mut mark, ","), key, ":", value] {
            message.text(text);
        }
    };
    // New fields come first, as the library writes them; the others keep their order.
    for (name, value) in &mut own {
        if !members.iter().any(|member| member.is(name))
            && let Some(value) = value.take()
        {
            put(&json(name), &value);
        }
    }
    for member in &members {
        let value = if let Some((_, value)) = own.iter_mut().find(|(name, _)| member.is(name)) {
            // A repeated member of that name is dropped.
            value.take().map(Cow::Owned)
        } else if member.is("_meta") {
            raw::beyond_hop(member.value)
        } else {
            Some(Cow::Borrowed(member.value))
        };
        if let Some(value) = value {
            put(member.key, &value);
        }
    }
    if mark == "{" {
        message.text(mark);
    }
    message.text("}");
    message.close()
}

/// A relayed error for the client.
fn relayed(id: &RequestId, raw: &Raw<ErrorData>, is_modern: bool) -> RawMessage {
    let code = error_code(raw);
    let code = match code {
        ErrorCode::RESOURCE_NOT_FOUND if is_modern => ErrorCode::INVALID_PARAMS,
        code => code,
    };
    let is_as_said = raw.get("code").is_some_and(|said| said == code.0.to_string());
    let mut raw = if is_as_said { raw.clone() } else { raw.with("code", code.0) };
    if raw.string("message").is_none() {
        raw = raw.with("message", "Internal error");
    }
    let mut message = Message::new(id, Part::Error, raw.as_str().len());
    message.text(raw.as_str());
    message.close()
}

/// One page of a list with raw items: the library's result without items, and the items.
pub(super) fn list(id: &RequestId, empty: &impl Serialize, items: &[Stored]) -> RawMessage {
    let empty = json(empty);
    let rest = empty.strip_suffix("[]}").expect("the items of a list are its last member");
    let length = items.iter().filter_map(Stored::raw).map(|raw| raw.len() + 1).sum::<usize>();
    let mut message = Message::new(id, Part::Result, rest.len() + length);
    message.text(rest);
    let mut mark = "[";
    for item in items {
        message.text(std::mem::replace(&mut mark, ","));
        match (item.raw(), item) {
            (Some(raw), _) => message.text(raw),
            (None, Stored::Tool(tool)) => message.value(&*tool.item),
            (None, Stored::Prompt(prompt)) => message.value(&*prompt.item),
            (None, Stored::Resource(resource)) => message.value(&*resource.item),
            (None, Stored::Template(template, _)) => message.value(&*template.item),
        }
    }
    message.text("]}");
    message.close()
}

/// The hub's fields and their values; one without a value is removed.
fn own_fields(
    members: &[Member<'_>],
    is_modern: bool,
    hints: Option<(Duration, CacheScope)>,
) -> Vec<(&'static str, Option<String>)> {
    let kind = members.iter().rfind(|member| member.is("resultType"));
    if kind.is_some_and(|kind| kind.value != r#""complete""#) {
        // Other kinds of results keep their own field.
        return Vec::new();
    }
    let mut own = vec![("resultType", is_modern.then(|| json("complete")))];
    if let Some((fresh_for, scope)) = hints {
        let fresh_for = u64::try_from(fresh_for.as_millis()).unwrap_or(u64::MAX);
        own.push(("ttlMs", is_modern.then(|| json(&fresh_for))));
        own.push(("cacheScope", is_modern.then(|| json(&scope))));
    }
    own
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("a field is plain JSON")
}

/// A message being written.
struct Message {
    part: Part,
    bytes: Vec<u8>,
}

impl Message {
    fn new(id: &RequestId, part: Part, length: usize) -> Self {
        let name = match part {
            Part::Result => "result",
            Part::Error => "error",
        };
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"{name}":"#, json(id));
        let mut bytes = Vec::with_capacity(head.len() + length + OWN);
        bytes.extend_from_slice(head.as_bytes());
        Self { part, bytes }
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut self.bytes, value).expect("an item is plain JSON");
    }

    fn close(mut self) -> RawMessage {
        self.text("}");
        RawMessage { part: self.part, message: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw<T>(text: &str) -> Raw<T> {
        Raw::parse(text).unwrap()
    }

    #[track_caller]
    fn check(text: &str, legacy: &str, modern: &str) {
        let hints = Some((Duration::from_millis(5), CacheScope::Public));
        for (is_modern, wanted) in [(false, legacy), (true, modern)] {
            let id = RequestId::String("a\"".into());
            let written = result(&id, &raw::<ReadResourceResponse>(text), is_modern, hints);
            let message = String::from_utf8(written.message).unwrap();
            assert_eq!(message, format!(r#"{{"jsonrpc":"2.0","id":"a\"","result":{wanted}}}"#));
        }
    }

    #[test]
    fn only_the_fields_of_an_era_are_the_hubs() {
        let own = r#""resultType":"complete","ttlMs":5,"cacheScope":"public""#;
        check("{}", "{}", &format!("{{{own}}}"));
        check(r#"{"x":1.0}"#, r#"{"x":1.0}"#, &format!(r#"{{{own},"x":1.0}}"#));
        check(
            r#"{"a":1,"ttlMs":9,"ttlMs":8,"resultType":"complete","cacheScope":0}"#,
            r#"{"a":1}"#,
            r#"{"a":1,"ttlMs":5,"resultType":"complete","cacheScope":"public"}"#,
        );
        // Another kind of result is what it says, and so is a `_meta` that is no object.
        let other = r#"{"ttlMs":9,"resultType":"later","_meta":""}"#;
        check(other, other, other);
    }

    #[test]
    fn a_stand_in_has_the_kind_of_its_result() {
        use CallToolResponse::{Complete, InputRequired, Task};
        assert!(matches!(CallToolResponse::of_kind(None), Complete(_)));
        assert!(matches!(CallToolResponse::of_kind(Some("later")), Complete(_)));
        assert!(matches!(CallToolResponse::of_kind(Some("task")), Task(_)));
        assert!(matches!(CallToolResponse::of_kind(Some("input_required")), InputRequired(_)));
    }
}
