//! Tests of the storage of a workspace.

mod damage;
mod laws;
mod leftovers;
mod refusals;
mod upkeep;

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::change::Change;
use crate::record::{ArtifactEntry, Connection as Link, Hint, Lineage};
use crate::store::artifact::ArtifactList;

fn fresh() -> (TempDir, Arc<Store>) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(Config::new(directory.path())).unwrap();
    // No power cut happens in tests.
    store.exclusively(|it| Ok(it.pragma_update(None, "synchronous", "OFF")?)).unwrap();
    (directory, Arc::new(store))
}

fn whole(store: &Store, bytes: &[u8]) -> Whole {
    let mut incoming = store.incoming().unwrap();
    incoming.write(bytes).unwrap();
    incoming.finish().unwrap()
}

fn put(store: &Store, bytes: &[u8]) -> String {
    store.put(whole(store, bytes), None, "tester").unwrap().hash
}

fn draft(title: &str) -> Draft {
    Draft::new(title, "", "tester")
}

fn create(store: &Store, draft: Draft) -> String {
    let whole = whole(store, draft.title.as_bytes());
    store.create_of(whole, draft, "tester").unwrap()
}

fn titles(items: &[ArtifactEntry]) -> Vec<&str> {
    items.iter().map(|entry| entry.title.as_str()).collect()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// Everything in the tables, except for times.
fn state(store: &Store) -> Value {
    let tables = [
        "SELECT * FROM blobs ORDER BY hash",
        "SELECT * FROM artifacts ORDER BY key",
        "SELECT * FROM tagged ORDER BY tag, artifact",
        "SELECT * FROM descent ORDER BY parent, child",
        "SELECT * FROM annotations ORDER BY key",
        "SELECT * FROM counts ORDER BY kind, name",
        "SELECT * FROM identities ORDER BY id",
        "SELECT * FROM hints ORDER BY kind, value",
        "SELECT source, source_port, target, target_port, transport FROM connections ORDER BY key",
    ];
    let read = |sql: &str| {
        store
            .read(|connection| {
                let mut statement = connection.prepare(sql)?;
                let columns = statement.column_count();
                let rows = statement.query_map([], |row| {
                    let cells = (0..columns).map(|it| row.get::<_, rusqlite::types::Value>(it));
                    Ok(format!("{:?}", cells.collect::<Result<Vec<_>, _>>()?))
                })?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            })
            .unwrap()
    };
    json!(tables.map(|sql| (sql, read(sql))).to_vec())
}
