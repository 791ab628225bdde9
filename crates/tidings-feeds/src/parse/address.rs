//! Relative addresses, resolved by RFC 3986 without respelling them.

/// The longest base: it is copied into every relative address.
const LONGEST: usize = 4096;

/// Resolves an address against a base. If that is impossible, it stays unchanged.
pub(super) fn join(base: Option<&str>, reference: &str) -> String {
    let reference = reference.trim();
    let Some(base) = base.map(str::trim).filter(|base| (1..=LONGEST).contains(&base.len())) else {
        return reference.to_owned();
    };
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let Some(scheme) = scheme(base) else { return relative(base, reference) };
    let rest = &base[scheme.len() + 1..];
    if reference.is_empty() {
        return without_fragment(base).to_owned();
    }
    let Some(rest) = rest.strip_prefix("//") else {
        // `mailto:` and `tag:` have no path to be relative to.
        return reference.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    if let Some(reference) = reference.strip_prefix("//") {
        return format!("{scheme}://{reference}");
    }
    format!("{scheme}://{host}{}", joined(path, reference))
}

/// The longest base of texts: it is stored with every item.
const LONGEST_OF_TEXTS: usize = 1024;

/// The base stored with texts: without query and fragment, and only if it is on the web and not too
/// long.
pub(super) fn base_of_texts(base: &str) -> Option<String> {
    let end = base.find(['?', '#']).unwrap_or(base.len());
    let base = base[..end].trim();
    (is_web(base) && base.len() <= LONGEST_OF_TEXTS).then(|| base.to_owned())
}

/// Whether an address is absolute.
pub(super) fn is_absolute(address: &str) -> bool {
    scheme(address).is_some()
}

/// Whether an address is on the web.
pub(super) fn is_web(address: &str) -> bool {
    scheme(address).is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

fn scheme(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once(':')?;
    let mut letters = scheme.chars();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
    (letters.next()?.is_ascii_alphabetic() && letters.all(fits)).then_some(scheme)
}

fn without_fragment(address: &str) -> &str {
    address.split('#').next().unwrap_or_default()
}

/// Both are relative: the result is too.
fn relative(base: &str, reference: &str) -> String {
    if reference.is_empty() { base.to_owned() } else { joined(base, reference) }
}

/// Resolves a path, query and fragment against another.
fn joined(base: &str, reference: &str) -> String {
    let base = without_fragment(base);
    if reference.starts_with('#') {
        return format!("{base}{reference}");
    }
    let path = base.split('?').next().unwrap_or_default();
    if reference.starts_with('?') {
        return format!("{path}{reference}");
    }
    let end = reference.find(['?', '#']).unwrap_or(reference.len());
    let (reference, rest) = reference.split_at(end);
    let whole = if reference.starts_with('/') {
        reference.to_owned()
    } else {
        let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
        format!("{folder}{reference}")
    };
    format!("{}{rest}", without_dots(&whole))
}

/// A path without `.` and `..`.
fn without_dots(path: &str) -> String {
    if !path.contains("/.") {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_in_folder = false;
    for part in path.split('/').skip(usize::from(path.starts_with('/'))) {
        ends_in_folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let end = if ends_in_folder && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, reference: &str, expected: &str) {
        assert_eq!(join(Some(base), reference), expected, "{base} {reference}");
    }

    #[test]
    fn the_examples_of_the_standard_hold() {
        let base = "http://a/b/c/d;p?q";
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ] {
            check(base, reference, expected);
        }
    }

    #[test]
    fn what_is_no_url_stays() {
        check("http://a", "b", "http://a/b");
        check("tag:a,2004:b", "c", "c");
        check("/x/y", "z", "/x/z");
        check("http://a/b", " http://c d/ ", "http://c d/");
        assert_eq!(join(None, "x"), "x");
    }
}
