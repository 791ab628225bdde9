//! Artifacts by the words of their titles, remarks and texts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::record::ArtifactEntry;
use crate::stamp::Stamp;
use crate::store::Store;
use crate::store::artifact::{ENTRY, entry};
use crate::{Refusal, WorkspaceError};

/// What is looked for; all of it must fit.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Search {
    /// Words that must all be there; `"two words"` must follow each other, `begin*` may go on. What
    /// has no letter and no digit finds nothing; a blank text is as none.
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
    ) -> Result<(Vec<ArtifactEntry>, bool), WorkspaceError> {
        let words = search.words.as_deref().filter(|words| !words.trim().is_empty());
        let terms = words.map(terms).unwrap_or_default();
        if words.is_some() && terms.is_empty() {
            // Nothing has a word that is none.
            return Ok((Vec::new(), false));
        }
        let lead = if terms.is_empty() { Lead::Lists } else { Lead::Words };
        // What the words find is in order as it comes. What remarks find is few, and found apart.
        let leads = [Some(lead), (!terms.is_empty()).then_some(Lead::Remarks)];
        self.read(|connection| {
            if let Some(after) = &search.after {
                let mut known =
                    connection.prepare_cached("SELECT 1 FROM artifacts WHERE id = ?1")?;
                if !known.exists([after])? {
                    return Err(Refusal::After(after.clone()).into());
                }
            }
            let mut found = BTreeMap::new();
            for lead in leads.into_iter().flatten() {
                let (sql, values) = statement(search, lead, &terms, limit);
                let mut statement = connection.prepare_cached(&sql)?;
                let rows = statement.query_map(params_from_iter(values), entry)?;
                for row in rows {
                    let (key, entry) = row?;
                    found.insert(Reverse(key), entry);
                }
            }
            let has_more = found.len() > limit;
            Ok((found.into_values().take(limit).collect(), has_more))
        })
    }
}

/// What finds artifacts; whatever else is asked for is checked for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    /// The list of a tag, or that of all.
    Lists,
    /// Titles and texts that have all words.
    Words,
    /// Remarks that have one of the words; the others may be anywhere.
    Remarks,
}

/// The artifacts a term finds in remarks.
const REMARKED: &str = "key IN (SELECT artifact FROM remarks CROSS JOIN annotations
    ON annotations.key = remarks.rowid WHERE remarks MATCH ?)";

fn statement(search: &Search, lead: Lead, terms: &[String], limit: usize) -> (String, Vec<Value>) {
    let mut sql = format!("SELECT {ENTRY} FROM artifacts");
    let mut order = "key";
    let (mut values, mut conditions) = (Vec::new(), Vec::new());
    let mut condition = |text: &str, value: Value| {
        values.push(value);
        conditions.push(text.replace('?', &format!("?{}", values.len())));
    };
    match (lead, search.tags.first().filter(|_| !search.archived)) {
        (Lead::Words, _) => {
            sql = format!("SELECT {ENTRY} FROM words CROSS JOIN artifacts ON key = words.rowid");
            order = "words.rowid";
            condition("words MATCH ?", terms.join(" AND ").into());
        }
        (Lead::Remarks, _) => {
            condition(REMARKED, terms.join(" OR ").into());
            let apart = if terms.len() > 1 { terms } else { &[] };
            for term in apart {
                let text = "EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND rowid = key)";
                condition(&format!("({REMARKED} OR {text})"), term.clone().into());
            }
        }
        (Lead::Lists, Some(tag)) => {
            // The list of a tag has none that were put away.
            sql =
                format!("SELECT {ENTRY} FROM tagged CROSS JOIN artifacts ON key = tagged.artifact");
            order = "tagged.artifact";
            condition("tagged.tag = ?", tag.clone().into());
        }
        (Lead::Lists, None) if !search.archived && search.creator.is_none() => {
            sql.push_str(" INDEXED BY artifacts_recent");
        }
        (Lead::Lists, None) => {}
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
fn terms(words: &str) -> Vec<String> {
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
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_a_command() {
        assert_eq!(terms("a b"), [r#""a""#, r#""b""#]);
        assert_eq!(
            terms(r#"one "two  three" four*"#),
            [r#""one""#, r#""two  three""#, r#""four"*"#]
        );
        assert_eq!(terms("title:x OR NOT -- *"), [r#""title:x""#, r#""OR""#, r#""NOT""#]);
        assert_eq!(terms(r#"" open"#), [r#"" open""#]);
    }
}
