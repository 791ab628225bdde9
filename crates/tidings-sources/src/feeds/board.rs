//! What is known of every feed, in memory: answers that need no disk, and names for contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidings_core::Fingerprint;

use crate::feeds::store::FeedRow;
use crate::feeds::view::{self, Filter, View};

/// What is known of every feed. The store is the truth; a row is put here after it was written
/// there and before anybody is told.
#[derive(Debug)]
pub(crate) struct Board {
    rows: BTreeMap<String, Arc<FeedRow>>,
    /// The body of `feeds://all`, and what names it.
    all: (Arc<str>, Fingerprint),
}

impl Board {
    pub(crate) fn new(rows: Vec<FeedRow>) -> Self {
        let rows = rows.into_iter().map(|row| (row.id.clone(), Arc::new(row))).collect();
        let mut board = Self { rows, all: ("".into(), Fingerprint::ABSENT) };
        board.write_all();
        board
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<FeedRow>> {
        self.rows.values()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<FeedRow>> {
        self.rows.get(id)
    }

    /// The body of `feeds://all`.
    pub(crate) fn all(&self) -> Arc<str> {
        self.all.0.clone()
    }

    /// Puts what is now known of a feed, or that it is gone. Says whether `feeds://all` moved.
    pub(crate) fn put(&mut self, id: &str, row: Option<FeedRow>) -> bool {
        let row = row.map(Arc::new);
        let before = match &row {
            Some(row) => self.rows.insert(id.to_owned(), row.clone()),
            None => self.rows.remove(id),
        };
        // Most fetches find nothing, and there may be thousands of feeds.
        if view::all(before.as_deref()) == view::all(row.as_deref()) {
            return false;
        }
        let before = self.all.1;
        self.write_all();
        self.all.1 != before
    }

    /// A name for what a view shows now, if that is known without looking.
    pub(crate) fn version(&self, view: &View) -> Option<Fingerprint> {
        let (id, parts): (&str, fn(&FeedRow) -> [i64; 2]) = match view {
            View::All => return Some(self.all.1),
            View::Feed(id) => (id, |row| [row.revisions.metadata, row.revisions.items]),
            View::Meta(id) => (id, |row| [row.revisions.metadata, row.revisions.status]),
            View::Items(id, filter) if *filter == Filter::default() => {
                (id, |row| [row.revisions.items, 0])
            }
            View::Items(..) => return None,
        };
        let row = self.get(id)?;
        if !row.is_known() {
            return Some(Fingerprint::of_bytes(b"not fetched yet"));
        }
        let [one, other] = parts(row).map(i64::to_le_bytes);
        Some(Fingerprint::of_bytes(&[one, other].concat()))
    }

    fn write_all(&mut self) {
        let body = view::all(self.rows.values().map(|row| &**row));
        let fingerprint = Fingerprint::of_bytes(body.as_bytes());
        self.all = (body.into(), fingerprint);
    }
}
