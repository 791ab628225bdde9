//! Requests relayed for somebody else: parameters as they are given, answers as they were sent.

// The level of a log message is deprecated and still sent.
#![expect(deprecated, reason = "servers of every revision are relayed")]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CompleteRequest, CompleteRequestParams,
    GetPromptRequest, GetPromptRequestParams, LoggingLevel, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde_json::Value;

use crate::events::Progress;
use crate::request::RequestError;

/// A request to relay: see [`Mirror::relay`](crate::Mirror::relay).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Relay {
    /// A call of a tool.
    Call(CallToolRequestParams),
    /// A prompt to fill in.
    Prompt(GetPromptRequestParams),
    /// A read of a resource.
    Read(ReadResourceRequestParams),
    /// Values for an argument.
    Complete(CompleteRequestParams),
}

impl Relay {
    pub(crate) fn into_request(self) -> ClientRequest {
        match self {
            Self::Call(params) => ClientRequest::CallToolRequest(CallToolRequest::new(params)),
            Self::Prompt(params) => ClientRequest::GetPromptRequest(GetPromptRequest::new(params)),
            Self::Read(params) => {
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
            Self::Complete(params) => ClientRequest::CompleteRequest(CompleteRequest::new(params)),
        }
    }
}

/// What the server says during a relayed request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Heard {
    /// How far it is.
    Progress(Progress),
    /// A log message: over HTTP one on the stream of the answer, over stdio one that came while no
    /// other request was open.
    Log {
        /// Its level.
        level: LoggingLevel,
        /// The part of the server that logged it.
        logger: Option<String>,
        /// The message.
        data: Value,
    },
}

/// Why a relayed request has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct RelayError {
    /// The reason.
    pub error: RequestError,
    /// The error of the server as it was sent, if it answered with one.
    pub raw: Option<Arc<str>>,
}

impl From<RequestError> for RelayError {
    fn from(error: RequestError) -> Self {
        Self { error, raw: None }
    }
}
