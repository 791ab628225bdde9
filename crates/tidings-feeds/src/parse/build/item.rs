//! Elements about one item.

use tidings_store::date::Moment;

use super::media::share;
use super::{Builder, Depths, ITEMS, Subject, wins};
use crate::parse::address;
use crate::parse::attributes::Attributes;
use crate::parse::document::{self, Format, Item, Link, Reply, Text};
use crate::parse::element::Element;

impl Builder {
    pub(super) fn start_item(&mut self, attributes: &Attributes<'_>, base: Option<&str>) {
        self.format.get_or_insert(Format::Rss);
        self.item = Item::default();
        self.depths = Depths::default();
        (self.minor_title, self.minor_summary, self.latitude) = (None, None, None);
        self.item.id = attributes.text("rdf:about");
        self.item.language = attributes.text("xml:lang");
        // The items of CDF have these as attributes.
        self.item.updated = attributes.get("lastmod").and_then(Moment::parse);
        self.item.link = attributes.text("href").map(|href| self.resolve(base, &href));
    }

    pub(super) fn end_item(&mut self) {
        let mut item = std::mem::take(&mut self.item);
        item.title = item.title.or(self.minor_title.take());
        item.summary = item.summary.or(self.minor_summary.take());
        if item.link.is_none() {
            let other = |link: &&Link| link.rel == "alternate" && !link.href.is_empty();
            item.link = item.links.iter().find(other).map(|link| link.href.clone());
        }
        // An id that is an address is the item's link, unless the feed denies it.
        if item.link.is_none() && item.id_is_link != Some(false) && self.depths.id > 0 {
            let is_address = |id: &String| address::is_web(id) || id.starts_with('/');
            item.link =
                item.id.as_ref().filter(|id| is_address(id)).map(|id| self.resolve(None, id));
        }
        share(&mut item);
        if self.items.len() < ITEMS {
            self.items.push(item);
        } else {
            self.has_too_many = true;
        }
    }

    /// Of several texts, the base of the longest counts.
    pub(super) fn note_base(&mut self, element: Element, base: Option<&str>) {
        let is_first = match element {
            Element::Content | Element::Encoded => true,
            Element::Description | Element::Summary => self.item.base.is_none(),
            _ => false,
        };
        if let Some(base) = base.filter(|_| is_first) {
            self.item.base = address::base_of_texts(base);
        }
    }

    pub(super) fn end_item_text(&mut self, element: Element, text: Text, depth: usize) {
        let (item, depths) = (&mut self.item, &mut self.depths);
        match element {
            // Of two at one depth the first counts.
            Element::Title if depths.title == 0 || depth < depths.title => {
                depths.title = depth;
                item.title = Some(text);
            }
            Element::MinorTitle | Element::MediaTitle => {
                self.minor_title = self.minor_title.take().or(Some(text));
            }
            Element::Description | Element::Summary => {
                // Two of them are a short and a long one.
                if item.summary.is_some() && item.content.is_none() && depth == depths.summary {
                    item.content = Some(text);
                } else if item.summary.is_none() || depth < depths.summary {
                    depths.summary = depth;
                    item.summary = Some(text);
                }
            }
            Element::Content | Element::Encoded => item.content = Some(text),
            Element::MediaDescription | Element::EpisodeSummary => {
                self.minor_summary = self.minor_summary.take().or(Some(text));
            }
            Element::Subtitle | Element::EpisodeSubtitle => {
                item.episode.subtitle = Some(text.value);
            }
            Element::Rights => item.copyright = Some(text),
            _ => {}
        }
    }

    pub(super) fn end_item_value(
        &mut self,
        element: Element,
        text: &str,
        base: Option<&str>,
        depth: usize,
    ) {
        match element {
            Element::Id if wins(&mut self.depths.id, depth) => {
                let is_relative = self.item.id_is_link != Some(false);
                // Only data in the document is the same for every fetcher.
                let base = base.filter(|_| is_relative);
                self.item.id = Some(address::join(base, text));
            }
            Element::Comments => self.item.comments = Some(self.resolve(base, text)),
            Element::CommentsFeed => self.item.comments_feed = Some(self.resolve(base, text)),
            Element::CommentCount => self.item.comment_count = text.parse().ok(),
            Element::Language => self.item.language = Some(text.to_owned()),
            Element::Duration => self.item.episode.duration = duration(text),
            Element::EpisodeNumber => self.item.episode.number = text.parse().ok(),
            Element::Season => self.item.episode.season = text.parse().ok(),
            Element::Explicit => self.item.episode.explicit = explicit(text),
            Element::InReplyTo => {
                if let Some(reply) = self.item.in_reply_to.last_mut() {
                    reply.id.get_or_insert_with(|| text.to_owned());
                }
            }
            Element::Point => self.item.place = point(text).or(self.item.place),
            Element::Latitude => self.latitude = text.parse().ok(),
            Element::Longitude => {
                let place = self.latitude.zip(text.parse().ok());
                self.item.place =
                    place.and_then(|(north, east)| place_at(north, east)).or(self.item.place);
            }
            _ => {}
        }
    }

    pub(super) fn reply(&mut self, attributes: &Attributes<'_>, base: Option<&str>) {
        let href = attributes.text("href").map(|href| self.resolve(base, &href));
        self.item.in_reply_to.push(Reply { id: attributes.text("ref"), href });
    }

    pub(super) fn end_source(&mut self, text: &str, subject: Subject) {
        if subject != Subject::Item {
            return;
        }
        let mut origin = std::mem::take(&mut self.origin);
        if !text.is_empty() {
            origin.title.get_or_insert_with(|| text.to_owned());
        }
        self.item.source = Some(origin);
    }
}

/// A duration in the notation of podcasts: `95`, `1:35` or `1:02:03`.
pub(super) fn duration(text: &str) -> Option<u64> {
    let mut seconds = 0_u64;
    for part in text.split(':') {
        // Fractions of seconds are ignored.
        let whole = part.trim().split('.').next().unwrap_or_default();
        seconds = seconds.checked_mul(60)?.checked_add(whole.parse().ok()?)?;
    }
    Some(seconds)
}

pub(super) fn explicit(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "explicit" => Some(true),
        "no" | "false" | "clean" => Some(false),
        _ => None,
    }
}

/// Two numbers, north and east.
fn point(text: &str) -> Option<document::Place> {
    let mut numbers =
        text.split([' ', ',', '\n', '\t']).filter(|part| !part.is_empty()).map(str::parse);
    place_at(numbers.next()?.ok()?, numbers.next()?.ok()?)
}

fn place_at(latitude: f64, longitude: f64) -> Option<document::Place> {
    let is_on_earth = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
    is_on_earth.then_some(document::Place { latitude, longitude })
}
