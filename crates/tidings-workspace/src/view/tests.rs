//! Tests of parsing and building URIs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidings_core::Template;

use super::*;

fn parse(uri: &str) -> Result<View, AnswerError> {
    View::parse(&ResourceUri::parse(uri).unwrap())
}

#[test]
fn every_family_has_a_template_that_can_be_read() {
    for family in FAMILIES {
        let template = Template::parse(family.template).unwrap();
        let values = template.variables().map(|name| {
            let value = match name {
                "hash" => "a".repeat(64),
                "n" | "limit" => "7".to_owned(),
                _ => "x/y z%2F".to_owned(),
            };
            (name.to_owned(), value)
        });
        let values: BTreeMap<_, _> = values.filter(|(name, _)| name != "after").collect();
        parse(&template.expand(&values)).unwrap();
    }
}

#[test]
fn what_names_nothing_is_said_so() {
    for uri in ["artifacts://other", "artifacts://by-tag/", "artifacts://by-tag/a/b", "graph://x"] {
        assert!(matches!(parse(uri), Err(AnswerError::NotFound(_))), "{uri}");
    }
    for uri in [
        "cas://abc",
        "events://since/-1",
        "events://since/+1",
        "artifacts://recent?limit=0",
        "artifacts://recent?limit=1&limit=2",
        "artifacts://recent?newest=1",
        "artifacts://recent?after=",
        "graph://connections?after=zz",
        "artifacts://summary?limit=1",
        "events://recent?after=1",
        "artifacts://by-tag/%ff",
        "artifacts://by-tag/gr%c3%bcn",
        "artifacts://by-tag/a%3Ab:c",
    ] {
        assert!(matches!(parse(uri), Err(AnswerError::Invalid { .. })), "{uri}");
    }
}

#[test]
fn a_tag_is_found_as_a_person_writes_it() {
    let tag = ArtifactList::Tag("type:midi".to_owned());
    let view = View::ArtifactList(tag, Range::default());
    assert_eq!(parse("artifacts://by-tag/type:midi").unwrap(), view);
    assert_eq!(parse("artifacts://by-tag/type%3Amidi").unwrap(), view);
    let written = by_tag("type:midi");
    assert_eq!(written, ["artifacts://by-tag/type%3Amidi", "artifacts://by-tag/type:midi"]);
    assert!(by_tag("gr\u{fc}n").contains(&"artifacts://by-tag/gr\u{fc}n".to_owned()));
}

proptest! {
    #[test]
    fn any_tag_goes_into_a_uri_and_comes_back(tag in "[^\\p{Cc}]{1,20}") {
        let view = View::ArtifactList(ArtifactList::Tag(tag.clone()), Range::default());
        for uri in by_tag(&tag) {
            if let Ok(uri) = ResourceUri::parse(&uri) {
                prop_assert_eq!(View::parse(&uri).unwrap(), view.clone());
            }
        }
        let template = Template::parse("artifacts://by-tag/{tag}{?limit,after}").unwrap();
        let values = BTreeMap::from([("tag".to_owned(), tag.clone())]);
        prop_assert_eq!(template.expand(&values), by_tag(&tag)[0].clone());
        prop_assert_eq!(template.matches(&by_tag(&tag)[0]).unwrap()["tag"].clone(), tag);
    }
}
