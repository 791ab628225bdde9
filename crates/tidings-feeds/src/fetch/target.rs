//! Checks of a URL before any request.

use std::net::IpAddr;

use reqwest::Url;

use super::address;
use super::failure::FetchError;

/// Ports from 1024 on for other protocols than HTTP, as browsers refuse them.
const OTHER_SERVICES: [u16; 24] = [
    1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 9100, 10080, 11211, 25565, 27017,
];

/// A checked URL, without its fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    url: Url,
}

impl Target {
    /// Checks a given URL.
    pub(super) fn parse(text: &str, allow_private: bool) -> Result<Self, FetchError> {
        let url = Url::parse(text.trim()).map_err(|_| FetchError::Url)?;
        Self::checked(url, allow_private)
    }

    /// The target of a redirect. An address with TLS is not replaced by one without: the author of
    /// `https` would not notice that anybody on the way can rewrite the feed. That address can be
    /// given directly.
    pub(super) fn follow(&self, location: &str, allow_private: bool) -> Result<Self, FetchError> {
        let url = self.url.join(location.trim()).map_err(|_| FetchError::Url)?;
        let target = Self::checked(url, allow_private)?;
        if self.url.scheme() == "https" && target.url.scheme() == "http" {
            return Err(FetchError::Downgrade(target.url.into()));
        }
        Ok(target)
    }

    fn checked(mut url: Url, allow_private: bool) -> Result<Self, FetchError> {
        url.set_fragment(None);
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Scheme(url.scheme().to_owned()));
        }
        // A user name and password in a URL would end up in logs, lists and redirects.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Credentials);
        }
        let host = url.host_str().ok_or(FetchError::Url)?;
        if allow_private {
            return Ok(Self { url });
        }
        let port = url.port_or_known_default().ok_or(FetchError::Url)?;
        if !is_allowed(port) {
            return Err(FetchError::Port(port));
        }
        // The client does not resolve a numeric address, so the resolver never sees it.
        let written = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if let Ok(address) = written
            && !address::is_public(address)
        {
            return Err(FetchError::Private { host: host.to_owned(), address });
        }
        Ok(Self { url })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The host that requests count for. All ports and schemes of a host are one host.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_end_matches('.')
    }

    pub(super) fn has_same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin()
    }
}

/// The ports of the web, and those that any user of a machine may open.
fn is_allowed(port: u16) -> bool {
    matches!(port, 80 | 443) || (port >= 1024 && !OTHER_SERVICES.contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Target::parse(url, false).unwrap_err().to_string()
    }

    #[test]
    fn only_the_web_is_asked() {
        for url in ["file:///etc/passwd", "ftp://example.com/", "data:,x", "gopher://example.com"] {
            assert!(matches!(Target::parse(url, true), Err(FetchError::Scheme(_))), "{url}");
        }
        assert!(matches!(Target::parse("feed.xml", true), Err(FetchError::Url)));
        assert!(matches!(Target::parse("http://", true), Err(FetchError::Url)));
    }

    #[test]
    fn addresses_are_recognised_however_they_are_written() {
        for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]"] {
            let error = Target::parse(&format!("http://{host}/"), false).unwrap_err();
            assert!(matches!(error, FetchError::Private { .. }), "{host}: {error}");
        }
        for host in ["[::ffff:127.0.0.1]", "[64:ff9b::a00:1]", "169.254.169.254", "127.0.0.1."] {
            let error = Target::parse(&format!("http://{host}/"), false).unwrap_err();
            assert!(matches!(error, FetchError::Private { .. }), "{host}: {error}");
            assert!(Target::parse(&format!("http://{host}/"), true).is_ok(), "{host}");
        }
        assert!(Target::parse("http://1.1.1.1/", false).is_ok());
    }

    #[test]
    fn ports_of_other_services_are_refused() {
        for port in [1, 22, 25, 81, 993, 6000, 6379, 11211] {
            let error = Target::parse(&format!("http://example.com:{port}/"), false).unwrap_err();
            assert!(matches!(error, FetchError::Port(refused) if refused == port));
        }
        for port in [80, 443, 1024, 3000, 8080, 8443, 65535] {
            assert!(Target::parse(&format!("http://example.com:{port}/"), false).is_ok());
        }
        assert!(Target::parse("http://intranet:81/", true).is_ok());
    }

    #[test]
    fn names_and_passwords_are_refused_and_not_repeated() {
        let message = refused("https://reader:secret@example.com/feed");
        assert!(!message.contains("secret"), "{message}");
        let target = Target::parse("https://example.com/feed", false).unwrap();
        let next = target.follow("//reader:secret@example.com/other", false);
        assert!(matches!(next, Err(FetchError::Credentials)));
    }

    #[test]
    fn a_redirect_is_resolved_and_checked_like_any_address() {
        let target = Target::parse("https://example.com/a/feed?x=1#top", false).unwrap();
        let next = |location| target.follow(location, false);
        assert_eq!(next("../b#end").unwrap().url().as_str(), "https://example.com/b");
        assert!(matches!(next("http://example.com/"), Err(FetchError::Downgrade(_))));
        assert!(matches!(next("https://10.0.0.1/"), Err(FetchError::Private { .. })));
        assert!(matches!(next("file:///etc/passwd"), Err(FetchError::Scheme(_))));
        assert!(matches!(next("https://example.com:22/"), Err(FetchError::Port(22))));
    }

    #[test]
    fn one_host_is_one_host_on_every_port() {
        let one = Target::parse("http://Example.com./", false).unwrap();
        let other = Target::parse("https://example.com:8443/", false).unwrap();
        assert_eq!(one.host(), other.host());
        assert!(!one.has_same_origin(&other));
    }
}
