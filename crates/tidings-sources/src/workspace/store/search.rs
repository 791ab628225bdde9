//! Artifacts by the words of their titles, remarks and texts.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::workspace::record::Entry;
use crate::workspace::stamp::Stamp;
use crate::workspace::store::Store;
use crate::workspace::store::artifact::{ENTRY, entry};
use crate::workspace::{Refusal, WorkspaceError};

/// What is looked for; all of it must fit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Search {
    /// Words that must all be there; `"two words"` must follow each other, `begin*` may go on.
    pub words: Option<String>,
    /// Tags it must have.
    pub tags: Vec<String>,
    /// Who made it.
    pub creator: Option<String>,
    /// Made then or later.
    pub since: Option<Stamp>,
    /// Made then or before.
    pub until: Option<Stamp>,
    /// Whether those that were put away are found too.
    pub archived: bool,
    /// Older than the artifact of this id.
    pub after: Option<String>,
}

impl Store {
    /// The artifacts that fit, newest first, and whether there are more.
    pub(crate) fn search(
        &self,
        search: &Search,
        limit: usize,
    ) -> Result<(Vec<Entry>, bool), WorkspaceError> {
        let (sql, values) = statement(search, limit);
        self.read(|connection| {
            if let Some(after) = &search.after {
                let mut known =
                    connection.prepare_cached("SELECT 1 FROM artifacts WHERE id = ?1")?;
                if !known.exists([after])? {
                    return Err(Refusal::After(after.clone()).into());
                }
            }
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), entry)?;
            let mut found =
                rows.map(|row| Ok(row?.1)).collect::<Result<Vec<_>, WorkspaceError>>()?;
            let has_more = found.len() > limit;
            found.truncate(limit);
            Ok((found, has_more))
        })
    }
}

/// The words, if there are any, lead; what else is asked for is checked for each they find.
fn statement(search: &Search, limit: usize) -> (String, Vec<Value>) {
    let mut sql = format!("SELECT {ENTRY} FROM artifacts");
    let mut order = "key";
    let (mut values, mut conditions) = (Vec::new(), Vec::new());
    let mut condition = |text: &str, value: Value| {
        values.push(value);
        conditions.push(text.replace('?', &format!("?{}", values.len())));
    };
    let words = search.words.as_deref().map(expression).filter(|words| !words.is_empty());
    if let Some(words) = words {
        sql = format!("SELECT {ENTRY} FROM words CROSS JOIN artifacts ON key = words.rowid");
        order = "words.rowid";
        condition("words MATCH ?", words.into());
    } else if let Some(tag) = search.tags.first().filter(|_| !search.archived) {
        // The list of a tag has none that were put away.
        sql = format!("SELECT {ENTRY} FROM tagged CROSS JOIN artifacts ON key = tagged.artifact");
        order = "tagged.artifact";
        condition("tagged.tag = ?", tag.clone().into());
    }
    for tag in &search.tags {
        let has = "EXISTS (SELECT 1 FROM json_each(artifacts.tags) WHERE value = ?)";
        condition(has, tag.clone().into());
    }
    if let Some(creator) = &search.creator {
        condition("creator = ?", creator.clone().into());
    }
    if let Some(since) = search.since {
        condition("created >= ?", since.0.into());
    }
    if let Some(until) = search.until {
        condition("created <= ?", until.0.into());
    }
    if let Some(after) = &search.after {
        let older = format!("{order} < (SELECT key FROM artifacts WHERE id = ?)");
        condition(&older, after.clone().into());
    }
    if !search.archived {
        conditions.push("archived = 0".to_owned());
    }
    if !conditions.is_empty() {
        sql = format!("{sql} WHERE {}", conditions.join(" AND "));
    }
    let room = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    (format!("{sql} ORDER BY {order} DESC LIMIT {room}"), values)
}

/// Words as the index understands them, with nothing in them that it could take for a command.
fn expression(words: &str) -> String {
    let mut terms = Vec::new();
    for (number, part) in words.split('"').enumerate() {
        let is_phrase = number % 2 == 1;
        let pieces: Vec<_> = if is_phrase { vec![part] } else { part.split_whitespace().collect() };
        for piece in pieces {
            let word = if is_phrase { piece } else { piece.trim_end_matches('*') };
            // What has no letter and no digit is no word to the index.
            if word.chars().any(char::is_alphanumeric) {
                let goes_on = if word.len() < piece.len() { "*" } else { "" };
                terms.push(format!("\"{}\"{goes_on}", word.replace('\0', " ")));
            }
        }
    }
    terms.join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_a_command() {
        assert_eq!(expression("a b"), r#""a" AND "b""#);
        assert_eq!(
            expression(r#"one "two  three" four*"#),
            r#""one" AND "two  three" AND "four"*"#
        );
        assert_eq!(expression("title:x OR NOT -- *"), r#""title:x" AND "OR" AND "NOT""#);
        assert_eq!(expression(r#"" open"#), r#"" open""#);
    }
}
