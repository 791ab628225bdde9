//! Topics: the lists and resources that can change, how they are asked for and announced.

use serde_json::{Value, json};
use tidings_mirror::Era;
use tokio::time::Instant;

use super::client::log::{Arrival, Via};
use super::client::{Answered, Probe};

/// Pages that are followed.
const PAGES: usize = 50;
/// Marks the messages of a listen request.
pub(crate) const TAG: &str = "io.modelcontextprotocol/subscriptionId";

/// Something that can change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Tools,
    Prompts,
    Resources,
    Templates,
    Uri(String),
}

pub(crate) const LISTS: [Topic; 4] =
    [Topic::Tools, Topic::Prompts, Topic::Resources, Topic::Templates];

impl std::fmt::Display for Topic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "templates",
            Self::Uri(uri) => uri,
        })
    }
}

impl std::str::FromStr for Topic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "tools" => Self::Tools,
            "prompts" => Self::Prompts,
            "resources" => Self::Resources,
            "templates" => Self::Templates,
            uri if uri.contains(':') => Self::Uri(uri.to_owned()),
            _ => return Err("use tools, prompts, resources, templates or a URI".to_owned()),
        })
    }
}

impl Topic {
    /// The capability it belongs to.
    pub(crate) fn group(&self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            _ => "resources",
        }
    }

    /// The method that lists it.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Uri(_) => "resources/read",
        }
    }

    /// The member of the result that has the items.
    pub(crate) fn member(&self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Uri(_) => "contents",
        }
    }

    /// What names an item.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Templates => "uriTemplate",
            _ => "uri",
        }
    }

    fn notice(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
            Self::Uri(_) => "notifications/resources/updated",
        }
    }

    /// Whether this is a notice of it.
    pub(crate) fn is_told_by(&self, heard: &Arrival) -> bool {
        let is_notice = heard.notice() == Some(self.notice());
        is_notice
            && match self {
                Self::Uri(uri) => {
                    heard.message().is_some_and(|message| message["params"]["uri"] == *uri)
                }
                _ => true,
            }
    }

    /// Whether the server says that it announces changes.
    pub(crate) fn is_promised(&self, client: &Probe) -> bool {
        match self {
            Self::Uri(_) => client.flag("resources", "subscribe"),
            _ => client.flag(self.group(), "listChanged"),
        }
    }
}

/// A list, as its pages said.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemList {
    pub(crate) items: Vec<Value>,
    pub(crate) pages: Vec<Value>,
    /// What is wrong with its pages.
    pub(crate) problem: Option<String>,
}

impl ItemList {
    /// The names or URIs of its items.
    pub(crate) fn keys(&self, topic: &Topic) -> Vec<String> {
        let name = |item: &Value| item[topic.key()].as_str().unwrap_or_default().to_owned();
        self.items.iter().map(name).collect()
    }

    /// The items without sizes and times: these measure content, whose changes have notices of their
    /// own.
    pub(crate) fn plain(&self) -> Vec<Value> {
        let mut items = self.items.clone();
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.remove("size");
            if let Some(Value::Object(annotations)) = item.get_mut("annotations") {
                annotations.remove("lastModified");
            }
        }
        items
    }

    /// The same in the order of their names, so that order alone is no difference.
    pub(crate) fn sorted(&self, topic: &Topic) -> Vec<Value> {
        let mut items = self.plain();
        items.sort_by_cached_key(|item| (item[topic.key()].to_string(), item.to_string()));
        items
    }
}

/// Lists all pages.
pub(crate) async fn list(client: &Probe, topic: &Topic) -> Result<ItemList, Answered> {
    let mut listing = ItemList::default();
    let mut cursors = Vec::new();
    let mut cursor = None;
    loop {
        let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let reply = client.ask(topic.method(), params).await;
        let Answered::Result(page) = reply else { return Err(reply) };
        let Some(items) = page[topic.member()].as_array() else {
            return Err(Answered::Nothing(format!("the result has no `{}`", topic.member())));
        };
        listing.items.extend(items.iter().cloned());
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        listing.pages.push(page);
        let Some(next) = next else { break };
        if cursors.contains(&next) {
            listing.problem = Some(format!("the cursor `{next}` comes twice"));
            break;
        }
        if cursors.len() >= PAGES {
            listing.problem = Some(format!("there are more than {PAGES} pages"));
            break;
        }
        cursors.push(next.clone());
        cursor = Some(next);
    }
    Ok(listing)
}

/// What a client would see of a topic now.
pub(crate) async fn state(client: &Probe, topic: &Topic) -> Result<Value, Answered> {
    match topic {
        Topic::Uri(uri) => match client.ask("resources/read", json!({ "uri": uri })).await {
            Answered::Result(result) => Ok(result["contents"].clone()),
            // A resource that is gone is a state, too.
            Answered::Error { code, .. } => Ok(json!({ "error": code })),
            nothing @ Answered::Nothing(_) => Err(nothing),
        },
        _ => Ok(Value::Array(list(client, topic).await?.sorted(topic))),
    }
}

/// What a client is told of: a legacy session's subscriptions, or one listen request.
pub(crate) struct Following<'a> {
    pub(crate) client: &'a Probe,
    /// The id of the listen request.
    pub(crate) listen: Option<Value>,
    uris: Vec<String>,
    /// What the server acknowledged, in the modern era.
    pub(crate) honoured: Value,
}

impl<'a> Following<'a> {
    /// Subscribes. Legacy lists need no subscription.
    pub(crate) async fn open(client: &'a Probe, topics: &[Topic]) -> Result<Following<'a>, String> {
        let uris: Vec<_> = topics
            .iter()
            .filter_map(|topic| match topic {
                Topic::Uri(uri) => Some(uri.clone()),
                _ => None,
            })
            .collect();
        if client.era == Era::Legacy {
            for uri in &uris {
                let reply = client.ask("resources/subscribe", json!({ "uri": uri })).await;
                if reply.result().is_none() {
                    return Err(format!("subscribing to {uri} got {reply}"));
                }
            }
            return Ok(Self { client, listen: None, uris, honoured: Value::Null });
        }
        let mark = client.log.mark();
        let filter = filter(topics);
        let id = client.begin("subscriptions/listen", json!({ "notifications": filter })).await?;
        let honoured = acknowledged(client, &id, mark).await?;
        Ok(Self { client, listen: Some(id), uris, honoured })
    }

    /// Whether this message belongs to it.
    pub(crate) fn has(&self, heard: &Arrival) -> bool {
        match &self.listen {
            None => true,
            Some(id) => belongs(heard, id),
        }
    }

    /// Whether this is its notice of a topic.
    pub(crate) fn tells(&self, topic: &Topic, heard: &Arrival) -> bool {
        topic.is_told_by(heard) && self.has(heard)
    }

    /// Waits for a notice of a topic.
    pub(crate) async fn wait(
        &self,
        topic: &Topic,
        mark: usize,
        deadline: Instant,
    ) -> Option<(usize, Arrival)> {
        self.client.log.wait(mark, deadline, |heard| self.tells(topic, heard)).await
    }

    /// Its notices of a topic from a place on.
    pub(crate) fn notices(&self, topic: &Topic, mark: usize) -> Vec<Arrival> {
        let heard = self.client.log.since(mark);
        heard.into_iter().filter(|heard| self.tells(topic, heard)).collect()
    }

    /// Unsubscribes, or cancels the listen request.
    pub(crate) async fn close(self) -> Vec<String> {
        match &self.listen {
            Some(id) => self.client.cancel(id).await,
            None => {
                for uri in &self.uris {
                    let params = json!({ "uri": uri });
                    // The next check sees whether it worked.
                    drop(self.client.ask("resources/unsubscribe", params).await);
                }
            }
        }
        self.uris
    }
}

/// Whether a message belongs to a listen request: over HTTP by its stream, in a pipe by its tag.
pub(crate) fn belongs(heard: &Arrival, id: &Value) -> bool {
    match &heard.via {
        Via::Answer(answered) => answered == id,
        _ => heard.message().is_some_and(|message| message["params"]["_meta"][TAG] == *id),
    }
}

/// The filter of a listen request.
pub(crate) fn filter(topics: &[Topic]) -> Value {
    let mut filter = json!({});
    let mut uris = Vec::new();
    for topic in topics {
        match topic {
            Topic::Tools => filter["toolsListChanged"] = json!(true),
            Topic::Prompts => filter["promptsListChanged"] = json!(true),
            Topic::Resources | Topic::Templates => filter["resourcesListChanged"] = json!(true),
            Topic::Uri(uri) => uris.push(uri.clone()),
        }
    }
    if !uris.is_empty() {
        filter["resourceSubscriptions"] = json!(uris);
    }
    filter
}

/// Waits for the acknowledgement of a listen request: what is honoured.
pub(crate) async fn acknowledged(client: &Probe, id: &Value, mark: usize) -> Result<Value, String> {
    let deadline = Instant::now() + std::time::Duration::from_secs(5);
    let wanted = |heard: &Arrival| {
        let is_answer = heard.message().is_some_and(|message| message.get("id") == Some(id));
        let is_end = heard.message().is_none() && heard.via == Via::Answer(id.clone());
        let is_acknowledgement = heard.notice() == Some("notifications/subscriptions/acknowledged");
        is_answer || is_end || is_acknowledgement && has_id(heard, id)
    };
    let Some((_, heard)) = client.log.wait(mark, deadline, wanted).await else {
        return Err("`subscriptions/listen` was not acknowledged within 5 s".to_owned());
    };
    match heard.message() {
        Some(message) if heard.notice().is_some() => Ok(message["params"]["notifications"].clone()),
        Some(message) => {
            Err(format!("`subscriptions/listen` was refused: {}", message["error"]["message"]))
        }
        None => Err(format!("`subscriptions/listen` ended: {:?}", heard.what)),
    }
}

/// Whether a message names this request; a tag of the wrong type is found by its own check.
fn has_id(heard: &Arrival, id: &Value) -> bool {
    if heard.via == Via::Answer(id.clone()) {
        return true;
    }
    let tag = heard.message().map(|message| message["params"]["_meta"][TAG].clone());
    tag.is_some_and(|tag| {
        tag == *id || tag.as_str().is_some_and(|tag| tag == id.to_string().trim_matches('"'))
    })
}
