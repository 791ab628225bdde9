//! The candidates for the feed of a page, and the main one of them; pure.

use std::collections::HashSet;

use reqwest::Url;

use crate::address::WebAddress;
use crate::parse::Found;

/// The usual paths of feeds.
const USUAL: [&str; 6] = ["feed", "feed.xml", "rss.xml", "atom.xml", "index.xml", "rss"];
/// The types of feeds in headers.
const TYPES: [&str; 3] = ["application/rss+xml", "application/atom+xml", "application/feed+json"];

/// The feeds that a page names, or else its server in the header `Link`, without repeats.
pub(super) fn of_page(named: Vec<Found>, linked: Option<&str>, page: &str) -> Vec<Found> {
    let mut feeds =
        if named.is_empty() { of_header(linked.unwrap_or_default(), page) } else { named };
    let mut seen = HashSet::new();
    feeds.retain(|feed| seen.insert(feed.url.clone()));
    feeds
}

/// The main feed of the page: the only one that is not for comments, or the first of those that are
/// the same in several formats.
pub(super) fn main(feeds: &[Found]) -> Option<&Found> {
    if let [only] = feeds {
        return Some(only);
    }
    let of_posts: Vec<_> = feeds.iter().filter(|feed| !is_of_comments(feed)).collect();
    let mut kinds = HashSet::new();
    let is_each_another_format = of_posts.iter().all(|feed| kinds.insert(feed.kind.as_str()));
    of_posts.first().copied().filter(|_| is_each_another_format)
}

/// Addresses to try for a page that names no feed.
pub(super) fn usual(page: &str) -> Vec<WebAddress> {
    let Ok(page) = Url::parse(page) else { return Vec::new() };
    let join = |path: &&str| page.join(&format!("/{path}")).ok();
    let others = USUAL.iter().filter_map(join).filter(|url| *url != page);
    others.filter_map(|url| WebAddress::parse(url.as_str()).ok()).collect()
}

fn is_of_comments(feed: &Found) -> bool {
    let title = feed.title.as_deref().unwrap_or_default().to_lowercase();
    let url = feed.url.to_lowercase();
    title.contains("comments") || url.contains("/comments/")
}

/// The feeds in a header: `<feed.xml>; rel="alternate"; type="application/rss+xml"`.
fn of_header(header: &str, page: &str) -> Vec<Found> {
    let base = Url::parse(page).ok();
    let found = |part: &str| {
        let (target, parameters) = part.strip_prefix('<')?.split_once('>')?;
        let parameter = |name: &str| {
            let mut all = parameters.split(';').filter_map(|it| it.trim().split_once('='));
            let value = all.find(|(it, _)| it.trim().eq_ignore_ascii_case(name))?.1;
            Some(value.trim().trim_matches('"').to_owned())
        };
        let kind = parameter("type").unwrap_or_default().to_ascii_lowercase();
        let is_feed = parameter("rel")?.split_whitespace().any(|rel| rel == "alternate")
            && TYPES.contains(&kind.as_str());
        let url = base.as_ref()?.join(target).ok()?.into();
        is_feed.then(|| Found { url, title: parameter("title"), kind })
    };
    // An address may contain a comma too: one begins with an angle bracket.
    header
        .split(", <")
        .flat_map(|part| part.split(",<"))
        .filter_map(|part| {
            let part = part.trim();
            if part.starts_with('<') { found(part) } else { found(&format!("<{part}")) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, title: &str, kind: &str) -> Found {
        Found { url: url.to_owned(), title: Some(title.to_owned()), kind: kind.to_owned() }
    }

    #[test]
    fn a_page_with_a_feed_of_comments_means_the_other() {
        let (rss, atom) = (TYPES[0], TYPES[1]);
        let posts = found("https://a.org/feed/", "A » Feed", rss);
        let comments = found("https://a.org/comments/feed/", "A » Comments Feed", rss);
        assert_eq!(main(&[comments.clone(), posts.clone()]), Some(&posts));
        let as_atom = found("https://a.org/atom.xml", "A", atom);
        assert_eq!(main(&[posts.clone(), as_atom]), Some(&posts));
        // Two of one format are two feeds.
        assert_eq!(main(&[posts.clone(), found("https://a.org/b", "B", rss)]), None);
        assert_eq!(main(std::slice::from_ref(&comments)), Some(&comments));
    }

    #[test]
    fn a_header_names_feeds_where_the_page_does_not() {
        let header = "</style.css>; rel=preload, </f,x.xml>; rel=\"alternate\"; \
            type=\"application/rss+xml\"; title=\"News\",<b>; rel=alternate; type=text/html";
        let feeds = of_page(Vec::new(), Some(header), "https://a.org/x/");
        assert_eq!(feeds, [found("https://a.org/f,x.xml", "News", "application/rss+xml")]);
    }

    #[test]
    fn usual_addresses_are_of_the_site() {
        let urls = usual("https://a.org/blog/");
        let urls: Vec<_> = urls.iter().map(WebAddress::as_str).collect();
        assert_eq!(urls[..2], ["https://a.org/feed", "https://a.org/feed.xml"]);
    }
}
