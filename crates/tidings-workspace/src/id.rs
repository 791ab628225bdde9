//! Ids of artifacts, sorted by creation even if the clock jumps.

use std::sync::Mutex;
use std::time::SystemTime;

use uuid::timestamp::context::ContextV7;
use uuid::{Timestamp, Uuid};

/// Orders the ids of one millisecond.
static CONTEXT: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// A new id.
pub(super) fn new() -> String {
    at(SystemTime::now()).to_string()
}

/// An id with this time, or 1970 if the clock is before that.
fn at(time: SystemTime) -> Uuid {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Uuid::new_v7(Timestamp::from_unix(&CONTEXT, since.as_secs(), since.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_of_a_clock_before_1970_are_in_order_too() {
        let long_ago = SystemTime::UNIX_EPOCH - Duration::from_secs(1_000_000);
        let (first, second) = (at(long_ago), at(long_ago));
        assert!(first < second, "{first} {second}");
        assert_eq!(first.get_version_num(), 7);
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(498_552);
        assert!(second < at(now));
    }
}
