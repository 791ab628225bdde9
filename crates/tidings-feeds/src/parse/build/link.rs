//! Links, files and categories.

use super::{Builder, Subject};
use crate::parse::attributes::Attributes;
use crate::parse::document::{Category, Enclosure, Link};
use crate::parse::element::Element;

/// The full names of relations.
const RELATIONS: &str = "http://www.iana.org/assignments/relation/";

impl Builder {
    pub(super) fn start_link(
        &mut self,
        attributes: &Attributes<'_>,
        subject: Subject,
        base: Option<&str>,
    ) {
        let rel = attributes.text("rel").unwrap_or_else(|| "alternate".to_owned());
        let mut link = Link {
            href: String::new(),
            rel: rel.strip_prefix(RELATIONS).unwrap_or(&rel).to_ascii_lowercase(),
            media_type: attributes.text("type"),
            title: attributes.text("title"),
            language: attributes.text("hreflang"),
        };
        // An empty reference is valid too: it names the document itself.
        if let Some(href) = attributes.get("href") {
            link.href = self.resolve(base, href);
            self.link = None;
            let length = attributes.number("length");
            self.add_link(link, length, subject);
            return;
        }
        // Other attributes with an address count if the element has no text.
        if let Some(href) = attributes.any(&["url", "uri", "resource"]) {
            link.href = self.resolve(base, href);
        }
        self.link = Some(link);
    }

    pub(super) fn end_link(&mut self, text: &str, subject: Subject, base: Option<&str>) {
        let Some(mut link) = self.link.take() else { return };
        if !text.is_empty() {
            link.href = self.resolve(base, &text.replace("&amp;", "&"));
        }
        if !link.href.is_empty() {
            self.add_link(link, None, subject);
        }
    }

    fn add_link(&mut self, link: Link, length: Option<u64>, subject: Subject) {
        let is_page = link.rel == "alternate" && link.media_type.as_deref().is_none_or(is_html);
        let href = || Some(link.href.clone()).filter(|href| !href.is_empty());
        match subject {
            Subject::Feed => {
                match link.rel.as_str() {
                    "self" => self.feed.self_link = href(),
                    "hub" => self.feed.hubs.push(link.href.clone()),
                    "icon" | "shortcut icon" => self.feed.icon = href(),
                    _ => {}
                }
                if is_page {
                    self.feed.link = href();
                }
                self.feed.links.push(link);
            }
            Subject::Item => {
                match link.rel.as_str() {
                    "enclosure" => self.item.enclosures.push(Enclosure {
                        url: link.href.clone(),
                        media_type: link.media_type.clone(),
                        length,
                    }),
                    "replies" => match link.media_type.as_deref() {
                        Some(kind) if is_html(kind) => self.item.comments = href(),
                        _ => self.item.comments_feed = href(),
                    },
                    _ => {}
                }
                if is_page {
                    self.item.link = href();
                }
                self.item.links.push(link);
            }
            Subject::Source if is_page || self.origin.link.is_none() => self.origin.link = href(),
            _ => {}
        }
    }

    pub(super) fn enclosure(&mut self, attributes: &Attributes<'_>, base: Option<&str>) {
        if let Some(url) = attributes.any(&["url", "href", "uri", "resource"]) {
            self.item.enclosures.push(Enclosure {
                url: self.resolve(base, url),
                media_type: attributes.text("type"),
                length: attributes.number("length"),
            });
        }
    }

    fn categories(&mut self, subject: Subject) -> Option<&mut Vec<Category>> {
        match subject {
            Subject::Feed => Some(&mut self.feed.categories),
            Subject::Item | Subject::Media | Subject::MediaGroup => Some(&mut self.item.categories),
            _ => None,
        }
    }

    pub(super) fn start_category(
        &mut self,
        element: Element,
        attributes: &Attributes<'_>,
        subject: Subject,
    ) {
        let word = if element == Element::PodcastCategory { "text" } else { "term" };
        let term = attributes.text(word).unwrap_or_default();
        let category = Category {
            scheme: attributes.text("scheme").or_else(|| attributes.text("domain")),
            label: attributes.text("label"),
            term,
        };
        self.has_term = !category.term.is_empty();
        if let Some(categories) = self.categories(subject) {
            // The text may follow; without one, an empty entry is removed again.
            categories.push(category);
        }
    }

    pub(super) fn end_category(&mut self, element: Element, text: &str, subject: Subject) {
        let has_term = std::mem::take(&mut self.has_term);
        let Some(categories) = self.categories(subject) else { return };
        if element == Element::Keywords {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            categories.extend(
                words.map(|word| Category { term: word.to_owned(), ..Category::default() }),
            );
            return;
        }
        if has_term {
            return;
        }
        if let Some(last) = categories.last_mut().filter(|last| last.term.is_empty()) {
            if !text.is_empty() {
                text.clone_into(&mut last.term);
            } else if let Some(label) = &last.label {
                last.term.clone_from(label);
            } else {
                categories.pop();
            }
        }
    }
}

fn is_html(media_type: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml", "html", "xhtml"]
        .iter()
        .any(|known| media_type.eq_ignore_ascii_case(known))
}
