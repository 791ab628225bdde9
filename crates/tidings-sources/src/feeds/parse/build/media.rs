//! Pictures, sound and films.

use super::item::duration;
use super::{Builder, Place};
use crate::feeds::parse::attributes::Attributes;
use crate::feeds::parse::element::Element;
use crate::feeds::parse::model::{Media, Text};

/// The longest text of a group that is copied to its members.
const SHARED: usize = 4096;

impl Builder {
    pub(super) fn start_media(
        &mut self,
        element: Element,
        attributes: &Attributes<'_>,
        place: Place,
        base: Option<&str>,
    ) -> Place {
        let url = attributes.any(&["url", "href"]).map(|url| self.resolve(base, url));
        let is_in_item = matches!(place, Place::Item | Place::Media | Place::MediaGroup);
        match element {
            Element::MediaThumbnail => {
                match place {
                    Place::Media => {
                        if let Some(media) = self.item.media.last_mut() {
                            media.thumbnail = media.thumbnail.take().or(url.clone());
                        }
                    }
                    Place::MediaGroup => {
                        self.group.thumbnail = self.group.thumbnail.take().or(url.clone());
                    }
                    Place::Feed => self.feed.image = self.feed.image.take().or(url.clone()),
                    _ => {}
                }
                if is_in_item {
                    self.item.image = self.item.image.take().or(url);
                }
                place
            }
            Element::MediaGroup if is_in_item => {
                self.group = Media::default();
                self.group_start = self.item.media.len();
                Place::MediaGroup
            }
            Element::MediaContent if is_in_item => {
                self.item.media.push(Media {
                    url,
                    media_type: attributes.text("type"),
                    medium: attributes.text("medium"),
                    length: attributes.number("filesize"),
                    duration: attributes.get("duration").and_then(duration),
                    width: attributes.number("width"),
                    height: attributes.number("height"),
                    ..Media::default()
                });
                Place::Media
            }
            _ => place,
        }
    }

    pub(super) fn end_media_text(&mut self, element: Element, place: Place, text: Text) {
        let media = match place {
            Place::Media => self.item.media.last_mut(),
            _ => Some(&mut self.group),
        };
        let Some(media) = media else { return };
        match element {
            Element::MediaTitle => {
                self.minor_title.get_or_insert_with(|| text.clone());
                media.title = Some(text.value);
            }
            Element::MediaDescription => {
                self.minor_summary.get_or_insert_with(|| text.clone());
                media.description = Some(text.value);
            }
            _ => {}
        }
    }

    /// What is said of a group holds for each of its members that does not say it itself.
    pub(super) fn end_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        let shared =
            |text: &Option<String>| text.as_ref().filter(|text| text.len() <= SHARED).cloned();
        for media in self.item.media.iter_mut().skip(self.group_start) {
            media.title = media.title.take().or_else(|| shared(&group.title));
            media.description = media.description.take().or_else(|| shared(&group.description));
            media.thumbnail = media.thumbnail.take().or_else(|| shared(&group.thumbnail));
        }
    }
}
