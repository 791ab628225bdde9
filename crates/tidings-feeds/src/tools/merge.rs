//! `merge_feeds`: items of several feeds in one list, without repeats.

use std::collections::HashMap;

use serde_json::json;
use tidings_server::model::Tool;

use crate::store::{Kept, Listed, address_of};
use crate::tools::answer::{Answer, Refusal, count};
use crate::tools::budget::LeftOut;
use crate::tools::choice::{Choice, properties, word};
use crate::tools::describe::{Effect, Words, tool as describe};
use crate::tools::item::{ItemList, Names, ShownItem, Texts, fitting, list_shape};
use crate::tools::unavailable::{FIELD, Named, unavailable};
use crate::tools::{Call, Need};

pub(super) const NAME: &str = "merge_feeds";
pub(super) const NEEDS: &[Need] = &[];

pub(super) type Arguments = Choice;

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Merge feeds",
        description: "Returns the items of several feeds, or of all, in one list, newest first. An \
            item of several feeds is listed once, with the other feeds that have it; items are \
            compared by address and guid, within one answer",
    };
    let mut properties = properties();
    properties["search"] = word("Only items with all of these words and \"phrases\"");
    let folded = json!({
        "type": "integer", "minimum": 0, "description": "How many were duplicates",
    });
    let output = list_shape(&[("folded", folded), (FIELD, unavailable())], &["folded"]);
    describe(&words, Effect::Looks, &properties, &[], output)
}

pub(super) async fn call(call: &Call, choice: Arguments) -> Result<Answer, Refusal> {
    let listing = choice.listing(&call.inner)?;
    let named = Named::look(call, &listing.feeds)?;
    let (budget, offset) = (named.rest_of(call.budget), choice.offset);
    let names = call.inner.names();
    let merged = call.inner.blocking(move |inner| {
        let Listed { total, items, .. } = inner.store.list(&listing)?;
        let groups = folded(&items);
        let shown = groups.iter().map(|group| shown(&items, group, &names));
        let shown = fitting(&mut budget.room(), shown);
        // The rest of the list begins with the first group that is not shown.
        let next = groups.get(shown.len()).map_or(items.len(), |group| group[0]);
        let folded: usize = groups[..shown.len()].iter().map(|group| group.len() - 1).sum();
        let next = offset.saturating_add(next as u64);
        let left_out = LeftOut::new(total.saturating_sub(next), || {
            format!(
                "ask again with `offset` {next}; with more `maxTokens` or a higher `limit` \
                     more come at once"
            )
        });
        Ok((ItemList { items: shown, total, left_out }, folded))
    });
    let (list, folded) = merged.await?;
    let items = count(list.total, "item");
    let head = format!("{items}, newest first; duplicates: {folded}");
    let mut answer = Answer::new(&list, list.text(&head));
    answer.add("folded", folded);
    named.tell(call, list.total, &mut answer);
    choice.tell_folder(&call.inner, list.total, &mut answer);
    Ok(answer)
}

/// The positions of equal items, in the order of the first of each.
fn folded(items: &[Kept]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        let entry = &item.entry;
        // A guid that is a number or a word has another meaning in each feed.
        let guid = entry.guid.as_ref().filter(|guid| guid.contains(':'));
        let names: Vec<_> =
            [entry.link.as_ref(), guid].into_iter().flatten().map(|it| address_of(it)).collect();
        let group = names.iter().find_map(|name| known.get(name).copied());
        // Two items of one feed are different, whatever they share.
        let group =
            group.filter(|group| groups[*group].iter().all(|it| items[*it].feed != item.feed));
        let group = group.unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(place);
        for name in names {
            known.entry(name).or_insert(group);
        }
    }
    groups
}

fn shown(items: &[Kept], group: &[usize], names: &Names) -> ShownItem {
    let others = group[1..].iter().filter_map(|place| names.get(&items[*place].feed).cloned());
    ShownItem {
        also_in: others.take(10).collect(),
        ..ShownItem::of(&items[group[0]], names, Texts::BRIEF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Entry;
    use tidings_store::date::Moment;

    fn item(feed: i64, link: &str, guid: &str) -> Kept {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let entry = Entry { link: text(link), guid: text(guid), ..Entry::default() };
        let moment = Moment::from_unix(0).unwrap();
        Kept { key: 0, feed, moment, read: false, starred: false, entry }
    }

    #[track_caller]
    fn check(items: &[Kept], expected: &[&[usize]]) {
        assert_eq!(folded(items), expected);
    }

    #[test]
    fn items_with_one_address_are_one() {
        let items = [
            item(1, "https://a.org/1", ""),
            item(2, "http://www.a.org/1/?utm_source=b", ""),
            item(1, "https://a.org/2", ""),
        ];
        check(&items, &[&[0, 1], &[2]]);
    }

    #[test]
    fn items_with_one_guid_are_one_if_it_can_be_nothing_else() {
        check(&[item(1, "", "tag:a.org,2026:1"), item(2, "", "tag:a.org,2026:1")], &[&[0, 1]]);
        check(&[item(1, "", "1"), item(2, "", "1")], &[&[0], &[1]]);
        check(&[item(1, "", ""), item(2, "", "")], &[&[0], &[1]]);
    }

    #[test]
    fn items_of_one_feed_stay_apart() {
        check(&[item(1, "https://a.org/", "1"), item(1, "https://a.org/", "2")], &[&[0], &[1]]);
    }
}
