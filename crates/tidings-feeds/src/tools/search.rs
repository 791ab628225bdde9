//! `search_items`: items of all feeds with certain words, the best first.

use tidings_server::model::Tool;

use crate::store::{Kept, Order};
use crate::tools::answer::{Answer, Refusal};
use crate::tools::choice::{Choice, properties, word};
use crate::tools::describe::{Effect, Words, tool as describe};
use crate::tools::item::{ItemList, ShownItem, list_shape};
use crate::tools::unavailable::{FIELD, Named, unavailable};
use crate::tools::{Call, Need};
use crate::view::Search;
use crate::{html, words};

pub(super) const NAME: &str = "search_items";
pub(super) const NEEDS: &[Need] = &[];
/// How many words around a match are shown.
const AROUND: usize = 30;
/// How much of a text is searched for the place to show, in bytes.
const LOOKED_AT: usize = 64 << 10;

pub(super) type Arguments = Choice;

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Search items",
        description: "Finds items that have all the words of `search`, whatever their case and \
            accents; \"quotation marks\" make a phrase, `learn` finds `learning` too, and \
            `machin*` any word that begins so. The best come first: words in a title count most. \
            Of more than 1000 matches the newest are shown, those with all words in their title \
            first. Each has the place of the match",
    };
    let mut properties = properties();
    properties["search"] = word("Words and \"phrases\"; an item must have all of them");
    let output = list_shape(&[(FIELD, unavailable())], &[]);
    describe(&words, Effect::Looks, &properties, &["search"], output)
}

pub(super) async fn call(call: &Call, choice: Arguments) -> Result<Answer, Refusal> {
    let mut listing = choice.listing(&call.inner)?;
    listing.order = Order::Best;
    let named = Named::look(call, &listing.feeds)?;
    let (budget, offset) = (named.rest_of(call.budget), choice.offset);
    let names = call.inner.names();
    let list = call.inner.blocking(move |inner| {
        let listed = inner.store.list(&listing)?;
        let items = listed.items.iter().map(|kept| ShownItem {
            snippet: listing.filter.search.as_ref().and_then(|search| snippet(kept, search)),
            ..ShownItem::without_texts(kept, &names)
        });
        Ok((listed.count(), ItemList::new(budget, items, offset, listed.total)))
    });
    let (count, list) = list.await?;
    let search = choice.search.as_deref().unwrap_or_default();
    let text = list.text(&format!("{count} with {search}"));
    let mut answer = Answer::new(&list, text);
    named.tell(call, list.total, &mut answer);
    choice.tell_folder(&call.inner, list.total, &mut answer);
    Ok(answer)
}

/// The place with the most matches.
fn snippet(kept: &Kept, search: &Search) -> Option<String> {
    let entry = &kept.entry;
    let texts = [&entry.description, &entry.content].into_iter().flatten();
    let places = texts.filter_map(|text| {
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        place(&html::plain(text), search)
    });
    // The first of those with the most.
    let best = places.rev().max_by_key(|(found, _)| *found);
    best.map(|(_, text)| text)
}

/// The part of a text with the most words of the search, and how many different ones it has.
fn place(text: &str, search: &Search) -> Option<(usize, String)> {
    let parts: Vec<_> = text.split_whitespace().collect();
    // The words of the search in each part of the text.
    let hits: Vec<(usize, usize)> = parts
        .iter()
        .enumerate()
        .flat_map(|(at, part)| words::words(part).into_iter().map(move |word| (at, word)))
        .filter_map(|(at, word)| Some((at, search.place_of(&word)?)))
        .collect();
    let mut best: Option<(usize, usize)> = None;
    for (number, (start, _)) in hits.iter().enumerate() {
        let near = hits[number..].iter().take_while(|(at, _)| at - start < AROUND).take(AROUND);
        let mut found: Vec<_> = near.map(|(_, word)| *word).collect();
        found.sort_unstable();
        found.dedup();
        if best.is_none_or(|(most, _)| found.len() > most) {
            best = Some((found.len(), *start));
        }
    }
    let (found, at) = best?;
    let begin = at.saturating_sub(AROUND / 4);
    let end = (begin + AROUND).min(parts.len());
    let sign = |is_cut: bool| if is_cut { "…" } else { "" };
    let words = parts[begin..end].join(" ");
    Some((found, format!("{}{words}{}", sign(begin > 0), sign(end < parts.len()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, search: &str, expected: Option<(usize, &str)>) {
        let found = place(text, &Search::parse(search).unwrap());
        let found = found.as_ref().map(|(found, text)| (*found, text.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_place_with_most_of_the_words_is_shown() {
        check("A pear and Crème brûlée.", "creme", Some((1, "A pear and Crème brûlée.")));
        check("Nothing here.", "pear", None);
        let far = format!("pear {}apple then pear{}", "x ".repeat(100), " y".repeat(100));
        let shown = format!("…{}apple then pear{}…", "x ".repeat(7), " y".repeat(20));
        check(&far, "pear apple", Some((2, &shown)));
    }

    #[test]
    fn a_text_full_of_what_is_searched_is_read_once() {
        let text = "pear ".repeat(10_000);
        assert!(place(&text, &Search::parse("pear").unwrap()).is_some());
    }
}
