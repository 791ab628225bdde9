//! How each feed does, in words for people.

use tidings_store::date::Moment;

use crate::condition::Condition;
use crate::store::{FeedRow, Store};
use crate::{Feeds, FeedsError};

/// What a person wants to know of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What names it here.
    pub id: String,
    /// Where it was when it was added, without a name and a password.
    pub asked_url: String,
    /// Where it is fetched from, without a name and a password.
    pub url: String,
    /// The title under which it is listed.
    pub title: String,
    /// The folder it is in.
    pub category: Option<String>,
    /// How it does.
    pub condition: Condition,
    /// How many of its items are kept.
    pub items: u64,
    /// Why it could not be fetched the last time.
    pub last_error: Option<String>,
    /// When it was last asked.
    pub last_fetch: Option<Moment>,
    /// When it could last be fetched.
    pub last_success: Option<Moment>,
    /// When it will be asked, if ever.
    pub next_fetch: Option<Moment>,
    /// How often it failed in a row.
    pub failures: u32,
    /// Whether its document was cut off the last time; its complete items are kept.
    pub truncated: bool,
    /// Since when it is here.
    pub added: Moment,
}

impl Feeds {
    /// How each feed does, by id.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.0.board().rows().map(|row| status(row)).collect()
    }

    /// The feeds of an earlier configuration, by id: they are kept and not served.
    ///
    /// # Errors
    ///
    /// What is kept cannot be read.
    pub async fn unserved(&self) -> Result<Vec<Status>, FeedsError> {
        let rows = self.look(Store::unserved).await?;
        let unserved = |row: &FeedRow| Status {
            condition: Condition::Unserved,
            next_fetch: None,
            ..status(row)
        };
        Ok(rows.iter().map(unserved).collect())
    }

    /// How one feed does.
    #[must_use]
    pub fn status(&self, id: &str) -> Option<Status> {
        self.0.board().get(id).map(|row| status(row))
    }
}

fn status(row: &FeedRow) -> Status {
    let plan = row.plan.as_ref();
    let due = match plan {
        // It is asked as soon as somebody looks.
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
