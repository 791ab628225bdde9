//! Lists of feeds in the usual exchange format: OPML, with folders as categories.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::address::{Asker, FeedAddress};
use crate::config::FeedConfig;
use crate::parse;

/// The maximum number of feeds in one list.
const MOST: usize = 10_000;
/// The maximum number of reported problems.
const PROBLEMS: usize = 100;
/// The reported length of an address.
const SHOWN: usize = 200;
/// The deepest folder.
const DEEPEST: usize = 32;
/// The replacement of `/` in the name of a folder, because `/` separates folders.
const SLASH: &str = "\u{2215}";

/// One feed of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// Its page.
    pub page: Option<String>,
    /// Its folders from the outermost, separated by `/`; a slash in a name is `∕`.
    pub category: Option<String>,
}

/// Why a file has no list of feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is not a list of feeds: it has no outlines")]
pub struct ReadOpmlError;

/// The content of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedList {
    /// The valid feeds, with their titles.
    pub feeds: Vec<FeedConfig>,
    /// The problems of the others.
    pub problems: Vec<Problem>,
}

/// An entry of a list that is skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Its first line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.reason)
    }
}

/// Reads a list of feeds. Invalid entries are skipped; of a repeated feed the first entry counts.
///
/// ```
/// use tidings_feeds::opml;
///
/// let list = br#"<opml><body><outline text="News"><outline xmlUrl="https://a.org/f"/>"#;
/// let outlines = opml::read(list)?;
/// assert_eq!(outlines[0].category.as_deref(), Some("News"));
/// # Ok::<(), opml::ReadOpmlError>(())
/// ```
///
/// # Errors
///
/// It has no outline.
pub fn read(bytes: &[u8]) -> Result<Vec<Outline>, ReadOpmlError> {
    scan(bytes).map(|list| list.outlines)
}

/// Reads a list of feeds, and reports its invalid entries. A file that the operator named may name
/// files by absolute paths. A list from elsewhere may not, because it could have any file served.
///
/// # Errors
///
/// It has no outline.
pub fn read_list(bytes: &[u8], asker: Asker) -> Result<FeedList, ReadOpmlError> {
    let reason = match asker {
        Asker::Client => "is not the URL of a feed on the web",
        Asker::Operator => "is neither the URL of a feed on the web nor the whole path of a file",
    };
    let List { outlines, lines, mut problems, .. } = scan(bytes)?;
    let is_whole = |address: &FeedAddress| match address {
        FeedAddress::Web(_) => true,
        FeedAddress::File(file) => file.path().is_absolute(),
    };
    let mut feeds = Vec::new();
    for (Outline { url, title, category, .. }, line) in outlines.into_iter().zip(lines) {
        if let Some(address) = FeedAddress::parse(&url, asker).ok().filter(is_whole) {
            feeds.push(FeedConfig { title, category, ..FeedConfig::new(address) });
        } else {
            let url: String = url.chars().take(SHOWN).collect();
            let reason = format!("`{url}` {reason}");
            problems.push(Problem { line, reason });
        }
    }
    problems.sort_by_key(|problem| problem.line);
    Ok(FeedList { feeds, problems })
}

fn scan(bytes: &[u8]) -> Result<List, ReadOpmlError> {
    let text = parse::text(bytes, None);
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut list = List { line: 1, ..List::default() };
    let mut counted = 0;
    loop {
        let position = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
        let position = position.clamp(counted, text.len());
        let read = text.get(counted..position).unwrap_or_default();
        list.line += read.matches('\n').count();
        counted = position;
        let event = match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) => event,
            Err(error) => {
                list.note(format!("the rest cannot be read: {error}"));
                break;
            }
        };
        match event {
            Event::Start(tag) if is_outline(tag.name().as_ref()) => list.open(&tag),
            Event::Empty(tag) if is_outline(tag.name().as_ref()) => {
                list.open(&tag);
                list.folders.pop();
            }
            Event::End(tag) if is_outline(tag.name().as_ref()) => drop(list.folders.pop()),
            _ => {}
        }
        if list.outlines.len() > MOST {
            list.outlines.truncate(MOST);
            list.lines.truncate(MOST);
            list.note(format!("there are more than {MOST} feeds, and the rest is left out"));
            break;
        }
    }
    if list.is_one { Ok(list) } else { Err(ReadOpmlError) }
}

/// Writes a list of feeds, sorted by folder and then in the given order.
#[must_use]
pub fn write(outlines: &[Outline]) -> String {
    let mut root = Folder::default();
    for outline in outlines {
        let path = outline.category.as_deref().unwrap_or_default();
        let names = path.split('/').map(str::trim).filter(|name| !name.is_empty());
        let folder = names
            .fold(&mut root, |folder, name| folder.folders.entry(name.to_owned()).or_default());
        folder.outlines.push(outline);
    }
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\">\n  \
         <head>\n    <title>Feeds</title>\n  </head>\n  <body>\n",
    );
    root.write(&mut text, 2);
    text.push_str("  </body>\n</opml>\n");
    text
}

/// The content so far.
#[derive(Default)]
struct List {
    outlines: Vec<Outline>,
    seen: HashSet<String>,
    /// The open outlines; those of feeds have no name.
    folders: Vec<Option<String>>,
    /// Whether there was an outline.
    is_one: bool,
    /// The line of each outline.
    lines: Vec<usize>,
    /// The current line.
    line: usize,
    problems: Vec<Problem>,
}

impl List {
    fn open(&mut self, tag: &BytesStart<'_>) {
        self.is_one = true;
        let attributes = attributes(tag);
        let value = |name: &str| attributes.get(name).filter(|value| !value.is_empty()).cloned();
        let title = value("title").or_else(|| value("text"));
        let Some(url) = value("xmlurl") else {
            if value("type").is_some_and(|kind| kind.eq_ignore_ascii_case("rss")) {
                self.note("a feed without `xmlUrl`".to_owned());
            }
            self.folders.push(title.map(|title| title.replace('/', SLASH)));
            return;
        };
        let url = address(&url);
        let within: Vec<_> = self.folders.iter().flatten().take(DEEPEST).cloned().collect();
        self.folders.push(None);
        let category = if within.is_empty() {
            // The first category that is given beside the folders.
            let given = value("category");
            given.and_then(|it| it.split(',').next().map(|it| it.trim_matches(['/', ' ']).into()))
        } else {
            Some(within.join("/"))
        };
        let category = category.filter(|category: &String| !category.is_empty());
        if self.seen.insert(url.clone()) {
            self.outlines.push(Outline { url, title, page: value("htmlurl"), category });
            self.lines.push(self.line);
        }
    }

    fn note(&mut self, reason: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(Problem { line: self.line, reason });
        }
    }
}

/// The attributes of a tag by their names in lower case; the first of each counts.
fn attributes(tag: &BytesStart<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for attribute in tag.html_attributes().with_checks(false).flatten() {
        let name = String::from_utf8_lossy(attribute.key.as_ref().as_ref()).to_ascii_lowercase();
        let raw = String::from_utf8_lossy(attribute.value.as_ref().as_ref()).into_owned();
        // A text with an unknown reference stays unchanged.
        let value = unescape(&raw).map_or_else(|_| raw.clone(), std::borrow::Cow::into_owned);
        found.entry(name).or_insert_with(|| value.trim().to_owned());
    }
    found
}

/// An address without the scheme that some programs add.
fn address(url: &str) -> String {
    match url.strip_prefix("feed:") {
        Some(rest) if rest.starts_with("//") => format!("http:{rest}"),
        Some(rest) => rest.to_owned(),
        None => url.to_owned(),
    }
}

fn is_outline(name: &(impl AsRef<[u8]> + ?Sized)) -> bool {
    name.as_ref().eq_ignore_ascii_case(b"outline")
}

/// A folder of the list being written.
#[derive(Default)]
struct Folder<'a> {
    folders: BTreeMap<String, Folder<'a>>,
    outlines: Vec<&'a Outline>,
}

impl Folder<'_> {
    fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        for (name, folder) in &self.folders {
            let name = quoted(&name.replace(SLASH, "/"));
            line(text, &format!("{indent}<outline text=\"{name}\" title=\"{name}\">"));
            folder.write(text, depth + 1);
            line(text, &format!("{indent}</outline>"));
        }
        for outline in &self.outlines {
            let title = quoted(outline.title.as_deref().unwrap_or(&outline.url));
            let url = quoted(&outline.url);
            let mut tag = format!(
                "{indent}<outline type=\"rss\" text=\"{title}\" title=\"{title}\" xmlUrl=\"{url}\""
            );
            if let Some(page) = &outline.page {
                let _ = write!(tag, " htmlUrl=\"{}\"", quoted(page));
            }
            line(text, &(tag + "/>"));
        }
    }
}

/// A text for XML, in an element or in an attribute. Characters that XML does not allow are
/// replaced.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => quoted.push_str("&amp;"),
            '<' => quoted.push_str("&lt;"),
            '>' => quoted.push_str("&gt;"),
            '"' => quoted.push_str("&quot;"),
            '\r' => quoted.push_str("&#13;"),
            _ if is_held(letter) => quoted.push(letter),
            _ => quoted.push('\u{fffd}'),
        }
    }
    quoted
}

/// Whether XML allows a character.
pub(crate) fn is_held(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outline(url: &str, title: &str, category: Option<&str>) -> Outline {
        Outline {
            url: url.to_owned(),
            title: Some(title.to_owned()).filter(|title| !title.is_empty()),
            page: None,
            category: category.map(str::to_owned),
        }
    }

    #[track_caller]
    fn check(list: &str, expected: &[Outline]) {
        assert_eq!(read(list.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn what_is_no_feed_is_told_by_its_line_and_the_rest_is_taken() {
        let list = b"<opml><body>\n<outline text='One' xmlUrl='https://a.org/1'/>\n\
            <outline xmlUrl='/etc/passwd'/><outline type='rss' text='Two'/>\n\
            <outline xmlUrl='https://a.org/1'/>\n<outline text='F'>\n\
            <outline text='Three' xmlUrl='feed://a.org/3'/>\n\
            <outline xmlUrl='http://a b/../x'/>\n<outline xmlUrl='";
        let list = read_list(list, Asker::Client).unwrap();
        let urls: Vec<_> = list.feeds.iter().map(|it| it.address.as_str()).collect();
        assert_eq!(urls, ["https://a.org/1", "http://a.org/3"]);
        let problems: Vec<_> = list.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert_eq!(problems[0], "line 3: a feed without `xmlUrl`");
        assert_eq!(problems[1], "line 3: `/etc/passwd` is not the URL of a feed on the web");
        assert_eq!(problems[2], "line 7: `http://a b/../x` is not the URL of a feed on the web");
        assert!(problems[3].starts_with("line 8: the rest cannot be read"), "{problems:?}");
    }

    #[test]
    fn folders_are_categories() {
        check(
            r#"<opml version="1.0"><body>
              <outline text="Tech"><outline text="Rust">
                <outline text="A" type="rss" xmlUrl="https://a.org/f?x=1&amp;y=2"/></outline>
                <outline title="B" text="no" xmlUrl="https://b.org/"></outline>
              </outline>
              <outline text="C" xmlUrl="feed://c.org/" category="/Other/Things,x"/>
            </body></opml>"#,
            &[
                outline("https://a.org/f?x=1&y=2", "A", Some("Tech/Rust")),
                outline("https://b.org/", "B", Some("Tech")),
                outline("http://c.org/", "C", Some("Other/Things")),
            ],
        );
    }

    #[test]
    fn lists_are_read_as_they_are_found() {
        check(
            r#"<OPML><BODY><Outline TEXT="R&D &nbsp;" XMLURL='https://a.org/?a=1&b=2' x>
               <outline xmlUrl="https://b.org/"/></p><outline xmlUrl="https://b.org/" text="B"/>
               <outline xmlUrl="" text="none"/><outline xmlUrl="https://c.org/" <"#,
            &[
                outline("https://a.org/?a=1&b=2", "R&D &nbsp;", None),
                outline("https://b.org/", "", None),
            ],
        );
    }

    #[test]
    fn what_is_no_list_is_told_so() {
        for none in ["", "hello", "<rss><channel/></rss>", "{}"] {
            assert_eq!(read(none.as_bytes()), Err(ReadOpmlError));
        }
        assert_eq!(read(b"<opml><body><outline text='x'/></body></opml>"), Ok(Vec::new()));
    }

    #[test]
    fn a_list_of_just_the_limit_is_whole() {
        let list = |feeds: usize| {
            let outline = |number| format!("<outline xmlUrl=\"https://a.org/{number}\"/>");
            let text: String = (0..feeds).map(outline).collect();
            let list = scan(format!("<opml><body>{text}</body></opml>").as_bytes()).unwrap();
            (list.outlines.len(), list.problems.len())
        };
        assert_eq!(list(MOST), (MOST, 0));
        assert_eq!(list(MOST + 1), (MOST, 1));
    }

    #[test]
    fn encodings_are_read() {
        let list = "<opml><outline text=\"é\" xmlUrl=\"https://a.org/\"/></opml>";
        let latin: Vec<_> = list.chars().map(|it| u8::try_from(u32::from(it)).unwrap()).collect();
        let wide = std::iter::once(0xfeff).chain(list.encode_utf16());
        let wide: Vec<_> = wide.flat_map(u16::to_le_bytes).collect();
        let declared = b"<?xml version='1.0' encoding='iso-8859-5'?>
            <opml><outline text='\xd6' xmlUrl='https://a.org/'/></opml>";
        for bytes in [list.as_bytes().to_vec(), latin, wide] {
            assert_eq!(read(&bytes).unwrap(), [outline("https://a.org/", "é", None)]);
        }
        assert_eq!(read(declared).unwrap(), [outline("https://a.org/", "ж", None)]);
    }

    #[test]
    fn a_slash_in_the_name_of_a_folder_divides_nothing() {
        let list = r#"<opml><outline text="TCP/IP"><outline text="RFC">
            <outline text="A" xmlUrl="https://a.org/"/></outline></outline></opml>"#;
        let outlines = read(list.as_bytes()).unwrap();
        assert_eq!(outlines, [outline("https://a.org/", "A", Some("TCP\u{2215}IP/RFC"))]);
        let written = write(&outlines);
        assert!(written.contains("<outline text=\"TCP/IP\""), "{written}");
        assert_eq!(read(written.as_bytes()).unwrap(), outlines);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            titles in prop::collection::vec("[ -~é]{0,8}", 0..6),
            folders in prop::collection::vec("[a-c<&\"]{1,2}(/[a-c]{1})?", 6),
        ) {
            let outlines: Vec<_> = titles.iter().zip(&folders).enumerate().map(|(number, it)| {
                let title = match it.0.trim() {
                    "" => format!("https://a.org/{number}"),
                    title => title.to_owned(),
                };
                outline(&format!("https://a.org/{number}"), &title, Some(it.1))
            }).collect();
            let mut back = read(write(&outlines).as_bytes()).unwrap_or_default();
            back.sort_by(|one, other| one.url.cmp(&other.url));
            prop_assert_eq!(back, outlines);
        }

        #[test]
        fn any_bytes_are_a_list_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn only_a_list_of_the_operator_names_files() {
        let list = b"<opml><body><outline xmlUrl='https://a.org/f'/><outline xmlUrl='/srv/f.xml'/>
            <outline xmlUrl='file:///srv/g.xml'/><outline xmlUrl='f.xml'/></body></opml>";
        let urls = |list: FeedList| -> Vec<_> {
            list.feeds.into_iter().map(|feed| feed.address.to_string()).collect()
        };
        assert_eq!(urls(read_list(list, Asker::Client).unwrap()), ["https://a.org/f"]);
        let own = read_list(list, Asker::Operator).unwrap();
        assert_eq!(own.problems.len(), 1, "{:?}", own.problems);
        assert_eq!(urls(own), ["https://a.org/f", "/srv/f.xml", "file:///srv/g.xml"]);
    }
}
