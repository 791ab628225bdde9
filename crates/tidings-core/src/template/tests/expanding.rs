//! Expansion: the tables of RFC 6570, and another implementation of it.

use iri_string::spec::UriSpec;
use iri_string::template::UriTemplateStr;
use iri_string::template::simple_context::SimpleContext;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(table: &[(&str, &str)]) {
    let values = values(&[
        ("var", "value"),
        ("hello", "Hello World!"),
        ("empty", ""),
        ("path", "/foo/bar"),
        ("x", "1024"),
        ("y", "768"),
        ("half", "50%"),
        ("base", "http://example.com/home/"),
        ("who", "fred"),
        ("v", "6"),
    ]);
    for (source, expansion) in table {
        assert_eq!(parse(source).expand(&values), *expansion, "{source}");
    }
}

#[test]
fn level_1_expands_as_in_the_rfc() {
    check(&[("{var}", "value"), ("{hello}", "Hello%20World%21")]);
}

#[test]
fn level_2_expands_as_in_the_rfc() {
    check(&[
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("X{#var}", "X#value"),
        ("X{#hello}", "X#Hello%20World!"),
    ]);
}

#[test]
fn level_3_expands_as_in_the_rfc() {
    check(&[
        ("map?{x,y}", "map?1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("X{.var}", "X.value"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{?x,y}", "?x=1024&y=768"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&x,y,empty}", "&x=1024&y=768&empty="),
    ]);
}

#[test]
fn each_operator_expands_as_in_its_section_of_the_rfc() {
    check(&[
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("?{undef,y}", "?768"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("O{+empty}X", "OX"),
        ("O{+undef}X", "OX"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{#half}", "#50%25"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("{.who}", ".fred"),
        ("{.who,who}", ".fred.fred"),
        ("{.half,who}", ".50%25.fred"),
        ("X{.empty}", "X."),
        ("X{.undef}", "X"),
        ("{/who}", "/fred"),
        ("{/half,who}", "/50%25/fred"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{;half}", ";half=50%25"),
        ("{;empty}", ";empty"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;v,undef,who}", ";v=6;who=fred"),
        ("{?who}", "?who=fred"),
        ("{?x,y,undef}", "?x=1024&y=768"),
        ("{&half}", "&half=50%25"),
    ]);
}

#[test]
fn what_is_encoded_already_stays_only_where_reserved_characters_do() {
    let values = values(&[("a", "%2F%zz%é")]);
    assert_eq!(parse("{a}").expand(&values), "%252F%25zz%25%C3%A9");
    assert_eq!(parse("{+a}").expand(&values), "%2F%25zz%25%C3%A9");
    assert_eq!(parse("{#a}").expand(&values), "#%2F%25zz%25%C3%A9");
}

#[test]
fn literals_are_encoded_too() {
    assert_eq!(parse("é/%c3%a9/'").expand(&values(&[])), "%C3%A9/%c3%a9/'");
}

proptest! {
    // Only in ASCII: the other one refuses `é` in literals, and in a value of `{+a}` it panics
    // on a percent sign, or the very start, followed by `é`.
    #[test]
    fn expansion_agrees_with_another_implementation(
        source in "(/|a|~|%2[0f]|\\{[+#./;?&]?[abc](,[abc]){0,2}\\}){0,5}",
        [a, b, c] in prop::array::uniform3(prop::option::of("([a-z/ ?&=%,~]|%2[0F]){0,4}")),
    ) {
        let pairs = [("a", a), ("b", b), ("c", c)];
        let (mut ours, mut context) = (BTreeMap::new(), SimpleContext::new());
        for (name, value) in pairs.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            ours.insert(name.to_owned(), value.clone());
            context.insert(name, value);
        }
        let theirs = UriTemplateStr::new(&source).unwrap().expand::<UriSpec, _>(&context).unwrap();
        prop_assert_eq!(parse(&source).expand(&ours), theirs.to_string());
    }
}
