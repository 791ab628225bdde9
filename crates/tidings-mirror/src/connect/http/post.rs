//! Messages to the server, each in a POST, and their answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse};

use super::super::arguments;
use super::super::body;
use super::super::choice::not_modern;
use super::super::mend;
use super::super::raw::Raw;
use super::error::preview;
use super::{
    EVENT_STREAM, HttpClient, HttpError, JSON, Repeat, SESSION, content_type, header, headers,
};
use crate::history::{Happened, shortened};

impl HttpClient {
    /// The body as readable text.
    async fn preview(response: reqwest::Response) -> (u16, Vec<u8>) {
        let status = response.status().as_u16();
        let body = body::collect(response.bytes_stream(), 64 << 10).await.unwrap_or_default();
        (status, body)
    }

    /// Sends a message. The wait for the answer to `server/discover` is short.
    pub(super) async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        let probe = self.shared.probe.zip(probed(&message).cloned());
        let Some((patience, id)) = probe else {
            return self.exchange(message, session, custom).await;
        };
        let answered =
            tokio::time::timeout(patience, self.exchange(message, session, custom)).await;
        answered.unwrap_or_else(|_| {
            let legacy = not_modern(id, "no answer to server/discover in time".to_owned());
            Ok(StreamableHttpPostResponse::Json(legacy, None))
        })
    }

    async fn exchange(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        let body = arguments::written(&message)?;
        self.shared.wire.sent(&message, &body);
        let headers = headers(custom, session.as_deref(), None);
        let sent = self.send(Method::POST, Some(body.into()), headers, repeat(&message)).await;
        let response = sent.map_err(|error| self.fail(error))?;
        let status = response.status();
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refused(&message, session.as_deref(), response).await;
        }
        let given = header(&response, &SESSION);
        if let Some(session) = &given
            && !self.shared.has_session.swap(true, Ordering::Relaxed)
        {
            let session = shortened(session);
            self.shared.wire.happened(Happened::SessionBegun { session });
        }
        match content_type(&response).as_str() {
            EVENT_STREAM => {
                let events = self.events(response, &Method::POST, Raw::asked(&message));
                Ok(StreamableHttpPostResponse::Sse(events, given))
            }
            JSON => {
                let most = self.shared.max_message;
                let body = body::collect(response.bytes_stream(), most).await;
                let body = body.map_err(|error| self.fail(error.into()))?;
                if let Some((id, Some(raw))) = Raw::asked(&message) {
                    raw.keep(&id, &body);
                }
                match mend::parse(&body) {
                    Ok(answer) => {
                        self.shared.wire.received(&answer, &body);
                        match belongs(&message, answer) {
                            Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, given)),
                            None => Err(self.fail(HttpError::OtherAnswer)),
                        }
                    }
                    // Nobody waits for an answer to this one.
                    Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
                    Err(_) => Err(self.fail(HttpError::NotAMessage(preview(&body)))),
                }
            }
            _ if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            other => Err(self.fail(HttpError::ContentType(other.to_owned()))),
        }
    }

    /// The meaning of an answer that is not a success.
    async fn refused(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        response: reqwest::Response,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        let status = response.status();
        match (status, session) {
            (StatusCode::UNAUTHORIZED, _) => return Err(self.fail(HttpError::Unauthorized)),
            (StatusCode::FORBIDDEN, _) => return Err(self.fail(HttpError::Forbidden)),
            (StatusCode::NOT_FOUND, Some(session)) => return Err(self.session_expired(session)),
            _ => {}
        }
        let (code, body) = Self::preview(response).await;
        let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
        if let Some(parsed) = &parsed {
            self.shared.wire.received(parsed, &body);
            if let Some((id, Some(raw))) = Raw::asked(message) {
                raw.keep(&id, &body);
            }
        }
        let error = match parsed {
            Some(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let ClientJsonRpcMessage::Request(request) = message else {
            return Err(self.fail(HttpError::Status { status: code, preview: preview(&body) }));
        };
        if let Some(mut error) = error {
            // A server that cannot parse a request cannot always name its id.
            error.id = Some(request.id.clone());
            return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None));
        }
        let failure = HttpError::Status { status: code, preview: preview(&body) };
        if let Some(id) = probed(message).filter(|_| status.is_client_error()) {
            // A legacy server may refuse an unknown request in any way.
            let legacy = not_modern(id.clone(), failure.to_string());
            let _ = self.fail(failure);
            return Ok(StreamableHttpPostResponse::Json(legacy, None));
        }
        Err(self.fail(failure))
    }
}

/// The answer, if it is for this message. Otherwise our request would wait for ever.
fn belongs(
    sent: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> Option<ServerJsonRpcMessage> {
    let ClientJsonRpcMessage::Request(request) = sent else { return Some(answer) };
    match answer {
        ServerJsonRpcMessage::Response(response) => {
            is_same(&request.id, &response.id).then_some(ServerJsonRpcMessage::Response(response))
        }
        ServerJsonRpcMessage::Error(mut error) => {
            // A server that cannot parse a request cannot always name its id.
            let id = error.id.get_or_insert_with(|| request.id.clone());
            is_same(&request.id, id).then_some(ServerJsonRpcMessage::Error(error))
        }
        other => Some(other),
    }
}

/// The id of `server/discover`, if the message is that request.
fn probed(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    matches!(request.request, ClientRequest::DiscoverRequest(_)).then_some(&request.id)
}

/// Some servers return numbers as text.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}

/// Whether a message may be sent twice. A call may act each time.
fn repeat(message: &ClientJsonRpcMessage) -> Repeat {
    let ClientJsonRpcMessage::Request(request) = message else { return Repeat::Harmful };
    match request.request {
        ClientRequest::InitializeRequest(_)
        | ClientRequest::DiscoverRequest(_)
        | ClientRequest::PingRequest(_)
        | ClientRequest::CompleteRequest(_)
        | ClientRequest::SetLevelRequest(_)
        | ClientRequest::ListToolsRequest(_)
        | ClientRequest::ListPromptsRequest(_)
        | ClientRequest::ListResourcesRequest(_)
        | ClientRequest::ListResourceTemplatesRequest(_)
        | ClientRequest::GetPromptRequest(_)
        | ClientRequest::ReadResourceRequest(_)
        | ClientRequest::SubscribeRequest(_)
        | ClientRequest::UnsubscribeRequest(_)
        | ClientRequest::SubscriptionsListenRequest(_) => Repeat::Harmless,
        _ => Repeat::Harmful,
    }
}
