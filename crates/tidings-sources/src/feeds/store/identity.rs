//! When two items are the same one, and when one has changed.

use std::collections::{HashMap, HashSet};

use crate::feeds::id::Digest;
use crate::feeds::store::row::Entry;
use crate::feeds::words;

/// The longest identity that is kept as it is.
const LONGEST: usize = 300;

/// Parameters that say where a reader came from, not where they go.
const TRACKING: [&str; 6] = ["fbclid", "gclid", "mc_cid", "mc_eid", "igshid", "msclkid"];

/// The items of a document with what each of them is, whatever is edited in it. Of several that
/// are the same the first stays.
pub(super) fn identified(entries: Vec<Entry>) -> Vec<(String, Entry)> {
    let mut addresses: HashMap<String, HashSet<&str>> = HashMap::new();
    for entry in entries.iter().filter(|entry| filled(entry.guid.as_ref()).is_none()) {
        if let Some(link) = filled(entry.link.as_ref()) {
            addresses.entry(alias(link)).or_default().insert(fragment(link));
        }
    }
    // Items that differ in nothing but a fragment are parts of one page: then it counts.
    let divided: HashSet<String> = addresses
        .into_iter()
        .filter(|(_, fragments)| fragments.len() > 1)
        .map(|(address, _)| address)
        .collect();
    let mut seen = HashSet::new();
    let identified = entries.into_iter().map(|entry| (identity(&entry, &divided), entry));
    identified.filter(|(identity, _)| seen.insert(identity.clone())).collect()
}

fn identity(entry: &Entry, divided: &HashSet<String>) -> String {
    let identity = if let Some(guid) = filled(entry.guid.as_ref()) {
        // A site that moves to https does not publish everything again.
        let written = address(guid).map(|(host, rest)| format!("{host}{rest}"));
        format!("guid {}", written.as_deref().unwrap_or(guid))
    } else if let Some(link) = filled(entry.link.as_ref()) {
        let address = alias(link);
        let part = if divided.contains(&address) { fragment(link) } else { "" };
        return linked(&address, part);
    } else {
        let mut digest = Digest::new();
        digest.add(entry.title.as_deref());
        digest.add(entry.description.as_deref());
        format!("text {}", digest.finish())
    };
    shortened(identity)
}

/// An item with a link to a part of a page, as it is called alone and beside others of that page.
pub(super) struct Part<'a> {
    pub(super) alone: String,
    pub(super) beside: String,
    pub(super) fragment: &'a str,
}

/// Which part of a page an item is, if its link is what tells it apart.
pub(super) fn part_of(entry: &Entry) -> Option<Part<'_>> {
    if filled(entry.guid.as_ref()).is_some() {
        return None;
    }
    let link = filled(entry.link.as_ref())?;
    let (address, fragment) = (alias(link), fragment(link));
    let (alone, beside) = (linked(&address, ""), linked(&address, fragment));
    Some(Part { alone, beside, fragment }).filter(|_| !fragment.is_empty())
}

/// The fragment of a link.
pub(super) fn fragment_of(link: Option<&str>) -> &str {
    link.map_or("", |link| fragment(link.trim()))
}

fn linked(address: &str, part: &str) -> String {
    shortened(format!("link {address}{part}"))
}

fn shortened(identity: String) -> String {
    if identity.len() <= LONGEST {
        return identity;
    }
    let mut digest = Digest::new();
    digest.add(Some(&identity));
    format!("long {}", digest.finish())
}

/// A hash of what an item says. Its dates are not in it, nor is what moves by itself: the order of
/// its categories, how a link says where the reader came from, the size of a file into which
/// advertisements are cut.
pub(super) fn content_hash(entry: &Entry) -> String {
    let mut digest = Digest::new();
    for text in [&entry.title, &entry.description, &entry.content] {
        digest.add(text.as_deref());
    }
    digest.add(entry.link.as_deref().map(alias).as_deref());
    digest.add(entry.image.as_deref().map(alias).as_deref());
    let mut categories: Vec<_> = entry.categories.iter().map(|name| words::name(name)).collect();
    categories.sort();
    categories.dedup();
    for category in &categories {
        digest.add(Some(category));
    }
    digest.add(None);
    for person in &entry.authors {
        digest.add(person.name.as_deref());
        digest.add(person.email.as_deref());
    }
    digest.add(None);
    for enclosure in &entry.enclosures {
        digest.add(Some(&alias(&enclosure.url)));
        digest.add(enclosure.media_type.as_deref());
    }
    digest.finish()
}

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// A link without what does not matter: its scheme, `www.`, a default port, a slash at the end,
/// tracking parameters and its fragment.
pub(crate) fn alias(link: &str) -> String {
    let link = link.trim();
    let link = &link[..link.len() - fragment(link).len()];
    let Some((host, rest)) = address(link) else { return link.to_owned() };
    let Some((path, query)) = rest.split_once('?') else { return format!("{host}{rest}") };
    let is_kept = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        !name.is_empty() && !name.starts_with("utm_") && !TRACKING.contains(&name)
    };
    let query: Vec<_> = query.split('&').filter(is_kept).collect();
    let path = path.trim_end_matches('/');
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{host}{path}{mark}{}", query.join("&"))
}

/// The host and what follows it, of the address of a page.
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
        identified(entries).into_iter().map(|(identity, _)| identity).collect()
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
        let entries = vec![with("1", "a"), with("1", "b"), with("2", "a")];
        assert_eq!(identities(entries), ["guid 1", "guid 2"]);
        let moved = vec![with("http://a.org/1", "a"), with("https://a.org/1/", "a")];
        assert_eq!(identities(moved).len(), 1);
    }

    #[test]
    fn what_has_no_name_is_what_it_says() {
        let entry = |title: &str| Entry { title: Some(title.to_owned()), ..Entry::default() };
        let entries = vec![entry("a"), entry("b"), entry("a")];
        assert_eq!(identified(entries).len(), 2);
    }

    #[test]
    fn what_moves_by_itself_is_no_change() {
        let entry = Entry {
            categories: vec!["b".to_owned(), "a".to_owned()],
            ..entry_at("https://a.org/1?utm_source=x")
        };
        let mut other = entry.clone();
        other.categories.reverse();
        other.link = Some("http://a.org/1".to_owned());
        assert_eq!(content_hash(&entry), content_hash(&other));
        other.categories.push("c".to_owned());
        assert_ne!(content_hash(&entry), content_hash(&other));
    }
}
