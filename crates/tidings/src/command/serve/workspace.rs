//! The workspace to serve, from the command line.

use anyhow::Result;
use tidings_workspace::{Config, Workspace};

use crate::args::Serve;
use crate::command::workspace::unopened;
use crate::settings::Settings;

/// Opens the workspace, if one is given.
pub(super) async fn open(args: &Serve, settings: &Settings) -> Result<Option<Workspace>> {
    let Some(directory) = &args.workspace else { return Ok(None) };
    let mut config = Config::new(directory);
    config.limits.blob = args.sharing.blob_limit;
    config.events_kept = args.sharing.keep_events;
    config.listed_artifacts = args.sharing.listed_artifacts as usize;
    config.listed_identities = args.sharing.listed_identities as usize;
    config.writers = args.writers(&settings.http.writers)?;
    let open = tokio::task::spawn_blocking(move || Workspace::open(config));
    Ok(Some(open.await?.map_err(|error| unopened(error, directory))?))
}

/// A workspace alone describes the server.
pub(super) fn introduce(config: &mut tidings_server::Config, args: &Serve) {
    config.title = Some("Tidings: a workspace".to_owned());
    // Without HTTP there is no `/blob`.
    let large = if args.stdio {
        "Store content that is too large for a message with `tidings workspace DIR \
         import FILE`, and read it with `tidings workspace DIR show ID --content`."
    } else {
        "Upload content that is too large for JSON with `PUT /blob` beside this endpoint, and \
         download it with `GET /blob/{hash}`."
    };
    config.instructions = Some(format!(
        "A workspace where several agents share their work. \
         `create_artifact` stores an artifact with tags, parents and a set; `search_artifacts` \
         finds it. Watch artifacts://recent, or artifacts://by-tag/{{tag}}, to be notified of new \
         artifacts. `poll_events` is for clients that cannot be notified. graph:// has named \
         identities and their connections. {large}"
    ));
}
