//! Incomplete `initialize` requests: their valid members, and defaults for the others.

use rmcp::model::{
    ClientCapabilities, ClientRequest, CustomRequest, GetMeta, Implementation,
    InitializeRequestParams, ProtocolVersion, Request,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The members of a client's capabilities.
const CAPABILITIES: [&str; 5] = ["experimental", "extensions", "roots", "sampling", "elicitation"];
/// The members of a client's description of itself.
const CLIENT_INFO: [&str; 6] = ["name", "title", "version", "description", "icons", "websiteUrl"];

/// In the extensions of an `initialize` request that names no revision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unnamed;

/// Completes an `initialize` request that the library could not parse.
///
/// The library takes such a request for one with an unknown method. Any other request, and an
/// `initialize` whose `_meta` names a revision without a handshake, is returned as it is.
pub(crate) fn complete(request: ClientRequest) -> ClientRequest {
    match request {
        ClientRequest::CustomRequest(custom) if is_legacy_initialize(&custom) => {
            let mut initialize = Request::new(complete_initialize(custom.params.as_ref()));
            initialize.extensions = custom.extensions;
            if version_of(custom.params.as_ref()).is_none() {
                initialize.extensions.insert(Unnamed);
            }
            ClientRequest::InitializeRequest(initialize)
        }
        request => request,
    }
}

/// A client's description of itself, with defaults for members that are missing or have the wrong
/// type: revision 2025-11-25, no capabilities, and the name "unknown" in version "0".
pub(crate) fn complete_initialize(params: Option<&Value>) -> InitializeRequestParams {
    let member = |name| params.and_then(|params| params.get(name));
    let capabilities: ClientCapabilities =
        readable(&Map::new(), &CAPABILITIES, member("capabilities")).unwrap_or_default();
    let unknown = Implementation::new("unknown", "0");
    let defaults = Map::from_iter([
        ("name".to_owned(), json!(unknown.name)),
        ("version".to_owned(), json!(unknown.version)),
    ]);
    let client_info = readable(&defaults, &CLIENT_INFO, member("clientInfo")).unwrap_or(unknown);
    let version = version_of(params).unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
    InitializeRequestParams::new(capabilities, client_info).with_protocol_version(version)
}

fn version_of(params: Option<&Value>) -> Option<ProtocolVersion> {
    params.and_then(|params| params.get("protocolVersion")).and_then(|it| read(it.clone()))
}

fn is_legacy_initialize(request: &CustomRequest) -> bool {
    request.method == "initialize" && request.get_meta().protocol_version().is_none()
}

/// The defaults, replaced by the valid ones of the named members.
///
/// Each member is tried by itself. If an object is invalid, its own members are tried the same way.
fn readable<T: DeserializeOwned>(
    defaults: &Map<String, Value>,
    names: &[&str],
    said: Option<&Value>,
) -> Option<T> {
    let reads = |name: &str, value: Value| {
        let mut alone = defaults.clone();
        alone.insert(name.to_owned(), value);
        read::<T>(Value::Object(alone)).is_some()
    };
    let mut kept = defaults.clone();
    for name in names {
        let Some(value) = said.and_then(|said| said.get(name)) else { continue };
        if reads(name, value.clone()) {
            kept.insert((*name).to_owned(), value.clone());
        } else if let Value::Object(members) = value {
            let fine = members
                .iter()
                .filter(|(key, value)| reads(name, json!({ key.as_str(): value })))
                .map(|(key, value)| (key.clone(), value.clone()));
            kept.insert((*name).to_owned(), Value::Object(fine.collect()));
        }
    }
    read(Value::Object(kept))
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the completed parameters; `expected` replaces the defaults.
    #[track_caller]
    fn check(params: &Value, expected: &Value) {
        let completed = serde_json::to_value(complete_initialize(Some(params))).unwrap();
        let mut wanted = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "unknown", "version": "0" },
        });
        for (name, value) in expected.as_object().unwrap() {
            wanted[name] = value.clone();
        }
        assert_eq!(completed, wanted, "{params}");
    }

    #[test]
    fn what_is_missing_or_of_the_wrong_type_has_a_default() {
        for nothing in [
            json!({}),
            json!(null),
            json!([]),
            json!("2025-03-26"),
            json!({ "protocolVersion": null, "capabilities": null, "clientInfo": null }),
            json!({ "protocolVersion": 7, "capabilities": [], "clientInfo": "me" }),
            json!({ "clientInfo": { "name": 1, "version": 2, "title": 3, "icons": 4 } }),
        ] {
            check(&nothing, &json!({}));
        }
        let nothing = complete_initialize(None);
        assert_eq!(nothing.protocol_version, ProtocolVersion::V_2025_11_25);
    }

    #[test]
    fn what_can_be_read_is_kept() {
        let version = json!({ "protocolVersion": "2025-03-26" });
        check(&version, &version);
        check(
            &json!({ "clientInfo": { "name": "me", "title": "Me", "websiteUrl": 5 } }),
            &json!({ "clientInfo": { "name": "me", "version": "0", "title": "Me" } }),
        );
        check(
            &json!({ "capabilities": { "roots": { "listChanged": true }, "sampling": 3, "x": 1 } }),
            &json!({ "capabilities": { "roots": { "listChanged": true } } }),
        );
        check(
            &json!({ "capabilities": { "roots": { "listChanged": 1 }, "elicitation": {} } }),
            &json!({ "capabilities": { "roots": {}, "elicitation": {} } }),
        );
    }

    #[test]
    fn only_a_legacy_initialize_is_completed() {
        let initialize = |params: Value| {
            let request = json!({ "method": "initialize", "params": params });
            complete(serde_json::from_value(request).unwrap())
        };
        assert!(matches!(initialize(json!({})), ClientRequest::InitializeRequest(_)));
        let modern =
            json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
        assert!(matches!(initialize(modern), ClientRequest::CustomRequest(_)));
        let bare = serde_json::from_value(json!({ "method": "initialize" })).unwrap();
        assert!(matches!(complete(bare), ClientRequest::InitializeRequest(_)));
        let other = serde_json::from_value(json!({ "method": "hello" })).unwrap();
        assert!(matches!(complete(other), ClientRequest::CustomRequest(_)));
    }
}
