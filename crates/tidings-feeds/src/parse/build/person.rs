//! People: their names, addresses and pages, apart or in one text.

use super::{Builder, Subject};
use crate::parse::document::{Item, Person};
use crate::parse::element::Element;

/// How many people are copied from a feed to its items, and how many bytes about them.
const PEOPLE: usize = 20;
const LONGEST: usize = 2048;

impl Builder {
    pub(super) fn end_person_part(&mut self, element: Element, text: &str, base: Option<&str>) {
        if text.is_empty() {
            return;
        }
        match element {
            Element::Name => self.person.name = Some(text.to_owned()),
            Element::Email => self.person.email = Some(text.to_owned()),
            _ => self.person.uri = Some(self.resolve(base, text)),
        }
    }

    pub(super) fn end_person(&mut self, element: Element, text: &str, subject: Subject) {
        // Only these have parts; those of an earlier element are not theirs.
        let has_parts =
            matches!(element, Element::Author | Element::Contributor | Element::Publisher);
        let mut person = std::mem::take(&mut self.person);
        if !has_parts || person == Person::default() {
            person = from_text(text);
        }
        if person == Person::default() {
            return;
        }
        let is_helper = matches!(element, Element::Contributor | Element::Helper);
        match subject {
            Subject::Feed if element == Element::Publisher => self.feed.publisher = Some(person),
            Subject::Feed if is_helper => self.feed.contributors.push(person),
            Subject::Feed => self.feed.authors.push(person),
            Subject::Item if element == Element::Publisher => {}
            Subject::Item if is_helper => self.item.contributors.push(person),
            Subject::Item => self.item.authors.push(person),
            Subject::Source if element == Element::Author => self.origin.authors.push(person),
            _ => {}
        }
    }
}

/// Gives items without authors those of their source feed, or else of the feed. Atom (RFC 4287,
/// 4.2.1) and JSON Feed mean it so; the editor of an RSS channel is not the author of its items.
pub(in crate::parse) fn inherit(items: &mut [Item], authors: &[Person]) {
    for item in items.iter_mut().filter(|item| item.authors.is_empty()) {
        let origin = item.source.as_ref().map(|origin| origin.authors.as_slice());
        let people = origin.filter(|people| !people.is_empty()).unwrap_or(authors);
        let parts = people.iter().flat_map(|it| [&it.name, &it.email, &it.uri]).flatten();
        if people.len() <= PEOPLE && parts.map(String::len).sum::<usize>() <= LONGEST {
            item.authors = people.to_vec();
        }
    }
}

/// A person from one text: `me@example.com (Me)`, `Me <me@example.com>`, `Me`.
pub(in crate::parse) fn from_text(text: &str) -> Person {
    let is_around = |letter: char| matches!(letter, '(' | ')' | '<' | '>' | ',' | ';' | '"');
    let word = text.split_whitespace().flat_map(|word| word.split(is_around)).find(|word| {
        let parts = word.trim_start_matches("mailto:").split_once('@');
        parts.is_some_and(|(before, after)| !before.is_empty() && after.contains('.'))
    });
    let Some(word) = word else {
        let name = Some(text.trim().to_owned()).filter(|name| !name.is_empty());
        return Person { name, ..Person::default() };
    };
    let rest = text.replacen(word, "", 1).replace("()", "").replace("<>", "");
    let name = rest.trim().trim_start_matches('(').trim_end_matches(')').trim();
    Person {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        email: Some(word.trim_start_matches("mailto:").to_owned()),
        uri: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, email: &str) {
        let person = from_text(text);
        assert_eq!(person.name.as_deref().unwrap_or_default(), name);
        assert_eq!(person.email.as_deref().unwrap_or_default(), email);
    }

    #[test]
    fn a_name_and_an_address_are_told_apart() {
        check("me@example.com (Example Me)", "Example Me", "me@example.com");
        check("Example Me <me@example.com>", "Example Me", "me@example.com");
        check("me@example.com", "", "me@example.com");
        check("Example Me", "Example Me", "");
        check("@handle", "@handle", "");
    }
}
