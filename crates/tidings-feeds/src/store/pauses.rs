//! Hosts that sent `Retry-After`, with or without a stored feed.

use std::time::Duration;

use rusqlite::params;
use tidings_store::date::Moment;

use crate::store::{Store, StoreError};

/// The longest pause; a later end was written by a wrong clock.
const LONGEST: Duration = Duration::from_hours(24);

impl Store {
    /// Stores that a host must be skipped for this long. Expired pauses are removed.
    pub(crate) fn keep_pause(
        &self,
        host: &str,
        length: Duration,
        now: Moment,
    ) -> Result<(), StoreError> {
        let until = now.after(length.min(LONGEST));
        self.write(|transaction| {
            transaction.execute("DELETE FROM pauses WHERE until <= ?1", [now.millis()])?;
            let query = "INSERT INTO pauses (host, until) VALUES (?1, ?2)
                ON CONFLICT (host) DO UPDATE SET until = max(until, excluded.until)";
            transaction.execute(query, params![host, until.millis()])?;
            Ok(())
        })
    }

    /// The hosts to skip, and for how much longer.
    pub(crate) fn pauses(&self, now: Moment) -> Result<Vec<(String, Duration)>, StoreError> {
        self.read(|connection| {
            let query = "SELECT host, until FROM pauses WHERE until > ?1 AND until <= ?2";
            let mut statement = connection.prepare_cached(query)?;
            let bounds = params![now.millis(), now.after(LONGEST).millis()];
            let rows = statement.query_map(bounds, |row| {
                let until = Moment::from_millis(row.get(1)?);
                Ok((row.get(0)?, until.since(now)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Retention;

    #[test]
    fn a_pause_is_kept_until_it_is_over_and_never_shortened() {
        let store = Store::in_memory(Retention::default()).unwrap();
        let seconds = |seconds: u64| Duration::from_secs(seconds);
        let at = |seconds: i64| Moment::from_millis(1_790_000_000_000 + seconds * 1000);
        store.keep_pause("a", seconds(100), at(0)).unwrap();
        store.keep_pause("a", seconds(10), at(0)).unwrap();
        assert_eq!(store.pauses(at(40)).unwrap(), [("a".to_owned(), seconds(60))]);
        assert!(store.pauses(at(100)).unwrap().is_empty());
        // An end that is far away because the clock was set back is ignored.
        store.keep_pause("b", seconds(u64::MAX / 2), at(200_000)).unwrap();
        assert!(store.pauses(at(0)).unwrap().is_empty());
    }
}
