//! Dates that all change at once: a feed that dates everything anew each time, or one that was
//! corrected.

use rusqlite::{OptionalExtension as _, Transaction, params};
use tidings_store::date::Moment;

use crate::store::StoreError;
use crate::store::face::content_hash;
use crate::store::known::Known;
use crate::store::row::Entry;

/// Items that are dated anew each time have a date this close to now, in seconds; a proxy may have
/// cached the answer.
const STAMP: u64 = 3600;

/// Whether the dates of a document count. If all of them changed, they count only if they equal
/// those of the document before, and are not all of one hour, as on a site that was rebuilt: then
/// they were corrected. One item stands for all; only its identity and date are stored.
pub(super) fn count(
    transaction: &Transaction<'_>,
    feed: i64,
    pairs: &[(&Entry, &Known)],
    now: Moment,
) -> Result<bool, StoreError> {
    let query = "SELECT redated FROM feeds WHERE key = ?1";
    let before: Option<String> = transaction
        .prepare_cached(query)?
        .query_row([feed], |row| row.get(0))
        .optional()?
        .flatten();
    let stamped = is_stamped(pairs, now);
    let moved = pairs.iter().filter(|(entry, known)| published(entry) != known.published);
    let mut witnesses = moved.filter_map(|(entry, known)| {
        Some((format!("{} {}", known.key, published(entry)?), entry.published?))
    });
    let dates = || pairs.iter().filter_map(|(entry, _)| published(entry));
    let is_spread =
        dates().max().zip(dates().min()).is_some_and(|(last, first)| last.abs_diff(first) > STAMP);
    let may_be_right = stamped && is_spread;
    let is_settled = may_be_right
        && before.as_ref().is_some_and(|before| witnesses.clone().any(|(it, _)| it == *before));
    let is_now = |it: Moment| it.unix().abs_diff(now.unix()) <= STAMP;
    let is_waiting = may_be_right && !is_settled && witnesses.clone().any(|(_, it)| !is_now(it));
    let witness = if is_waiting { witnesses.next().map(|(it, _)| it) } else { None };
    if witness != before {
        let query = "UPDATE feeds SET redated = ?2 WHERE key = ?1";
        transaction.prepare_cached(query)?.execute(params![feed, witness])?;
    }
    Ok(!stamped || is_settled)
}

fn published(entry: &Entry) -> Option<i64> {
    entry.published.map(Moment::unix)
}

/// Whether every item has another date than before.
fn is_stamped(pairs: &[(&Entry, &Known)], now: Moment) -> bool {
    // A missing date cannot be new.
    let dated = pairs.iter().filter(|(entry, it)| it.published.or(published(entry)).is_some());
    let dated: Vec<_> = dated.collect();
    match dated.as_slice() {
        [] => false,
        // An item with the same content as before, and the date of this moment.
        [(entry, known)] => {
            let is_now = |it: Moment| it.unix().abs_diff(now.unix()) <= STAMP;
            published(entry) != known.published
                && entry.published.is_some_and(is_now)
                && content_hash(entry, Some(known)) == known.hash
        }
        all => all.iter().all(|(entry, known)| published(entry) != known.published),
    }
}

#[cfg(test)]
mod tests {
    use crate::fetch::Validators;
    use crate::parse::Document;
    use crate::store::tests::{ID, check, day, items, store, text};
    use crate::view::Filter;

    /// This used to be announced at each answer: two of several are needed to see that all dates
    /// change.
    #[test]
    fn a_feed_of_one_item_that_is_dated_anew_each_time_is_no_news() {
        let store = store();
        check(&store, &items(&[("a", 1)]), 1, [1, 0, 0]);
        check(&store, &items(&[("a", 2)]), 2, [0, 0, 0]);
        check(&store, &items(&[("a", 5)]), 9, [0, 1, 0]);
        let mut edited = items(&[("a", 10)]);
        edited.items[0].title = Some(text("A!"));
        check(&store, &edited, 10, [0, 1, 0]);
    }

    #[test]
    fn items_without_dates_do_not_hide_that_all_dates_move() {
        let store = store();
        let mut document = items(&[("c", 3), ("b", 2), ("a", 1)]);
        document.items[0].published = None;
        check(&store, &document, 3, [3, 0, 0]);
        for item in &mut document.items[1..] {
            item.published = Some(day(4));
        }
        check(&store, &document, 4, [0, 0, 0]);
    }

    /// A corrected time zone used to be ignored for ever.
    #[test]
    fn dates_that_all_moved_once_are_taken_when_they_stay() {
        let store = store();
        let dates = || -> Vec<_> {
            let found = store.find(ID, &Filter::default()).unwrap().unwrap();
            found.entries.into_iter().map(|entry| entry.published.unwrap()).collect()
        };
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 20, [3, 0, 0]);
        let moved = items(&[("c", 13), ("b", 12), ("a", 11)]);
        check(&store, &moved, 21, [0, 0, 0]);
        assert!(!dates().contains(&day(13)));
        // The next document must come as a whole, even if it is unchanged.
        let validators = || {
            let seen = Validators { etag: Some("seen".to_owned()), last_modified: None };
            store.keep_validators(ID, &seen).unwrap();
            store.feed(ID).unwrap().unwrap().validators.etag
        };
        assert_eq!(validators(), None);
        // Another item came, and the last one has no place any more.
        check(&store, &items(&[("d", 14), ("c", 13), ("b", 12)]), 22, [1, 2, 0]);
        assert!(dates().contains(&day(13)));
        assert_eq!(validators().as_deref(), Some("seen"));
        check(&store, &items(&[("d", 14), ("c", 13), ("b", 12)]), 23, [0, 0, 0]);
    }

    #[test]
    fn a_feed_that_dates_all_items_anew_stays_silent() {
        let store = store();
        let at = |now: i64| -> Document { items(&[("b", now), ("a", now)]) };
        check(&store, &at(1), 1, [2, 0, 0]);
        for now in 2..6 {
            check(&store, &at(now), now, [0, 0, 0]);
            // The same answer may come twice, from a cache on the way.
            check(&store, &at(now), now, [0, 0, 0]);
        }
        // Also if the site is rebuilt now and then, and the same is fetched twice.
        for built in 6..9 {
            for _ in 0..3 {
                check(&store, &at(built - 3), built, [0, 0, 0]);
            }
        }
        // Also if the dates are not those of the moment.
        for now in 6..9 {
            check(&store, &items(&[("b", now - 3), ("a", now - 4)]), now, [0, 0, 0]);
        }
    }
}
