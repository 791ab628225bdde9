//! A look into the hub: its sources, who listens, and what is watched.

use crate::about::{ListenerInfo, WatchedInfo};
use crate::hub::Hub;
use crate::source::Health;

/// A hub as it is at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The sources, in the order they were added.
    pub sources: Vec<SourceInfo>,
    /// The listeners, in the order they came.
    pub listeners: Vec<ListenerInfo>,
    /// The watched URIs, in order.
    pub watched: Vec<WatchedInfo>,
}

/// One source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// How many items it has in the catalog, disabled ones included.
    pub items: usize,
    /// How it is.
    pub health: Health,
}

impl Hub {
    /// Who listens to what now. It takes the time to look at every listener once, and nothing before
    /// it is asked for.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let hub = tidings_server::Hub::new("notes", "1.0");
    /// hub.source("notes")?.resource("notes://all", "All notes", || "none yet")?;
    /// let inspection = hub.inspect();
    /// assert_eq!((inspection.sources[0].items, inspection.listeners.len()), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn inspect(&self) -> Inspection {
        let pipeline = self.pipeline();
        let sources = pipeline.catalog.members().into_iter().map(|(member, items)| SourceInfo {
            name: member.name.clone(),
            items,
            health: member.health(),
        });
        let (listeners, watched) = pipeline.subscriptions.inspect();
        Inspection { sources: sources.collect(), listeners, watched }
    }
}
