//! The tables, and the migration of older stores.

use rusqlite::Connection;
use tidings_store::database::migration;

use crate::store::StoreError;

/// Each turns a store of one version into the next; the first creates it. These statements never
/// change: a store may be at any version.
const MIGRATIONS: [&str; 8] = [
    r"
CREATE TABLE feeds (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    -- The URL that was asked for, which names the feed, and the one it is fetched from now.
    asked_url TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    title TEXT,
    category TEXT,
    -- 0: in the configuration; 1: added while it ran.
    origin INTEGER NOT NULL,
    active INTEGER NOT NULL DEFAULT 1,
    added INTEGER NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}',
    plan TEXT,
    validators TEXT,
    -- 0: not fetched yet; 1: the last fetch was good; 2: it failed.
    state INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    last_fetch INTEGER,
    last_success INTEGER,
    next_fetch INTEGER,
    metadata TEXT NOT NULL DEFAULT '{}',
    metadata_revision INTEGER NOT NULL DEFAULT 0,
    items_revision INTEGER NOT NULL DEFAULT 0,
    status_revision INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE items (
    -- Never used again, so that an id that was told means one item for ever.
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    feed INTEGER NOT NULL REFERENCES feeds(key) ON DELETE CASCADE,
    identity TEXT NOT NULL,
    guid TEXT,
    link TEXT,
    title TEXT,
    description TEXT,
    content TEXT,
    published INTEGER,
    updated INTEGER,
    first_seen INTEGER NOT NULL,
    -- When it is from: published, else updated, else first seen.
    moment INTEGER NOT NULL,
    authors TEXT NOT NULL,
    categories TEXT NOT NULL,
    enclosures TEXT NOT NULL,
    image TEXT,
    hash TEXT NOT NULL,
    position INTEGER NOT NULL,
    UNIQUE (feed, identity)
);
CREATE INDEX items_in_order ON items (feed, moment DESC, first_seen DESC, position, key);
CREATE TABLE labels (
    item INTEGER NOT NULL REFERENCES items(key) ON DELETE CASCADE,
    -- 0: a category; 1: the name of an author; 2: the mail address of one.
    kind INTEGER NOT NULL,
    -- As it is compared, and as it is shown.
    value TEXT NOT NULL,
    shown TEXT NOT NULL,
    PRIMARY KEY (item, kind, value)
) WITHOUT ROWID;
CREATE TABLE tombstones (
    feed INTEGER NOT NULL REFERENCES feeds(key) ON DELETE CASCADE,
    identity TEXT NOT NULL,
    -- When the feed last had it, to the day.
    seen INTEGER NOT NULL,
    PRIMARY KEY (feed, identity)
) WITHOUT ROWID;
-- The words are cut before they come here; this tokenizer cuts at spaces and nowhere else.
CREATE VIRTUAL TABLE words USING fts5(
    feed, title, description, content,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE TRIGGER items_gone AFTER DELETE ON items BEGIN
    DELETE FROM words WHERE rowid = old.key;
END;
",
    r"
-- What was made of an item here; most have no mark.
CREATE TABLE marks (
    item INTEGER PRIMARY KEY REFERENCES items(key) ON DELETE CASCADE,
    read INTEGER NOT NULL,
    starred INTEGER NOT NULL
);
-- How far an agent has acknowledged what came in, for each choice of feeds and category.
CREATE TABLE inboxes (
    agent TEXT NOT NULL,
    scope TEXT NOT NULL,
    -- The key of the last item that it has seen.
    seen INTEGER NOT NULL,
    -- When it last asked.
    used INTEGER NOT NULL,
    PRIMARY KEY (agent, scope)
) WITHOUT ROWID;
CREATE INDEX items_of_all ON items (moment DESC, first_seen DESC, position, key);
CREATE INDEX labels_by_value ON labels (kind, value, item);
",
    r"
-- Feeds that other processes want to be asked now by the one that fetches.
CREATE TABLE wishes (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The id of the feed.
    feed TEXT NOT NULL,
    made INTEGER NOT NULL
);
",
    r"
-- How many bytes its items are as they are read; not known of one that was kept before.
ALTER TABLE feeds ADD COLUMN items_size INTEGER;
",
    r"
-- An item and its date, after the dates of all items moved at once.
ALTER TABLE feeds ADD COLUMN redated TEXT;
-- Names are compared without spaces.
UPDATE OR IGNORE labels SET value = replace(value, ' ', '') WHERE value LIKE '% %';
DELETE FROM labels WHERE value LIKE '% %';
UPDATE OR IGNORE inboxes SET scope = replace(scope, ' ', '') WHERE scope LIKE '% %';
-- What tells this store from others, and how much a server wants to be kept, in one row.
CREATE TABLE origin (id TEXT NOT NULL, retention TEXT);
INSERT INTO origin (id) VALUES (lower(hex(randomblob(4))));
-- Hosts that asked to be left alone while no feed of them was kept.
CREATE TABLE pauses (
    host TEXT PRIMARY KEY,
    -- Milliseconds since 1970.
    until INTEGER NOT NULL
) WITHOUT ROWID;
-- What addresses in the texts of an item are relative to; not known of one that was kept before.
ALTER TABLE items ADD COLUMN base TEXT;
",
    r"
-- The texts as they are shown, where they are not as they were received, and the rules that made
-- them so; those of other rules are made again when they are read.
ALTER TABLE items ADD COLUMN safe_description TEXT;
ALTER TABLE items ADD COLUMN safe_content TEXT;
ALTER TABLE items ADD COLUMN made_safe TEXT;
-- Hashes of the texts, as they were received and as they are shown.
ALTER TABLE items ADD COLUMN received_hash TEXT;
ALTER TABLE items ADD COLUMN shown_hash TEXT;
-- How many bytes it is as it is read; not known of one that was kept before, when texts were read
-- as they had been received.
ALTER TABLE items ADD COLUMN size INTEGER;
UPDATE feeds SET items_size = NULL;
-- When it last became another to read.
ALTER TABLE feeds ADD COLUMN modified INTEGER;
-- The document that took back more than it left, until the next says the same.
ALTER TABLE feeds ADD COLUMN shrunk TEXT;
-- The rules by which sizes are those of what is read.
ALTER TABLE origin ADD COLUMN made_safe TEXT;
-- How many bytes of words are gathered before they are written: a feed of thousands of items is
-- written in a few parts, which need no merging.
INSERT INTO words (words, rank) VALUES ('hashsize', 4194304);
",
    r"
-- Ranges of keys beyond `seen` that an agent has seen too: pairs, as JSON.
ALTER TABLE inboxes ADD COLUMN ranges TEXT NOT NULL DEFAULT '[]';
-- When an item is from, without a look at its texts.
CREATE INDEX items_when ON items (key, moment, first_seen, position);
-- What is dated in the future is from when it came.
UPDATE items SET moment = first_seen
    WHERE moment > first_seen + 86400 AND moment > unixepoch() + 86400;
",
    r"
-- How the last fetch went follows from `last_fetch` and `last_error`.
ALTER TABLE feeds DROP COLUMN state;
",
];

/// Migrates the store to this version.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    Ok(migration::migrate(connection, &MIGRATIONS)?)
}

/// Checks that a read-only store has this version.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let version = migration::version_of(connection, &MIGRATIONS)?;
    if version == MIGRATIONS.len() { Ok(()) } else { Err(StoreError::Older(version)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_any_earlier_version_becomes_one_of_this_and_keeps_what_it_has() {
        for version in 1..=MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            for migration in &MIGRATIONS[..version] {
                connection.execute_batch(migration).unwrap();
            }
            let number = i64::try_from(version).unwrap();
            connection.pragma_update(None, "user_version", number).unwrap();
            let feed = "INSERT INTO feeds (id, asked_url, url, origin, added) \
                VALUES ('a', 'b', 'b', 0, 0)";
            connection.execute(feed, []).unwrap();
            migrate(&mut connection).unwrap();
            check(&connection).unwrap();
            let count = |table: &str| -> i64 {
                let query = format!("SELECT count(*) FROM {table}");
                connection.query_row(&query, [], |row| row.get(0)).unwrap()
            };
            assert_eq!(["feeds", "marks", "inboxes"].map(count), [1, 0, 0]);
        }
    }

    #[test]
    fn names_of_an_earlier_release_are_compared_without_spaces() {
        let mut connection = Connection::open_in_memory().unwrap();
        let (last, before) = (MIGRATIONS.len(), 4);
        assert!(before < last);
        for migration in &MIGRATIONS[..before] {
            connection.execute_batch(migration).unwrap();
        }
        connection.pragma_update(None, "user_version", 4).unwrap();
        let kept =
            "INSERT INTO feeds (id, asked_url, url, origin, added) VALUES ('a', 'b', 'b', 0, 0);
            INSERT INTO items (feed, identity, first_seen, moment, authors, categories, enclosures,
                hash, position) VALUES (1, 'a', 0, 0, '', '', '', '', 0);
            INSERT INTO labels VALUES (1, 0, 'tech news', 'Tech News'), (1, 0, 'a i', 'A I'),
                (1, 0, 'ai', 'AI');
            INSERT INTO inboxes VALUES ('me', '/tech news', 1, 1);";
        connection.execute_batch(kept).unwrap();
        migrate(&mut connection).unwrap();
        let all = |query: &str| -> Vec<String> {
            let mut statement = connection.prepare(query).unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap();
            rows.collect::<Result<_, _>>().unwrap()
        };
        assert_eq!(all("SELECT value FROM labels ORDER BY value"), ["ai", "technews"]);
        assert_eq!(all("SELECT scope FROM inboxes"), ["/technews"]);
        assert_eq!(all("SELECT id FROM origin")[0].len(), 8);
    }
}
