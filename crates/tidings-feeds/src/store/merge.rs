//! The settings of a feed with several origins: the configuration, lists, and additions at run
//! time.

use std::collections::HashMap;

use rusqlite::Transaction;

use crate::address::FeedAddress;
use crate::store::StoreError;
use crate::store::register::{Origin, Registration, json};
use crate::store::row::Settings;

/// How new settings meet those of an existing feed.
#[derive(Clone, Copy)]
pub(super) enum Merge {
    /// The new ones replace them.
    Replace,
    /// The new ones take precedence.
    Amend,
    /// The old ones take precedence.
    Complete,
    /// The old ones stay.
    Keep,
}

impl Merge {
    /// The resulting settings of a feed.
    pub(super) fn of(self, set: Registration, said: &Registration) -> Registration {
        match self {
            Self::Replace => said.clone(),
            Self::Amend => first_of(said, &set),
            Self::Complete => first_of(&set, said),
            Self::Keep => set,
        }
    }
}

/// The first settings, completed by the second.
fn first_of(one: &Registration, other: &Registration) -> Registration {
    let (first, second) = (&one.settings, &other.settings);
    let headers = if first.headers.is_empty() { &second.headers } else { &first.headers };
    Registration {
        address: one.address.clone(),
        title: one.title.clone().or_else(|| other.title.clone()),
        category: one.category.clone().or_else(|| other.category.clone()),
        settings: Settings {
            interval: first.interval.or(second.interval),
            headers: headers.clone(),
            shown_url: first.shown_url.clone().or_else(|| second.shown_url.clone()),
        },
    }
}

/// An existing feed, served or not.
pub(super) struct Stored {
    pub(super) id: String,
    /// It was added at run time, whether it is in the configuration or not.
    pub(super) was_added: bool,
    pub(super) active: bool,
    /// Its settings, with the requested URL.
    pub(super) set: Registration,
}

/// The new addresses of moved feeds, each with the requested URL. Read once for many: there is no
/// index for it, and few move.
pub(super) struct Addresses(HashMap<String, FeedAddress>);

impl Addresses {
    pub(super) fn read(transaction: &Transaction<'_>) -> Result<Self, StoreError> {
        // Of several the last stays: a served one, and the oldest of those.
        let query = "SELECT url, asked_url FROM feeds WHERE url <> asked_url
            ORDER BY active, key DESC";
        let mut statement = transaction.prepare_cached(query)?;
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, FeedAddress::stored(row.get(1)?))))?;
        Ok(Self(rows.collect::<Result<_, _>>()?))
    }

    /// The feed that was added with this URL, or has it now.
    pub(super) fn find(
        &self,
        transaction: &Transaction<'_>,
        registration: &Registration,
    ) -> Result<Option<Stored>, StoreError> {
        let Registration { address, settings, .. } = registration;
        if let Some(stored) = stored(transaction, address)? {
            return Ok(Some(stored));
        }
        // Headers are only for the server they were given for: a feed from elsewhere is another.
        let is_same =
            |asked: &&FeedAddress| settings.headers.is_empty() || asked.has_same_origin(address);
        match self.0.get(address.as_str()).filter(is_same) {
            Some(asked) => stored(transaction, asked),
            None => Ok(None),
        }
    }
}

fn stored(
    transaction: &Transaction<'_>,
    asked: &FeedAddress,
) -> Result<Option<Stored>, StoreError> {
    let query = "SELECT id, origin, active, title, category, settings FROM feeds
        WHERE asked_url = ?";
    let mut statement = transaction.prepare_cached(query)?;
    let mut rows = statement.query([asked.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let set = Registration {
        address: asked.clone(),
        title: row.get(3)?,
        category: row.get(4)?,
        settings: json(&row.get::<_, String>(5)?)?,
    };
    let was_added = row.get::<_, i64>(1)? == Origin::Added as i64;
    Ok(Some(Stored { id: row.get(0)?, was_added, active: row.get(2)?, set }))
}

#[cfg(test)]
mod tests {
    use crate::Earlier;
    use crate::store::row::{FeedRow, Settings};
    use crate::store::tests::{day, registration};
    use crate::store::{Registration, Retention, Store};

    const URL: &str = "https://a.org/feed";

    fn store() -> Store {
        Store::in_memory(Retention::default()).unwrap()
    }

    /// A feed with all settings.
    fn full(url: &str) -> Registration {
        let headers = vec![("Authorization".to_owned(), "Bearer x".to_owned())];
        Registration {
            title: Some("Mine".to_owned()),
            category: Some("A/B".to_owned()),
            settings: Settings { interval: Some(1800), headers, ..Settings::default() },
            ..registration(url)
        }
    }

    fn titled(url: &str, title: &str) -> Registration {
        Registration { title: Some(title.to_owned()), ..registration(url) }
    }

    fn every(url: &str, interval: u64) -> Registration {
        let settings = Settings { interval: Some(interval), ..Settings::default() };
        Registration { settings, ..registration(url) }
    }

    /// The only feed is that one.
    #[track_caller]
    fn check(store: &Store, expected: &Registration) {
        let feeds = store.feeds().unwrap();
        let [FeedRow { asked, title, category, settings, .. }] = feeds.as_slice() else {
            panic!("{feeds:?}")
        };
        let found = Registration {
            address: asked.clone(),
            title: title.clone(),
            category: category.clone(),
            settings: settings.clone(),
        };
        assert_eq!(&found, expected);
    }

    #[test]
    fn what_is_not_said_when_a_feed_is_added_again_stays_set() {
        let store = store();
        store.add(&full(URL), day(0)).unwrap();
        store.add(&registration(URL), day(1)).unwrap();
        check(&store, &full(URL));
        store.add(&every(URL, 60), day(1)).unwrap();
        let mut expected = full(URL);
        expected.settings.interval = Some(60);
        check(&store, &expected);
    }

    #[test]
    fn a_list_changes_nothing_that_is_set_for_a_feed_that_is_there() {
        let store = store();
        store.add(&full(URL), day(0)).unwrap();
        let listed = Registration { category: Some("C".to_owned()), ..titled(URL, "Theirs") };
        let ids = store.add_all(&[listed, titled("https://b.org/", "B")], day(1)).unwrap();
        assert_eq!(ids.iter().map(|(_, is_new)| *is_new).collect::<Vec<_>>(), [false, true]);
        assert!(store.remove(&ids[1].0).unwrap());
        check(&store, &full(URL));
    }

    #[test]
    fn a_feed_that_moved_is_found_where_it_is() {
        let store = store();
        let id = store.add(&full(URL), day(0)).unwrap().id;
        let there = "https://b.org/new";
        store.moved(&id, there, day(1)).unwrap();
        assert_eq!(store.add_all(&[titled(there, "B")], day(1)).unwrap(), [(id.clone(), false)]);
        assert_eq!(store.add(&registration(there), day(1)).unwrap().id, id);
        check(&store, &full(URL));
        // A header for the new address is not for the old one.
        assert_ne!(store.add(&full(there), day(1)).unwrap().id, id);
    }

    #[test]
    fn the_configuration_sets_what_it_says_and_clears_what_it_set_alone() {
        let store = store();
        store.configure(&[full(URL)], Earlier::Dropped, day(0)).unwrap();
        store.configure(&[titled(URL, "Other")], Earlier::Dropped, day(1)).unwrap();
        check(&store, &titled(URL, "Other"));
        store.add(&full(URL), day(2)).unwrap();
        store.configure(&[titled(URL, "Third")], Earlier::Dropped, day(3)).unwrap();
        check(&store, &Registration { title: Some("Third".to_owned()), ..full(URL) });
    }

    #[test]
    fn of_a_feed_that_is_configured_twice_the_first_word_counts() {
        let store = store();
        let bare = registration(URL);
        let listed = Registration { category: Some("C".to_owned()), ..titled(URL, "Theirs") };
        for _ in 0..2 {
            let said = [bare.clone(), every(URL, 60), titled(URL, "Mine"), listed.clone()];
            store.configure(&said, Earlier::Dropped, day(0)).unwrap();
            let settings = every(URL, 60).settings;
            let category = Some("C".to_owned());
            check(&store, &Registration { category, settings, ..titled(URL, "Mine") });
        }
    }
}
