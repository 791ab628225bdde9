//! Matching: which URIs, with which values, and at what cost.

use super::*;
use crate::ResourceUri;

#[track_caller]
fn check(source: &str, uri: &str, expected: &[(&str, &str)]) {
    assert_eq!(parse(source).matches(uri), Some(values(expected)), "{source} on {uri}");
}

#[track_caller]
fn check_none(source: &str, uris: &[&str]) {
    for uri in uris {
        assert_eq!(parse(source).matches(uri), None, "{source} on {uri}");
    }
}

#[test]
fn a_simple_value_is_one_or_more_unreserved_or_encoded_characters() {
    check("cas://{h}", "cas://abc", &[("h", "abc")]);
    check("cas://{h}", "cas://-._~9Z", &[("h", "-._~9Z")]);
    check_none("cas://{h}", &["cas://", "cas:/", "cas://a/", "cas://a:b", "cas://a b", "xcas://a"]);
    check("graph://node/{id}", "graph://node/a", &[("id", "a")]);
    check_none("graph://node/{id}", &["graph://node/a/b", "graph://node/", "graph://node/a?b"]);
    check("tag/{t}", "tag/a%2Fb", &[("t", "a/b")]);
    check("tag/{t}", "tag/%41%00", &[("t", "A\0")]);
}

#[test]
fn a_template_without_expressions_matches_itself() {
    check("a:b", "a:b", &[]);
    check("", "", &[]);
    check_none("a:b", &["a:", "a:bc", "A:b", ""]);
}

#[test]
fn values_between_literals_are_found_by_going_back() {
    check("log-{d}.txt", "log-2024.01.txt", &[("d", "2024.01")]);
    check("log-{d}.txt", "log-a.txt.txt", &[("d", "a.txt")]);
    check_none("log-{d}.txt", &["log-.txt", "log-a.txt2", "log-a"]);
    check("{a}-{b}", "1-2-3", &[("a", "1-2"), ("b", "3")]);
    check("{a}{b}", "123", &[("a", "12"), ("b", "3")]);
    check("{x,y}", "1,2", &[("x", "1"), ("y", "2")]);
    check_none("{x,y}", &["1", "1,", ",2", "1,2,3"]);
}

#[test]
fn a_reserved_value_takes_slashes() {
    check("file:///{+rest}", "file:///a/b?c=d#e", &[("rest", "a/b?c=d#e")]);
    check("{+base}/{name}", "http://a/b/c", &[("base", "http://a/b"), ("name", "c")]);
    check_none("file:///{+rest}", &["file:///", "file:///a b", "file:///\"", "file:///{a}"]);
}

#[test]
fn a_reserved_value_keeps_what_would_mean_something_else_decoded() {
    check("{+a}", "x%20y%2Fz%41", &[("a", "x y%2Fz%41")]);
    check("{+a}", "100%25", &[("a", "100%")]);
    check("{+a}", "%25zz%252F%25", &[("a", "%zz%252F%")]);
}

#[test]
fn introduced_values_may_be_empty_or_missing() {
    check("a{/x,y}", "a", &[]);
    check("a{/x,y}", "a/1", &[("x", "1")]);
    check("a{/x,y}", "a/1/", &[("x", "1"), ("y", "")]);
    check_none("a{/x,y}", &["a/1/2/3", "a1"]);
    check("a{.x}", "a.tar.gz", &[("x", "tar.gz")]);
    check("a{.x,y}", "a.tar.gz", &[("x", "tar"), ("y", "gz")]);
    check("a{#x}", "a#b/c", &[("x", "b/c")]);
    check("a{#x}", "a#", &[("x", "")]);
    check("a{#x}", "a", &[]);
    check("a{#x,y,z}!", "a#1,2!", &[("x", "1"), ("y", "2")]);
    check("a{;x,y}", "a;y;x=1", &[("x", "1"), ("y", "")]);
    check("a{;x}=b", "a;x=b", &[("x", "")]);
}

#[test]
fn a_variable_leaves_room_for_an_expression_that_may_be_missing() {
    check("{+path}{?q}", "a/b?q=1", &[("path", "a/b"), ("q", "1")]);
    check("{+path}{?q}", "a/b?r=1", &[("path", "a/b?r=1")]);
    check("{+path}{#f}", "a/b#c", &[("path", "a/b"), ("f", "c")]);
    check("{name}{.ext}", "a.b", &[("name", "a"), ("ext", "b")]);
}

#[test]
fn parameters_come_in_any_order_and_number() {
    check("a{?x,y}", "a", &[]);
    check("a{?x,y}", "a?y=2", &[("y", "2")]);
    check("a{?x,y}", "a?y=2&x=1", &[("x", "1"), ("y", "2")]);
    check("a{?x,y}", "a?x=&y=%26", &[("x", ""), ("y", "&")]);
    check("a{?x,xy}", "a?xy=1", &[("xy", "1")]);
    check("a?b=c{&x,y}", "a?b=c&y=2", &[("y", "2")]);
    check("a{?x}{&y}", "a?x=1&y=2", &[("x", "1"), ("y", "2")]);
    check("a{?x}{&y}", "a&y=2", &[("y", "2")]);
    check("a{?x}bc", "a?x=abcbc", &[("x", "abc")]);
}

#[test]
fn other_or_repeated_parameters_do_not_match() {
    let uris =
        ["a?", "a?z=1", "a?x=1&z=1", "a?X=1", "a?x", "a?x=1&", "a?x=1&x=1", "a&x=1", "a?x=1?y=2"];
    check_none("a{?x,y}", &uris);
    check_none("a{;x}", &["a;", "a;xy", "a;x;x", "a;x=1;x=1"]);
}

#[test]
fn a_repeated_variable_has_one_value() {
    check("{a}/{a}", "x/x", &[("a", "x")]);
    check("{a}/{+a}", "x%20y/x%20y", &[("a", "x y")]);
    check("{a}/{a}", "A/%41", &[("a", "A")]);
    check("{a}-{a}", "x-y-x-y", &[("a", "x-y")]);
    check("{a}{b}{a}{b}", "abcabc", &[("a", "ab"), ("b", "c")]);
    check("{a}{?a}", "x", &[("a", "x")]);
    check("{x}-{y}{/a,x,y}", "1-2/1/2", &[("a", "1"), ("x", "1"), ("y", "2")]);
    check_none("{a}/{a}", &["x/y", "x/", "x/xx"]);
    check_none("{a}{?a}", &["x?a=y"]);
}

#[test]
fn characters_outside_ascii_match_raw_and_encoded() {
    check("café/{t}", "café/é€", &[("t", "é€")]);
    check("café/{t}", "caf%c3%A9/%C3%a9%E2%82%AC", &[("t", "é€")]);
    check("caf%C3%A9/{t}", "café/x", &[("t", "x")]);
    check("a{?t}", "a?t=é", &[("t", "é")]);
    check("{+t}", "é/😀", &[("t", "é/😀")]);
}

#[test]
fn what_is_not_encoded_utf_8_does_not_match() {
    let uris = ["a%", "a%4", "a%zz", "a%C3", "a%FF", "a%C3%28", "a%C0%80", "a%ED%A0%80", "a%é"];
    check_none("{t}", &uris);
    check_none("{+t}", &uris);
    check_none("x{?t}", &["x?t=%C3", "x?t=%"]);
    check_none("a:%25/{t}", &["a:%/b"]);
}

#[test]
fn a_value_never_ends_within_an_encoded_character() {
    check("{a}{b}", "%C3%A9%E2%82%AC", &[("a", "é"), ("b", "€")]);
    check_none("{a}%A9", &["%C3%A9"]);
    check_none("%C3{a}", &["%C3%A9"]);
    check("%C3{?a}%A9", "é", &[]);
}

#[test]
fn a_uri_beyond_the_limit_does_not_match() {
    check("{+a}", &"a".repeat(8192), &[("a", &"a".repeat(8192))]);
    check_none("{+a}", &[&"a".repeat(8193)]);
}

/// As many distinct variables as a template may have, each in an expression of its own.
fn as_many_as_allowed(operator: &str) -> String {
    (0..Template::MAX_VARIABLES).fold(String::new(), |source, index| {
        source + "{" + operator + "v" + &index.to_string() + "}"
    })
}

// Each of the following takes longer than the age of the universe if every division of the
// text is tried.

#[test]
fn many_neighbouring_variables_are_answered_soon() {
    let long = "a".repeat(1000);
    check_none(&(as_many_as_allowed("") + "!"), &[&long]);
    check_none(&(as_many_as_allowed("+") + "~"), &[&long]);
    check_none(&(as_many_as_allowed(".") + "~"), &[&".".repeat(1000)]);
}

#[test]
fn many_variables_in_one_expression_are_answered_soon() {
    let names: Vec<_> = (1..Template::MAX_VARIABLES).map(|index| format!("v{index}")).collect();
    let list = names.join(",");
    check_none(&format!("{{#{list}}}~"), &[&format!("#{}", ",".repeat(1000))]);
    check_none(&format!("{{+a}}{{&{list}}}~"), &[&"&v1=&v2=&v3=".repeat(80)]);
}

#[test]
fn many_uses_of_one_variable_are_answered_soon() {
    let long = "a".repeat(ResourceUri::MAX_LENGTH);
    check_none(&("{a}".repeat(Template::MAX_VARIABLES) + "!"), &[&long]);
    check_none("{a}{b}{c}{d}{e}{a}!", &[&long]);
}

#[test]
fn a_long_literal_is_looked_for_soon() {
    let long = "a".repeat(ResourceUri::MAX_LENGTH - 1);
    check_none(&format!("{{+a}}{}{{b}}", "a".repeat(4000)), &[&(long + "/")]);
}
