//! Elements about the feed as a whole.

use tidings_store::date::Moment;

use super::{Builder, wins};
use crate::parse::address;
use crate::parse::attributes::Attributes;
use crate::parse::document::{Format, Link, Text};
use crate::parse::element::Element;

impl Builder {
    /// The feed begins, or a part of it that contains items.
    pub(super) fn start_container(
        &mut self,
        element: Element,
        attributes: &Attributes<'_>,
        base: Option<&str>,
    ) {
        if self.format.is_none() {
            self.format = Some(self.format_of(element, attributes));
        }
        if let Some(language) = attributes.text("xml:lang") {
            self.feed.language = Some(language);
        }
        if element == Element::Channel {
            if let Some(moment) = attributes.get("lastmod").and_then(Moment::parse) {
                self.feed.updated = Some(moment);
            }
            if let Some(href) = attributes.text("href") {
                self.feed.link = Some(self.resolve(base, &href));
            }
        }
    }

    fn format_of(&self, element: Element, attributes: &Attributes<'_>) -> Format {
        let declares = |part: &str| {
            attributes.iter().any(|(name, value)| {
                name.starts_with("xmlns") && value.to_lowercase().contains(part)
            })
        };
        let version = attributes.get("version").unwrap_or_default().trim();
        match element {
            Element::Feed if matches!(version, "0.1" | "0.2" | "0.3") => Format::Atom03,
            Element::Feed if declares("purl.org/atom/ns") && version.is_empty() => Format::Atom03,
            Element::Feed => Format::Atom10,
            Element::Rdf if declares("netscape.com/rdf/simple/0.9") => Format::Rss090,
            Element::Rdf => Format::Rss10,
            Element::Channel => Format::Cdf,
            _ => match version {
                "0.90" | "0.9" => Format::Rss090,
                "0.91" => Format::Rss091,
                "0.92" => Format::Rss092,
                "0.93" => Format::Rss093,
                "0.94" => Format::Rss094,
                "" if self.is_netscape => Format::Rss091,
                _ if version.starts_with('2') => Format::Rss20,
                _ if declares("purl.org/rss/1.0/") && version.starts_with('1') => Format::Rss10,
                _ => Format::Rss,
            },
        }
    }

    pub(super) fn end_feed_text(&mut self, element: Element, text: Text, depth: usize) {
        let (feed, depths) = (&mut self.feed, &mut self.feed_depths);
        match element {
            // Of two at one depth the first counts.
            Element::Title if depths.title == 0 || depth < depths.title => {
                depths.title = depth;
                feed.title = Some(text);
            }
            Element::MinorTitle => feed.title = feed.title.take().or(Some(text)),
            Element::Description | Element::Subtitle if wins(&mut depths.summary, depth) => {
                feed.description = Some(text);
            }
            Element::Summary | Element::EpisodeSummary | Element::EpisodeSubtitle => {
                feed.description = feed.description.take().or(Some(text));
            }
            Element::Rights => feed.copyright = Some(text),
            _ => {}
        }
    }

    pub(super) fn end_feed_value(&mut self, element: Element, text: &str, base: Option<&str>) {
        match element {
            Element::Id => self.feed.id = Some(text.to_owned()),
            Element::Language => self.feed.language = Some(text.to_owned()),
            Element::Generator => self.feed.generator = Some(text.to_owned()),
            Element::Icon => self.feed.icon = Some(self.resolve(base, text)),
            Element::Logo => self.feed.image = Some(self.resolve(base, text)),
            Element::Ttl => self.feed.ttl = text.parse().ok(),
            Element::SkipHour => {
                let hour: Option<u8> = text.parse().ok().filter(|hour| *hour <= 24);
                self.feed.skip_hours.extend(hour.map(|hour| hour % 24));
                self.feed.skip_hours.truncate(24);
            }
            Element::SkipDay => {
                self.feed.skip_days.push(text.to_lowercase());
                self.feed.skip_days.truncate(7);
            }
            Element::UpdatePeriod => self.feed.update_period = Some(text.to_lowercase()),
            Element::UpdateFrequency => self.feed.update_frequency = text.parse().ok(),
            Element::Explicit => self.feed.explicit = super::item::explicit(text),
            _ => {}
        }
    }

    pub(super) fn finish_feed(&mut self) {
        let feed = &mut self.feed;
        if feed.link.is_none() {
            let other = |link: &&Link| link.rel == "alternate" && !link.href.is_empty();
            feed.link = feed.links.iter().find(other).map(|link| link.href.clone());
        }
        let id_as_link = feed.id.as_deref().filter(|id| address::is_web(id));
        if feed.link.is_none() {
            feed.link = id_as_link.map(str::to_owned);
        }
    }
}
