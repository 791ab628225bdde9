//! Variables that programs read and do not get: which one an error is about, and what to do.

use std::collections::BTreeSet;

/// The first variable that a shell script reads among those that are withheld.
pub(crate) fn read_by<'a>(script: &str, withheld: &'a BTreeSet<String>) -> Option<&'a str> {
    let read = script.split('$').skip(1).map(|rest| rest.trim_start_matches(['{', '#', '!']));
    read.map(name_at).find_map(|name| withheld.get(name).map(String::as_str))
}

/// The first word of an error that is the name of a variable that is withheld.
pub(crate) fn named_in<'a>(error: &str, withheld: &'a BTreeSet<String>) -> Option<&'a str> {
    let words = error.split(|it: char| !is_part(it));
    words.filter(|word| !word.is_empty()).find_map(|word| withheld.get(word).map(String::as_str))
}

/// What is said of a variable unless [`Config::withheld_hint`](crate::Config::withheld_hint) says
/// more.
pub(crate) fn hint(variable: &str) -> String {
    format!("`{variable}` is set and not passed to programs; whoever serves the folder can pass it")
}

fn name_at(text: &str) -> &str {
    let end = text.find(|it: char| !is_part(it)).unwrap_or(text.len());
    &text[..end]
}

fn is_part(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_where_it_is_read_or_named() {
        let withheld = ["API_KEY".to_owned(), "MODE".to_owned()].into();
        let read = |script: &str| read_by(script, &withheld).map(str::to_owned);
        assert_eq!(read("[ \"${MODE:-0}\" = 1 ]").as_deref(), Some("MODE"));
        assert_eq!(read("echo $HOME/$API_KEY").as_deref(), Some("API_KEY"));
        assert_eq!(read("MODE=1; echo $MODES ${#x}"), None);
        let named = |error: &str| named_in(error, &withheld).map(str::to_owned);
        assert_eq!(named("tool.sh: line 3: API_KEY: unbound variable").as_deref(), Some("API_KEY"));
        assert_eq!(named("KeyError: 'MODE'").as_deref(), Some("MODE"));
        assert_eq!(named("MY_API_KEY is missing"), None);
    }
}
