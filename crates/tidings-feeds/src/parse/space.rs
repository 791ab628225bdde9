//! Namespaces: by their address, and if that is missing or odd, by their usual prefix.

/// The known vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// RSS, Atom and CDF, whose names have almost the same meanings; also no namespace at all.
    Core,
    Rdf,
    Content,
    /// Dublin Core, elements and terms.
    Dublin,
    Media,
    Itunes,
    Podcast,
    Thread,
    /// Points of the W3C, of `GeoRSS` and of GML.
    Geo,
    Slash,
    CommentApi,
    Syndication,
    Xhtml,
    Xml,
    Other,
}

/// Addresses in lower case, without the text after the last `/` or `#` of a version.
const ADDRESSES: &[(&str, Space)] = &[
    ("http://www.w3.org/2005/atom", Space::Core),
    ("http://purl.org/atom/ns", Space::Core),
    ("http://purl.org/atom/", Space::Core),
    ("http://purl.org/rss/1.0/modules/content", Space::Content),
    ("http://purl.org/rss/1.0/modules/slash", Space::Slash),
    ("http://purl.org/rss/1.0/modules/syndication", Space::Syndication),
    ("http://purl.org/rss/1.0/modules/rss091", Space::Core),
    ("http://purl.org/rss/1.0/modules", Space::Other),
    ("http://purl.org/rss/", Space::Core),
    ("http://my.netscape.com/rdf/simple/0.9", Space::Core),
    ("http://channel.netscape.com/rdf/simple/0.9", Space::Core),
    ("http://my.netscape.com/publish/formats/rss", Space::Core),
    ("http://backend.userland.com/", Space::Core),
    ("http://blogs.law.harvard.edu/tech/rss", Space::Core),
    ("http://cyber.law.harvard.edu/rss", Space::Core),
    ("http://www.rssboard.org/rss", Space::Core),
    ("http://purl.org/echo/", Space::Core),
    ("http://purl.org/pie/", Space::Core),
    ("uri/of/echo/namespace", Space::Core),
    ("http://example.com/newformat", Space::Core),
    ("http://example.com/necho", Space::Core),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns", Space::Rdf),
    ("http://purl.org/dc/", Space::Dublin),
    ("http://search.yahoo.com/mrss", Space::Media),
    ("http://video.search.yahoo.com/mrss", Space::Media),
    ("http://www.itunes.com/dtds/podcast-1.0.dtd", Space::Itunes),
    ("http://example.com/dtds/podcast-1.0.dtd", Space::Itunes),
    ("https://podcastindex.org/namespace/1.0", Space::Podcast),
    ("https://github.com/podcastindex-org/podcast-namespace", Space::Podcast),
    ("http://purl.org/syndication/thread/1.0", Space::Thread),
    ("http://www.w3.org/2003/01/geo/wgs84_pos", Space::Geo),
    ("http://www.georss.org/georss", Space::Geo),
    ("http://www.opengis.net/gml", Space::Geo),
    ("http://wellformedweb.org/commentapi", Space::CommentApi),
    ("http://www.w3.org/1999/xhtml", Space::Xhtml),
    ("http://www.w3.org/xml/1998/namespace", Space::Xml),
];

/// The vocabulary of an address.
pub(super) fn by_address(address: &str) -> Space {
    let address = address.trim();
    if address.is_empty() {
        return Space::Core;
    }
    // The same names are used with both schemes.
    let lower = address.to_ascii_lowercase();
    let bare = |address: &'_ str| -> usize {
        address.find("://").map_or(0, |position| position + "://".len())
    };
    let start = bare(&lower);
    ADDRESSES
        .iter()
        .find(|(known, _)| lower[start..].starts_with(&known[bare(known)..]))
        .map_or(Space::Other, |(_, space)| *space)
}

/// The vocabulary of a usual prefix.
pub(super) fn by_prefix(prefix: &str) -> Option<Space> {
    const PREFIXES: &[(&str, Space)] = &[
        ("atom", Space::Core),
        ("a10", Space::Core),
        ("atom10", Space::Core),
        ("atom03", Space::Core),
        ("rss", Space::Core),
        ("rss20", Space::Core),
        ("rss2", Space::Core),
        ("rdf", Space::Rdf),
        ("content", Space::Content),
        ("dc", Space::Dublin),
        ("dcterms", Space::Dublin),
        ("media", Space::Media),
        ("itunes", Space::Itunes),
        ("podcast", Space::Podcast),
        ("thr", Space::Thread),
        ("geo", Space::Geo),
        ("georss", Space::Geo),
        ("gml", Space::Geo),
        ("slash", Space::Slash),
        ("wfw", Space::CommentApi),
        ("sy", Space::Syndication),
        ("syn", Space::Syndication),
        ("xhtml", Space::Xhtml),
        ("xml", Space::Xml),
    ];
    PREFIXES.iter().find(|(known, _)| known.eq_ignore_ascii_case(prefix)).map(|(_, space)| *space)
}

/// The maximum number of declarations in force at one time.
const BINDINGS: usize = 128;

/// The declared prefixes at the reader's position.
#[derive(Debug, Default)]
pub(super) struct Bindings<'a> {
    /// The innermost last; the default namespace has an empty prefix.
    bound: Vec<(&'a str, Space)>,
}

impl<'a> Bindings<'a> {
    pub(super) fn len(&self) -> usize {
        self.bound.len()
    }

    /// Removes the declarations beyond this number.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bound.truncate(len);
    }

    pub(super) fn declare(&mut self, prefix: &'a str, address: &str) {
        if self.bound.len() < BINDINGS {
            let mut space = by_address(address);
            // An odd address: the usual meaning of the prefix is the better guess.
            if space == Space::Other
                && let Some(usual) = by_prefix(prefix)
            {
                space = usual;
            }
            self.bound.push((prefix, space));
        }
    }

    /// The vocabulary and the local part of a name.
    pub(super) fn resolve<'n>(&self, name: &'n str) -> (Space, &'n str) {
        let Some((prefix, local)) = name.split_once(':') else { return (self.space(""), name) };
        (self.space(prefix), local)
    }

    fn space(&self, prefix: &str) -> Space {
        let declared = self.bound.iter().rev().find(|(known, _)| *known == prefix);
        match declared {
            // An unknown default namespace, in a document that may still be a feed.
            Some((_, Space::Other)) | None if prefix.is_empty() => Space::Core,
            Some((_, space)) => *space,
            None => by_prefix(prefix).unwrap_or(Space::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_in_every_spelling() {
        assert_eq!(by_address("http://www.w3.org/2005/Atom"), Space::Core);
        assert_eq!(by_address("HTTPS://purl.org/DC/elements/1.1/"), Space::Dublin);
        assert_eq!(by_address("http://purl.org/rss/1.0/modules/content/"), Space::Content);
        assert_eq!(by_address("http://purl.org/rss/1.0/"), Space::Core);
        assert_eq!(by_address("http://search.yahoo.com/mrss"), Space::Media);
        assert_eq!(by_address("http://nowhere.example/"), Space::Other);
    }

    #[test]
    fn what_is_not_declared_is_known_by_its_prefix() {
        let mut bindings = Bindings::default();
        assert_eq!(bindings.resolve("dc:date"), (Space::Dublin, "date"));
        bindings.declare("dc", "http://www.itunes.com/dtds/podcast-1.0.dtd");
        assert_eq!(bindings.resolve("dc:date"), (Space::Itunes, "date"));
        bindings.declare("media", "http://nowhere.example/");
        assert_eq!(bindings.resolve("media:title").0, Space::Media);
        bindings.truncate(0);
        assert_eq!(bindings.resolve("dc:date").0, Space::Dublin);
    }
}
