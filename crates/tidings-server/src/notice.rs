//! The bytes of one notice, serialised once and shared by all its listeners.
//!
//! The text comes from the protocol library's types, so the wire format is theirs. A frame is a
//! whole server-sent event: `data: `, the message and two line breaks. Without its first six bytes
//! and the last it is a line for stdio, so both transports share it.

use bytes::{Bytes, BytesMut};
use rmcp::model::{
    GetMeta, PromptListChangedNotification, RequestId, ResourceListChangedNotification,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerJsonRpcMessage,
    ServerNotification, ToolListChangedNotification,
};
use tidings_core::{ListKind, ResourceUri};

/// The text before the message in a server-sent event.
const EVENT_HEAD: &str = "data: ";
/// The text after it.
const EVENT_TAIL: &str = "\n\n";
/// The placeholder of a listener's tag. No URI contains a control character, so its first
/// occurrence is the tag's.
const TAG_MARK: &str = "\u{1}";

/// The wire format of one listener's notices.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    /// A legacy session.
    Legacy {
        /// Whether updates contain the title, as in one revision.
        titled: bool,
        /// Whether events are numbered, so that a client can name the last one it saw.
        numbered: bool,
    },
    /// A modern listen request: its id as JSON.
    Modern {
        /// The id in `_meta`.
        tag: Box<[u8]>,
    },
}

impl Wire {
    /// Whether events are numbered.
    pub(crate) fn numbers(&self) -> bool {
        matches!(self, Self::Legacy { numbered: true, .. })
    }

    /// The wire format of a modern listener with this request id.
    pub(crate) fn modern(id: &RequestId) -> Self {
        let tag = serde_json::to_vec(id).expect("a request id is a number or a string");
        Self::Modern { tag: tag.into() }
    }
}

/// One notice, in the forms for all kinds of listeners.
#[derive(Debug)]
pub(crate) struct Notice {
    legacy: Bytes,
    titled: Option<Bytes>,
    before_tag: Bytes,
    after_tag: Bytes,
}

impl Notice {
    /// A list of this kind changed.
    pub(crate) fn list_changed(kind: ListKind) -> Self {
        Self::prepare(
            || match kind {
                ListKind::Tools => ServerNotification::ToolListChangedNotification(
                    ToolListChangedNotification::default(),
                ),
                ListKind::Prompts => ServerNotification::PromptListChangedNotification(
                    PromptListChangedNotification::default(),
                ),
                ListKind::Resources => ServerNotification::ResourceListChangedNotification(
                    ResourceListChangedNotification::default(),
                ),
            },
            None,
        )
    }

    /// The content of this URI changed; `title` is the resource's, if it is listed with one.
    pub(crate) fn updated(uri: &ResourceUri, title: Option<&str>) -> Self {
        Self::prepare(
            || {
                ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(
                    ResourceUpdatedNotificationParam::new(uri.as_ref()),
                ))
            },
            title,
        )
    }

    fn prepare(notification: impl Fn() -> ServerNotification, title: Option<&str>) -> Self {
        let plain = to_value(notification());
        let titled = title.map(|title| {
            let mut value = plain.clone();
            value["params"]["title"] = title.into();
            event(value.to_string().as_bytes())
        });
        let mut tagged = notification();
        tagged.get_meta_mut().set_subscription_id(RequestId::String(TAG_MARK.into()));
        let tagged = format!("{EVENT_HEAD}{}{EVENT_TAIL}", to_value(tagged));
        let mark = serde_json::Value::from(TAG_MARK).to_string();
        let at = tagged.find(&mark).expect("the tag was just set");
        Self {
            legacy: event(plain.to_string().as_bytes()),
            titled,
            before_tag: Bytes::copy_from_slice(&tagged.as_bytes()[..at]),
            after_tag: Bytes::copy_from_slice(&tagged.as_bytes()[at + mark.len()..]),
        }
    }

    /// The whole event for one listener: the shared bytes with its own number or tag.
    pub(crate) fn frame(&self, wire: &Wire, number: u64) -> Bytes {
        if let Wire::Legacy { titled, numbered: false } = wire {
            return self.shared(*titled).clone();
        }
        let mut frame = Vec::new();
        self.put_frame(wire, number, &mut frame);
        frame.into()
    }

    /// As [`Self::frame`], appended to a buffer.
    pub(crate) fn put_frame(&self, wire: &Wire, number: u64, buffer: &mut Vec<u8>) {
        match wire {
            Wire::Legacy { titled, numbered: false } => {
                buffer.extend_from_slice(self.shared(*titled));
            }
            Wire::Legacy { titled, numbered: true } => {
                let number = number.to_string();
                splice(&[b"id: s", number.as_bytes(), b"\n", self.shared(*titled)], buffer);
            }
            Wire::Modern { tag } => splice(&[&self.before_tag, tag, &self.after_tag], buffer),
        }
    }

    fn shared(&self, titled: bool) -> &Bytes {
        self.titled.as_ref().filter(|_| titled).unwrap_or(&self.legacy)
    }
}

fn splice(parts: &[&[u8]], buffer: &mut Vec<u8>) {
    // The exact capacity: a frame may wait for a slow reader.
    buffer.reserve_exact(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        buffer.extend_from_slice(part);
    }
}

/// A message as a server-sent event.
pub(crate) fn event(json: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(EVENT_HEAD.len() + json.len() + EVENT_TAIL.len());
    bytes.extend_from_slice(EVENT_HEAD.as_bytes());
    bytes.extend_from_slice(json);
    bytes.extend_from_slice(EVENT_TAIL.as_bytes());
    bytes.freeze()
}

/// The consecutive events in some bytes, without copying.
pub(crate) fn events(frames: &Bytes) -> impl Iterator<Item = Bytes> {
    // A message is one line, so an empty line always ends an event.
    let mut rest = frames.clone();
    std::iter::from_fn(move || {
        let tail = EVENT_TAIL.as_bytes();
        let end = rest.windows(tail.len()).position(|bytes| bytes == tail)? + tail.len();
        Some(rest.split_to(end))
    })
}

/// The message of one event of the protocol library; `None` if it has none, such as a comment.
pub(crate) fn message(event: &[u8]) -> Option<&[u8]> {
    let lines = event.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"data:")).map(<[u8]>::trim_ascii_start).next()
}

/// The message of an event as a line, without copying.
pub(crate) fn line(event: &Bytes) -> Bytes {
    event.slice(EVENT_HEAD.len()..event.len() - 1)
}

fn to_value(notification: ServerNotification) -> serde_json::Value {
    serde_json::to_value(ServerJsonRpcMessage::notification(notification))
        .expect("a notification is plain JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEGACY: Wire = Wire::Legacy { titled: false, numbered: false };

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_legacy_list_notice_is_one_event() {
        let notice = Notice::list_changed(ListKind::Tools);
        assert_eq!(
            text(&notice.frame(&LEGACY, 7)),
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
        );
    }

    #[test]
    fn the_tag_is_the_request_id_verbatim() {
        let uri = ResourceUri::parse("test://x").unwrap();
        let notice = Notice::updated(&uri, Some("X"));
        for (id, shown) in
            [(RequestId::Number(7), "7"), (RequestId::String("a\"b".into()), "\"a\\\"b\"")]
        {
            let frame = notice.frame(&Wire::modern(&id), 7);
            let message: serde_json::Value =
                serde_json::from_slice(&line(&frame)).expect("a line is JSON");
            assert_eq!(message["params"]["uri"], "test://x");
            assert_eq!(
                message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].to_string(),
                shown
            );
            assert!(message["params"].get("title").is_none());
        }
    }

    #[test]
    fn the_title_is_shown_only_where_the_revision_shows_it() {
        let uri = ResourceUri::parse("test://x").unwrap();
        let notice = Notice::updated(&uri, Some("X"));
        let titled = Wire::Legacy { titled: true, numbered: true };
        let shown = notice.frame(&titled, 7);
        assert!(
            text(&shown).starts_with("id: s7\ndata: ") && text(&shown).contains("\"title\":\"X\"")
        );
        assert!(!text(&notice.frame(&LEGACY, 7)).contains("title"));
    }

    #[test]
    fn the_message_of_an_event_is_found() {
        assert_eq!(message(b"data: {}\n\n"), Some(&b"{}"[..]));
        assert_eq!(message(b"id: 1\ndata:{}\n\n"), Some(&b"{}"[..]));
        assert_eq!((message(b":\n\n"), message(b"")), (None, None));
    }

    #[test]
    fn a_uri_cannot_pose_as_the_tag() {
        let uri = ResourceUri::parse("x:\\u0001\"\\u0001\"").unwrap();
        let frame = Notice::updated(&uri, None).frame(&Wire::modern(&RequestId::Number(1)), 7);
        let message: serde_json::Value = serde_json::from_slice(&line(&frame)).unwrap();
        assert_eq!(message["params"]["uri"], uri.as_ref());
    }
}
