//! The feeds and their state.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use serde::de::DeserializeOwned;
use tidings_store::date::Moment;

use crate::address::FeedAddress;
use crate::config::Earlier;
use crate::fetch::Validators;
use crate::id;
use crate::schedule::Plan;
use crate::store::merge::{Addresses, Merge, Stored};
use crate::store::row::{FeedRow, Metadata, Revisions, Settings};
use crate::store::{Store, StoreError};

/// A feed to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) address: FeedAddress,
    pub(crate) title: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) settings: Settings,
}

/// The origin of a feed; see the table.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    Configured = 0,
    Added = 1,
}

const COLUMNS: &str = "key, id, asked_url, url, title, category, added, settings, plan, \
    validators, last_error, last_fetch, last_success, next_fetch, metadata, \
    metadata_revision, items_revision, status_revision, \
    (SELECT count(*) FROM items WHERE feed = feeds.key), \
    (SELECT max(moment) FROM items WHERE feed = feeds.key), items_size,
    modified";

impl Store {
    /// Makes these the feeds of the configuration. The items of a removed one stay, in case it
    /// returns. Of a repeated one the first entry counts, and settings made at run time stay unless
    /// the configuration has others.
    pub(crate) fn configure(
        &self,
        registrations: &[Registration],
        earlier: Earlier,
        now: Moment,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            if earlier == Earlier::Dropped {
                transaction.execute("UPDATE feeds SET active = 0 WHERE origin = 0", [])?;
            }
            let addresses = Addresses::read(transaction)?;
            let mut named = HashSet::new();
            for registration in registrations {
                let stored = addresses.find(transaction, registration)?;
                let merge = match &stored {
                    Some(stored) if named.contains(&stored.id) => Merge::Complete,
                    Some(stored) if stored.was_added => Merge::Amend,
                    _ => Merge::Replace,
                };
                let origin = Origin::Configured;
                named.insert(put(transaction, stored, registration, merge, origin, now)?);
            }
            Ok(())
        })
    }

    /// Adds a feed at run time; it stays after a restart. For an existing feed only the given
    /// settings change.
    pub(crate) fn add(
        &self,
        registration: &Registration,
        now: Moment,
    ) -> Result<FeedRow, StoreError> {
        self.write(|transaction| {
            let stored = Addresses::read(transaction)?.find(transaction, registration)?;
            let is_served = stored.as_ref().is_some_and(|stored| stored.active);
            let merge = if is_served { Merge::Amend } else { Merge::Replace };
            let id = put(transaction, stored, registration, merge, Origin::Added, now)?;
            feed_of(transaction, &id)?.ok_or(StoreError::NoFeed(id))
        })
    }

    /// Adds the missing ones of many feeds, in one step, and leaves the others unchanged; returns
    /// the ids of all and whether each is new.
    pub(crate) fn add_all(
        &self,
        registrations: &[Registration],
        now: Moment,
    ) -> Result<Vec<(String, bool)>, StoreError> {
        self.write(|transaction| {
            let addresses = Addresses::read(transaction)?;
            let mut ids = Vec::new();
            for registration in registrations {
                let stored = addresses.find(transaction, registration)?;
                let is_served = stored.as_ref().is_some_and(|stored| stored.active);
                let merge = if is_served { Merge::Keep } else { Merge::Replace };
                let id = put(transaction, stored, registration, merge, Origin::Added, now)?;
                ids.push((id, !is_served));
            }
            Ok(ids)
        })
    }

    /// Removes a feed and its items; returns whether it existed.
    pub(crate) fn remove(&self, id: &str) -> Result<bool, StoreError> {
        self.write(|transaction| {
            Ok(transaction.execute("DELETE FROM feeds WHERE id = ?", [id])? > 0)
        })
    }

    /// The served feeds, by id.
    pub(crate) fn feeds(&self) -> Result<Vec<FeedRow>, StoreError> {
        self.read(|connection| listed(connection, 1))
    }

    /// The feeds of an earlier configuration, which are not served, by id.
    pub(crate) fn unserved(&self) -> Result<Vec<FeedRow>, StoreError> {
        self.read(|connection| listed(connection, 0))
    }

    /// One served feed.
    pub(crate) fn feed(&self, id: &str) -> Result<Option<FeedRow>, StoreError> {
        self.read(|connection| feed_of(connection, id))
    }

    /// Stores the plan of a feed; returns the stored one. A feed that was paused meanwhile stays
    /// paused.
    pub(crate) fn keep_plan(&self, id: &str, plan: Plan) -> Result<Plan, StoreError> {
        self.write(|transaction| {
            let is_paused = stored_plan(transaction, id)?.is_some_and(|plan| plan.is_paused());
            let plan = if is_paused { plan.paused() } else { plan };
            write_plan(transaction, id, &plan, None)?;
            Ok(plan)
        })
    }

    /// Pauses or resumes a feed; returns whether that is a change.
    pub(crate) fn pause(&self, id: &str, pause: bool, now: Moment) -> Result<bool, StoreError> {
        self.write(|transaction| {
            let no_feed = || StoreError::NoFeed(id.to_owned());
            let feed = feed_of(transaction, id)?.ok_or_else(no_feed)?;
            if feed.is_paused() == pause {
                return Ok(false);
            }
            let plan = feed.plan.unwrap_or_else(|| Plan::new(now));
            let plan = if pause { plan.paused() } else { plan.resumed(now) };
            write_plan(transaction, id, &plan, Some(now))?;
            Ok(true)
        })
    }

    /// Stores the validators of a feed.
    pub(crate) fn keep_validators(
        &self,
        id: &str,
        validators: &Validators,
    ) -> Result<(), StoreError> {
        let written = serde_json::to_string(validators).expect("validators are plain JSON");
        self.write(|transaction| {
            // While it is open whether dates were corrected or items withdrawn, the document must
            // come once more.
            let query = "UPDATE feeds
                SET validators = iif(redated IS NULL AND shrunk IS NULL, ?1, NULL) WHERE id = ?2";
            transaction.execute(query, [written.as_str(), id])?;
            Ok(())
        })
    }

    /// The feed moved permanently; it stays the same feed. Returns whether that is a change.
    pub(crate) fn moved(&self, id: &str, url: &str, now: Moment) -> Result<bool, StoreError> {
        self.write(|transaction| {
            let query = "UPDATE feeds SET url = ?1, metadata_revision = metadata_revision + 1,
                modified = ?3 WHERE id = ?2 AND url <> ?1";
            Ok(transaction.execute(query, params![url, id, now.unix()])? > 0)
        })
    }
}

fn stored_plan(transaction: &Transaction<'_>, id: &str) -> Result<Option<Plan>, StoreError> {
    let query = "SELECT plan FROM feeds WHERE id = ?";
    let plan = transaction.prepare_cached(query)?.query_row([id], |row| row.get(0)).optional()?;
    Ok(of_this_release(plan.flatten()))
}

/// A value of the schedule or the fetcher. If another release wrote it in another shape, it counts
/// as missing.
fn of_this_release<T: DeserializeOwned>(written: Option<String>) -> Option<T> {
    written.and_then(|text| serde_json::from_str(&text).ok())
}

/// Writes a plan, and the time of its last visible change.
fn write_plan(
    transaction: &Transaction<'_>,
    id: &str,
    plan: &Plan,
    news: Option<Moment>,
) -> Result<(), StoreError> {
    let written = serde_json::to_string(plan).expect("a plan is plain JSON");
    let next = plan.due().map(Moment::unix);
    let query = "UPDATE feeds SET plan = ?1, next_fetch = ?2,
        status_revision = status_revision + (?3 IS NOT NULL), modified = ifnull(?3, modified)
        WHERE id = ?4";
    let news = news.map(Moment::unix);
    transaction.prepare_cached(query)?.execute(params![written, next, news, id])?;
    Ok(())
}

/// Creates a feed if missing and returns its id.
fn put(
    transaction: &Transaction<'_>,
    stored: Option<Stored>,
    registration: &Registration,
    merge: Merge,
    origin: Origin,
    now: Moment,
) -> Result<String, StoreError> {
    let written =
        |settings: &Settings| serde_json::to_string(settings).expect("settings are plain JSON");
    if let Some(Stored { id, set, .. }) = stored {
        let Registration { title, category, settings, .. } = merge.of(set, registration);
        let settings = written(&settings);
        // A feed that was added stays, independent of the configuration.
        let query = "UPDATE feeds SET title = ?1, category = ?2, settings = ?3, active = 1,
            origin = max(origin, ?5), metadata_revision = metadata_revision + (title IS NOT ?1)
            WHERE id = ?4";
        transaction.execute(query, params![title, category, settings, id, origin as i64])?;
        return Ok(id);
    }
    let Registration { address, title, category, settings } = registration;
    let url = address.as_str();
    let settings = written(settings);
    let query = "SELECT count(*) FROM feeds WHERE id = ?";
    let short = id::short(url);
    let taken: i64 = transaction.query_row(query, [&short], |row| row.get(0))?;
    let id = if taken == 0 { short } else { id::long(url) };
    let query = "INSERT INTO feeds (id, asked_url, url, title, category, origin, added, settings)
        VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7)";
    let origin = origin as i64;
    transaction.execute(query, params![id, url, title, category, origin, now.unix(), settings])?;
    Ok(id)
}

fn listed(connection: &Connection, active: i64) -> Result<Vec<FeedRow>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM feeds WHERE active = ? ORDER BY id");
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query([active])?;
    let mut feeds = Vec::new();
    while let Some(row) = rows.next()? {
        feeds.push(feed(row)?);
    }
    Ok(feeds)
}

/// One served feed, by a connection.
pub(super) fn feed_of(connection: &Connection, id: &str) -> Result<Option<FeedRow>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM feeds WHERE id = ? AND active = 1");
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(feed).transpose()
}

fn feed(row: &Row<'_>) -> Result<FeedRow, StoreError> {
    let moment = |index: usize| -> Result<Option<Moment>, StoreError> {
        Ok(row.get::<_, Option<i64>>(index)?.and_then(Moment::from_unix))
    };
    let asked = FeedAddress::stored(row.get(2)?);
    let address = asked.moved_to(row.get(3)?);
    Ok(FeedRow {
        key: row.get(0)?,
        id: row.get(1)?,
        metadata: json::<Metadata>(&row.get::<_, String>(14)?)?.shown(&address),
        asked,
        address,
        title: row.get(4)?,
        category: row.get(5)?,
        added: moment(6)?.ok_or_else(|| StoreError::Damaged("the time it was added".into()))?,
        settings: json(&row.get::<_, String>(7)?)?,
        plan: of_this_release(row.get(8)?),
        validators: of_this_release(row.get(9)?).unwrap_or_default(),
        last_error: row.get(10)?,
        last_fetch: moment(11)?,
        last_success: moment(12)?,
        next_fetch: moment(13)?,
        revisions: Revisions { metadata: row.get(15)?, items: row.get(16)?, status: row.get(17)? },
        item_count: u64::try_from(row.get::<_, i64>(18)?).unwrap_or_default(),
        newest: moment(19)?,
        items_size: row.get::<_, Option<i64>>(20)?.and_then(|size| u64::try_from(size).ok()),
        modified: moment(21)?,
    })
}

/// Reads JSON that this store wrote.
pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(error.to_string()))
}
