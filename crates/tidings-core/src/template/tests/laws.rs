//! Laws: expansion and matching undo each other, and nothing panics.

use proptest::prelude::*;

use super::*;

/// Templates whose expansion can be read back in one way only.
fn any_unambiguous() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "cas://{a}",
        "graph://{a}/{b}/x{c}",
        "{a,b,c}",
        "x:{a}:{b}?{c}",
        "é/{a}/%2f/{b}!{c}",
        "{/a}{?b,c}",
        "{;a,b,c}",
        "x{?a,b,c}",
        "x{?a}{&b,c}",
        "x?y{&c,b,a}",
        "{a}/{a}/{b}{?a,c}",
        "x{?a,b}{#c}",
    ])
}

/// Any template, its expressions next to each other as often as not.
fn any_source() -> impl Strategy<Value = String> {
    "(/|a|b|é|%41|%C3|\\{[+#./;?&]?[abc](,[abc]){0,2}\\}){0,4}"
}

fn any_values(pattern: &'static str) -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("[abc]", pattern, 0..=3)
}

proptest! {
    #[test]
    fn what_is_expanded_matches_back(
        source in any_unambiguous(),
        a in "\\PC{1,8}", b in ".{1,8}", c in "[a/%é2F]{1,8}",
    ) {
        // A fragment keeps what looks encoded, so its value must not.
        let c = if source.contains('#') { c.replace('%', "") + "c" } else { c };
        let template = parse(source);
        let mut values = values(&[("a", &a), ("b", &b), ("c", &c)]);
        values.retain(|name, _| template.variables().any(|variable| variable == name));
        prop_assert_eq!(template.matches(&template.expand(&values)), Some(values));
    }

    #[test]
    fn any_set_of_parameters_matches_back(values in any_values(".{0,4}")) {
        for source in ["x{?a,b,c}", "x{;c,b,a}", "x?y{&b,a,c}", "x{?a}z{&c,b}"] {
            let template = parse(source);
            let matched = template.matches(&template.expand(&values));
            prop_assert_eq!(matched.as_ref(), Some(&values), "{}", source);
        }
    }

    #[test]
    fn reserved_values_without_percent_signs_match_back(a in "[^%]{1,12}") {
        let (template, values) = (parse("x:{+a}"), values(&[("a", &a)]));
        prop_assert_eq!(template.matches(&template.expand(&values)), Some(values));
    }

    #[test]
    fn what_matches_expands_to_something_that_matches(
        source in any_source(), uri in "([ab/,.;?&=#é%]|%C3%A9|%2[5F]|[?&;][abc]=){0,10}",
    ) {
        let template = parse(&source);
        if let Some(values) = template.matches(&uri) {
            prop_assert!(uri.starts_with(template.literal_prefix()));
            let expansion = template.expand(&values);
            // A value that looks encoded is written differently in `{a}` and in `{+a}`, so
            // that a variable used in both can expand to what reads as two values.
            let may_differ = values.values().any(|value| value.contains('%'));
            let matched = template.matches(&expansion);
            prop_assert!(matched.is_some() || may_differ, "{} -> {:?}", expansion, values);
        }
    }

    #[test]
    fn every_expansion_matches_if_every_value_is_there(
        source in any_source(), a in ".{1,4}", b in "([/z%,]|%2F){1,4}", c in "[a.=&]{1,4}",
    ) {
        let template = parse(&source);
        let expansion = template.expand(&values(&[("a", &a), ("b", &b), ("c", &c)]));
        // The same variable can be written so that it reads as two values: `%2F` in `{+a}`.
        let is_used_once = source.matches(['a', 'b', 'c']).count() == template.variables().count();
        prop_assert!(template.matches(&expansion).is_some() || !is_used_once, "{}", expansion);
    }

    #[test]
    fn a_reserved_value_expands_to_the_very_text(uri in "([ab/,?é ]|%C3%A9|%2[05fF]|%41){1,8}") {
        let template = parse("{+a}");
        if let Some(values) = template.matches(&uri) {
            prop_assert_eq!(template.expand(&values), uri.replace('é', "%C3%A9"));
        }
    }

    #[test]
    fn nothing_panics(source in ".{0,30}|[{}+#./;?&a,%é:*]{0,30}", uri in ".{0,30}|[a%2é/?&=]{0,30}") {
        if let Ok(template) = Template::parse(&source) {
            let values = template.matches(&uri).unwrap_or_default();
            let _ = template.expand(&values);
            let everything = template.variables().map(|name| (name.to_owned(), uri.clone()));
            let _ = template.matches(&template.expand(&everything.collect()));
        }
    }
}
