//! The content of a feed, independent of its format.

use std::fmt;

use tidings_store::date::Moment;

use super::Problem;

/// One feed document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its format.
    pub format: Format,
    /// The feed's own details.
    pub feed: Feed,
    /// Its items, in the order of the document.
    pub items: Vec<Item>,
    /// The problems that matter; at most one of each kind.
    pub problems: Vec<Problem>,
    /// Whether it was cut off. An incomplete item is dropped.
    pub truncated: bool,
}

/// The format of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// RSS without a version, or of an unknown one.
    #[default]
    Rss,
    /// RSS 0.90, the first.
    Rss090,
    /// RSS 0.91, of Netscape and of Userland.
    Rss091,
    /// RSS 0.92.
    Rss092,
    /// RSS 0.93.
    Rss093,
    /// RSS 0.94.
    Rss094,
    /// RSS 1.0, which is RDF.
    Rss10,
    /// RSS 2.0.
    Rss20,
    /// Atom 0.3 and its drafts.
    Atom03,
    /// Atom 1.0, or Atom of an unknown version.
    Atom10,
    /// JSON Feed 1.
    JsonFeed10,
    /// JSON Feed 1.1.
    JsonFeed11,
    /// Channel Definition Format.
    Cdf,
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rss => "rss",
            Self::Rss090 => "rss 0.90",
            Self::Rss091 => "rss 0.91",
            Self::Rss092 => "rss 0.92",
            Self::Rss093 => "rss 0.93",
            Self::Rss094 => "rss 0.94",
            Self::Rss10 => "rss 1.0",
            Self::Rss20 => "rss 2.0",
            Self::Atom03 => "atom 0.3",
            Self::Atom10 => "atom 1.0",
            Self::JsonFeed10 => "json feed 1.0",
            Self::JsonFeed11 => "json feed 1.1",
            Self::Cdf => "cdf",
        })
    }
}

/// A text, and whether its markup is HTML. It is as received: not made safe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text; references of XML are resolved, those of HTML are not.
    pub value: String,
    /// Its kind.
    pub kind: TextKind,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextKind {
    /// Plain text.
    #[default]
    Plain,
    /// HTML.
    Html,
}

/// The details of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feed {
    /// Its name.
    pub title: Option<Text>,
    /// Its description.
    pub description: Option<Text>,
    /// Its web page.
    pub link: Option<String>,
    /// Its own address, as it states it.
    pub self_link: Option<String>,
    /// All links with their relations.
    pub links: Vec<Link>,
    /// Its id, independent of its address.
    pub id: Option<String>,
    /// Its language.
    pub language: Option<String>,
    /// Its copyright notice.
    pub copyright: Option<Text>,
    /// The program that wrote it.
    pub generator: Option<String>,
    /// Its authors.
    pub authors: Vec<Person>,
    /// Its contributors.
    pub contributors: Vec<Person>,
    /// Its publisher.
    pub publisher: Option<Person>,
    /// Its categories.
    pub categories: Vec<Category>,
    /// When it last changed.
    pub updated: Option<Moment>,
    /// When it was published.
    pub published: Option<Moment>,
    /// Its picture.
    pub image: Option<String>,
    /// Its icon, small and square.
    pub icon: Option<String>,
    /// Minutes for which it may be cached.
    pub ttl: Option<u32>,
    /// Hours of the day, in UTC, in which it does not change.
    pub skip_hours: Vec<u8>,
    /// Days of the week in which it does not change, as in `monday`.
    pub skip_days: Vec<String>,
    /// `hourly`, `daily`, `weekly`, `monthly` or `yearly`.
    pub update_period: Option<String>,
    /// How often it changes in that period.
    pub update_frequency: Option<u32>,
    /// Servers that notify of its changes.
    pub hubs: Vec<String>,
    /// Whether it is for adults.
    pub explicit: Option<bool>,
}

/// One item of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Its id, independent of its address; `guid` in RSS. As received, except that it is resolved
    /// against an `xml:base` around it.
    pub id: Option<String>,
    /// Whether the feed states that the id is also the address of the item; `None` if it does not
    /// say.
    pub id_is_link: Option<bool>,
    /// Its title.
    pub title: Option<Text>,
    /// Its summary; the whole text in many feeds.
    pub summary: Option<Text>,
    /// Its whole text.
    pub content: Option<Text>,
    /// The base of relative addresses in its texts, which are as received: the `xml:base` around
    /// them, else the feed's address.
    pub base: Option<String>,
    /// Its address.
    pub link: Option<String>,
    /// All links with their relations.
    pub links: Vec<Link>,
    /// Its page of comments.
    pub comments: Option<String>,
    /// Its feed of comments.
    pub comments_feed: Option<String>,
    /// Its number of comments.
    pub comment_count: Option<u64>,
    /// The item that it answers.
    pub in_reply_to: Vec<Reply>,
    /// When it was published.
    pub published: Option<Moment>,
    /// When it was changed.
    pub updated: Option<Moment>,
    /// When it was written, if stated separately.
    pub created: Option<Moment>,
    /// Its authors; in Atom and JSON Feed, by default those of the feed.
    pub authors: Vec<Person>,
    /// Its contributors.
    pub contributors: Vec<Person>,
    /// Its categories.
    pub categories: Vec<Category>,
    /// Files that belong to it.
    pub enclosures: Vec<Enclosure>,
    /// Its picture.
    pub image: Option<String>,
    /// Its source, in a feed made of others.
    pub source: Option<Origin>,
    /// Its pictures, audio and video, in any group.
    pub media: Vec<Media>,
    /// Its details as a podcast episode.
    pub episode: Episode,
    /// Its place on Earth.
    pub place: Option<Place>,
    /// Its copyright notice.
    pub copyright: Option<Text>,
    /// Its language.
    pub language: Option<String>,
}

/// A person, an organisation or a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The name.
    pub name: Option<String>,
    /// The mail address.
    pub email: Option<String>,
    /// The page.
    pub uri: Option<String>,
}

/// A category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Category {
    /// The term.
    pub term: String,
    /// Its scheme.
    pub scheme: Option<String>,
    /// Its label for people.
    pub label: Option<String>,
}

/// A link with its relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its target.
    pub href: String,
    /// Its relation: `alternate`, `self`, `enclosure`, `related`, `via`, `replies`…
    pub rel: String,
    /// The media type of the target.
    pub media_type: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The language of the target.
    pub language: Option<String>,
}

/// A file that belongs to an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enclosure {
    /// Its address.
    pub url: String,
    /// Its media type.
    pub media_type: Option<String>,
    /// Its size in bytes, as stated by the feed.
    pub length: Option<u64>,
}

/// The source feed of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its title.
    pub title: Option<String>,
    /// Its address.
    pub link: Option<String>,
    /// Its id, independent of its address.
    pub id: Option<String>,
    /// When it last changed.
    pub updated: Option<Moment>,
    /// Its authors.
    pub authors: Vec<Person>,
}

/// A picture, audio or video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Its address.
    pub url: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// `image`, `audio`, `video`, `document` or `executable`.
    pub medium: Option<String>,
    /// Its size in bytes.
    pub length: Option<u64>,
    /// Its duration in seconds.
    pub duration: Option<u64>,
    /// Its width in pixels.
    pub width: Option<u32>,
    /// Its height in pixels.
    pub height: Option<u32>,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// A small picture of it.
    pub thumbnail: Option<String>,
}

/// The podcast details of an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Episode {
    /// Its duration in seconds.
    pub duration: Option<u64>,
    /// Its number.
    pub number: Option<u32>,
    /// The number of its season.
    pub season: Option<u32>,
    /// Whether it is for adults.
    pub explicit: Option<bool>,
    /// Its subtitle.
    pub subtitle: Option<String>,
    /// The address of its transcript.
    pub transcript: Option<String>,
    /// The address of its chapters.
    pub chapters: Option<String>,
}

/// The item that another answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The id of the other item.
    pub id: Option<String>,
    /// The address of that item.
    pub href: Option<String>,
}

/// A place on Earth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}
