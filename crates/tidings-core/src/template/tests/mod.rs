//! Tests of templates: reading them here, the rest in one file each.

mod expanding;
mod laws;
mod matching;

use std::collections::BTreeMap;

use super::*;

fn parse(source: &str) -> Template {
    Template::parse(source).unwrap()
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[track_caller]
fn check_error(source: &str, message: &str) {
    assert_eq!(Template::parse(source).unwrap_err().to_string(), message);
}

#[test]
fn errors_say_where_and_what_to_do() {
    check_error("a/{b", "the `{` at byte 2 is never closed");
    check_error("a}", "the `}` at byte 1 closes nothing; write `%7D` for the character itself");
    check_error("a b", "' ' at byte 1 cannot be in a URI; percent-encode it");
    check_error("é\"", "'\"' at byte 2 cannot be in a URI; percent-encode it");
    check_error(
        "a%4x",
        "the `%` at byte 1 is not followed by two hexadecimal digits; \
         write `%25` for the character itself",
    );
    check_error(
        "a{!b}",
        "the expression at byte 1 starts with `!`, which has no meaning yet; \
         the operators are `+`, `#`, `.`, `/`, `;`, `?` and `&`",
    );
}

#[test]
fn modifiers_of_level_4_are_refused() {
    let rest = "which is not supported; write `{+b}` for a value with slashes in it";
    check_error("{b:3}", &format!("the variable `b` has the modifier `:3`, {rest}"));
    check_error("{/a,b*}", &format!("the variable `b` has the modifier `*`, {rest}"));
}

#[test]
fn names_are_those_of_the_rfc() {
    for name in ["a", "A_9", "1", "_", "a.b.c", "%41", "a%2Fb"] {
        assert_eq!(parse(&format!("{{{name}}}")).variables().collect::<Vec<_>>(), [name]);
    }
    for name in ["", "a-b", "a..b", "a.", "+", "+.a", "a,", "a b", "é", "%4", "{a", "a,,b"] {
        let error = Template::parse(&format!("{{{name}}}")).unwrap_err();
        assert!(matches!(error, TemplateError::BadName { .. }), "{name}: {error}");
    }
}

#[test]
fn variables_are_listed_once_and_in_order() {
    let template = parse("/{b}/{+a,b}{?c,a}");
    assert_eq!(template.variables().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(parse("a").variables().count(), 0);
}

#[test]
fn the_limits_are_kept() {
    assert!(Template::parse(&"a".repeat(8192)).is_ok());
    check_error(&"a".repeat(8193), "the template has 8193 bytes and may have at most 8192");
    assert!(Template::parse(&"{a}".repeat(64)).is_ok());
    check_error(&"{a}".repeat(65), "the template uses more than 64 variables");
}

#[test]
fn the_literal_prefix_ends_where_spellings_may_differ() {
    for (source, prefix) in [
        ("", ""),
        ("a:b", "a:b"),
        ("a:{b}", "a:"),
        ("{a}b", ""),
        ("a:é{b}", "a:"),
        ("a:%c3{b}", "a:"),
    ] {
        assert_eq!(parse(source).literal_prefix(), prefix);
    }
}

#[test]
fn templates_are_compared_and_shown_as_written() {
    assert_eq!(parse("a:{b}").to_string(), "a:{b}");
    assert_eq!(parse("a:{b}"), parse("a:{b}"));
    assert_ne!(parse("a:{b}"), parse("a:{c}"));
}
