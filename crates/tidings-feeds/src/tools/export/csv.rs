//! Items as a table that is safe to open in a spreadsheet.

use super::ExportedItem;
use crate::html;

/// Characters that begin a formula in spreadsheets.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The header line; there is nothing between items and after them.
pub(super) fn frame() -> [String; 3] {
    let names = "id,feedId,feedTitle,title,link,published,authors,categories,guid,description\r\n";
    [names.to_owned(), String::new(), String::new()]
}

pub(super) fn item(item: &ExportedItem<'_>) -> String {
    let entry = item.entry;
    let people = entry.authors.iter().filter_map(|it| it.name.as_deref().or(it.email.as_deref()));
    let people: Vec<_> = people.collect();
    let texts = [
        item.id(),
        item.feed.map_or_else(String::new, |row| row.id.clone()),
        item.feed.map_or_else(String::new, |row| row.shown_title().to_owned()),
        entry.title.clone().unwrap_or_default(),
        entry.link.clone().unwrap_or_default(),
        entry.published.or(entry.updated).map_or_else(String::new, |moment| moment.to_string()),
        people.join("; "),
        entry.categories.join("; "),
        entry.guid.clone().unwrap_or_default(),
        html::plain(entry.description.as_ref().or(entry.content.as_ref()).map_or("", |it| it)),
    ];
    texts.map(|text| cell(&text)).join(",") + "\r\n"
}

/// A cell. One that would be a formula gets a prefix that marks it as text.
fn cell(text: &str) -> String {
    let begins =
        |text: &str| text.trim_start_matches([' ', '\u{a0}', '\u{feff}']).starts_with(FORMULA);
    let guard = if begins(text) { "'" } else { "" };
    let text = format!("{guard}{text}");
    if text.contains([',', '"', '\n', '\r', '\'']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"a\"", "\"say \"\"a\"\"\""),
            ("one\ntwo", "\"one\ntwo\""),
            ("=1+1", "\"'=1+1\""),
            (" @SUM(A1)", "\"' @SUM(A1)\""),
            ("-1", "\"'-1\""),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected);
        }
    }

    /// Reads one line of cells by the standard.
    fn read(line: &str) -> Vec<String> {
        let mut cells = vec![String::new()];
        let mut quoted = false;
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            let last = cells.last_mut().unwrap();
            match character {
                '"' if quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    last.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                _ => last.push(character),
            }
        }
        cells
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(texts in prop::collection::vec(any::<String>(), 1..5)) {
            let line = texts.iter().map(|text| cell(text)).collect::<Vec<_>>().join(",");
            let back = read(&line);
            prop_assert_eq!(back.len(), texts.len());
            for (back, text) in back.iter().zip(&texts) {
                prop_assert!(!back.trim_start().starts_with(['=', '+', '-', '@']));
                prop_assert_eq!(back.strip_prefix('\'').filter(|it| it == text).unwrap_or(back), text);
            }
        }
    }
}
