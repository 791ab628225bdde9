//! Search over everything that can be gone to: servers, their parts, and their items.

use serde_json::{Value, json};

/// The most results.
const RESULTS: usize = 50;
/// Points for letters in a row, and at the beginning of a word.
const IN_A_ROW: i64 = 4;
const AT_BEGIN: i64 = 6;

/// What an act has less than a place.
const ACT: i64 = 200;

/// Results of a search, the best first.
#[derive(Debug)]
pub(crate) struct PlaceSearch {
    wanted: Vec<char>,
    found: Vec<(i64, Value)>,
}

impl PlaceSearch {
    pub(crate) fn new(text: &str) -> Self {
        let wanted = text.chars().filter(|letter| !letter.is_whitespace());
        Self { wanted: wanted.flat_map(char::to_lowercase).collect(), found: Vec::new() }
    }

    /// Offers a place by its name.
    pub(crate) fn offer(&mut self, name: &str, about: &str, server: u64, part: &str, key: &str) {
        let Some(score) = score(&self.wanted, name) else { return };
        let place =
            json!({ "name": name, "about": about, "server": server, "part": part, "key": key });
        self.found.push((score, place));
        // Bounded: the worst are dropped now and then.
        if self.found.len() > 40 * RESULTS {
            self.sort();
        }
    }

    /// Offers something to do, by its words. Places of the same score come first.
    pub(crate) fn offer_act(&mut self, words: &str, key: &str, act: &str) {
        let Some(score) = score(&self.wanted, words) else { return };
        let about = format!("key {key}");
        self.found.push((score - ACT, json!({ "name": words, "about": about, "act": act })));
    }

    fn sort(&mut self) {
        // Stable: equal ones stay in their order.
        self.found.sort_by_key(|(score, _)| -score);
        self.found.truncate(RESULTS);
    }

    pub(crate) fn results(mut self) -> Vec<Value> {
        self.sort();
        self.found.into_iter().map(|(_, place)| place).collect()
    }
}

/// How well a name fits, if all letters are in it in order: letters in a row and at the beginning of
/// words count, and short names win.
fn score(wanted: &[char], name: &str) -> Option<i64> {
    let length = i64::try_from(name.len()).unwrap_or(i64::MAX).min(200);
    let Some(first) = wanted.first() else { return Some(-length) };
    let letters: Vec<_> = name.chars().collect();
    let is_first = |place: &usize| lower(letters[*place]) == *first;
    let begins = (0..letters.len()).filter(is_first);
    let best = begins.filter_map(|begin| score_from(wanted, &letters, begin)).max()?;
    Some(best * 8 - length)
}

/// The same for a match that begins at one letter.
fn score_from(wanted: &[char], letters: &[char], begin: usize) -> Option<i64> {
    let mut score = 0;
    let mut wanted = wanted.iter().peekable();
    let mut before = if begin == 0 { ' ' } else { letters[begin - 1] };
    let mut matched_before = false;
    for letter in &letters[begin..] {
        let is_wanted = wanted.peek().is_some_and(|wanted| **wanted == lower(*letter));
        if is_wanted {
            wanted.next();
            let begins =
                !before.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase());
            score += 1 + i64::from(matched_before) * IN_A_ROW + i64::from(begins) * AT_BEGIN;
        }
        matched_before = is_wanted;
        before = *letter;
    }
    wanted.next().is_none().then_some(score)
}

fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, names: &[&str]) -> Vec<String> {
        let mut search = PlaceSearch::new(text);
        for name in names {
            search.offer(name, "", 1, "tools", name);
        }
        let results = search.results();
        results.iter().map(|place| place["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn letters_in_order_fit_and_beginnings_win() {
        let names = ["undock_module", "dock_module", "read_sensor", "module_dock"];
        assert_eq!(found("dm", &names)[0], "dock_module");
        assert_eq!(found("DOCK", &names), ["dock_module", "module_dock", "undock_module"]);
        assert_eq!(found("rs", &names), ["read_sensor"]);
        assert!(found("zz", &names).is_empty());
    }

    #[test]
    fn an_act_is_found_by_its_words_after_the_places() {
        let mut search = PlaceSearch::new("theme");
        search.offer_act("theme: light or dark", "t", "theme");
        search.offer("theme", "", 1, "tools", "theme");
        let found: Vec<_> = search.results().iter().map(|it| it["act"].clone()).collect();
        assert_eq!(found, [Value::Null, "theme".into()]);
    }

    #[test]
    fn without_a_word_everything_is_offered_in_order_of_length_and_bounded() {
        assert_eq!(found(" ", &["bbb", "a"]), ["a", "bbb"]);
        let many: Vec<_> = (0..10_000).map(|number| format!("tool_{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let results = found("tool9999", &many);
        assert_eq!((results.len(), results[0].as_str()), (1, "tool_9999"));
        assert_eq!(found("tool", &many).len(), RESULTS);
    }
}
