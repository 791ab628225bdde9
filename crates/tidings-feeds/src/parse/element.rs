//! The known elements, under all their names.

use super::space::Space;

/// The meaning of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    // Containers.
    Rss,
    Rdf,
    Feed,
    Channel,
    Item,
    Page,
    Image,
    TextInput,
    Source,
    // Texts that may have markup.
    Title,
    MinorTitle,
    Description,
    Subtitle,
    Summary,
    Content,
    Encoded,
    Rights,
    // Links and names.
    Link,
    Id,
    Comments,
    CommentsFeed,
    Enclosure,
    Icon,
    Logo,
    Url,
    // People.
    Author,
    Contributor,
    Publisher,
    Creator,
    Helper,
    Name,
    Email,
    Uri,
    // Dates.
    Published,
    Updated,
    Created,
    // Words and numbers.
    Category,
    Keywords,
    Language,
    Generator,
    Ttl,
    SkipHour,
    SkipDay,
    UpdatePeriod,
    UpdateFrequency,
    CommentCount,
    InReplyTo,
    // Media and podcasts.
    MediaContent,
    MediaGroup,
    MediaThumbnail,
    MediaTitle,
    MediaDescription,
    PodcastImage,
    PodcastCategory,
    Duration,
    EpisodeNumber,
    Season,
    Explicit,
    EpisodeSubtitle,
    EpisodeSummary,
    Transcript,
    Chapters,
    // Places.
    Point,
    Latitude,
    Longitude,
    /// Anything else.
    Other,
}

impl Element {
    /// The element of a name; `local` in lower case.
    pub(super) fn new(space: Space, local: &str) -> Self {
        match space {
            Space::Core => core(local),
            Space::Rdf => match local {
                "rdf" => Self::Rdf,
                _ => Self::Other,
            },
            Space::Content => match local {
                "encoded" => Self::Encoded,
                _ => Self::Other,
            },
            Space::Dublin => dublin(local),
            Space::Media => media(local),
            Space::Itunes => itunes(local),
            Space::Podcast => podcast(local),
            Space::Thread => match local {
                "in-reply-to" => Self::InReplyTo,
                "total" => Self::CommentCount,
                _ => Self::Other,
            },
            Space::Geo => match local {
                "point" | "pos" => Self::Point,
                "lat" => Self::Latitude,
                "long" | "lon" => Self::Longitude,
                _ => Self::Other,
            },
            Space::Slash => match local {
                "comments" => Self::CommentCount,
                _ => Self::Other,
            },
            Space::CommentApi => match local {
                "commentrss" => Self::CommentsFeed,
                _ => Self::Other,
            },
            Space::Syndication => match local {
                "updateperiod" => Self::UpdatePeriod,
                "updatefrequency" => Self::UpdateFrequency,
                _ => Self::Other,
            },
            Space::Xhtml => match local {
                "html" => Self::Page,
                "body" => Self::Encoded,
                _ => Self::Other,
            },
            Space::Xml | Space::Other => Self::Other,
        }
    }

    /// Whether markup within it is part of its text.
    pub(super) fn is_rich(self) -> bool {
        matches!(
            self,
            Self::Title
                | Self::MinorTitle
                | Self::Description
                | Self::Subtitle
                | Self::Summary
                | Self::Content
                | Self::Encoded
                | Self::Rights
                | Self::MediaTitle
                | Self::MediaDescription
                | Self::EpisodeSubtitle
                | Self::EpisodeSummary
        )
    }

    /// Whether its text is a name or a word.
    pub(super) fn is_name(self) -> bool {
        matches!(
            self,
            Self::Author
                | Self::Contributor
                | Self::Publisher
                | Self::Creator
                | Self::Helper
                | Self::Name
                | Self::Category
                | Self::PodcastCategory
                | Self::Keywords
        )
    }

    /// Whether it occurs beside a title and never within one.
    pub(super) fn follows_title(self) -> bool {
        matches!(
            self,
            Self::Link
                | Self::Id
                | Self::Description
                | Self::Published
                | Self::Updated
                | Self::Author
                | Self::Creator
                | Self::Category
                | Self::Enclosure
                | Self::Comments
                | Self::Encoded
        )
    }

    /// Whether it contains items.
    pub(super) fn holds_items(self) -> bool {
        matches!(self, Self::Rss | Self::Rdf | Self::Feed | Self::Channel)
    }
}

fn core(local: &str) -> Element {
    match local {
        "rss" => Element::Rss,
        "rdf" => Element::Rdf,
        "feed" => Element::Feed,
        "channel" => Element::Channel,
        "item" | "entry" => Element::Item,
        "html" => Element::Page,
        "image" => Element::Image,
        "textinput" => Element::TextInput,
        "source" => Element::Source,
        "title" => Element::Title,
        "description" | "abstract" => Element::Description,
        "subtitle" | "tagline" | "info" => Element::Subtitle,
        "summary" => Element::Summary,
        "content" => Element::Content,
        "encoded" | "fullitem" | "body" => Element::Encoded,
        "rights" | "copyright" => Element::Rights,
        "link" => Element::Link,
        "guid" | "id" => Element::Id,
        "comments" => Element::Comments,
        "enclosure" => Element::Enclosure,
        "icon" => Element::Icon,
        "logo" => Element::Logo,
        "url" => Element::Url,
        "uri" | "homepage" => Element::Uri,
        "author" | "managingeditor" => Element::Author,
        "contributor" => Element::Contributor,
        "webmaster" => Element::Publisher,
        "name" => Element::Name,
        "email" => Element::Email,
        "pubdate" | "published" | "issued" => Element::Published,
        "updated" | "modified" | "lastbuilddate" => Element::Updated,
        "created" => Element::Created,
        "category" | "keywords" => Element::Category,
        "language" => Element::Language,
        "generator" => Element::Generator,
        "ttl" => Element::Ttl,
        "hour" => Element::SkipHour,
        "day" => Element::SkipDay,
        _ => Element::Other,
    }
}

fn dublin(local: &str) -> Element {
    match local {
        "title" => Element::MinorTitle,
        "description" | "abstract" => Element::Description,
        "creator" | "author" => Element::Creator,
        "contributor" => Element::Helper,
        "publisher" => Element::Publisher,
        "date" | "modified" => Element::Updated,
        "issued" => Element::Published,
        "created" => Element::Created,
        "subject" => Element::Category,
        "language" => Element::Language,
        "rights" => Element::Rights,
        _ => Element::Other,
    }
}

fn media(local: &str) -> Element {
    match local {
        "content" => Element::MediaContent,
        "group" => Element::MediaGroup,
        "thumbnail" => Element::MediaThumbnail,
        "title" => Element::MediaTitle,
        "description" => Element::MediaDescription,
        "category" => Element::Category,
        "keywords" => Element::Keywords,
        _ => Element::Other,
    }
}

fn itunes(local: &str) -> Element {
    match local {
        "author" => Element::Creator,
        "owner" => Element::Publisher,
        "name" => Element::Name,
        "email" => Element::Email,
        "image" | "link" => Element::PodcastImage,
        "category" => Element::PodcastCategory,
        "keywords" => Element::Keywords,
        "duration" => Element::Duration,
        "episode" => Element::EpisodeNumber,
        "season" => Element::Season,
        "explicit" => Element::Explicit,
        "subtitle" => Element::EpisodeSubtitle,
        "summary" => Element::EpisodeSummary,
        "title" => Element::MinorTitle,
        _ => Element::Other,
    }
}

fn podcast(local: &str) -> Element {
    match local {
        "episode" => Element::EpisodeNumber,
        "season" => Element::Season,
        "transcript" => Element::Transcript,
        "chapters" => Element::Chapters,
        _ => Element::Other,
    }
}
