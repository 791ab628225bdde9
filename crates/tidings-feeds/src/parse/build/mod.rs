//! Building one document from elements.

mod feed;
mod item;
mod link;
mod media;
pub(super) mod person;

use tidings_store::date::Moment;

use super::attributes::Attributes;
use super::document::{Document, Feed, Format, Item, Link, Media, Origin, Person, Text};
use super::element::Element;
use super::problem::Problems;
use super::{Problem, address};

/// How many items of one document are read.
const ITEMS: usize = 20_000;
/// How much of an invalid date is reported.
const SHOWN: usize = 60;

/// The subject of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Outside,
    Feed,
    Item,
    FeedImage,
    ItemImage,
    TextInput,
    Source,
    Person,
    Media,
    MediaGroup,
}

/// The depth of a value: one at a lower depth takes precedence. Depth zero means no value yet.
#[derive(Clone, Copy, Debug, Default)]
struct Depths {
    title: usize,
    summary: usize,
    id: usize,
    published: usize,
    updated: usize,
}

/// Whether a new value at this depth replaces the old one; of two at one depth the last counts.
fn wins(known: &mut usize, depth: usize) -> bool {
    let is_better = *known == 0 || depth <= *known;
    if is_better {
        *known = depth;
    }
    is_better
}

/// The document so far.
#[derive(Debug)]
pub(super) struct Builder {
    format: Option<Format>,
    is_netscape: bool,
    /// The document's URL.
    base: Option<String>,
    feed: Feed,
    feed_depths: Depths,
    items: Vec<Item>,
    has_too_many: bool,
    /// The open item.
    item: Item,
    depths: Depths,
    /// Texts of other vocabularies, for use where the usual one is missing.
    minor_title: Option<Text>,
    minor_summary: Option<Text>,
    latitude: Option<f64>,
    /// The open person.
    person: Person,
    /// The source feed of an item, while it is open.
    origin: Origin,
    /// The details of all media in a group.
    group: Media,
    group_start: usize,
    /// A link whose address is its text.
    link: Option<Link>,
    /// Whether the open category is stored already.
    has_term: bool,
}

impl Builder {
    pub(super) fn new(doctype: &str, base: Option<&str>) -> Self {
        Self {
            format: None,
            is_netscape: doctype.contains("netscape"),
            base: base.map(str::to_owned),
            feed: Feed::default(),
            feed_depths: Depths::default(),
            items: Vec::new(),
            has_too_many: false,
            item: Item::default(),
            depths: Depths::default(),
            minor_title: None,
            minor_summary: None,
            latitude: None,
            person: Person::default(),
            origin: Origin::default(),
            group: Media::default(),
            group_start: 0,
            link: None,
            has_term: false,
        }
    }

    /// Whether any part of a feed was seen.
    pub(super) fn is_feed(&self) -> bool {
        self.format.is_some()
    }

    pub(super) fn format(&self) -> Option<Format> {
        self.format
    }

    /// The base of addresses where the document has none.
    pub(super) fn base(&self) -> Option<&str> {
        let link = || self.feed.link.as_deref().filter(|link| address::is_absolute(link));
        self.base.as_deref().or_else(link)
    }

    fn resolve(&self, base: Option<&str>, reference: &str) -> String {
        address::join(base.or_else(|| self.base()), reference)
    }

    /// An element begins; returns the subject of its children.
    pub(super) fn start(
        &mut self,
        element: Element,
        attributes: &Attributes<'_>,
        subject: Subject,
        base: Option<&str>,
        depth: usize,
    ) -> Subject {
        match element {
            Element::Rss | Element::Rdf | Element::Feed | Element::Channel
                if matches!(subject, Subject::Outside | Subject::Feed) =>
            {
                self.start_container(element, attributes, base);
                Subject::Feed
            }
            Element::Item => {
                self.start_item(attributes, base);
                Subject::Item
            }
            Element::Image if subject == Subject::Item => Subject::ItemImage,
            Element::Image => Subject::FeedImage,
            Element::TextInput => Subject::TextInput,
            Element::Source => {
                let link = attributes.text("url").map(|url| self.resolve(base, &url));
                self.origin = Origin { link, ..Origin::default() };
                Subject::Source
            }
            Element::Author | Element::Contributor | Element::Publisher => {
                self.person = Person::default();
                Subject::Person
            }
            Element::MediaContent | Element::MediaGroup | Element::MediaThumbnail => {
                self.start_media(element, attributes, subject, base)
            }
            _ => {
                self.start_value(element, attributes, subject, base, depth);
                subject
            }
        }
    }

    /// An element with information in its attributes.
    fn start_value(
        &mut self,
        element: Element,
        attributes: &Attributes<'_>,
        subject: Subject,
        base: Option<&str>,
        depth: usize,
    ) {
        match element {
            Element::Link => self.start_link(attributes, subject, base),
            Element::Id if subject == Subject::Item => {
                let said = attributes.get("ispermalink").map(|said| said.trim() != "false");
                if self.depths.id == 0 || depth <= self.depths.id {
                    self.item.id_is_link = said;
                }
            }
            Element::Enclosure if subject == Subject::Item => self.enclosure(attributes, base),
            Element::Category | Element::PodcastCategory => {
                self.start_category(element, attributes, subject);
            }
            Element::PodcastImage => {
                if let Some(url) = attributes.any(&["href", "url"]) {
                    self.set_image(subject, base, url);
                }
            }
            Element::InReplyTo if subject == Subject::Item => self.reply(attributes, base),
            Element::Transcript | Element::Chapters if subject == Subject::Item => {
                let url = attributes.text("url").map(|url| self.resolve(base, &url));
                let episode = &mut self.item.episode;
                let slot = if element == Element::Chapters {
                    &mut episode.chapters
                } else {
                    &mut episode.transcript
                };
                *slot = url.or(slot.take());
            }
            _ => {}
        }
    }

    /// An element with markup in its text ends.
    pub(super) fn end_rich(
        &mut self,
        element: Element,
        text: Text,
        subject: Subject,
        base: Option<&str>,
        depth: usize,
    ) {
        if text.value.is_empty() {
            return;
        }
        match subject {
            Subject::Feed => self.end_feed_text(element, text, depth),
            Subject::Item => {
                self.note_base(element, base);
                self.end_item_text(element, text, depth);
            }
            Subject::Source if element == Element::Title => self.origin.title = Some(text.value),
            Subject::Media | Subject::MediaGroup => self.end_media_text(element, subject, text),
            _ => {}
        }
    }

    /// An element ends.
    pub(super) fn end(
        &mut self,
        element: Element,
        text: &str,
        subject: Subject,
        base: Option<&str>,
        depth: usize,
        problems: &mut Problems,
    ) {
        match element {
            Element::Item => self.end_item(),
            Element::Source => self.end_source(text, subject),
            Element::Link => self.end_link(text, subject, base),
            Element::Name | Element::Email | Element::Uri | Element::Url
                if subject == Subject::Person =>
            {
                self.end_person_part(element, text, base);
            }
            Element::Author
            | Element::Creator
            | Element::Contributor
            | Element::Helper
            | Element::Publisher => self.end_person(element, text, subject),
            Element::Category | Element::PodcastCategory | Element::Keywords => {
                self.end_category(element, text, subject);
            }
            Element::Published | Element::Updated | Element::Created if !text.is_empty() => {
                let Some(moment) = Moment::parse(text) else {
                    problems.add(Problem::Date(text.chars().take(SHOWN).collect()));
                    return;
                };
                self.date(element, moment, subject, depth);
            }
            Element::MediaGroup => self.end_group(),
            Element::Image | Element::Url | Element::PodcastImage if !text.is_empty() => {
                let subject = match (element, subject) {
                    (Element::Image, Subject::Item) => Subject::ItemImage,
                    (Element::Image, _) => Subject::FeedImage,
                    _ => subject,
                };
                if !text.contains(char::is_whitespace) {
                    self.set_image(subject, base, text);
                }
            }
            _ if text.is_empty() => {}
            _ => match subject {
                Subject::Feed => self.end_feed_value(element, text, base),
                Subject::Item => self.end_item_value(element, text, base, depth),
                Subject::Source if element == Element::Id => self.origin.id = Some(text.to_owned()),
                _ => {}
            },
        }
    }

    fn date(&mut self, element: Element, moment: Moment, subject: Subject, depth: usize) {
        let (depths, published, updated) = match subject {
            Subject::Feed => {
                (&mut self.feed_depths, &mut self.feed.published, &mut self.feed.updated)
            }
            Subject::Item => (&mut self.depths, &mut self.item.published, &mut self.item.updated),
            Subject::Source if element == Element::Updated => {
                self.origin.updated = Some(moment);
                return;
            }
            _ => return,
        };
        match element {
            Element::Published if wins(&mut depths.published, depth) => *published = Some(moment),
            Element::Updated if wins(&mut depths.updated, depth) => *updated = Some(moment),
            Element::Created if subject == Subject::Item => self.item.created = Some(moment),
            _ => {}
        }
    }

    fn set_image(&mut self, subject: Subject, base: Option<&str>, url: &str) {
        let url = Some(self.resolve(base, url));
        match subject {
            Subject::Feed | Subject::FeedImage => self.feed.image = url,
            Subject::Item | Subject::ItemImage => self.item.image = url,
            _ => {}
        }
    }

    /// The whole document.
    pub(super) fn finish(mut self, truncated: bool, mut problems: Problems) -> Document {
        if truncated {
            problems.add(Problem::Truncated);
        }
        if self.has_too_many {
            problems.add(Problem::TooManyItems(ITEMS));
        }
        self.finish_feed();
        let base = self.base().and_then(address::base_of_texts);
        let is_without =
            |it: &&mut Item| it.base.is_none() && (it.summary.is_some() || it.content.is_some());
        for item in self.items.iter_mut().filter(is_without) {
            item.base.clone_from(&base);
        }
        if matches!(self.format, Some(Format::Atom03 | Format::Atom10)) {
            person::inherit(&mut self.items, &self.feed.authors);
        }
        Document {
            format: self.format.unwrap_or_default(),
            feed: self.feed,
            items: self.items,
            problems: problems.into_vec(),
            truncated,
        }
    }
}
