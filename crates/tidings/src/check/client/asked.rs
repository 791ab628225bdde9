//! Requests of the server to its client, and how they are answered.

use serde_json::{Value, json};
use tidings_mirror::Era;

/// The error of a person who declines.
const DECLINED: i64 = -1;

/// How one client answers requests of the server.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    era: Era,
    /// What the client declared.
    capabilities: Value,
}

impl Manners {
    pub(crate) fn new(era: Era, capabilities: Value) -> Self {
        Self { era, capabilities }
    }

    /// The answer to a message, if it asks for one. Modern servers send no requests, and their clients
    /// no answers.
    pub(crate) fn reply(&self, message: &Value) -> Option<Value> {
        let method = message.get("method")?.as_str().unwrap_or_default();
        let id = message.get("id")?;
        if self.era != Era::Legacy {
            return None;
        }
        let declares = |name: &str| self.capabilities.get(name).is_some();
        let refused = |code: i64, message: &str| Err(json!({ "code": code, "message": message }));
        let answer = match method {
            "ping" => Ok(json!({})),
            "roots/list" if declares("roots") => Ok(json!({ "roots": [] })),
            "elicitation/create" if declares("elicitation") => Ok(json!({ "action": "decline" })),
            "sampling/createMessage" if declares("sampling") => {
                refused(DECLINED, "the user declined")
            }
            _ => refused(-32601, "not supported"),
        };
        Some(match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(era: Era, capabilities: Value, message: &Value) -> Option<Value> {
        let reply = Manners::new(era, capabilities).reply(message)?;
        assert_eq!((&reply["jsonrpc"], &reply["id"]), (&json!("2.0"), &message["id"]));
        Some(if reply["error"].is_null() {
            reply["result"].clone()
        } else {
            reply["error"]["code"].clone()
        })
    }

    #[test]
    fn requests_are_answered_as_the_client_declared() {
        let all = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
        for (method, plain, able) in [
            ("ping", json!({}), json!({})),
            ("roots/list", json!(-32601), json!({ "roots": [] })),
            ("elicitation/create", json!(-32601), json!({ "action": "decline" })),
            ("sampling/createMessage", json!(-32601), json!(-1)),
            ("something/else", json!(-32601), json!(-32601)),
        ] {
            let asked = json!({ "jsonrpc": "2.0", "id": "a", "method": method });
            assert_eq!(answered(Era::Legacy, json!({}), &asked), Some(plain), "{method}");
            assert_eq!(answered(Era::Legacy, all.clone(), &asked), Some(able), "{method}");
            assert_eq!(answered(Era::Modern, all.clone(), &asked), None, "{method}");
        }
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message" });
        assert_eq!(answered(Era::Legacy, all.clone(), &notice), None);
        assert_eq!(answered(Era::Legacy, all, &json!({ "id": 1, "result": {} })), None);
    }
}
