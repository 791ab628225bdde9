//! The document type: its end, and the entities it declares.

/// How many entities of one document are used, and how long each may be.
const ENTITIES: usize = 1000;
const LONGEST: usize = 1 << 16;

/// The content of a document type.
#[derive(Debug, Default)]
pub(super) struct Doctype {
    /// Its words outside the brackets, in lower case.
    pub(super) name: String,
    pub(super) entities: Vec<(String, String)>,
    pub(super) too_many: bool,
}

/// Reads the document type at the beginning of a text; returns its length too.
pub(super) fn read(text: &str) -> (usize, Doctype) {
    let mut found = Doctype::default();
    let mut position = 0;
    // The head: up to `[` or `>`, ignoring quotes.
    let Some(head) = outside_quotes(text, |byte| matches!(byte, b'[' | b'>')) else {
        // A quote without its partner: the first `>` is the end.
        let end = text.find('>').map_or(text.len(), |end| end + 1);
        text[..end].clone_into(&mut found.name);
        return (end, found);
    };
    found.name = text[..head].to_lowercase();
    position += head;
    if text.as_bytes()[position] == b'>' {
        return (position + 1, found);
    }
    position += 1;
    loop {
        let rest = &text[position..];
        let Some(next) = rest.find(['<', ']']) else { return (text.len(), found) };
        position += next;
        let rest = &text[position..];
        if rest.starts_with(']') {
            let end = rest.find('>').map_or(text.len(), |end| position + end + 1);
            return (end, found);
        }
        // The brackets were never closed, so there is no declaration.
        if rest[1..].starts_with(|next: char| next.is_ascii_alphabetic()) {
            return (position, found);
        }
        let end = if rest.starts_with("<!--") {
            rest.find("-->").map(|end| end + 3)
        } else {
            outside_quotes(rest, |byte| byte == b'>').map(|end| end + 1)
        };
        let Some(end) = end else { return (text.len(), found) };
        if let Some(entity) = entity(&rest[..end - 1]) {
            if found.entities.len() < ENTITIES && entity.1.len() <= LONGEST {
                found.entities.push(entity);
            } else {
                found.too_many = true;
            }
        }
        position += end;
    }
}

/// The end of a document type within a feed. It is part of a text and declares nothing, so it ends
/// at its end or the next tag.
pub(super) fn late_end(text: &str) -> Option<usize> {
    let end = 1 + text[1..].find(['<', '>'])?;
    Some(end + usize::from(text.as_bytes()[end] == b'>'))
}

/// Whether an element of this name is that of a whole feed.
pub(super) fn is_root(name: &str) -> bool {
    let local = name.rsplit(':').next().unwrap_or(name);
    ["rss", "feed", "rdf", "channel"].iter().any(|root| local.eq_ignore_ascii_case(root))
}

/// The first wanted byte outside quotes.
fn outside_quotes(text: &str, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut quote = None;
    text.bytes().position(|byte| {
        match quote {
            Some(open) if open == byte => quote = None,
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None => return wanted(byte),
            Some(_) => {}
        }
        false
    })
}

/// `<!ENTITY name "value"`, without external ones and those for the document type itself.
fn entity(declaration: &str) -> Option<(String, String)> {
    let rest = declaration.strip_prefix("<!ENTITY")?.trim_start();
    let (name, rest) = rest.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let value = rest[1..].strip_suffix(quote)?;
    (name != "%").then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::parse::clean::clean;
    use crate::parse::problem::Problems;

    /// The rest of a document, and its value of `a`.
    #[track_caller]
    fn check(text: &str, expected: &str, entity: &str) {
        let cleaned = clean(text, &mut Problems::default());
        assert_eq!((cleaned.text.as_ref(), cleaned.cut), (expected, false));
        assert_eq!(cleaned.entities.get("a").map_or("", String::as_str), entity);
    }

    #[test]
    fn one_within_a_feed_declares_nothing() {
        check("<rss><a>x <!DOCTYPE b [ y</a></rss>", "<rss><a>x </a></rss>", "");
        check("<x:feed><!DOCTYPE b>y</x:feed>", "<x:feed>y</x:feed>", "");
        check("<RSS><!DOCTYPE b [<!ENTITY a 'c'>]></RSS>", "<RSS>]></RSS>", "");
        check("<b>x</b><!DOCTYPE rss [<!ENTITY a 'c'>]><rss/>", "<b>x</b><rss/>", "c");
    }

    #[test]
    fn one_without_an_end_ends_where_the_feed_begins() {
        check("<!DOCTYPE rss [<!ENTITY a 'c'> <rss>x</rss>", "<rss>x</rss>", "c");
    }
}
