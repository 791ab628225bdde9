//! What came in since an agent last looked. Nothing is seen before the agent says so: an answer that
//! got lost is given again.

use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::feeds::date::Moment;
use crate::feeds::store::listing::kept;
use crate::feeds::store::row::Kept;
use crate::feeds::store::{Store, StoreError};

/// How many inboxes there may be; the one that was not used for longest makes room.
const INBOXES: i64 = 1_000;

/// Whose inbox, and of what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inbox {
    pub(crate) agent: String,
    /// The key and the id of the only feed that counts.
    pub(crate) feed: Option<(i64, String)>,
    /// The only category that counts, as labels are compared.
    pub(crate) category: Option<String>,
}

/// What an agent gets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delivery {
    /// What it has not seen yet, in the order in which it came.
    pub(crate) items: Vec<Kept>,
    /// How many more there are.
    pub(crate) more: u64,
    /// The last item that it has seen.
    pub(crate) seen: i64,
    /// Whether it never asked before.
    pub(crate) is_first: bool,
}

impl Store {
    /// What tells this store from others.
    pub(crate) fn origin(&self) -> Result<String, StoreError> {
        self.read(|it| Ok(it.query_row("SELECT id FROM origin", [], |row| row.get(0))?))
    }

    /// What an agent has not seen yet, at most so many. What comes up to `acknowledged` it has seen
    /// from now on; an agent that never asked begins there, or with so many of the last that came.
    /// Nothing if what is acknowledged never came here.
    pub(crate) fn deliver(
        &self,
        inbox: &Inbox,
        acknowledged: Option<i64>,
        backlog: u32,
        limit: u32,
        now: Moment,
    ) -> Result<Option<Delivery>, StoreError> {
        self.write(|transaction| {
            if acknowledged > last(transaction)? {
                return Ok(None);
            }
            let scope = inbox.scope();
            let query = "SELECT seen FROM inboxes WHERE agent = ?1 AND scope = ?2";
            let before: Option<i64> = transaction
                .query_row(query, params![inbox.agent, scope], |row| row.get(0))
                .optional()?;
            let seen = match before.max(acknowledged) {
                Some(seen) => seen,
                None => inbox.beginning(transaction, backlog)?,
            };
            keep(transaction, &inbox.agent, &scope, seen, now)?;
            let keys = inbox.keys(transaction, seen)?;
            let shown = keys.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
            let items = keys[..shown].iter().map(|key| kept(transaction, *key));
            let items = items.collect::<Result<_, _>>()?;
            let more = (keys.len() - shown) as u64;
            Ok(Some(Delivery { items, more, seen, is_first: before.is_none() }))
        })
    }
}

/// Which items count. They are found by their keys, as the signs want it, so that what was seen is
/// not looked at again.
const COUNTED: &str = "FROM items WHERE +feed IN (SELECT key FROM feeds WHERE active = 1)
    AND (?1 IS NULL OR +feed = ?1)
    AND (?2 IS NULL OR EXISTS
        (SELECT 1 FROM labels WHERE item = items.key AND kind = 0 AND value = ?2))";

impl Inbox {
    /// A name for the choice that this is about.
    fn scope(&self) -> String {
        let feed = self.feed.as_ref().map_or("", |(_, id)| id);
        format!("{feed}/{}", self.category.as_deref().unwrap_or_default())
    }

    fn key(&self) -> Option<i64> {
        self.feed.as_ref().map(|(key, _)| *key)
    }

    /// The last item that counts as seen for who never asked.
    fn beginning(&self, transaction: &Transaction<'_>, backlog: u32) -> Result<i64, StoreError> {
        let query = format!("SELECT items.key {COUNTED} ORDER BY items.key DESC LIMIT 1 OFFSET ?3");
        let values = params![self.key(), self.category, backlog];
        let found = transaction.query_row(&query, values, |row| row.get(0)).optional()?;
        Ok(found.unwrap_or_default())
    }

    fn keys(&self, transaction: &Transaction<'_>, seen: i64) -> Result<Vec<i64>, StoreError> {
        let query = format!("SELECT items.key {COUNTED} AND items.key > ?3 ORDER BY items.key");
        let keys = transaction
            .prepare_cached(&query)?
            .query_map(params![self.key(), self.category, seen], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(keys)
    }
}

/// The last item that ever came, whether it is still there or not.
fn last(transaction: &Transaction<'_>) -> Result<Option<i64>, StoreError> {
    let query = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'items'";
    Ok(transaction.query_row(query, [], |row| row.get(0))?)
}

fn keep(
    transaction: &Transaction<'_>,
    agent: &str,
    scope: &str,
    seen: i64,
    now: Moment,
) -> Result<(), StoreError> {
    let query = "INSERT OR REPLACE INTO inboxes (agent, scope, seen, used) VALUES (?1, ?2, ?3, ?4)";
    transaction.execute(query, params![agent, scope, seen, now.unix()])?;
    let query = "DELETE FROM inboxes WHERE (agent, scope) IN (SELECT agent, scope FROM inboxes
        ORDER BY used DESC, agent, scope LIMIT -1 OFFSET ?1)";
    transaction.execute(query, [INBOXES])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::store::tests::{ID, check, day, items, store};

    fn agent(name: &str) -> Inbox {
        Inbox { agent: name.to_owned(), ..Inbox::default() }
    }

    #[track_caller]
    fn deliver(store: &Store, name: &str, acknowledged: Option<i64>, limit: u32) -> Delivery {
        store.deliver(&agent(name), acknowledged, 10, limit, day(9)).unwrap().unwrap()
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
        let after = deliver(&store, "one", Some(first.items[1].key), 9);
        assert!(after.items.is_empty());
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [1, 0, 0]);
        assert_eq!(titles(&deliver(&store, "one", None, 9)), ["c"]);
        // Somebody else has seen nothing of it.
        assert_eq!(titles(&deliver(&store, "two", None, 9)), ["b", "a", "c"]);
    }

    #[test]
    fn an_acknowledgement_neither_goes_back_nor_ahead() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let first = deliver(&store, "one", None, 1);
        assert_eq!((titles(&first), first.more), (vec!["b"], 1));
        let second = deliver(&store, "one", Some(first.items[0].key), 1);
        assert_eq!(titles(&second), ["a"]);
        assert_eq!(titles(&deliver(&store, "one", Some(0), 1)), ["a"]);
        let last = second.items[0].key;
        assert_eq!(store.deliver(&agent("one"), Some(last + 1), 10, 1, day(9)).unwrap(), None);
        assert!(deliver(&store, "one", Some(last), 1).items.is_empty());
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [1, 0, 0]);
        assert_eq!(titles(&deliver(&store, "one", None, 1)), ["c"]);
    }

    #[test]
    fn who_never_asked_begins_with_the_last_that_came() {
        let store = store();
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [3, 0, 0]);
        let delivery = store.deliver(&agent("one"), None, 1, 9, day(9)).unwrap().unwrap();
        assert_eq!(titles(&delivery), ["a"]);
        let none = store.deliver(&agent("two"), None, 0, 9, day(9)).unwrap().unwrap();
        assert!(none.items.is_empty());
    }

    #[test]
    fn who_is_not_known_any_more_goes_on_where_the_cursor_is() {
        let store = store();
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [3, 0, 0]);
        let all = deliver(&store, "one", None, 9);
        let first = Some(all.items[0].key);
        let late = store.deliver(&agent("two"), first, 0, 9, day(9)).unwrap().unwrap();
        assert_eq!(titles(&late), ["b", "a"]);
    }

    #[test]
    fn what_was_seen_stays_so_when_it_is_gone() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let cursor = deliver(&store, "one", None, 9).items.last().map(|item| item.key);
        store.remove(ID).unwrap();
        assert!(deliver(&store, "one", cursor, 9).items.is_empty());
    }

    #[test]
    fn each_choice_has_its_own_inbox() {
        let store = store();
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        let key = store.feed(ID).unwrap().unwrap().key;
        let narrow = Inbox { feed: Some((key, ID.to_owned())), ..agent("one") };
        let first = store.deliver(&narrow, None, 10, 9, day(9)).unwrap().unwrap();
        let seen = first.items.last().map(|item| item.key);
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
