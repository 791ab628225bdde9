//! A plain rmcp server, as most people write it: keep who listens, tell them all, await.

use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::any;
use axum::serve::ListenerExt as _;
use futures_util::future::join_all;
use http::Request;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    InitializeResult, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter,
};
use rmcp::service::{Peer, RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::net::TcpListener;

const COUNTER: &str = "bench://counter";

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = None;
    let listeners = Arc::new(Listeners::default());
    let factory = move || Ok(Plain { listeners: listeners.clone() });
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(factory, Arc::new(sessions), config);
    let handler = move |request: Request<axum::body::Body>| {
        let service = service.clone();
        async move { service.handle(request).await.map(axum::body::Body::new) }
    };
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    axum::serve(listener, Router::new().route("/mcp", any(handler))).await?;
    Ok(())
}

#[derive(Default)]
struct Listeners {
    peers: Mutex<Vec<Peer<RoleServer>>>,
    sinks: Mutex<Vec<SubscriptionSink>>,
}

struct Plain {
    listeners: Arc<Listeners>,
}

impl Plain {
    async fn tell_all(&self) {
        let peers = self.listeners.peers.lock().expect("no code panics with the peers").clone();
        let sinks = self.listeners.sinks.lock().expect("no code panics with the sinks").clone();
        let param = || ResourceUpdatedNotificationParam::new(COUNTER);
        join_all(peers.iter().map(|peer| peer.notify_resource_updated(param()))).await;
        join_all(sinks.iter().map(|sink| sink.notify_resource_updated(COUNTER))).await;
    }
}

impl ServerHandler for Plain {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        InitializeResult::new(capabilities)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        for _ in 0..arguments.get("n").and_then(Value::as_u64).unwrap_or(1) {
            self.tell_all().await;
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut peers = self.listeners.peers.lock().expect("no code panics with the peers");
        peers.push(context.peer);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        {
            let mut sinks = self.listeners.sinks.lock().expect("no code panics with the sinks");
            sinks.push(context.sink().clone());
        }
        context.cancelled().await;
        Ok(())
    }
}
