//! Events to elements and their texts, without building a tree.

mod text;

use quick_xml::Reader as Events;
use quick_xml::events::Event;

use super::attributes::Attributes;
use super::build::{Builder, Subject};
use super::clean::Cleaned;
use super::element::Element;
use super::entity::Entities;
use super::problem::Problems;
use super::rich::{Rich, is_void, write_end, write_start};
use super::space::{Bindings, Space};
use super::stack::{Frame, Stack};
use super::{Document, Hints, ParseError, Problem, address, page};

/// Reads a cleaned document.
pub(super) fn read(
    cleaned: Cleaned<'_>,
    hints: &Hints,
    mut problems: Problems,
) -> Result<Document, ParseError> {
    let Cleaned { text, entities, doctype, cut } = cleaned;
    let mut reader = Reader::new(
        Entities::new(entities),
        Builder::new(&doctype, hints.base.as_deref()),
        &mut problems,
    );
    // Positions count from behind such a mark, which cleaning can bring to the start.
    let text = text.trim_start_matches('\u{feff}');
    let mut events = Events::from_str(text);
    let config = events.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut position = 0;
    loop {
        let event = events.read_event();
        let end = usize::try_from(events.buffer_position()).unwrap_or(usize::MAX);
        // The text itself outlives the event.
        let raw = text.get(position..end).unwrap_or_default();
        position = end;
        match event {
            Ok(Event::Eof) => break,
            Ok(event) => reader.event(&event, raw),
            // The cleaner leaves nothing that could fail; otherwise the rest would be lost.
            Err(_) => {
                reader.problems.add(Problem::Markup);
                break;
            }
        }
        if std::mem::take(&mut reader.is_page) && !page::may_hold_feed(text) {
            return Err(page::error(text, hints));
        }
    }
    let is_open = !reader.stack.is_empty();
    let (is_exhausted, first, builder) = (reader.entities.exhausted, reader.first, reader.builder);
    if is_exhausted {
        problems.add(Problem::Entities);
    }
    if builder.is_feed() {
        return Ok(builder.finish(cut || is_open, problems));
    }
    if first.is_some_and(|name| name.eq_ignore_ascii_case("opml")) {
        return Err(ParseError::List);
    }
    if page::looks_like_one(text, &doctype) {
        return Err(page::error(text, hints));
    }
    Err(ParseError::without_feed(first))
}

struct Reader<'a, 'p> {
    stack: Stack<'a>,
    bindings: Bindings<'a>,
    /// The bases of addresses, innermost last.
    bases: Vec<String>,
    /// The texts of all open elements, one after another.
    text: String,
    /// The element whose markup is its text, with its place on the stack.
    rich: Option<(usize, Rich)>,
    entities: Entities,
    builder: Builder,
    problems: &'p mut Problems,
    /// The name of the first element.
    first: Option<&'a str>,
    is_page: bool,
}

impl<'a, 'p> Reader<'a, 'p> {
    fn new(entities: Entities, builder: Builder, problems: &'p mut Problems) -> Self {
        Self {
            stack: Stack::default(),
            bindings: Bindings::default(),
            bases: Vec::new(),
            text: String::new(),
            rich: None,
            entities,
            builder,
            problems,
            first: None,
            is_page: false,
        }
    }

    fn event(&mut self, event: &Event<'_>, raw: &'a str) {
        match event {
            Event::Start(tag) => self.start(trim(raw, ">"), tag.name().as_ref().len(), false),
            Event::Empty(tag) => self.start(trim(raw, "/>"), tag.name().as_ref().len(), true),
            Event::End(tag) => self.end(tag.name().as_ref()),
            Event::Text(text) => self.push_words(text),
            Event::CData(text) => self.push(text),
            Event::GeneralRef(name) => self.reference(name),
            _ => {}
        }
    }

    /// An element begins: the text between its angle brackets, and the length of its name.
    fn start(&mut self, tag: &'a str, length: usize, is_empty: bool) {
        let name = &tag[..length];
        if self.stack.is_full() && !may_be_item(name) {
            self.problems.add(Problem::TooDeep);
            self.stack.begin_deeper(name, is_empty);
            return;
        }
        let attributes = Attributes::new(tag, length, &mut self.entities, self.problems);
        let mut bindings = self.bindings.len();
        self.declare(&attributes);
        let (space, local) = self.bindings.resolve(name);
        let lower;
        let lowered = if local.bytes().any(|byte| byte.is_ascii_uppercase()) {
            lower = local.to_ascii_lowercase();
            lower.as_str()
        } else {
            local
        };
        // XHTML has no items: an element named like its parent is the next one, and end tags are
        // missing.
        let is_next = space == Space::Xhtml && may_be_item(lowered) && self.is_in_item(name);
        let element = if is_next { Element::Item } else { Element::new(space, lowered) };
        self.first.get_or_insert(name);
        let depth = self.stack.len();
        self.close_title(element);
        if element == Element::Item {
            self.close_to_container();
        }
        if self.stack.len() < depth {
            // The closed elements took this element's declarations with them.
            bindings = self.bindings.len();
            self.declare(&attributes);
        }
        // While the stack is full, only possible items come here.
        if self.stack.is_full() {
            self.bindings.truncate(bindings);
            self.problems.add(Problem::TooDeep);
            self.stack.begin_deeper(name, is_empty);
            return;
        }
        // An element of HTML without an end tag must not wait for one. Outside texts, only those
        // count whose names have no other use.
        let is_void = match (self.rich.is_some(), element) {
            (true, _) => is_void(lowered),
            (false, Element::Other) => matches!(lowered, "br" | "hr" | "img" | "wbr"),
            (false, _) => false,
        };
        let is_whole = is_void && matches!(space, Space::Core | Space::Xhtml);
        if self.rich.is_some() {
            self.markup(name, space, local, &attributes, bindings);
        } else {
            self.open(name, element, &attributes, bindings);
        }
        if is_empty || is_whole {
            self.pop(true);
        }
    }

    /// Stores the prefixes that an element declares.
    fn declare(&mut self, attributes: &Attributes<'a>) {
        for (key, value) in attributes.iter() {
            match key.strip_prefix("xmlns") {
                Some("") => self.bindings.declare("", value),
                Some(prefix) if prefix.starts_with(':') => {
                    self.bindings.declare(&prefix[1..], value);
                }
                _ => {}
            }
        }
    }

    /// Whether the reader is in a text of an item of this name.
    fn is_in_item(&self, name: &str) -> bool {
        let item = self.stack.iter().rfind(|frame| frame.element == Element::Item);
        self.rich.is_some() && item.is_some_and(|item| item.name == name)
    }

    fn subject(&self) -> Subject {
        self.stack.last().map_or(Subject::Outside, |frame| frame.inner)
    }

    fn open(
        &mut self,
        name: &'a str,
        element: Element,
        attributes: &Attributes<'_>,
        bindings: usize,
    ) {
        let base = attributes.get("xml:base").or_else(|| attributes.get("base"));
        let has_base = base.is_some_and(|base| !base.trim().is_empty());
        if let Some(base) = base.filter(|_| has_base) {
            let outer = self.bases.last().map(String::as_str).or_else(|| self.builder.base());
            self.bases.push(address::join(outer, base));
        }
        let outer = self.subject();
        let depth = self.stack.len();
        let base = self.bases.last().map(String::as_str);
        if element == Element::Page && !self.builder.is_feed() {
            self.is_page = true;
        }
        let inner = self.builder.start(element, attributes, outer, base, depth);
        if element.is_rich() {
            let rich = Rich::new(element, attributes, self.builder.format());
            self.rich = Some((depth, rich));
        }
        let wanted =
            element != Element::Other && !element.holds_items() && element != Element::Item;
        let start = self.text.len();
        self.stack.push(Frame { name, element, outer, inner, start, bindings, has_base, wanted });
    }

    /// An element within a text that has markup.
    fn markup(
        &mut self,
        name: &'a str,
        space: Space,
        local: &str,
        attributes: &Attributes<'_>,
        bindings: usize,
    ) {
        let is_written = self.rich.as_mut().is_some_and(|(_, rich)| rich.opens(local));
        if is_written && self.has_room() {
            let local = if space == Space::Xhtml { local } else { name };
            write_start(&mut self.text, local, attributes);
        }
        let inner = self.subject();
        self.stack.push(Frame {
            name,
            element: Element::Other,
            outer: inner,
            inner,
            start: self.text.len(),
            bindings,
            has_base: false,
            wanted: is_written,
        });
    }

    fn end(&mut self, name: &str) {
        if self.stack.end_deeper(name) {
            return;
        }
        let Some(found) = self.stack.position(name) else {
            // `<br></br>` ended where it began.
            if !is_void(name) {
                self.problems.add(Problem::Nesting);
            }
            return;
        };
        if found + 1 < self.stack.len() {
            self.problems.add(Problem::Nesting);
        }
        while self.stack.len() > found + 1 {
            self.pop(false);
        }
        self.pop(true);
    }

    /// A title that contains an element that is never part of one has lost its end tag.
    fn close_title(&mut self, element: Element) {
        let Some((at, _)) = self.rich else { return };
        let is_title = self.stack.get(at).is_some_and(|frame| frame.element == Element::Title);
        if is_title && element.follows_title() {
            self.problems.add(Problem::Nesting);
            while self.stack.len() > at {
                self.pop(false);
            }
        }
    }

    /// Before an item begins, all open elements of the feed are closed: their end tags are missing.
    fn close_to_container(&mut self) {
        let keep = self.stack.iter().rposition(|frame| frame.element.holds_items());
        let keep = keep.map_or(0, |index| index + 1);
        if self.stack[keep..].iter().any(|frame| frame.element != Element::Other) {
            self.problems.add(Problem::Nesting);
            while self.stack.len() > keep {
                self.pop(false);
            }
        }
    }

    /// Closes the innermost element; `is_said` if the document has an end tag.
    fn pop(&mut self, is_said: bool) {
        let Some(frame) = self.stack.pop() else { return };
        let depth = self.stack.len();
        match self.rich {
            Some((at, _)) if at < depth => {
                if frame.wanted && is_said && self.has_room() {
                    let (space, local) = self.bindings.resolve(frame.name);
                    let local = if space == Space::Xhtml { local } else { frame.name };
                    write_end(&mut self.text, local);
                }
            }
            rich => {
                let text = self.text.get(frame.start..).unwrap_or_default();
                let base = self.bases.last().map(String::as_str);
                if let Some((_, rich)) = rich {
                    let text = rich.finish(text);
                    self.builder.end_rich(frame.element, text, frame.outer, base, depth);
                    self.rich = None;
                } else {
                    let text = text.trim();
                    let problems = &mut *self.problems;
                    self.builder.end(frame.element, text, frame.outer, base, depth, problems);
                }
                self.text.truncate(frame.start);
            }
        }
        self.bindings.truncate(frame.bindings);
        if frame.has_base {
            self.bases.pop();
        }
    }
}

/// Whether a name can be that of an item, with any prefix.
fn may_be_item(name: &str) -> bool {
    let local = name.rsplit(':').next().unwrap_or(name);
    local.eq_ignore_ascii_case("item") || local.eq_ignore_ascii_case("entry")
}

/// The text between the angle brackets of a tag.
fn trim<'a>(raw: &'a str, end: &str) -> &'a str {
    let inner = raw.strip_prefix('<').unwrap_or(raw);
    inner.strip_suffix(end).unwrap_or(inner)
}
