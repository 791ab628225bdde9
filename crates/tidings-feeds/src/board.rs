//! The state of every feed in memory: answers that need no disk, and fingerprints of contents.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidings_core::Fingerprint;
use tidings_store::date::Moment;

use crate::folder::with_parents;
use crate::store::FeedRow;
use crate::view::{self, Filter, View};

/// The state of every feed. The store is authoritative; a row is put here after it was written
/// there and before it is announced.
#[derive(Debug, Default)]
pub(crate) struct Board {
    feeds: BTreeMap<String, SummarisedFeed>,
    /// The fingerprint of `feeds://all`. With thousands of feeds that change one by one, it is
    /// never computed anew.
    sum: Sum,
    /// When any feed last changed, including removed ones.
    modified: Option<Moment>,
    /// The total length of all summaries.
    length: usize,
    /// The number of feeds in each folder, including folders inside it.
    folders: BTreeMap<String, usize>,
}

/// One feed.
#[derive(Debug)]
struct SummarisedFeed {
    row: Arc<FeedRow>,
    /// Its part of `feeds://all`.
    summary: Box<str>,
}

/// The sum of the hashes of summaries in any order, so that a summary can be subtracted again. Each
/// begins with its id, so no two are equal, and the list is sorted by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum([u128; 2]);

impl Board {
    pub(crate) fn new(rows: Vec<FeedRow>) -> Self {
        let mut board = Self::default();
        for row in rows {
            let id = row.id.clone();
            board.put(&id, Some(row));
        }
        board
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<FeedRow>> {
        self.feeds.values().map(|feed| &feed.row)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<FeedRow>> {
        self.feeds.get(id).map(|feed| &feed.row)
    }

    /// The folders of the feeds, sorted.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.keys().map(String::as_str)
    }

    /// The body of `feeds://all`.
    pub(crate) fn all(&self) -> String {
        let mut body = String::with_capacity(self.size());
        body.push('[');
        for feed in self.feeds.values() {
            if body.len() > 1 {
                body.push(',');
            }
            body.push_str(&feed.summary);
        }
        body.push(']');
        body
    }

    /// Its length in bytes.
    pub(crate) fn size(&self) -> usize {
        // A comma between two, and a bracket at each end.
        self.length + self.feeds.len().saturating_sub(1) + 2
    }

    /// When any feed last changed.
    pub(crate) fn last_modified(&self) -> Option<Moment> {
        self.modified
    }

    /// Updates or removes a feed. Returns whether `feeds://all` changed.
    pub(crate) fn put(&mut self, id: &str, row: Option<FeedRow>) -> bool {
        let before = self.feeds.remove(id);
        if let Some(feed) = &before {
            self.sum.take(&feed.summary);
            self.length -= feed.summary.len();
            for folder in feed.row.category.iter().flat_map(|it| with_parents(it)) {
                if let Some(count) = self.folders.get_mut(folder) {
                    *count -= 1;
                }
            }
            self.folders.retain(|_, count| *count > 0);
        }
        let Some(row) = row else { return before.is_some() };
        self.modified = self.modified.max(row.last_modified());
        let summary = view::summary(&row).into_boxed_str();
        self.sum.add(&summary);
        self.length += summary.len();
        for folder in row.category.iter().flat_map(|it| with_parents(it)) {
            *self.folders.entry(folder.to_owned()).or_default() += 1;
        }
        let has_moved = before.is_none_or(|before| before.summary != summary);
        self.feeds.insert(id.to_owned(), SummarisedFeed { row: Arc::new(row), summary });
        has_moved
    }

    /// The fingerprint of a view, if it is known without reading the store.
    pub(crate) fn version(&self, view: &View) -> Option<Fingerprint> {
        let (id, parts): (&str, fn(&FeedRow) -> [i64; 2]) = match view {
            View::All => return Some(self.sum.fingerprint()),
            View::Feed(id) => (id, |row| [row.revisions.metadata, row.revisions.items]),
            View::Meta(id) => (id, |row| [row.revisions.metadata, row.revisions.status]),
            View::Items(id, filter) if *filter == Filter::default() => {
                (id, |row| [row.revisions.items, 0])
            }
            View::Items(..) | View::Folder(..) => return None,
        };
        let row = self.get(id)?;
        if !row.is_known() {
            return Some(Fingerprint::of_bytes(b"not fetched yet"));
        }
        let [one, other] = parts(row);
        // A feed that was removed and added again starts from the beginning, under another key.
        let named = [row.key, one, other].map(i64::to_le_bytes);
        Some(Fingerprint::of_bytes(&named.concat()))
    }
}

impl Sum {
    fn add(&mut self, summary: &str) {
        self.with(summary, u128::wrapping_add);
    }

    fn take(&mut self, summary: &str) {
        self.with(summary, u128::wrapping_sub);
    }

    fn with(&mut self, summary: &str, combine: fn(u128, u128) -> u128) {
        let hash = *blake3::hash(summary.as_bytes()).as_bytes();
        for (part, bytes) in self.0.iter_mut().zip(hash.as_chunks::<16>().0) {
            *part = combine(*part, u128::from_le_bytes(*bytes));
        }
    }

    fn fingerprint(self) -> Fingerprint {
        Fingerprint::of_bytes(&self.0.map(u128::to_le_bytes).concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Retention, Store};
    use crate::tests::feed_at;

    fn row(store: &Store, number: u32) -> FeedRow {
        let url = format!("https://example.com/{number}");
        store.add(&feed_at(url).registration(), Moment::from_unix(0).unwrap()).unwrap()
    }

    fn titled(row: &FeedRow, title: &str) -> FeedRow {
        FeedRow { title: Some(title.to_owned()), ..row.clone() }
    }

    #[test]
    fn the_list_is_the_same_however_it_came_to_be() {
        let store = Store::in_memory(Retention::default()).unwrap();
        let rows: Vec<_> = (0..9).map(|number| row(&store, number)).collect();
        let one = Board::new(rows.clone());
        let mut other = Board::default();
        for row in rows.iter().rev() {
            assert!(other.put(&row.id, Some(titled(row, "for a while"))));
            assert!(other.put(&row.id, Some(row.clone())));
            assert!(!other.put(&row.id, Some(row.clone())));
        }
        assert_eq!(other.version(&View::All), one.version(&View::All));
        assert_eq!(other.all(), one.all());
        let listed: serde_json::Value = serde_json::from_str(&one.all()).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), 9);
        assert!(other.put(&rows[3].id, None) && !other.put(&rows[3].id, None));
        assert_ne!(other.version(&View::All), one.version(&View::All));
        assert!(other.put(&rows[3].id, Some(rows[3].clone())));
        assert_eq!(other.version(&View::All), one.version(&View::All));
        assert_eq!(Board::default().all(), "[]");
    }

    #[test]
    fn a_feed_that_was_removed_and_added_again_is_another() {
        let store = Store::in_memory(Retention::default()).unwrap();
        let known = |row: FeedRow| FeedRow { last_success: Some(row.added), ..row };
        let first = known(row(&store, 1));
        store.remove(&first.id).unwrap();
        let second = known(row(&store, 1));
        assert_eq!((&first.id, first.revisions), (&second.id, second.revisions));
        for view in [View::Feed(first.id.clone()), View::Items(first.id.clone(), Filter::default())]
        {
            let version = |row: &FeedRow| Board::new(vec![row.clone()]).version(&view);
            assert_ne!(version(&first), version(&second));
        }
    }

    #[test]
    fn the_list_was_modified_when_any_feed_was() {
        let store = Store::in_memory(Retention::default()).unwrap();
        let mut board = Board::default();
        assert_eq!(board.last_modified(), None);
        for number in [3, 9, 5_u8] {
            let mut row = row(&store, number.into());
            row.modified = Moment::from_unix(number.into());
            board.put(&row.id.clone(), Some(row));
        }
        assert_eq!(board.last_modified(), Moment::from_unix(9));
        // The change remains, even though that feed is gone.
        board.put(&row(&store, 9).id, None);
        assert_eq!(board.last_modified(), Moment::from_unix(9));
    }
}
