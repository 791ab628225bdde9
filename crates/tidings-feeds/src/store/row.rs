//! Stored feeds and items.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize, Serializer};
use tidings_store::date::Moment;

use crate::address::{self, FeedAddress, WebAddress};
use crate::condition::Condition;
use crate::fetch::Validators;
use crate::html;
use crate::opml::Outline;
use crate::parse;
use crate::schedule::Plan;
use crate::view::ReadableItem;
use crate::words;

/// A stored feed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeedRow {
    pub(crate) key: i64,
    pub(crate) id: String,
    /// The requested address; it never changes.
    pub(crate) asked: FeedAddress,
    /// The address it is fetched from.
    pub(crate) address: FeedAddress,
    /// A title given here.
    pub(crate) title: Option<String>,
    /// Its folder here.
    pub(crate) category: Option<String>,
    pub(crate) added: Moment,
    pub(crate) settings: Settings,
    /// Its plan; `None` before the first one, and if another release wrote it in another shape.
    pub(crate) plan: Option<Plan>,
    /// Its validators; empty if unknown.
    pub(crate) validators: Validators,
    /// Why the last fetch failed, if it did.
    pub(crate) last_error: Option<String>,
    /// When it was last fetched, with or without success.
    pub(crate) last_fetch: Option<Moment>,
    pub(crate) last_success: Option<Moment>,
    pub(crate) next_fetch: Option<Moment>,
    /// Its own details, with texts as shown.
    pub(crate) metadata: Metadata,
    pub(crate) revisions: Revisions,
    pub(crate) item_count: u64,
    /// The date of its newest item.
    pub(crate) newest: Option<Moment>,
    /// When its readable form last changed.
    pub(crate) modified: Option<Moment>,
    /// The size of its items in readable form, if known.
    pub(crate) items_size: Option<u64>,
}

/// Numbers that change with the readable form, one for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revisions {
    pub(crate) metadata: i64,
    pub(crate) items: i64,
    pub(crate) status: i64,
}

/// The settings of one feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Seconds between two fetches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) interval: Option<u64>,
    /// Sent with each request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) headers: Vec<(String, String)>,
    /// Its URL in the operator's spelling, with the names of variables in place of their values,
    /// which may be secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shown_url: Option<String>,
}

impl FeedRow {
    /// Its title in lists.
    pub(crate) fn shown_title(&self) -> &str {
        let untitled =
            || address::brief(self.settings.shown_url.as_deref().unwrap_or(self.address.as_str()));
        let own = || self.metadata.title.as_deref().filter(|title| !title.is_empty());
        self.title.as_deref().or_else(own).unwrap_or_else(untitled)
    }

    /// Its URL without a user name, a password and values of variables.
    pub(crate) fn public_url(&self) -> String {
        self.settings.shown_url.clone().unwrap_or_else(|| self.address.public())
    }

    /// The same for the requested URL.
    pub(crate) fn public_asked_url(&self) -> String {
        self.settings.shown_url.clone().unwrap_or_else(|| self.asked.public())
    }

    /// Its entry in a list of feeds.
    pub(crate) fn outline(&self) -> Outline {
        Outline {
            url: self.settings.shown_url.clone().unwrap_or_else(|| self.address.to_string()),
            title: Some(self.shown_title().to_owned()),
            page: self.metadata.link.clone(),
            category: self.category.clone(),
        }
    }

    /// Its last change, by its own account or that of its newest item.
    pub(crate) fn last_updated(&self) -> Option<Moment> {
        self.metadata.updated.or(self.newest)
    }

    /// When its readable form last changed.
    pub(crate) fn last_modified(&self) -> Option<Moment> {
        self.modified.or(self.last_success)
    }

    /// Whether it is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.plan.as_ref().is_some_and(Plan::is_paused)
    }

    /// Whether it was never fetched, with or without success.
    pub(crate) fn is_new(&self) -> bool {
        self.last_fetch.is_none()
    }

    /// Whether the last fetch failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.last_error.is_some()
    }

    /// Its condition: by the schedule, else by the last fetch.
    pub(crate) fn condition(&self) -> Condition {
        use Condition::{Failing, Gone, Good, New, Paused, Resting};
        match self.plan.as_ref().map(|plan| plan.condition) {
            Some(condition @ (Paused | Gone | Resting)) => condition,
            _ if self.is_new() => New,
            _ if self.is_failing() => Failing,
            _ => Good,
        }
    }

    /// Whether a fetch ever succeeded.
    pub(crate) fn is_known(&self) -> bool {
        self.last_success.is_some()
    }
}

/// The details of a feed. The order of the fields is that of the JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copyright: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) generator: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) authors: Vec<Person>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    #[serde(with = "moments", skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    /// Whether its document was cut off: then only the complete items are stored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) truncated: bool,
}

impl Metadata {
    /// The same with texts as shown, for an existing feed.
    pub(crate) fn shown(self, address: &FeedAddress) -> Self {
        // A feed in a file has the site that it names.
        let site = || WebAddress::parse(self.link.as_deref()?).ok();
        let base = address.web().cloned().or_else(site);
        let base = base.as_ref().map(WebAddress::as_str);
        let safe = |text: Option<String>| Some(html::safe(&text?, base)?.into_owned());
        let (description, copyright) = (safe(self.description), safe(self.copyright));
        Self { description, copyright, ..self }
    }
}

/// An author.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Person {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
}

/// A file that belongs to an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enclosure {
    pub(crate) url: String,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u64>,
}

/// A stored item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) link: Option<String>,
    pub(crate) published: Option<Moment>,
    pub(crate) updated: Option<Moment>,
    pub(crate) authors: Vec<Person>,
    pub(crate) categories: Vec<String>,
    pub(crate) guid: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) enclosures: Vec<Enclosure>,
    /// Other names of its categories for the search. Neither stored with it nor shown.
    pub(crate) aliases: Vec<String>,
    /// The base of addresses in its texts. Not shown: shown addresses are resolved.
    pub(crate) base: Option<String>,
    /// Its safe texts.
    pub(crate) safe: Safe,
}

/// The safe texts of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Safe {
    /// Not made yet: the item has the texts as received.
    #[default]
    Unknown,
    /// The item's own texts are safe.
    Itself,
    Made {
        description: Option<String>,
        content: Option<String>,
    },
}

impl Entry {
    /// Makes its texts safe, once and for all.
    pub(crate) fn make_safe(&mut self) {
        let own = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let item = ReadableItem::of(self);
        let (description, content) = (own(item.description), own(item.content));
        self.safe = Safe::Made { description, content };
    }
}

/// An item with its local data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) key: i64,
    /// The key of its feed.
    pub(crate) feed: i64,
    /// Its date: published, else updated, else first seen.
    pub(crate) moment: Moment,
    pub(crate) read: bool,
    pub(crate) starred: bool,
    pub(crate) entry: Entry,
}

/// Moments as people read them.
mod moments {
    use serde::Deserialize as _;

    use super::{Moment, Serializer};

    #[expect(clippy::ref_option, reason = "the shape that serde asks for")]
    pub(super) fn serialize<S: Serializer>(
        moment: &Option<Moment>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match moment {
            Some(moment) => serializer.collect_str(moment),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Moment>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.and_then(|text| Moment::parse(&text)))
    }
}

/// The longest title of a feed and name of a person or thing, in bytes.
const NAME: usize = 1 << 10;
/// The longest description of a feed.
const ABOUT: usize = 16 << 10;
/// The longest address; a longer one is dropped, because a cut address leads nowhere.
const ADDRESS: usize = 8 << 10;
/// The maximum number of categories, people and files of one item.
const TERMS: usize = 256;
const PEOPLE: usize = 100;
const FILES: usize = 100;

impl From<&parse::Document> for Metadata {
    fn from(document: &parse::Document) -> Self {
        let feed = &document.feed;
        let about = |text: &parse::Text| block(text).map(|text| cut(text, ABOUT));
        Self {
            title: feed.title.as_ref().and_then(line).map(|title| cut(title, NAME)),
            description: feed.description.as_ref().and_then(about),
            link: address(feed.link.as_ref()),
            language: name(feed.language.as_ref()),
            copyright: feed.copyright.as_ref().and_then(about),
            generator: name(feed.generator.as_ref()),
            authors: people(&feed.authors),
            categories: terms(&feed.categories),
            updated: feed.updated.or(feed.published),
            image: address(feed.image.as_ref()).or_else(|| address(feed.icon.as_ref())),
            truncated: document.truncated,
        }
    }
}

impl From<&parse::Item> for Entry {
    fn from(item: &parse::Item) -> Self {
        let enclosure = |enclosure: &parse::Enclosure| {
            Some(Enclosure {
                url: address(Some(&enclosure.url))?,
                media_type: name(enclosure.media_type.as_ref()),
                length: enclosure.length,
            })
        };
        Self {
            title: item.title.as_ref().and_then(line),
            description: item.summary.as_ref().and_then(block),
            content: item.content.as_ref().and_then(block),
            link: address(item.link.as_ref()),
            published: item.published,
            updated: item.updated,
            authors: people(&item.authors),
            categories: terms(&item.categories),
            guid: address(item.id.as_ref()),
            image: address(item.image.as_ref()),
            enclosures: item.enclosures.iter().filter_map(enclosure).take(FILES).collect(),
            aliases: aliases(&item.categories),
            base: item.base.clone(),
            safe: Safe::Unknown,
        }
    }
}

/// A text of one line, without markup.
fn line(text: &parse::Text) -> Option<String> {
    let value = match text.kind {
        parse::TextKind::Plain => text.value.clone(),
        parse::TextKind::Html => html::plain(&text.value),
    };
    let value = html::visible(&value);
    let words: Vec<_> = value.split_whitespace().collect();
    if words.is_empty() { None } else { Some(words.join(" ")) }
}

/// A longer text, as HTML.
fn block(text: &parse::Text) -> Option<String> {
    let value = text.value.trim();
    let value = match text.kind {
        parse::TextKind::Plain => as_html(value),
        parse::TextKind::Html => value.to_owned(),
    };
    if value.is_empty() { None } else { Some(value) }
}

/// A plain text as HTML: characters of tags and references are escaped.
fn as_html(plain: &str) -> String {
    let mut html = String::with_capacity(plain.len());
    let mut rest = plain;
    while let Some(at) = rest.find(['<', '&']) {
        html.push_str(&rest[..at]);
        let (sign, after) = rest[at..].split_at(1);
        let begins = |signs: &str| {
            after.starts_with(|next: char| next.is_ascii_alphanumeric() || signs.contains(next))
        };
        html.push_str(match sign {
            "<" if begins("/!?") => "&lt;",
            "&" if begins("#") => "&amp;",
            sign => sign,
        });
        rest = after;
    }
    html.push_str(rest);
    html
}

/// A text, cut to this many bytes.
fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

fn name(text: Option<&String>) -> Option<String> {
    text.map(|text| html::visible(&text[..text.floor_char_boundary(NAME)]).into_owned())
}

fn address(text: Option<&String>) -> Option<String> {
    text.filter(|text| text.len() <= ADDRESS && !html::is_harmful(text)).cloned()
}

fn people(people: &[parse::Person]) -> Vec<Person> {
    let person = |person: &parse::Person| Person {
        name: name(person.name.as_ref()),
        email: name(person.email.as_ref()),
    };
    let people = people.iter().map(person);
    people.filter(|person| *person != Person::default()).take(PEOPLE).collect()
}

fn terms(categories: &[parse::Category]) -> Vec<String> {
    names(categories.iter().map(|it| it.label.as_ref().unwrap_or(&it.term)))
}

/// The terms of categories with other labels, if the labels do not find them anyway.
fn aliases(categories: &[parse::Category]) -> Vec<String> {
    let labelled = categories.iter().filter(|it| it.label.is_some());
    let mut aliases = names(labelled.map(|it| &it.term));
    retain_others(&mut aliases, &terms(categories));
    aliases
}

/// Drops the names that one of the others finds.
pub(super) fn retain_others(names: &mut Vec<String>, others: &[String]) {
    let mut found: HashSet<_> = others.iter().map(|name| words::label(name)).collect();
    names.retain(|name| found.insert(words::label(name)));
}

fn names<'a>(terms: impl Iterator<Item = &'a String>) -> Vec<String> {
    let terms = terms.map(|term| &term[..term.floor_char_boundary(NAME)]);
    let mut seen = HashSet::new();
    let fresh = terms.filter(|term| !term.is_empty() && seen.insert(*term));
    fresh.take(TERMS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(plain: &str, expected: &str) {
        let text = parse::Text { value: plain.to_owned(), kind: parse::TextKind::Plain };
        let kept = block(&text).unwrap();
        assert_eq!(kept, expected);
        let words = crate::html::plain(&kept);
        assert_eq!(words, plain);
    }

    #[test]
    fn plain_text_is_kept_as_html_that_says_the_same() {
        check("Use <script> tags", "Use &lt;script> tags");
        check("a </p> b <!-- c --> d <?e", "a &lt;/p> b &lt;!-- c --> d &lt;?e");
        check("1 < 2 & 3 <é", "1 < 2 & 3 <é");
        check("&eacute; &#65; R&D", "&amp;eacute; &amp;#65; R&amp;D");
        let html = parse::Text { value: "<p>a".to_owned(), kind: parse::TextKind::Html };
        assert_eq!(block(&html).as_deref(), Some("<p>a"));
    }

    #[test]
    fn what_a_feed_says_of_itself_is_shown_safe_and_seen_from_where_it_is() {
        let said = Metadata {
            description: Some("<p onclick='x()'>a <a href='/b'>b</a></p>".to_owned()),
            link: Some("https://a.org/c/".to_owned()),
            ..Metadata::default()
        };
        for (url, expected) in
            [("https://b.org/f", "https://b.org/b"), ("/home/f.xml", "https://a.org/b")]
        {
            let address = FeedAddress::stored(url.to_owned());
            let shown = said.clone().shown(&address).description.unwrap();
            assert!(shown.contains(expected) && !shown.contains("onclick"), "{shown}");
        }
    }

    #[test]
    fn what_a_feed_says_of_itself_and_around_its_items_is_bounded() {
        let long = || "ä".repeat(1 << 20);
        let text = || parse::Text { value: long(), ..parse::Text::default() };
        let person = || parse::Person { name: Some(long()), ..parse::Person::default() };
        let category = || parse::Category { term: long(), ..parse::Category::default() };
        let feed = parse::Feed {
            title: Some(text()),
            description: Some(text()),
            link: Some(long()),
            authors: vec![person(); 1_000],
            categories: vec![category()],
            ..parse::Feed::default()
        };
        let document = parse::Document { feed, ..parse::Document::default() };
        let kept = serde_json::to_string(&Metadata::from(&document)).unwrap();
        assert!((ABOUT..200 << 10).contains(&kept.len()), "{}", kept.len());
        let file = |url| parse::Enclosure { url, ..parse::Enclosure::default() };
        let files = (0..1_000).map(|number| file(format!("https://a.org/{number}")));
        let item = parse::Item {
            id: Some(long()),
            link: Some(long()),
            image: Some(long()),
            enclosures: [file(long())].into_iter().chain(files).collect(),
            ..parse::Item::default()
        };
        let kept = Entry::from(&item);
        assert_eq!((kept.guid, kept.link, kept.image), (None, None, None));
        assert_eq!((kept.enclosures.len(), &*kept.enclosures[0].url), (FILES, "https://a.org/0"));
    }
}
