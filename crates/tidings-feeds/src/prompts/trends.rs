//! `trends`: topics that are covered more than before, and less.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use tidings_server::AnswerError;
use tidings_store::date::Moment;

use crate::Inner;
use crate::prompts::given::Given;
use crate::prompts::{Argument, FEED, MAX_TOKENS, Made, UNTIL, Words, titles};
use crate::store::{Span, TITLES, Trend};
use crate::words::words;

/// The default number of days, compared with as many before them.
const DAYS: u64 = 7;
const DAY: i64 = 86_400;
/// The maximum number of lines in each list.
const LINES: usize = 30;
/// Shorter words say little in most languages.
const LETTERS: usize = 4;

pub(super) const WORDS: Words = Words {
    name: "trends",
    title: "Trends",
    description: "Topics that are covered more than before, and less, by counts",
    arguments: &[
        Argument::optional("days", "How many days, compared with as many before them; default: 7"),
        FEED,
        UNTIL,
        MAX_TOKENS,
    ],
};

pub(super) async fn made(inner: &Arc<Inner>, given: &Given) -> Result<Made, AnswerError> {
    let days = given.number("days", 1..=365)?.unwrap_or(DAYS);
    let feed = given.feed(inner)?;
    let until = given.listing(inner, 1)?.filter.until;
    let to = until.unwrap_or_else(|| inner.clock.time().to_second());
    let length = i64::try_from(days).unwrap_or(365) * DAY;
    let ago = |seconds: i64| Moment::from_unix(to.unix() - seconds).unwrap_or(to);
    let span = |from: i64, to: i64| Span { feed, from: ago(from), to: ago(to) };
    let (now, before) = (span(length - 1, 0), span(2 * length - 1, length));
    let [now, before] = inner.blocking(move |inner| inner.store.trends([now, before])).await?;
    let mut room = given.budget()?.room();
    let titles = titles(inner);
    let mut list = String::new();
    let _ = writeln!(list, "Items: {} (before: {})", now.items, before.items);
    let named = |key: i64| titles.get(&key).cloned().unwrap_or_default();
    let feeds = lines(
        now.feeds.iter().map(|(key, count)| (*key, named(*key), *count)),
        before.feeds.iter().map(|(key, count)| (*key, named(*key), *count)),
        1,
    );
    let shown =
        |(value, shown, count): &(String, String, u64)| (value.clone(), shown.clone(), *count);
    let categories =
        lines(now.categories.iter().map(shown), before.categories.iter().map(shown), 1);
    // A word in only one title is not a trend.
    let words = lines(in_titles(&now), in_titles(&before), 2);
    let is_sample = now.titles.len().max(before.titles.len()) >= TITLES;
    let in_titles = if is_sample {
        format!("Words in titles, counted in the newest {TITLES} now and before")
    } else {
        "Words in titles".to_owned()
    };
    for (head, lines) in
        [("Items of each feed", feeds), ("Categories", categories), (&in_titles, words)]
    {
        let lines: Vec<_> = lines.into_iter().take_while(|line| room.take(line)).collect();
        if !lines.is_empty() {
            let _ = writeln!(list, "\n## {head}\n\n{}", lines.join("\n"));
        }
    }
    if now.items + before.items == 0 {
        let span = format!("in the {} days until {to}", 2 * days);
        let text = format!("There are no items {span}. Say so; no trend can be seen.");
        return Ok(Made { text, is_empty: true });
    }
    let text = format!(
        "Below are counts for the {days} days until {to}, and for the {days} days before them. Say \
         what is written about more, what less, and what is new; where counts are small, say that \
         they are. Use these numbers and no others.\n\n{list}"
    );
    Ok(Made { text, is_empty: false })
}

/// Lines of counts, the largest changes first, for words that occur at least this often now or
/// before.
fn lines<K: std::hash::Hash + Eq + Clone>(
    now: impl Iterator<Item = (K, String, u64)>,
    before: impl Iterator<Item = (K, String, u64)>,
    least: u64,
) -> Vec<String> {
    let mut counts: HashMap<K, (String, u64, u64)> = HashMap::new();
    for (key, shown, count) in now {
        counts.entry(key).or_insert((shown, 0, 0)).1 += count;
    }
    for (key, shown, count) in before {
        counts.entry(key).or_insert((shown, 0, 0)).2 += count;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.retain(|(_, now, before)| *now.max(before) >= least);
    counts.sort_by(|one, other| {
        let moved = |it: &(String, u64, u64)| (it.1.abs_diff(it.2), it.1.max(it.2));
        moved(other).cmp(&moved(one)).then_with(|| one.0.cmp(&other.0))
    });
    let lines = counts.into_iter().take(LINES);
    lines.map(|(shown, now, before)| format!("- {shown}: {now} (before: {before})")).collect()
}

/// The number of titles with each word.
fn in_titles(trend: &Trend) -> impl Iterator<Item = (String, String, u64)> + use<> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for title in &trend.titles {
        let words: HashSet<_> = words(title).into_iter().collect();
        for word in words.into_iter().filter(|word| word.chars().count() >= LETTERS) {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts.into_iter().map(|(word, count)| (word.clone(), word, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_most_is_first_and_both_counts_are_told() {
        let count = |name: &str, count| (name.to_owned(), name.to_owned(), count);
        let now = [count("a", 5), count("b", 9), count("new", 3)];
        let before = [count("a", 5), count("b", 1), count("gone", 2)];
        assert_eq!(
            lines(now.into_iter(), before.into_iter(), 1),
            [
                "- b: 9 (before: 1)",
                "- new: 3 (before: 0)",
                "- gone: 0 (before: 2)",
                "- a: 5 (before: 5)",
            ]
        );
    }

    #[test]
    fn a_word_counts_once_in_a_title_and_is_told_if_several_have_it_in_one_span() {
        let trend = |titles: &[&str]| {
            let titles = titles.iter().map(|title| (*title).to_owned()).collect();
            in_titles(&Trend { titles, ..Trend::default() })
        };
        let now = trend(&["Pears, pears!", "More PEARS and figs", "Kiwi"]);
        let before = trend(&["A pear, or pears", "Kiwi and figs", "Figs"]);
        assert_eq!(lines(now, before, 2), ["- figs: 1 (before: 2)", "- pears: 2 (before: 1)"]);
    }
}
