//! The document type: where it ends, and the entities it declares.

/// How many entities of one document are kept, and how long each may be.
const ENTITIES: usize = 1000;
const LONGEST: usize = 1 << 16;

/// What a document type says.
#[derive(Debug, Default)]
pub(super) struct Doctype {
    /// Its words outside the brackets, in lower case.
    pub(super) name: String,
    pub(super) entities: Vec<(String, String)>,
    pub(super) too_many: bool,
}

/// Reads the document type that a text begins with; gives its length too.
pub(super) fn read(text: &str) -> (usize, Doctype) {
    let mut found = Doctype::default();
    let mut position = 0;
    // The head: up to `[` or `>`, whatever is quoted.
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

/// The first byte outside quotes that is wanted.
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

/// `<!ENTITY name "value"`, without what is elsewhere or only for the document type itself.
fn entity(declaration: &str) -> Option<(String, String)> {
    let rest = declaration.strip_prefix("<!ENTITY")?.trim_start();
    let (name, rest) = rest.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let value = rest[1..].strip_suffix(quote)?;
    (name != "%").then(|| (name.to_owned(), value.to_owned()))
}
