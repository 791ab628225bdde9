//! New items for an agent since its last call. An item counts as seen only when the agent confirms
//! it, so a lost answer is repeated.

use rusqlite::{OptionalExtension as _, Transaction, params};
use tidings_store::date::Moment;

use crate::store::listing::kept;
use crate::store::row::Kept;
use crate::store::{Store, StoreError};

/// The maximum number of inboxes; the one unused for longest is removed.
const INBOXES: i64 = 1_000;

/// The owner and the choice of an inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inbox {
    pub(crate) agent: String,
    /// The keys of the chosen feeds, and the name of the choice: the id of a feed, or a folder.
    pub(crate) feeds: Option<(Vec<i64>, String)>,
    /// The chosen category, as labels are compared.
    pub(crate) category: Option<String>,
}

/// Confirmed items: those with keys from the first to the last.
pub(crate) type Range = (i64, i64);

/// The items for an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delivery {
    /// The unseen items, newest first.
    pub(crate) items: Vec<Kept>,
    /// How many more there are.
    pub(crate) more: u64,
    /// It has seen all up to this one.
    pub(crate) seen: i64,
    /// Whether this is its first call.
    pub(crate) is_first: bool,
}

/// The items that an agent has seen.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// All up to this one.
    upto: i64,
    /// And these later ones. Invariant: sorted, without overlaps.
    ranges: Vec<Range>,
}

impl Store {
    /// Identifies this store.
    pub(crate) fn origin(&self) -> Result<String, StoreError> {
        self.read(|it| Ok(it.query_row("SELECT id FROM origin", [], |row| row.get(0))?))
    }

    /// The unseen items of an agent, at most this many. Confirmed items count as seen from now on.
    /// A new agent begins after the confirmed ones, or with this many of the newest. `None` if the
    /// confirmed items never existed here.
    pub(crate) fn deliver(
        &self,
        inbox: &Inbox,
        acknowledged: Option<Range>,
        backlog: u32,
        limit: u32,
        now: Moment,
    ) -> Result<Option<Delivery>, StoreError> {
        self.write(|transaction| {
            if acknowledged.map(|(_, last)| last) > last(transaction)? {
                return Ok(None);
            }
            let scope = inbox.scope();
            let before = stored(transaction, &inbox.agent, &scope)?;
            let is_first = before.is_none();
            let mut seen = match (before, acknowledged) {
                (Some(seen), _) => seen,
                (None, acknowledged) => {
                    // Items before the confirmed ones may not have been delivered.
                    let first = acknowledged.map_or(i64::MAX, |(first, _)| first - 1);
                    let upto = inbox.beginning(transaction, backlog)?.min(first);
                    Seen { upto, ..Seen::default() }
                }
            };
            seen.add(acknowledged);
            let mut keys = inbox.keys(transaction, seen.upto)?;
            keys.retain(|key| !seen.has(*key));
            seen.close_gaps(&keys);
            keep(transaction, &inbox.agent, &scope, &seen, now)?;
            let shown = keys.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
            let items = keys[..shown].iter().map(|key| kept(transaction, *key));
            let items = items.collect::<Result<_, _>>()?;
            let more = (keys.len() - shown) as u64;
            Ok(Some(Delivery { items, more, seen: seen.upto, is_first }))
        })
    }
}

impl Seen {
    fn has(&self, key: i64) -> bool {
        key <= self.upto || self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&key))
    }

    fn add(&mut self, range: Option<Range>) {
        self.ranges.extend(range);
        self.ranges.sort_unstable();
    }

    /// Joins ranges without unseen items between them.
    fn close_gaps(&mut self, unseen: &[i64]) {
        let mut ranges: Vec<Range> = Vec::new();
        for (first, last) in std::mem::take(&mut self.ranges) {
            let before = ranges.last_mut().map_or(&mut self.upto, |(_, last)| last);
            if unseen.iter().any(|key| *key > *before && *key < first) {
                ranges.push((first, last));
            } else {
                *before = last.max(*before);
            }
        }
        self.ranges = ranges;
    }
}

/// The matching items. They are found by their keys in this order, so that seen items are not read
/// again.
const COUNTED: &str = "FROM items WHERE +feed IN (SELECT key FROM feeds WHERE active = 1)
    AND (?1 IS NULL OR +feed IN (SELECT value FROM json_each(?1)))
    AND (?2 IS NULL OR EXISTS
        (SELECT 1 FROM labels WHERE item = items.key AND kind = 0 AND value = ?2))";

impl Inbox {
    /// The name of the choice.
    fn scope(&self) -> String {
        let feeds = self.feeds.as_ref().map_or("", |(_, name)| name);
        format!("{feeds}/{}", self.category.as_deref().unwrap_or_default())
    }

    /// The keys of the feeds, for the query.
    fn feed_keys(&self) -> Option<String> {
        let (keys, _) = self.feeds.as_ref()?;
        Some(serde_json::to_string(keys).expect("numbers are plain JSON"))
    }

    /// The last item that counts as seen for a new agent.
    fn beginning(&self, transaction: &Transaction<'_>, backlog: u32) -> Result<i64, StoreError> {
        let query = format!("SELECT items.key {COUNTED} ORDER BY items.key DESC LIMIT 1 OFFSET ?3");
        let values = params![self.feed_keys(), self.category, backlog];
        let found = transaction.query_row(&query, values, |row| row.get(0)).optional()?;
        Ok(found.unwrap_or_default())
    }

    fn keys(&self, transaction: &Transaction<'_>, seen: i64) -> Result<Vec<i64>, StoreError> {
        let query =
            format!("SELECT items.key {COUNTED} AND items.key > ?3 ORDER BY items.key DESC");
        let keys = transaction
            .prepare_cached(&query)?
            .query_map(params![self.feed_keys(), self.category, seen], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(keys)
    }
}

/// The last item that ever arrived, even if it was removed.
fn last(transaction: &Transaction<'_>) -> Result<Option<i64>, StoreError> {
    let query = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'items'";
    Ok(transaction.query_row(query, [], |row| row.get(0))?)
}

fn stored(
    transaction: &Transaction<'_>,
    agent: &str,
    scope: &str,
) -> Result<Option<Seen>, StoreError> {
    let query = "SELECT seen, ranges FROM inboxes WHERE agent = ?1 AND scope = ?2";
    let found = transaction
        .query_row(query, params![agent, scope], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    let Some((upto, ranges)) = found else { return Ok(None) };
    let damaged = |_| StoreError::Damaged(format!("the inbox of {agent}"));
    Ok(Some(Seen { upto, ranges: serde_json::from_str(&ranges).map_err(damaged)? }))
}

fn keep(
    transaction: &Transaction<'_>,
    agent: &str,
    scope: &str,
    seen: &Seen,
    now: Moment,
) -> Result<(), StoreError> {
    let ranges = serde_json::to_string(&seen.ranges).expect("pairs of numbers are plain JSON");
    let query = "INSERT OR REPLACE INTO inboxes (agent, scope, seen, ranges, used)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.execute(query, params![agent, scope, seen.upto, ranges, now.unix()])?;
    let query = "DELETE FROM inboxes WHERE (agent, scope) IN (SELECT agent, scope FROM inboxes
        ORDER BY used DESC, agent, scope LIMIT -1 OFFSET ?1)";
    transaction.execute(query, [INBOXES])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{ID, check, day, items, store};

    fn agent(name: &str) -> Inbox {
        Inbox { agent: name.to_owned(), ..Inbox::default() }
    }

    #[track_caller]
    fn deliver(store: &Store, name: &str, acknowledged: Option<Range>, limit: u32) -> Delivery {
        store.deliver(&agent(name), acknowledged, 10, limit, day(9)).unwrap().unwrap()
    }

    /// All delivered items.
    fn range(delivery: &Delivery) -> Option<Range> {
        let (newest, oldest) = (delivery.items.first()?, delivery.items.last()?);
        Some((oldest.key, newest.key))
    }

    fn titles(delivery: &Delivery) -> Vec<&str> {
        delivery.items.iter().map(|item| item.entry.title.as_deref().unwrap()).collect()
    }

    #[test]
    fn nothing_is_seen_before_it_is_acknowledged() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let first = deliver(&store, "one", None, 9);
        assert_eq!((titles(&first), first.is_first), (vec!["b", "a"], true));
        let again = deliver(&store, "one", None, 9);
        assert_eq!((&again.items, again.is_first), (&first.items, false));
        let after = deliver(&store, "one", range(&first), 9);
        assert!(after.items.is_empty());
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [1, 0, 0]);
        assert_eq!(titles(&deliver(&store, "one", None, 9)), ["c"]);
        // Another agent has seen none of it.
        assert_eq!(titles(&deliver(&store, "two", None, 9)), ["c", "b", "a"]);
    }

    #[test]
    fn an_acknowledgement_neither_goes_back_nor_ahead() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let first = deliver(&store, "one", None, 1);
        assert_eq!((titles(&first), first.more), (vec!["b"], 1));
        let second = deliver(&store, "one", range(&first), 1);
        assert_eq!(titles(&second), ["a"]);
        assert_eq!(titles(&deliver(&store, "one", Some((0, 0)), 1)), ["a"]);
        let last = first.items[0].key;
        let ahead = Some((last, last + 1));
        assert_eq!(store.deliver(&agent("one"), ahead, 10, 1, day(9)).unwrap(), None);
        assert!(deliver(&store, "one", range(&second), 1).items.is_empty());
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [1, 0, 0]);
        assert_eq!(titles(&deliver(&store, "one", None, 1)), ["c"]);
    }

    #[test]
    fn what_comes_meanwhile_is_first_and_nothing_before_it_is_lost() {
        let store = store();
        check(&store, &items(&[("d", 4), ("c", 3), ("b", 2), ("a", 1)]), 5, [4, 0, 0]);
        let first = deliver(&store, "one", None, 2);
        assert_eq!(titles(&first), ["d", "c"]);
        let later = [("e", 5), ("d", 4), ("c", 3), ("b", 2), ("a", 1)];
        check(&store, &items(&later), 6, [1, 0, 0]);
        let second = deliver(&store, "one", range(&first), 2);
        assert_eq!(titles(&second), ["e", "b"]);
        let third = deliver(&store, "one", range(&second), 2);
        assert_eq!((titles(&third), third.more), (vec!["a"], 0));
        let last = deliver(&store, "one", range(&third), 2);
        assert_eq!((last.items.len(), last.seen), (0, second.items[0].key));
    }

    #[test]
    fn a_cursor_of_another_agent_loses_nothing_that_came_before_it() {
        let store = store();
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [3, 0, 0]);
        let newest = deliver(&store, "one", None, 1);
        assert_eq!(titles(&newest), ["c"]);
        assert_eq!(titles(&deliver(&store, "two", range(&newest), 9)), ["b", "a"]);
    }

    #[test]
    fn who_never_asked_begins_with_the_last_that_came() {
        let store = store();
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [3, 0, 0]);
        let delivery = store.deliver(&agent("one"), None, 1, 9, day(9)).unwrap().unwrap();
        assert_eq!(titles(&delivery), ["c"]);
        let none = store.deliver(&agent("two"), None, 0, 9, day(9)).unwrap().unwrap();
        assert!(none.items.is_empty());
    }

    #[test]
    fn who_is_not_known_any_more_goes_on_where_the_cursor_is() {
        let store = store();
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [3, 0, 0]);
        let all = deliver(&store, "one", None, 9);
        let first = Some((0, all.items[2].key));
        let late = store.deliver(&agent("two"), first, 0, 9, day(9)).unwrap().unwrap();
        assert_eq!(titles(&late), ["c", "b"]);
    }

    #[test]
    fn what_was_seen_stays_so_when_it_is_gone() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let cursor = range(&deliver(&store, "one", None, 9));
        store.remove(ID).unwrap();
        assert!(deliver(&store, "one", cursor, 9).items.is_empty());
    }

    #[test]
    fn each_choice_has_its_own_inbox() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let key = store.feed(ID).unwrap().unwrap().key;
        let narrow = Inbox { feeds: Some((vec![key], ID.to_owned())), ..agent("one") };
        let first = store.deliver(&narrow, None, 10, 9, day(9)).unwrap().unwrap();
        let seen = range(&first);
        assert!(store.deliver(&narrow, seen, 10, 9, day(9)).unwrap().unwrap().items.is_empty());
        assert_eq!(deliver(&store, "one", None, 9).items.len(), 2);
        let other = Inbox { category: Some("none".to_owned()), ..agent("one") };
        assert!(store.deliver(&other, None, 10, 9, day(9)).unwrap().unwrap().items.is_empty());
    }

    #[test]
    fn the_inbox_that_was_not_used_for_longest_makes_room() {
        let store = store();
        check(&store, &items(&[("a", 1)]), 3, [1, 0, 0]);
        let old = store.deliver(&agent("old"), None, 10, 9, day(3)).unwrap().unwrap();
        for number in 0..INBOXES {
            store.deliver(&agent(&number.to_string()), None, 10, 9, day(4)).unwrap();
        }
        let again = store.deliver(&agent("old"), None, 10, 9, day(5)).unwrap().unwrap();
        assert_eq!((again.is_first, again.items), (true, old.items));
    }
}
