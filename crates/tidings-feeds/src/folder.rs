//! Folders of feeds: how they are named, compared and chosen.

use crate::Inner;
use crate::store::FeedRow;
use crate::words;

/// Whether a feed of this folder is in the wanted one, or in one inside it. Case and spaces are
/// ignored.
pub(crate) fn is_in(folder: Option<&str>, wanted: &str) -> bool {
    let Some(folder) = folder.map(words::label) else { return false };
    let wanted = words::label(wanted);
    let rest = folder.strip_prefix(wanted.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A folder and its parents: `A/B` and `A`.
pub(crate) fn with_parents(folder: &str) -> impl Iterator<Item = &str> {
    let parents = folder.match_indices('/').map(|(at, _)| &folder[..at]);
    std::iter::once(folder).chain(parents).filter(|name| !name.is_empty())
}

impl Inner {
    /// The keys of the feeds in a folder; an error if there are none.
    pub(crate) fn keys_in(&self, folder: &str) -> Result<Vec<i64>, String> {
        let board = self.board();
        let is_in = |row: &&std::sync::Arc<FeedRow>| is_in(row.category.as_deref(), folder);
        let keys: Vec<_> = board.rows().filter(is_in).map(|row| row.key).collect();
        if !keys.is_empty() {
            return Ok(keys);
        }
        let names: Vec<_> = board.folders().take(SHOWN).map(|name| format!("`{name}`")).collect();
        Err(if names.is_empty() {
            "no feed is in a folder; `add_feed` puts one there".to_owned()
        } else {
            format!("there is no such folder; there are {}", names.join(", "))
        })
    }
}

/// How many folders are listed in the error for an unknown one.
const SHOWN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_what_is_in_folders_inside_it() {
        assert!(is_in(Some("Tech"), "tech") && is_in(Some("Tech News/Rust"), "technews"));
        assert!(!is_in(Some("Technology"), "tech") && !is_in(None, "tech"));
        assert!(!is_in(Some("Tech"), "Tech/Rust"));
        assert_eq!(with_parents("A/B/C").collect::<Vec<_>>(), ["A/B/C", "A", "A/B"]);
    }
}
