//! The workspace that is served, as the command line says.

use anyhow::Result;
use tidings_workspace::{Config, Workspace};

use crate::args::Serve;
use crate::command::workspace::unopened;

/// Opens the workspace, if one is asked for.
pub(super) async fn open(args: &Serve) -> Result<Option<Workspace>> {
    let Some(directory) = &args.workspace else { return Ok(None) };
    let mut config = Config::new(directory);
    config.limits.blob = args.sharing.blob_limit;
    config.events_kept = args.sharing.keep_events;
    config.listed_artifacts = args.sharing.listed_artifacts as usize;
    config.listed_identities = args.sharing.listed_identities as usize;
    let open = tokio::task::spawn_blocking(move || Workspace::open(config));
    Ok(Some(open.await?.map_err(|error| unopened(error, directory))?))
}

/// A workspace alone says what the server is for.
pub(super) fn introduce(config: &mut tidings_server::Config, args: &Serve) {
    config.title = Some("Tidings: a workspace".to_owned());
    // Where there is no HTTP there is no `/blob`.
    let large = if args.stdio {
        "Bytes too big for a message are stored beside this server with `tidings workspace DIR \
         import FILE`, and read with `tidings workspace DIR show ID --content`."
    } else {
        "Bytes too big for JSON go to `PUT /blob` beside this endpoint, and come from \
         `GET /blob/{hash}`."
    };
    config.instructions = Some(format!(
        "A place where several agents put work and see each other's work at once. \
         `create_artifact` stores something, with tags, parents and a set; `search_artifacts` finds \
         it. Watch artifacts://recent, or artifacts://by-tag/{{tag}} for what concerns you, to be \
         told the moment something is stored. `poll_events` is for clients that cannot be told. \
         graph:// has named identities and how they are connected. {large}"
    ));
}
