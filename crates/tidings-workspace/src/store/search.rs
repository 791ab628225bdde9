//! Searching artifacts by the words of their titles, texts and annotations.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rusqlite::params_from_iter;
use rusqlite::types::Value;
use tidings_store::date::Moment;

use crate::record::ArtifactEntry;
use crate::store::Store;
use crate::store::artifact::{ENTRY, entry};
use crate::{Refusal, WorkspaceError};

/// Conditions on artifacts; all must match.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Search {
    /// Words that must all occur; `"two words"` is a phrase, `begin*` a prefix. A text without
    /// letters and digits matches nothing; a blank one is ignored.
    pub words: Option<String>,
    /// Tags that the artifact must have.
    pub tags: Vec<String>,
    /// Its creator.
    pub creator: Option<String>,
    /// Created at this time or later.
    pub since: Option<Moment>,
    /// Created at this time or before.
    pub until: Option<Moment>,
    /// Whether to include archived artifacts.
    pub archived: bool,
    /// Only artifacts older than the one with this id.
    pub after: Option<String>,
}

impl Store {
    /// The matching artifacts, newest first, and whether there are more.
    pub(crate) fn search(
        &self,
        search: &Search,
        limit: usize,
    ) -> Result<(Vec<ArtifactEntry>, bool), WorkspaceError> {
        let words = search.words.as_deref().filter(|words| !words.trim().is_empty());
        let terms = words.map(terms).unwrap_or_default();
        if words.is_some() && terms.is_empty() {
            // No artifact contains something that is not a word.
            return Ok((Vec::new(), false));
        }
        let lead = if terms.is_empty() { Lead::Lists } else { Lead::Words };
        // Matches in titles and texts are sorted. Matches in annotations are few, and searched
        // separately.
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

/// The index that finds candidates; all other conditions are checked for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    /// The list of a tag, or of all artifacts.
    Lists,
    /// Titles and texts that contain all words.
    Words,
    /// Annotations that contain one of the words; the others may be anywhere.
    Remarks,
}

/// The artifacts with a term in their annotations.
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
            // The list of a tag has no archived artifacts.
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
        condition("created >= ?", since.millis().into());
    }
    if let Some(until) = search.until {
        condition("created <= ?", until.millis().into());
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

/// Quotes words for the index, so that none is taken for an operator.
fn terms(words: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for (number, part) in words.split('"').enumerate() {
        let is_phrase = number % 2 == 1;
        let pieces: Vec<_> = if is_phrase { vec![part] } else { part.split_whitespace().collect() };
        for piece in pieces {
            let word = if is_phrase { piece } else { piece.trim_end_matches('*') };
            // To the index, a word has a letter or a digit.
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
