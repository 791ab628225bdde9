//! Names and addresses: what an upstream's item is called here, and back. Pure functions of the
//! configuration.

use crate::config::{Config, Name, Prefix, Selection};

/// What stands between a prefix and a name.
const BETWEEN: &str = "__";
/// Hosts allow so many characters of a name, some less.
pub(crate) const LONG: usize = 64;
/// The specification allows so many.
pub(crate) const TOO_LONG: usize = 128;

/// The name of a tool or prompt here; `plain` if names are kept.
pub(crate) fn offered(config: &Config, selection: &Selection, original: &str) -> String {
    let base = selection.rename.get(original).map_or(original, String::as_str);
    match &config.prefix {
        Prefix::Name => prefixed(&config.name, base),
        Prefix::Text(text) => prefixed(text, base),
        Prefix::Keep => base.to_owned(),
    }
}

/// The name of a tool or prompt if the one that it should have belongs to somebody else.
pub(crate) fn second_choice(config: &Config, selection: &Selection, original: &str) -> String {
    let base = selection.rename.get(original).map_or(original, String::as_str);
    prefixed(&config.name, base)
}

fn prefixed(name: &Name, base: &str) -> String {
    format!("{name}{BETWEEN}{base}")
}

/// Whether an item came through the same upstream twice: its name, or what stands before it, repeats
/// itself. Gateways that have each other as upstreams would list such names without end.
pub(crate) fn is_round(offered: &str) -> bool {
    let mut parts: Vec<_> = offered.split(BETWEEN).collect();
    // The last part is the tool's own.
    parts.pop();
    let mut seen = std::collections::HashSet::new();
    parts.into_iter().any(|part| !part.is_empty() && !seen.insert(part))
}

/// What is wrong with a name that can still be offered.
pub(crate) fn doubt(offered: &str) -> Option<String> {
    if offered.len() > LONG {
        return Some(format!(
            "`{offered}` has {} characters; some hosts allow {LONG}: `rename` it or set a shorter `prefix`",
            offered.len()
        ));
    }
    let is_usual = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    (!offered.chars().all(is_usual)).then(|| {
        format!("`{offered}` has characters that some hosts refuse in a name: `rename` it")
    })
}

/// The address of a resource that is always accepted: `name+uri`. The host of a `ui://` address takes
/// the name instead, because hosts recognise such addresses by their scheme.
pub(crate) fn address(name: &Name, uri: &str) -> String {
    match uri.strip_prefix("ui://") {
        Some(rest) => format!("ui://{name}+{rest}"),
        None => format!("{name}+{uri}"),
    }
}

/// The upstream's own URI of an address with its name.
pub(crate) fn within(name: &Name, address: &str) -> Option<String> {
    if let Some(rest) = address.strip_prefix("ui://") {
        let rest = rest.strip_prefix(name.as_str())?.strip_prefix('+')?;
        return Some(format!("ui://{rest}"));
    }
    let rest = address.strip_prefix(name.as_str())?.strip_prefix('+')?;
    Some(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn config(prefix: Prefix) -> Config {
        let mut config = Config::new(Name::parse("git").unwrap(), "http://127.0.0.1:1/mcp");
        config.prefix = prefix;
        config.tools.rename.insert("search".to_owned(), "find".to_owned());
        config
    }

    #[track_caller]
    fn check(prefix: Prefix, original: &str, expected: &str) {
        let config = config(prefix);
        assert_eq!(offered(&config, &config.tools, original), expected);
    }

    #[test]
    fn a_name_depends_on_the_configuration_alone() {
        check(Prefix::Name, "list", "git__list");
        check(Prefix::Name, "search", "git__find");
        check(Prefix::Text(Name::parse("g").unwrap()), "search", "g__find");
        check(Prefix::Keep, "list", "list");
        check(Prefix::Keep, "search", "find");
        let config = config(Prefix::Keep);
        assert_eq!(second_choice(&config, &config.tools, "search"), "git__find");
    }

    #[test]
    fn a_name_is_cut_at_its_first_two_underscores_in_one_way_only() {
        // `a` with `b__c` and `a__b` with `c` would be one name, but `a__b` is no name.
        assert!(Name::parse("a__b").is_err());
        check(Prefix::Name, "b__c", "git__b__c");
    }

    #[test]
    fn names_that_hosts_may_refuse_are_doubted() {
        assert_eq!(doubt("git__list.all-1"), None);
        assert!(doubt(&"a".repeat(65)).is_some_and(|it| it.contains("65 characters")));
        assert!(doubt("git__list all").is_some_and(|it| it.contains("rename")));
    }

    #[test]
    fn an_item_that_came_round_is_recognised() {
        assert!(!is_round("a__b__c__tool"));
        assert!(!is_round("a__tool__tool"));
        assert!(is_round("a__b__a__tool"));
        assert!(!is_round("a____tool"));
    }

    proptest! {
        #[test]
        fn an_address_leads_back(uri in "[a-z]{1,5}:(//)?[a-z+/]{0,9}") {
            let name = Name::parse("git").unwrap();
            prop_assert_eq!(within(&name, &address(&name, &uri)), Some(uri.clone()));
            let other = Name::parse("hub").unwrap();
            prop_assert_eq!(within(&other, &address(&name, &uri)), None);
        }
    }
}
