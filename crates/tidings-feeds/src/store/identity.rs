//! The identity of items: when two are the same.

use std::collections::{HashMap, HashSet};

use tidings_store::date::Moment;

use crate::id::Digest;
use crate::store::known::Known;
use crate::store::row::Entry;

/// The longest identity that is stored unchanged.
const LONGEST: usize = 300;

/// Tracking parameters: they tell where a reader came from, not where a link leads.
const TRACKING: [&str; 6] = ["fbclid", "gclid", "mc_cid", "mc_eid", "igshid", "msclkid"];

/// The prefixes of identities made of words: a title and a date, a title and a text.
const DATED: &str = "dated ";
const TEXT: &str = "text ";

/// The kinds of names of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Level {
    Guid,
    /// The page of its link.
    Page,
    /// The part of that page.
    Part,
    /// Its title and publication date.
    Title,
    /// Its title and text. Earlier releases identified every item without a guid and a link by
    /// this.
    Text,
}

/// The strongest first.
const LEVELS: [Level; 5] = [Level::Guid, Level::Page, Level::Part, Level::Title, Level::Text];

/// The names of an item, of a document or of the store.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) guid: Option<&'a str>,
    pub(super) link: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    pub(super) published: Option<i64>,
    /// Missing for items in the store, whose texts are not read.
    entry: Option<&'a Entry>,
}

impl<'a> Told<'a> {
    pub(super) fn by(entry: &'a Entry) -> Self {
        Self {
            guid: filled(entry.guid.as_deref()),
            link: filled(entry.link.as_deref()),
            title: entry.title.as_deref(),
            published: entry.published.map(Moment::unix),
            entry: Some(entry),
        }
    }

    pub(super) fn kept(known: &'a Known) -> Self {
        Self {
            guid: filled(known.guid.as_deref()),
            link: filled(known.link.as_deref()),
            title: known.title.as_deref(),
            published: known.published,
            entry: None,
        }
    }

    /// Its name of this kind, if it has one.
    pub(super) fn name(self, level: Level) -> Option<String> {
        match level {
            Level::Guid => self.guid.map(|guid| {
                // A site that moves to https does not publish everything again.
                let written = address(guid).map(|(host, rest)| format!("{host}{rest}"));
                shortened(format!("guid {}", written.as_deref().unwrap_or(guid)))
            }),
            Level::Page => self.link.map(|link| shortened(format!("link {}", alias(link)))),
            Level::Part => {
                self.link.map(|link| shortened(format!("link {}{}", alias(link), fragment(link))))
            }
            Level::Title => {
                let date = self.published.map(|published| published.to_string());
                if self.title.is_none() && date.is_none() {
                    return None;
                }
                let mut digest = Digest::new();
                digest.add(self.title);
                digest.add(date.as_deref());
                Some(format!("{DATED}{}", digest.finish()))
            }
            Level::Text => self.entry.map(|entry| {
                let mut digest = Digest::new();
                digest.add(self.title);
                digest.add(entry.description.as_deref());
                format!("{TEXT}{}", digest.finish())
            }),
        }
    }

    /// Whether both can be the same item: they contradict each other in no name.
    pub(super) fn can_be(self, other: Told<'_>) -> bool {
        let agree = |level| match (self.name(level), other.name(level)) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        agree(Level::Guid) && agree(Level::Page)
    }
}

/// The names from the identifying one down to the weakest.
pub(super) fn names<'a>(
    identity: &str,
    told: Told<'a>,
) -> impl Iterator<Item = (Level, String)> + use<'a> {
    let own = if identity.starts_with(TEXT) {
        Level::Text
    } else if identity.starts_with(DATED) {
        Level::Title
    } else {
        let is_it = |level: &&Level| told.name(**level).is_some_and(|name| name == identity);
        LEVELS.iter().find(is_it).copied().unwrap_or(Level::Text)
    };
    let levels = LEVELS.into_iter().filter(move |level| *level >= own);
    levels.filter_map(move |level| told.name(level).map(|name| (level, name)))
}

/// All possible names of an item.
pub(super) fn possible_names(entry: &Entry) -> impl Iterator<Item = String> + use<'_> {
    let told = Told::by(entry);
    LEVELS.into_iter().filter_map(move |level| told.name(level))
}

/// Whether an item is identified only by its words and date.
pub(super) fn is_told_by_text(identity: &str) -> bool {
    identity.starts_with(DATED) || identity.starts_with(TEXT)
}

/// The items of a document with their identities, which survive edits: the strongest name that it
/// shares with no other item, neither of the document nor of the stored ones. Of equal items the
/// first stays.
///
/// Stable: the same document again gives the same names, in any order and with more or fewer items,
/// as long as two items that share a name are stored; and an item whose name changes, because
/// others share it or because it got a guid, is found again by the next name (see `known`). Not
/// stable: an item that shares guid and link with others is identified by its title and date, so it
/// becomes another item when its title is edited.
pub(super) fn identified<'a>(
    entries: Vec<Entry>,
    known: impl Iterator<Item = &'a Known>,
) -> Vec<(String, Entry)> {
    let entries = distinct(entries);
    let mut kept: Vec<_> = known.map(Told::kept).collect();
    let mut waiting: Vec<_> = (0..entries.len()).collect();
    let mut identities: Vec<Option<String>> = vec![None; entries.len()];
    for level in LEVELS {
        if waiting.is_empty() {
            break;
        }
        let names: Vec<_> =
            waiting.iter().map(|index| Told::by(&entries[*index]).name(level)).collect();
        let kept_names: Vec<_> = kept.iter().map(|told| told.name(level)).collect();
        let mut shared = repeated(&names);
        shared.extend(repeated(&kept_names));
        let is_shared = |name: &Option<String>| name.as_ref().is_none_or(|it| shared.contains(it));
        let is_last = level == Level::Text;
        let mut left = Vec::new();
        for (index, name) in waiting.iter().zip(&names) {
            if !is_shared(name) || is_last {
                identities[*index].clone_from(name);
            } else {
                left.push(*index);
            }
        }
        let mut told = kept_names.iter();
        kept.retain(|_| told.next().is_some_and(is_shared));
        waiting = left;
    }
    let mut seen = HashSet::new();
    let named = identities.into_iter().zip(entries);
    let named = named.filter_map(|(identity, entry)| Some((identity?, entry)));
    named.filter(|(identity, _)| seen.insert(identity.clone())).collect()
}

/// The items without repeats in the document. One with a guid and a link may have been edited or
/// dated anew between its two places; then its title is the same, and so is its date or its text.
/// If both differ, as in a changelog whose entries share a page, it is another item.
fn distinct(entries: Vec<Entry>) -> Vec<Entry> {
    let mut seen: HashMap<_, Vec<(Option<i64>, Option<&str>)>> = HashMap::new();
    let mut firsts = Vec::with_capacity(entries.len());
    for entry in &entries {
        let told = Told::by(entry);
        let names = [Level::Guid, Level::Part].map(|level| told.name(level));
        let is_named = names.iter().all(Option::is_some) && told.title.is_some();
        let text = entry.description.as_deref().or(entry.content.as_deref());
        let alike = seen.entry((names, told.title)).or_default();
        let is_alike = |(date, other): &(Option<i64>, Option<&str>)| {
            let (same_date, same_text) = (*date == told.published, *other == text);
            if is_named {
                same_date || same_text
            } else {
                same_date && (told.guid.is_some() || same_text)
            }
        };
        let is_first = !alike.iter().any(is_alike);
        if is_first {
            alike.push((told.published, text));
        }
        firsts.push(is_first);
    }
    let kept = entries.into_iter().zip(firsts);
    kept.filter_map(|(entry, is_first)| is_first.then_some(entry)).collect()
}

fn repeated(names: &[Option<String>]) -> HashSet<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names.iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()).collect()
}

fn shortened(identity: String) -> String {
    if identity.len() <= LONGEST {
        return identity;
    }
    let mut digest = Digest::new();
    digest.add(Some(&identity));
    format!("long {}", digest.finish())
}

/// Whether two links or guids are the same without tracking parameters, which change by themselves.
pub(super) fn is_shown_alike(one: Option<&str>, other: Option<&str>) -> bool {
    one == other || one.map(untracked) == other.map(untracked)
}

/// A link without tracking parameters.
pub(super) fn untracked(link: &str) -> String {
    let link = link.trim();
    let (rest, fragment) = link.split_at(link.len() - fragment(link).len());
    let Some((path, query)) = rest.split_once('?') else { return link.to_owned() };
    let query: Vec<_> = query.split('&').filter(is_kept).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}{fragment}", query.join("&"))
}

/// Whether a parameter is part of the address, and not tracking.
fn is_kept(parameter: &&str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    !name.is_empty() && !name.starts_with("utm_") && !TRACKING.contains(&name)
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// A link without irrelevant parts: its scheme, `www.`, a default port, a slash at the end,
/// tracking parameters and its fragment.
pub(crate) fn alias(link: &str) -> String {
    let link = link.trim();
    let link = &link[..link.len() - fragment(link).len()];
    let Some((host, rest)) = address(link) else { return link.to_owned() };
    let Some((path, query)) = rest.split_once('?') else { return format!("{host}{rest}") };
    let query: Vec<_> = query.split('&').filter(is_kept).collect();
    let path = path.trim_end_matches('/');
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{host}{path}{mark}{}", query.join("&"))
}

/// The host and the rest of a page's address.
fn address(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let port = match scheme.to_ascii_lowercase().as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].to_ascii_lowercase();
    let host = host.strip_suffix(port).unwrap_or(&host);
    let host = host.strip_prefix("www.").unwrap_or(host);
    Some((host.to_owned(), rest[end..].trim_end_matches('/')))
}

/// The fragment with its `#`, or nothing.
fn fragment(link: &str) -> &str {
    link.find('#').map_or("", |at| &link[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_at(link: &str) -> Entry {
        Entry { link: Some(link.to_owned()), ..Entry::default() }
    }

    fn identities(entries: Vec<Entry>) -> Vec<String> {
        identified(entries, std::iter::empty()).into_iter().map(|(identity, _)| identity).collect()
    }

    #[track_caller]
    fn check_alias(one: &str, other: &str) {
        assert_eq!(identities(vec![entry_at(one)]), identities(vec![entry_at(other)]));
    }

    #[test]
    fn links_to_one_page_are_one() {
        check_alias("https://example.com/a", "http://www.Example.com:80/a/");
        check_alias("https://example.com/a", "https://example.com:443/a#comments");
        check_alias("https://example.com/a?x=1", "http://example.com/a/?utm_source=rss&x=1");
        check_alias("https://example.com", "https://example.com/");
    }

    #[test]
    fn links_to_other_pages_are_not() {
        for other in ["https://example.com/A", "https://example.com/a?x=1", "https://a.org/a"] {
            let one = identities(vec![entry_at("https://example.com/a")]);
            assert_ne!(one, identities(vec![entry_at(other)]));
        }
    }

    #[test]
    fn parts_of_one_page_are_several_items() {
        let entries = vec![entry_at("https://a.org/log#1"), entry_at("https://a.org/log#2")];
        assert_eq!(identities(entries), ["link a.org/log#1", "link a.org/log#2"]);
    }

    #[test]
    fn a_guid_is_stronger_than_the_rest() {
        let with = |guid: &str, title: &str| Entry {
            guid: Some(guid.to_owned()),
            title: Some(title.to_owned()),
            ..entry_at("https://a.org/")
        };
        let entries = vec![with("1", "a"), with("1", "a"), with("2", "a")];
        assert_eq!(identities(entries), ["guid 1", "guid 2"]);
        let moved = vec![with("http://a.org/1", "a"), with("https://a.org/1/", "a")];
        assert_eq!(identities(moved).len(), 1);
    }

    #[test]
    fn what_has_no_name_is_what_it_says() {
        let entry = |title: &str| Entry { title: Some(title.to_owned()), ..Entry::default() };
        let entries = vec![entry("a"), entry("b"), entry("a")];
        assert_eq!(identities(entries).len(), 2);
    }

    #[test]
    fn what_several_share_tells_none_of_them_apart() {
        let with = |guid: Option<&str>, link: &str, title: &str| Entry {
            guid: guid.map(str::to_owned),
            title: Some(title.to_owned()),
            ..entry_at(link)
        };
        let guids = vec![
            with(Some("1"), "https://a.org/1", "a"),
            with(Some("1"), "https://a.org/2", "b"),
            with(Some("2"), "https://a.org/2", "c"),
        ];
        assert_eq!(identities(guids), ["link a.org/1", "link a.org/2", "guid 2"]);
        let links = [None, Some("1")].map(|guid| {
            let entries = ["a", "b", "a"].map(|title| with(guid, "https://a.org/", title));
            identities(entries.to_vec())
        });
        assert_eq!(links[0].len(), 2, "{links:?}");
        assert_eq!(links[0], links[1]);
        assert!(links[0].iter().all(|name| name.starts_with("dated ")), "{links:?}");
    }
}
