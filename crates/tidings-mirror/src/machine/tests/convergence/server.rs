//! The server of the model: its state, its answers, its failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmcp::model::{ErrorCode, ErrorData, JsonObject, Resource, Tool};

use crate::cache::ResourceContent;
use crate::lists::{List, Page};
use crate::machine::{Input, PageAnswer, Request};
use crate::odd::Odd;
use crate::request::RequestError;

const PAGE: usize = 2;

/// A server that knows nothing of mirrors.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub(super) tools: BTreeMap<u8, u8>,
    /// Invalid tools.
    pub(super) odd: BTreeSet<u8>,
    pub(super) resources: BTreeMap<u8, u8>,
    /// Resources larger than any answer may be.
    pub(super) large: BTreeSet<u8>,
    /// Resources that are listed and cannot be read.
    pub(super) hidden: BTreeSet<u8>,
    /// Whether the last page of a list has another cursor, which is not new.
    pub(super) is_endless: bool,
    /// Advances with every change of a list; part of cursors if they are strict.
    pub(super) generation: u64,
    pub(super) watched: BTreeSet<Arc<str>>,
    pub(super) strict_cursors: bool,
    /// Whether it refuses to watch resources that cannot be read.
    pub(super) strict_watching: bool,
}

pub(super) fn uri(key: u8) -> Arc<str> {
    format!("test://{key}").into()
}

pub(super) fn key_of(uri: &str) -> u8 {
    uri.trim_start_matches("test://").parse().unwrap()
}

fn content(text: String) -> ResourceContent {
    let read_at = SystemTime::UNIX_EPOCH;
    ResourceContent { read_at, ..ResourceContent::of_text("test://x", text) }
}

fn refused(code: i32) -> RequestError {
    RequestError::Refused(ErrorData::new(ErrorCode(code), "no", None))
}

impl Server {
    fn page<T>(
        &self,
        all: Vec<Result<T, Odd>>,
        cursor: Option<&str>,
    ) -> Result<Page<T>, RequestError> {
        let (offset, generation) = match cursor {
            // An empty one is as none.
            None | Some("") => (0, self.generation),
            Some(cursor) => {
                let (offset, generation) = cursor.split_once('/').unwrap();
                (offset.parse().unwrap(), generation.parse().unwrap())
            }
        };
        if self.strict_cursors && generation != self.generation {
            return Err(refused(-32602));
        }
        let is_last = offset + PAGE >= all.len();
        let next = match cursor {
            _ if !is_last => Some(format!("{}/{generation}", offset + PAGE)),
            // The cursor of this page again, or an empty one.
            cursor if self.is_endless => Some(cursor.unwrap_or_default().to_owned()),
            _ => None,
        };
        let (mut items, mut odd) = (Vec::new(), Vec::new());
        for (index, item) in all.into_iter().skip(offset).take(PAGE).enumerate() {
            match item {
                Ok(item) => items.push(item.into()),
                Err(unusable) => odd.push(Odd { index, ..unusable }),
            }
        }
        Ok(Page { items, odd, next })
    }

    /// All tools, with invalid items in place of the invalid ones.
    fn listed_tools(&self) -> Vec<Result<Tool, Odd>> {
        let tool = |(key, version): (&u8, &u8)| {
            let name = format!("tool-{key}");
            if !self.odd.contains(key) {
                return Ok(Tool::new(name, format!("version {version}"), JsonObject::new()));
            }
            Err(Odd::new(0, "odd", serde_json::json!({ "name": name })))
        };
        self.tools.iter().map(tool).collect()
    }

    /// The valid tools.
    pub(super) fn tools(&self) -> Vec<Tool> {
        self.listed_tools().into_iter().filter_map(Result::ok).collect()
    }

    /// The positions of the invalid ones.
    pub(super) fn odd_tools(&self) -> Vec<usize> {
        let listed = self.listed_tools();
        let places = listed.iter().enumerate().filter(|(_, tool)| tool.is_err());
        places.map(|(place, _)| place).collect()
    }

    pub(super) fn resources(&self) -> Vec<Resource> {
        self.resources.keys().map(|key| Resource::new(uri(*key).to_string(), "thing")).collect()
    }

    pub(super) fn read(&self, uri: &str) -> Result<ResourceContent, RequestError> {
        let key = key_of(uri);
        let version = self.resources.get(&key).filter(|_| !self.hidden.contains(&key));
        let version = version.ok_or_else(|| refused(-32002))?;
        if self.large.contains(&key) {
            return Err(RequestError::TooLarge(100));
        }
        Ok(content(version.to_string()))
    }

    /// The server's answer to a request now.
    pub(super) fn answer(&mut self, request: &Asked) -> Option<Input> {
        Some(match request {
            Asked::Machine(Request::Page { list, ticket, cursor }) => {
                let answer = match list {
                    List::Tools => {
                        PageAnswer::Tools(self.page(self.listed_tools(), cursor.as_deref()))
                    }
                    List::Resources => {
                        let all = self.resources().into_iter().map(Ok).collect();
                        PageAnswer::Resources(self.page(all, cursor.as_deref()))
                    }
                    List::Templates | List::Prompts => return None,
                };
                Input::Page { ticket: *ticket, answer }
            }
            Asked::Machine(Request::Read { uri, ticket }) => {
                Input::Reread { uri: uri.clone(), ticket: *ticket, answer: self.read(uri) }
            }
            // The resources watched when the server is asked, as in the driver.
            Asked::Machine(Request::Restore | Request::Watch { .. }) => return None,
            Asked::Subscribe(uris) => {
                let is_gone =
                    |uri: &Arc<str>| matches!(self.read(uri), Err(RequestError::Refused(_)));
                let is_watched = |uri: &Arc<str>| !self.strict_watching || !is_gone(uri);
                let (uris, refused): (Vec<_>, Vec<_>) = uris.iter().cloned().partition(is_watched);
                self.watched.extend(uris.iter().cloned());
                self.watched.retain(|uri| !refused.contains(uri));
                Input::Subscribed { uris, refused }
            }
            Asked::Read { uri, ticket } => match self.read(uri) {
                Ok(content) => {
                    let content = Arc::new(content);
                    Input::Read { uri: uri.clone(), ticket: *ticket, content }
                }
                Err(_) => Input::ReadFailed { uri: uri.clone() },
            },
        })
    }

    pub(super) fn failure(request: &Asked) -> Option<Input> {
        let error = || RequestError::Timeout(Duration::from_secs(1));
        Some(match request {
            Asked::Machine(Request::Page { list: List::Tools, ticket, .. }) => {
                Input::Page { ticket: *ticket, answer: PageAnswer::Tools(Err(error())) }
            }
            Asked::Machine(Request::Page { ticket, .. }) => {
                Input::Page { ticket: *ticket, answer: PageAnswer::Resources(Err(error())) }
            }
            Asked::Machine(Request::Read { uri, ticket }) => {
                Input::Reread { uri: uri.clone(), ticket: *ticket, answer: Err(error()) }
            }
            Asked::Read { uri, .. } => Input::ReadFailed { uri: uri.clone() },
            Asked::Machine(Request::Restore | Request::Watch { .. }) | Asked::Subscribe(_) => {
                return None;
            }
        })
    }
}

#[derive(Clone, Debug)]
pub(super) enum Asked {
    Machine(Request),
    Read { uri: Arc<str>, ticket: u64 },
    Subscribe(Vec<Arc<str>>),
}
