//! The status of each feed, for people.

use tidings_store::date::Moment;

use crate::condition::Condition;
use crate::store::{FeedRow, Store};
use crate::{Feeds, FeedsError};

/// The status of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Its id.
    pub id: String,
    /// Its address when it was added, without a user name and password.
    pub asked_url: String,
    /// The address it is fetched from, without a user name and password.
    pub url: String,
    /// Its title in lists.
    pub title: String,
    /// Its folder.
    pub category: Option<String>,
    /// Its condition.
    pub condition: Condition,
    /// The number of its stored items.
    pub items: u64,
    /// Why the last fetch failed.
    pub last_error: Option<String>,
    /// When it was last fetched, with or without success.
    pub last_fetch: Option<Moment>,
    /// When a fetch last succeeded.
    pub last_success: Option<Moment>,
    /// When it will be fetched, if ever.
    pub next_fetch: Option<Moment>,
    /// How often it failed in a row.
    pub failures: u32,
    /// Whether its document was cut off the last time; its complete items are stored.
    pub truncated: bool,
    /// When it was added.
    pub added: Moment,
}

impl Feeds {
    /// The status of each feed, by id.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.0.board().rows().map(|row| status(row)).collect()
    }

    /// The feeds of an earlier configuration, by id: they are stored and not served.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn unserved(&self) -> Result<Vec<Status>, FeedsError> {
        let rows = self.look(Store::unserved).await?;
        let unserved = |row: &FeedRow| Status {
            condition: Condition::Unserved,
            next_fetch: None,
            ..status(row)
        };
        Ok(rows.iter().map(unserved).collect())
    }

    /// The status of one feed.
    #[must_use]
    pub fn status(&self, id: &str) -> Option<Status> {
        self.0.board().get(id).map(|row| status(row))
    }
}

fn status(row: &FeedRow) -> Status {
    let plan = row.plan.as_ref();
    let due = match plan {
        // It is fetched as soon as the rounds run.
        None => Some(row.added),
        Some(plan) => plan.due().map(Moment::to_second),
    };
    Status {
        id: row.id.clone(),
        asked_url: row.public_asked_url(),
        url: row.public_url(),
        title: row.shown_title().to_owned(),
        category: row.category.clone(),
        condition: row.condition(),
        items: row.item_count,
        last_error: row.last_error.clone(),
        last_fetch: row.last_fetch,
        last_success: row.last_success,
        next_fetch: due,
        failures: plan.map_or(0, |plan| plan.failures),
        truncated: row.metadata.truncated,
        added: row.added,
    }
}
