//! Inspection of a hub: its sources, listeners, and watched URIs.

use crate::about::{ListenerInfo, WatchedInfo};
use crate::hub::Hub;
use crate::source::Health;

/// The state of a hub at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The sources, in the order they were added.
    pub sources: Vec<SourceInfo>,
    /// The listeners, in the order they began.
    pub listeners: Vec<ListenerInfo>,
    /// The watched URIs, sorted.
    pub watched: Vec<WatchedInfo>,
}

/// One source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// The number of its items in the catalog, including disabled ones.
    pub items: usize,
    /// Its health.
    pub health: Health,
}

impl Hub {
    /// The current sources, listeners and watched URIs. It visits every listener once; without a
    /// call it costs nothing.
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
