//! Withheld variables: recognise them in scripts and errors, and suggest how to pass them.

use std::collections::BTreeSet;

/// The first withheld variable that a shell script reads.
pub(crate) fn read_by<'a>(script: &str, withheld: &'a BTreeSet<String>) -> Option<&'a str> {
    let read = script.split('$').skip(1).map(|rest| rest.trim_start_matches(['{', '#', '!']));
    read.map(name_at).find_map(|name| withheld.get(name).map(String::as_str))
}

/// The first withheld variable that an error names.
pub(crate) fn named_in<'a>(error: &str, withheld: &'a BTreeSet<String>) -> Option<&'a str> {
    let words = error.split(|it: char| !is_part(it));
    words.filter(|word| !word.is_empty()).find_map(|word| withheld.get(word).map(String::as_str))
}

/// The default of [`Config::withheld_hint`](crate::Config::withheld_hint).
pub(crate) fn hint(variable: &str) -> String {
    format!("`{variable}` is set and not passed to programs; the operator can pass it")
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
