//! The page over HTTP: its files, the state by pull with a cursor, and what can be done.

mod acts;
mod api;
mod assets;
mod guard;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::routing::{delete, get, post};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use self::guard::Guard;
use crate::args::Places;
use crate::console::Console;

/// The largest request: arguments of a call.
const BODY: usize = 8 << 20;

/// The path of a page beside an endpoint.
pub(crate) const BASE: &str = "/console/";

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct ConsolePage {
    pub(crate) console: Console,
    /// Where the names of servers are looked up; nothing if the page shows one hub and no others.
    pub(crate) places: Option<Arc<Places>>,
    /// A folder with the files of the page, read instead of those in the program.
    pub(crate) root: Option<Arc<PathBuf>>,
}

/// Serves the page until `cancel`.
pub(crate) async fn serve(
    listener: TcpListener,
    guard: Guard,
    page: ConsolePage,
    cancel: CancellationToken,
) -> Result<()> {
    let router = router(page, guard, &cancel);
    let served = axum::serve(listener, router).with_graceful_shutdown(cancel.cancelled_owned());
    served.await.context("serving the page")
}

/// The routes of the page below `/console/`, for a server that has others.
pub(crate) fn routes(page: ConsolePage, guard: Guard, cancel: &CancellationToken) -> Router {
    let to_page = async || axum::response::Redirect::permanent(BASE);
    Router::new()
        .route(BASE.trim_end_matches('/'), get(to_page))
        .nest_service(BASE, router(page, guard, cancel))
}

fn router(page: ConsolePage, guard: Guard, cancel: &CancellationToken) -> Router {
    let api = Router::new()
        .route("/state", get(api::state))
        .route("/known", get(api::known))
        .route("/keys", get(api::keys))
        .route("/find", get(api::find_places))
        .route("/s/{id}/clear", post(acts::clear))
        .route("/s", post(acts::add))
        .route("/s/{id}", delete(acts::remove))
        .route("/s/{id}/session", get(api::session))
        .route("/s/{id}/log", get(api::log))
        .route("/s/{id}/log/{number}", get(api::row))
        .route("/s/{id}/lanes", get(api::lanes))
        .route("/s/{id}/doctor", get(api::doctor))
        .route("/s/{id}/item", get(api::item))
        .route("/s/{id}/version", get(api::version))
        .route("/s/{id}/value", get(api::value))
        .route("/s/{id}/result/{number}", get(api::result))
        .route("/s/{id}/form", post(acts::form))
        .route("/s/{id}/complete", post(acts::complete))
        .route("/s/{id}/call", post(acts::call))
        .route("/s/{id}/call/{number}", delete(acts::cancel))
        .route("/s/{id}/{act}", post(acts::act))
        .route("/inbox/{number}", post(acts::answer))
        .route("/inbox/rules/{server}/{kind}", delete(acts::end_rule))
        .layer(axum::Extension(cancel.clone()))
        .with_state(page.clone());
    Router::new()
        .nest("/api", api)
        .fallback(file)
        .with_state(page)
        .layer(DefaultBodyLimit::max(BODY))
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
}

async fn file(State(page): State<ConsolePage>, request: Request) -> axum::response::Response {
    assets::answer(request.uri().path(), request.headers(), page.root.as_deref())
}
