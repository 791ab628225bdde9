//! Spellings of one resource: URIs that are equal by RFC 3986.

/// A URI in normalised spelling: scheme and host in lower case, and `/` where a host has no path.
///
/// Used only to find the resource a server means. The URI that is sent is the user's.
pub(crate) fn plain(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // The part before `@` is a user name, where case counts.
    let host = authority.rfind('@').map_or(0, |place| place + 1);
    let slash = if path.starts_with('/') || authority.is_empty() { "" } else { "/" };
    let (user, host) = authority.split_at(host);
    format!("{}://{user}{}{slash}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_resource_have_one_plain_spelling() {
        assert_eq!(plain("https://example.com"), "https://example.com/");
        assert_eq!(plain("HTTPS://Me@Example.COM?Q"), "https://Me@example.com/?Q");
        assert_eq!(plain("https://example.com/A"), "https://example.com/A");
        assert_ne!(plain("https://example.com/a"), plain("https://example.com/a/"));
        for other in ["urn:isbn:1", "file:///A", "nonsense", "a:"] {
            assert_eq!(plain(other), other);
        }
    }
}
