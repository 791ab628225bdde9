//! Pictures, audio and video.

use std::collections::HashSet;

use super::item::duration;
use super::{Builder, Subject};
use crate::parse::attributes::Attributes;
use crate::parse::document::{Enclosure, Item, Media, Text};
use crate::parse::element::Element;

/// The longest text of a group that is copied to its members.
const SHARED: usize = 4096;
/// How many media of one item become files of it.
const FILES: usize = 100;

impl Builder {
    pub(super) fn start_media(
        &mut self,
        element: Element,
        attributes: &Attributes<'_>,
        subject: Subject,
        base: Option<&str>,
    ) -> Subject {
        let url = attributes.any(&["url", "href"]).map(|url| self.resolve(base, url));
        let is_in_item = matches!(subject, Subject::Item | Subject::Media | Subject::MediaGroup);
        match element {
            Element::MediaThumbnail => {
                match subject {
                    Subject::Media => {
                        if let Some(media) = self.item.media.last_mut() {
                            media.thumbnail = media.thumbnail.take().or(url.clone());
                        }
                    }
                    Subject::MediaGroup => {
                        self.group.thumbnail = self.group.thumbnail.take().or(url.clone());
                    }
                    Subject::Feed => self.feed.image = self.feed.image.take().or(url.clone()),
                    _ => {}
                }
                if is_in_item {
                    self.item.image = self.item.image.take().or(url);
                }
                subject
            }
            Element::MediaGroup if is_in_item => {
                self.group = Media::default();
                self.group_start = self.item.media.len();
                Subject::MediaGroup
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
                Subject::Media
            }
            _ => subject,
        }
    }

    pub(super) fn end_media_text(&mut self, element: Element, subject: Subject, text: Text) {
        let media = match subject {
            Subject::Media => self.item.media.last_mut(),
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

    /// The details of a group apply to each member without its own.
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

/// Gives an item the media that nothing else in it names: the first picture becomes the item's if
/// it has none, and all media declared as files become files.
pub(super) fn share(item: &mut Item) {
    let mut known: HashSet<String> = item.enclosures.iter().map(|it| it.url.clone()).collect();
    known.extend(item.image.clone());
    let most = item.enclosures.len() + FILES;
    for media in &item.media {
        let Some(url) = media.url.as_ref().filter(|url| known.insert((*url).clone())) else {
            continue;
        };
        if is_picture(media, url) {
            if item.image.is_none() {
                item.image = Some(url.clone());
                continue;
            }
            // Without a type it is mostly the same picture in another size.
            if !media.media_type.as_deref().is_some_and(is_picture_type) {
                continue;
            }
        }
        if item.enclosures.len() == most {
            break;
        }
        item.enclosures.push(Enclosure {
            url: url.clone(),
            media_type: media.media_type.clone(),
            length: media.length,
        });
    }
}

fn is_picture(media: &Media, url: &str) -> bool {
    match (media.medium.as_deref(), media.media_type.as_deref()) {
        (None, None) => {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            mime_guess::from_path(path).first_raw().is_some_and(is_picture_type)
        }
        (medium, kind) => {
            medium.is_some_and(|medium| medium.eq_ignore_ascii_case("image"))
                || kind.is_some_and(is_picture_type)
        }
    }
}

fn is_picture_type(kind: &str) -> bool {
    kind.get(.."image/".len()).is_some_and(|start| start.eq_ignore_ascii_case("image/"))
}

#[cfg(test)]
mod tests {
    use crate::parse::{Hints, parse};

    /// The picture of an item, and the names, types and sizes of its files.
    #[track_caller]
    fn check(inner: &str, image: &str, files: &str) {
        let inner = inner.replace('^', "url='http://a.example/");
        let entry =
            format!("<feed xmlns='http://www.w3.org/2005/Atom'><entry>{inner}</entry></feed>");
        let channel = format!("<rss version='2.0'><channel><item>{inner}</item></channel></rss>");
        for text in [entry, channel] {
            let document = parse(text.as_bytes(), &Hints::default()).unwrap();
            let item = &document.items[0];
            let name = |url: &str| url.trim_start_matches("http://a.example/").to_owned();
            assert_eq!(item.image.as_deref().map(name).unwrap_or_default(), image, "{text}");
            let shown = item.enclosures.iter().map(|file| {
                let kind = file.media_type.as_deref().unwrap_or_default();
                let length = file.length.map(|length| length.to_string()).unwrap_or_default();
                [&name(&file.url), kind, &length].join(" ").trim().to_owned()
            });
            assert_eq!(shown.collect::<Vec<_>>().join(", "), files, "{text}");
        }
    }

    #[test]
    fn a_picture_is_that_of_its_item() {
        check("<media:content ^p' medium='image'/>", "p", "");
        check("<media:content ^p' type='Image/JPEG'/>", "p", "");
        check("<media:content ^p.jpg?w=9'/>", "p.jpg?w=9", "");
        check("<media:group><media:content ^p.png'/></media:group>", "p.png", "");
        check("<media:content ^p.jpg'/><media:thumbnail ^t'/>", "t", "");
        check("<media:content ^p.jpg'/><itunes:image href='http://a.example/i'/>", "i", "");
    }

    #[test]
    fn sound_and_films_are_files() {
        check("<media:content ^v' type='video/mp4' fileSize='9'/>", "", "v video/mp4 9");
        check("<media:content ^v.mp4' medium='video'/>", "", "v.mp4");
        check(
            "<media:group><media:content ^v' type='video/mp4'/><media:content ^w' type='video/webm'/>
             <media:thumbnail ^t'/></media:group>",
            "t",
            "v video/mp4, w video/webm",
        );
        check(
            "<media:content ^v' type='video/mp4'><media:thumbnail ^t'/></media:content>",
            "t",
            "v video/mp4",
        );
        check("<media:content><media:player ^p'/></media:content><media:player ^q'/>", "", "");
    }

    #[test]
    fn what_is_named_twice_is_one_file() {
        check(
            "<media:content ^v' type='video/mp4'/><media:content ^s' type='audio/mpeg'/>
             <enclosure ^s' type='audio/mpeg' length='1'/><media:content ^v' type='video/mp4'/>",
            "",
            "s audio/mpeg 1, v video/mp4",
        );
    }

    #[test]
    fn a_picture_is_shown_once() {
        let picture = "<media:content ^p' type='image/png'/>";
        check(&picture.repeat(2), "p", "");
        check(&format!("{picture}<media:thumbnail ^p'/>"), "p", "");
        check(&format!("<enclosure ^p' type='image/png'/>{picture}"), "", "p image/png");
        // Another size has no type, another picture has one.
        check(&format!("{picture}<media:content ^q' medium='image'/>"), "p", "");
        check(&format!("{picture}<media:content ^q' type='image/png'/>"), "p", "q image/png");
    }
}
