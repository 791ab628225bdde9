//! Errors for clients: a code, a stable message, and data to act on.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;
use tidings_core::{ResourceUri, UriError};

use crate::answer::{AnswerError, error_code};
use crate::catalog::{CursorError, Missing};
use crate::method::KNOWN_METHODS;
use crate::pipeline::SubscribeError;

/// Methods that modern revisions do not have.
const REMOVED_METHODS: [&str; 4] =
    ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The error for a modern request that matches no method: as [`method`], with fewer methods.
pub(crate) fn modern_method(name: &str) -> ErrorData {
    if REMOVED_METHODS.contains(&name) { unknown_method(name) } else { method(name) }
}

/// The error for a request that matches no method: the method is unknown, or its parameters are
/// invalid.
pub(crate) fn method(name: &str) -> ErrorData {
    if KNOWN_METHODS.contains(&name) {
        return ErrorData::invalid_params(
            "Invalid params",
            Some(json!({ "details": format!("the parameters do not have the shape of `{name}`") })),
        );
    }
    unknown_method(name)
}

fn unknown_method(name: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Method not found: {name}"), None)
}

pub(crate) fn malformed_uri(uri: &str, error: &UriError) -> ErrorData {
    ErrorData::invalid_params(
        "Malformed resource URI",
        Some(json!({ "uri": uri, "details": error.to_string() })),
    )
}

pub(crate) fn missing_uri(uri: &ResourceUri, missing: Missing) -> ErrorData {
    match missing {
        Missing::Unknown => ErrorData::resource_not_found(
            "Resource not found",
            Some(json!({
                "uri": uri.as_ref(),
                "details": "no resource or resource template of this server has this URI",
            })),
        ),
        Missing::Disabled => ErrorData::invalid_params(
            "The resource is disabled",
            Some(json!({ "uri": uri.as_ref(), "details": "it is not offered at the moment" })),
        ),
    }
}

/// The error for a name that is not offered. `near` are those that look like it.
pub(crate) fn missing_name(kind: &str, name: &str, missing: Missing, near: &[&str]) -> ErrorData {
    let (mut message, details) = match missing {
        Missing::Unknown => {
            (format!("Unknown {kind}: {name}"), "this server offers none of that name")
        }
        Missing::Disabled => {
            (format!("The {kind} {name} is disabled"), "it is not offered at the moment")
        }
    };
    let mut data = json!({ "parameter": "name", "value": name, "details": details });
    if !near.is_empty() && matches!(missing, Missing::Unknown) {
        let names: Vec<_> = near.iter().map(|near| format!("`{near}`")).collect();
        message = format!("{message}; like it: {}", names.join(", "));
        data["near"] = json!(near);
    }
    ErrorData::invalid_params(message, Some(data))
}

pub(crate) fn cursor(cursor: Option<&str>, error: CursorError) -> ErrorData {
    ErrorData::invalid_params(
        "Invalid cursor",
        Some(json!({ "parameter": "cursor", "value": cursor, "details": error.to_string() })),
    )
}

pub(crate) fn subscribe(uri: &ResourceUri, error: SubscribeError) -> ErrorData {
    let details = error.to_string();
    match error {
        SubscribeError::Unreadable(error) => answer("uri", uri.as_ref(), error),
        SubscribeError::Unknown => missing_uri(uri, Missing::Unknown),
        SubscribeError::Disabled => missing_uri(uri, Missing::Disabled),
        SubscribeError::TooMany(_) | SubscribeError::Full(_) => ErrorData::invalid_params(
            "Too many subscriptions",
            Some(json!({ "uri": uri.as_ref(), "details": details })),
        ),
    }
}

/// The error of a source for a request whose `parameter` had this `value`.
pub(crate) fn answer(parameter: &str, value: &str, error: AnswerError) -> ErrorData {
    let details = error.to_string();
    match error {
        AnswerError::NotFound(_) | AnswerError::Absent(_) if parameter == "uri" => {
            ErrorData::resource_not_found(
                "Resource not found",
                Some(json!({ "uri": value, "details": details })),
            )
        }
        AnswerError::NotFound(_) | AnswerError::Absent(_) => ErrorData::invalid_params(
            "Not found",
            Some(json!({ "parameter": parameter, "value": value, "details": details })),
        ),
        AnswerError::Malformed(_) => ErrorData::invalid_params(
            "Invalid resource URI format",
            Some(json!({ (parameter): value, "details": details })),
        ),
        AnswerError::Invalid { parameter: wrong, value: given, details } => {
            let data = json!({ "parameter": wrong, "value": given, "details": details });
            // The parameters of a read are those of its URI.
            if parameter == "uri" && wrong != "uri" {
                ErrorData::invalid_params("Invalid parameter value", Some(data))
            } else {
                ErrorData::invalid_params(format!("Invalid {wrong}"), Some(data))
            }
        }
        AnswerError::Unavailable(_) => ErrorData::internal_error(
            "Resource temporarily unavailable",
            Some(json!({ (parameter): value, "details": details })),
        ),
        AnswerError::Capability(required) => {
            ErrorData::missing_required_client_capability(*required)
        }
        // The transport has the whole error.
        AnswerError::Raw(raw) => ErrorData::new(error_code(&raw), details, None),
        AnswerError::Failed(_) => ErrorData::internal_error(
            "Internal error",
            Some(json!({ (parameter): value, "details": details })),
        ),
    }
}
