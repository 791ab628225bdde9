//! What the fixture answers: its capabilities, lists and resources.

use serde_json::{Value, json};

use super::fixture::{COUNTER, Fixture, OTHER};

impl Fixture {
    pub(super) fn capabilities(&self) -> Value {
        let mut all = json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
        });
        if self.breaks("caps.silent-change") {
            all["resources"]["listChanged"] = json!(false);
        }
        if self.is_for("caps.subscribe-undeclared") || self.breaks("cache.truth") {
            all["resources"]["subscribe"] = json!(false);
        }
        all
    }

    pub(super) fn ask(
        &self,
        key: &str,
        method: &str,
        params: &Value,
        is_modern: bool,
    ) -> Result<Value, (i64, &'static str)> {
        let server = json!({ "name": "fixture", "version": "1" });
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25", "capabilities": self.capabilities(),
                "serverInfo": server,
            })),
            "server/discover" => Ok(json!({
                "supportedVersions": ["2026-07-28"], "capabilities": self.capabilities(),
                "_meta": { "io.modelcontextprotocol/serverInfo": server },
            })),
            "ping" => Ok(json!({})),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                self.list(key, method, params, is_modern)
            }
            "resources/read" => self.read(params["uri"].as_str().unwrap_or_default()),
            "resources/subscribe" | "resources/unsubscribe"
                if !is_modern && !self.refuses_subscriptions() =>
            {
                let uri = params["uri"].as_str().unwrap_or_default();
                if !self.accepts(uri) {
                    return Err((-32002, "there is no such resource"));
                }
                let mut state = self.lock();
                let session = state.sessions.get_mut(key).ok_or((-32600, "no session"))?;
                if method == "resources/subscribe" {
                    session.subscribed.insert(uri.to_owned());
                } else if !self.breaks("sub.unsubscribe-quiet") {
                    session.subscribed.remove(uri);
                }
                Ok(json!({}))
            }
            _ => Err((-32601, "there is no such method")),
        }
    }

    pub(super) fn accepts(&self, uri: &str) -> bool {
        if self.refuses_subscriptions() || (uri == OTHER && self.breaks("caps.subscribe-works")) {
            return false;
        }
        self.breaks("sub.unknown-uri") || self.uris().contains(&uri.to_owned())
    }

    fn refuses_subscriptions(&self) -> bool {
        let is_honest = self.is_for("caps.subscribe-undeclared") && !self.is_broken();
        is_honest || self.breaks("cache.truth")
    }

    fn uris(&self) -> Vec<String> {
        let extra = format!("test://extra/{}", self.lock().value);
        let mut uris = vec![COUNTER.to_owned(), extra, OTHER.to_owned()];
        if self.breaks("read.stable") {
            uris.push("test://clock".to_owned());
        }
        uris
    }

    fn list(
        &self,
        key: &str,
        method: &str,
        params: &Value,
        is_modern: bool,
    ) -> Result<Value, (i64, &'static str)> {
        let cursor = params["cursor"].as_str();
        let is_known = cursor.is_none_or(|cursor| cursor == "two");
        let is_endless = method == "prompts/list" && self.breaks("list.pages-end");
        if !is_known && !is_endless && !self.breaks("list.cursor-bad") {
            return Err((-32602, "there is no such cursor"));
        }
        if method == "prompts/list" && self.breaks("caps.list-served") {
            return Err((-32603, "it broke"));
        }
        let uris = self.uris();
        let mut state = self.lock();
        state.lists += 1;
        let (number, samples) = state
            .sessions
            .get(key)
            .map_or((0, false), |session| (session.number, session.offers_sampling));
        let item = |name: &str| json!({ "name": name });
        Ok(match method {
            "tools/list" => {
                let mut names: Vec<_> =
                    ["bump", "destroy", "set", "shape"].map(str::to_owned).to_vec();
                names.push(format!("extra_{}", state.value));
                let mut add = |id: &str, holds: bool, name: String| {
                    if self.breaks(id) && holds {
                        names.push(name);
                    }
                };
                add("caps.eras-agree", !is_modern, "old".to_owned());
                add("caps.depend-on-client", samples, "sampler".to_owned());
                add("list.per-connection", true, format!("conn_{number}"));
                add("list.names-legal", true, "bad name!".to_owned());
                add("cache.scope", key.ends_with("-b"), "secret".to_owned());
                if self.breaks("list.order-stable") && state.lists.is_multiple_of(2) {
                    names.reverse();
                }
                let tools: Vec<_> = names
                    .iter()
                    .map(|name| {
                        let mut tool = json!({ "name": name, "inputSchema": { "type": "object" } });
                        if name == "bump" {
                            tool["annotations"] =
                                json!({ "destructiveHint": false, "openWorldHint": false });
                        }
                        tool
                    })
                    .collect();
                json!({ "tools": tools })
            }
            "prompts/list" => {
                let prompts = vec![item("a"), item("b")];
                if self.breaks("list.pages-end") {
                    return Ok(json!({ "prompts": prompts, "nextCursor": "again" }));
                }
                // Two pages, one prompt each.
                let page = usize::from(cursor == Some("two"));
                let mut result = json!({ "prompts": [prompts[page]] });
                if page == 0 {
                    result["nextCursor"] = json!("two");
                }
                result
            }
            "resources/list" => {
                let resources: Vec<_> =
                    uris.iter().map(|uri| json!({ "name": uri, "uri": uri })).collect();
                json!({ "resources": resources })
            }
            _ => {
                let template = format!("test://shape/{}/{{x}}", state.shape);
                json!({ "resourceTemplates": [{ "name": "t", "uriTemplate": template }] })
            }
        })
    }

    fn read(&self, uri: &str) -> Result<Value, (i64, &'static str)> {
        let is_known = self.uris().contains(&uri.to_owned());
        let mut state = self.lock();
        state.reads += 1;
        let text = match uri {
            COUNTER => state.value.clone(),
            "test://clock" if self.breaks("read.stable") => state.reads.to_string(),
            _ if is_known => "same".to_owned(),
            _ if self.breaks("read.notfound") => return Ok(json!({ "contents": [] })),
            _ => return Err((-32602, "there is no such resource")),
        };
        Ok(json!({ "contents": [{ "uri": uri, "text": text }] }))
    }

    /// Adds what modern results have.
    pub(super) fn hint(&self, method: &str, result: &mut Value) {
        result["resultType"] = json!("complete");
        let cached =
            method.ends_with("/list") || method.ends_with("/read") || method == "server/discover";
        if !cached || (method == "prompts/list" && self.breaks("cache.hints")) {
            return;
        }
        let keeps = method == "resources/read" && self.is_for("cache.truth");
        result["ttlMs"] = json!(if keeps { 60_000 } else { 0 });
        let scope = if self.breaks("cache.scope") { "public" } else { "private" };
        result["cacheScope"] = json!(scope);
    }
}
