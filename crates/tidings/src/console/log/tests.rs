//! Rows from records: answers, causes, bounds.

use super::*;
use std::time::SystemTime;

fn log() -> Log {
    Log::default()
}

fn change(what: &str) -> Row {
    Row::new(SystemTime::UNIX_EPOCH, Lane::Changes, Way::Here, what)
}

#[test]
fn the_newest_rows_are_sent_once_and_counts_are_exact() {
    let mut log = log();
    for number in 0..1000 {
        log.change(change(&format!("c{number}")), None, 5);
    }
    let all = log.newest(&Filter::default(), 0);
    assert_eq!(all["rows"].as_array().unwrap().len(), PAGE);
    assert_eq!((&all["total"], &all["rows"][0]["n"]), (&1000.into(), &801.into()));
    log.change(change("last"), None, 6);
    let news = log.newest(&Filter::default(), 5);
    assert_eq!(news["rows"].as_array().unwrap().len(), 1);
    assert_eq!((&news["total"], &news["lanes"]["changes"]), (&1001.into(), &1001.into()));
    let filtered = log.newest(&Filter::parse("method:c99").unwrap(), 0);
    assert_eq!(filtered["matched"], 11);
    let older = log.before(&Filter::default(), 801, 10);
    assert_eq!((older.len(), &older[0]["n"]), (10, &791.into()));
}

#[test]
fn the_log_is_bounded_and_old_rows_are_gone() {
    let mut log = log();
    for _ in 0..ROWS + 10 {
        log.change(change("c"), None, 1);
    }
    assert_eq!((log.rows().count(), log.total()), (ROWS, ROWS as u64 + 10));
    assert!(log.row(10).is_none() && log.row(11).is_some() && log.row(ROWS as u64 + 11).is_none());
}
