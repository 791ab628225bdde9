//! What a feed says, whatever its format.

use std::fmt;

use tidings_store::date::Moment;

use super::Problem;

/// One feed document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// How it is written.
    pub format: Format,
    /// What it says of itself.
    pub feed: Feed,
    /// Its items, in the order of the document.
    pub items: Vec<Item>,
    /// What was wrong with it, as far as it matters; at most one of each kind.
    pub problems: Vec<Problem>,
    /// Whether it ended before its end. An item that had begun is left out.
    pub truncated: bool,
}

/// How a feed is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// RSS of a version that is missing or unknown.
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

/// A text and whether its markup is to be read as HTML. It is as received: not made safe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text; references of XML are resolved, those of HTML are not.
    pub value: String,
    /// How it is to be read.
    pub kind: TextKind,
}

/// How a text is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextKind {
    /// Every character is itself.
    #[default]
    Plain,
    /// HTML.
    Html,
}

/// What a feed says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feed {
    /// Its name.
    pub title: Option<Text>,
    /// What it is about.
    pub description: Option<Text>,
    /// The page it belongs to.
    pub link: Option<String>,
    /// Where it is found, by its own account.
    pub self_link: Option<String>,
    /// Every link with what it is for.
    pub links: Vec<Link>,
    /// What it is, whatever its address.
    pub id: Option<String>,
    /// Its language.
    pub language: Option<String>,
    /// Who may do what with it.
    pub copyright: Option<Text>,
    /// The program that wrote it.
    pub generator: Option<String>,
    /// Who wrote it.
    pub authors: Vec<Person>,
    /// Who helped.
    pub contributors: Vec<Person>,
    /// Who publishes it.
    pub publisher: Option<Person>,
    /// What it is about, in words to search for.
    pub categories: Vec<Category>,
    /// When it changed.
    pub updated: Option<Moment>,
    /// When it was published.
    pub published: Option<Moment>,
    /// A picture for it.
    pub image: Option<String>,
    /// A small square picture for it.
    pub icon: Option<String>,
    /// Minutes for which it may be kept.
    pub ttl: Option<u32>,
    /// Hours of the day, in UTC, in which it does not change.
    pub skip_hours: Vec<u8>,
    /// Days of the week in which it does not change, as in `monday`.
    pub skip_days: Vec<String>,
    /// `hourly`, `daily`, `weekly`, `monthly` or `yearly`.
    pub update_period: Option<String>,
    /// How often it changes in that time.
    pub update_frequency: Option<u32>,
    /// Servers that tell of its changes.
    pub hubs: Vec<String>,
    /// Whether it is for grown-ups.
    pub explicit: Option<bool>,
}

/// One item of a feed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// What it is, whatever its address; `guid` in RSS. As received, except that it is resolved
    /// against an `xml:base` around it.
    pub id: Option<String>,
    /// Whether the feed says that the id is also the address of the item; `None` if it does not
    /// say.
    pub id_is_link: Option<bool>,
    /// Its name.
    pub title: Option<Text>,
    /// What it says, in short; all of it, in many feeds.
    pub summary: Option<Text>,
    /// All that it says.
    pub content: Option<Text>,
    /// What relative addresses in its texts, which are as received, are relative to: the `xml:base`
    /// around them, else where the feed is.
    pub base: Option<String>,
    /// Where it is found.
    pub link: Option<String>,
    /// Every link with what it is for.
    pub links: Vec<Link>,
    /// The page with comments on it.
    pub comments: Option<String>,
    /// The feed with comments on it.
    pub comments_feed: Option<String>,
    /// How many comments there are.
    pub comment_count: Option<u64>,
    /// What it answers.
    pub in_reply_to: Vec<Reply>,
    /// When it was published.
    pub published: Option<Moment>,
    /// When it was changed.
    pub updated: Option<Moment>,
    /// When it was written, if that is said too.
    pub created: Option<Moment>,
    /// Who wrote it; in Atom and JSON Feed, if it does not say so, who wrote the feed.
    pub authors: Vec<Person>,
    /// Who helped.
    pub contributors: Vec<Person>,
    /// What it is about, in words to search for.
    pub categories: Vec<Category>,
    /// Files that belong to it.
    pub enclosures: Vec<Enclosure>,
    /// A picture for it.
    pub image: Option<String>,
    /// The feed it comes from, in a feed made of others.
    pub source: Option<Origin>,
    /// Pictures, sound and films of it, whatever group they are in.
    pub media: Vec<Media>,
    /// What podcasts say of an episode.
    pub episode: Episode,
    /// Where on Earth it is about.
    pub place: Option<Place>,
    /// Who may do what with it.
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

/// A word to search for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Category {
    /// The word.
    pub term: String,
    /// The list of words it is from.
    pub scheme: Option<String>,
    /// The word as a person reads it.
    pub label: Option<String>,
}

/// A link with what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub href: String,
    /// What it is for: `alternate`, `self`, `enclosure`, `related`, `via`, `replies`…
    pub rel: String,
    /// The media type of what is there.
    pub media_type: Option<String>,
    /// Its name.
    pub title: Option<String>,
    /// The language of what is there.
    pub language: Option<String>,
}

/// A file that belongs to an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enclosure {
    /// Where it is.
    pub url: String,
    /// Its media type.
    pub media_type: Option<String>,
    /// Its size in bytes, by the feed's account.
    pub length: Option<u64>,
}

/// The feed an item comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its name.
    pub title: Option<String>,
    /// Where it is.
    pub link: Option<String>,
    /// What it is, whatever its address.
    pub id: Option<String>,
    /// When it changed.
    pub updated: Option<Moment>,
    /// Who wrote it.
    pub authors: Vec<Person>,
}

/// A picture, a sound or a film.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Where it is.
    pub url: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// `image`, `audio`, `video`, `document` or `executable`.
    pub medium: Option<String>,
    /// Its size in bytes.
    pub length: Option<u64>,
    /// How long it plays, in seconds.
    pub duration: Option<u64>,
    /// Its width in pixels.
    pub width: Option<u32>,
    /// Its height in pixels.
    pub height: Option<u32>,
    /// Its name.
    pub title: Option<String>,
    /// What it shows.
    pub description: Option<String>,
    /// A small picture of it.
    pub thumbnail: Option<String>,
}

/// What podcasts say of an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Episode {
    /// How long it plays, in seconds.
    pub duration: Option<u64>,
    /// Its number.
    pub number: Option<u32>,
    /// The number of its season.
    pub season: Option<u32>,
    /// Whether it is for grown-ups.
    pub explicit: Option<bool>,
    /// Its subtitle.
    pub subtitle: Option<String>,
    /// Where its words can be read.
    pub transcript: Option<String>,
    /// Where its chapters are listed.
    pub chapters: Option<String>,
}

/// What an item answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The id of the other item.
    pub id: Option<String>,
    /// Where the other item is found.
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
