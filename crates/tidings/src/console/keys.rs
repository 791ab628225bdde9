//! The keys of the console: one table for the help, the foot line and every viewer.

use serde::Serialize;

/// One key and what it does.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Key {
    /// As a browser names it: `j`, `Enter`, `Ctrl+Enter`.
    #[serde(rename = "key")]
    pub(crate) name: &'static str,
    pub(crate) act: &'static str,
    pub(crate) words: &'static str,
    /// Whether the foot line shows it.
    pub(crate) shown: bool,
}

const fn key(name: &'static str, act: &'static str, words: &'static str, shown: bool) -> Key {
    Key { name, act, words, shown }
}

/// All keys.
pub(crate) const KEYS: [Key; 34] = [
    key("?", "help", "keys", true),
    key("s", "servers", "servers", false),
    key("0", "overview", "overview", false),
    key("1", "tools", "tools", false),
    key("2", "resources", "resources", false),
    key("3", "templates", "templates", false),
    key("4", "prompts", "prompts", false),
    key("5", "watched", "watched", false),
    key("6", "timeline", "timeline", false),
    key("7", "inbox", "inbox", false),
    key("8", "cache", "cache", false),
    key("h", "hub", "hub", false),
    key("Ctrl+k", "find", "find or run", true),
    key(":", "find", "find or run", false),
    key("j", "down", "next row", true),
    key("k", "up", "previous row", true),
    key("ArrowDown", "down", "next row", false),
    key("ArrowUp", "up", "previous row", false),
    key("Enter", "open", "open", true),
    key("Escape", "back", "back", false),
    key("/", "filter", "filter", true),
    key("[", "previous-server", "previous server", false),
    key("]", "next-server", "next server", false),
    key("w", "watch", "watch or stop watching", true),
    key("r", "read", "read again", true),
    key("c", "call", "call", false),
    key("Ctrl+Enter", "call", "call", true),
    key("x", "cancel", "cancel the call", false),
    key("a", "answer", "answer a question", false),
    key("y", "copy", "copy as a command", true),
    key("Y", "copy-value", "copy the value", false),
    key("f", "follow", "follow the newest row", false),
    key("p", "follow", "follow the newest row", false),
    key("t", "theme", "theme: light or dark", false),
];

/// The keys whose acts are worth being found by their words: each act once, without moving around.
pub(crate) fn acts() -> impl Iterator<Item = &'static Key> {
    const MOVES: [&str; 6] = ["up", "down", "open", "back", "find", "inbox"];
    let is_first = |place: usize| KEYS[..place].iter().all(|other| other.act != KEYS[place].act);
    let is_part = |act: &str| super::PARTS.contains(&act);
    let found = KEYS.iter().enumerate();
    found
        .filter(move |(place, key)| {
            is_first(*place) && !MOVES.contains(&key.act) && !is_part(key.act)
        })
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_key_does_two_things_and_an_act_has_one_description() {
        let mut acts = BTreeMap::new();
        for (place, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..place].iter().all(|other| other.name != key.name), "{}", key.name);
            let words = acts.entry(key.act).or_insert(key.words);
            assert_eq!(*words, key.words, "{}", key.act);
        }
    }

    #[test]
    fn the_page_does_what_each_key_says() {
        let general = include_str!("../../web/keys.js");
        let views = [
            include_str!("../../web/part/list.js"),
            include_str!("../../web/view/call.js"),
            include_str!("../../web/view/result.js"),
            include_str!("../../web/view/watched.js"),
        ];
        for Key { act, .. } in KEYS {
            let is_general = general.contains(&format!("  {act}:"))
                || general.contains(&format!("  '{act}':"))
                || general.contains(&format!("'{act}', "))
                || general.contains(&format!("'{act}']"));
            let has_act = |view: &str| view.contains(&format!("useAct('{act}'"));
            assert!(is_general || views.iter().any(|view| has_act(view)), "no part does {act}");
        }
    }
}
