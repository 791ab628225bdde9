//! Feeds on the command line: the directory, the names of feeds, relative times.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use tidings_feeds::{
    AddressError, Asker, Config, Data, FeedAddress, Feeds, FeedsError, FetchDocumentError, Fetched,
    Fetching, Role, Status, StoreError, WebAddress,
};
use tidings_store::date::Moment;

use crate::args::{FeedsPlace, Header, HeaderValue};
use crate::hosts::Environment;
use crate::present::Output;
use crate::report::{Hint, Usage};
use crate::settings::{Serving, Settings, USUAL};
use crate::values::nearest;

/// The directory of the stored feeds: the given one, or the system's place for data.
pub(crate) fn directory(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let data = data_home()
        .context("the home directory is unknown, so feeds cannot be stored there")
        .context(Hint("give a directory with `--data DIR`".to_owned()))?;
    Ok(data.join("tidings/feeds"))
}

/// The system's place for data of the user's programs.
pub(crate) fn data_home() -> Option<PathBuf> {
    let folder =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share")))
}

/// The directory of a command's feeds, and whether they may be on private addresses.
#[derive(Debug)]
pub(crate) struct FeedsLocation {
    pub(crate) directory: PathBuf,
    pub(crate) allow_private: bool,
}

/// Finds the directory as `tidings serve` does: from the command line or a configuration.
pub(crate) fn kept(place: &FeedsPlace, output: &Output) -> Result<FeedsLocation> {
    let usual = Path::new(USUAL);
    let file = match &place.config {
        Some(file) => Some(file.as_path()),
        None => Some(usual).filter(|file| place.data.is_none() && file.exists()),
    };
    let Some(file) = file else {
        return Ok(FeedsLocation {
            directory: directory(place.data.as_deref())?,
            allow_private: false,
        });
    };
    let Serving { data, allow_private, .. } = Settings::read(file)?.serve;
    let said = data.filter(|_| place.data.is_none());
    if let Some(said) = &said {
        // The settings have whole paths.
        let here = std::env::current_dir().unwrap_or_default();
        let said = said.strip_prefix(here).unwrap_or(said);
        let (said, file) = (said.display(), file.display());
        output.remark(&format!("using the feeds in `{said}`, as configured in `{file}`"));
    }
    let directory = directory(place.data.as_deref().or(said.as_deref()))?;
    Ok(FeedsLocation { directory, allow_private })
}

/// The feeds that may be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// None: the stored items are enough.
    Nothing,
    /// Feeds on the web.
    Web,
    /// Feeds on private addresses too.
    Private,
}

impl Reach {
    /// As the option says.
    pub(crate) fn when(allow_private: bool) -> Self {
        if allow_private { Self::Private } else { Self::Web }
    }
}

/// Opens the feeds of a directory for reading. Nothing is written, except that the database of an
/// earlier release is migrated. Returns `None` if no feeds are stored.
pub(crate) async fn look(directory: &Path) -> Result<Option<Feeds>> {
    if !Feeds::are_in(directory) {
        return Ok(None);
    }
    let mut config = Config::new(Data::Directory(directory.to_owned()));
    config.role = Role::Reader;
    match Feeds::open(config).await {
        Err(FeedsError::Store(StoreError::Older(_))) => {
            enter(directory, Reach::Nothing).await.map(Some)
        }
        opened => opened.map(Some).with_context(|| format!("opening `{}`", directory.display())),
    }
}

/// The stored feeds: those that are served, and those of an earlier configuration.
pub(crate) async fn all(feeds: &Feeds) -> Result<Vec<Status>> {
    let mut statuses = feeds.statuses();
    statuses.extend(feeds.unserved().await?);
    Ok(statuses)
}

/// Opens the feeds of a directory that a server may have open. Returns `None`, and creates no
/// directory, if no feeds are stored.
pub(crate) async fn visit(directory: &Path, reach: Reach) -> Result<Option<Feeds>> {
    if !Feeds::are_in(directory) {
        return Ok(None);
    }
    enter(directory, reach).await.map(Some)
}

/// The same for commands that add feeds: a missing directory is created.
pub(crate) async fn enter(directory: &Path, reach: Reach) -> Result<Feeds> {
    let mut config = Config::new(Data::Directory(directory.to_owned()));
    let fetching = if reach == Reach::Nothing { Fetching::Off } else { Fetching::On };
    config.role = Role::Guest(fetching);
    config.allow_private = reach == Reach::Private;
    Feeds::open(config).await.with_context(|| format!("opening `{}`", directory.display()))
}

/// The stored feeds with these ids or URLs.
pub(crate) fn named(statuses: &[Status], names: &[String]) -> Result<Vec<Status>, Usage> {
    let found = |name: &String| {
        let is_it = |it: &&Status| [&it.id, &it.asked_url, &it.url].contains(&name);
        let path = address(name, None);
        let is_there = |it: &&Status| path.as_ref().is_ok_and(|path| path.as_str() == it.asked_url);
        let feed = statuses.iter().find(is_it);
        let feed = feed.or_else(|| statuses.iter().find(is_there));
        feed.cloned().ok_or_else(|| {
            let known: Vec<_> =
                statuses.iter().flat_map(|it| [it.id.as_str(), it.asked_url.as_str()]).collect();
            let usage = Usage::new(format!("no feed has the id or URL `{name}`"));
            match nearest(name, &known) {
                Some(near) => usage.hint(format!("did you mean `{near}`?")),
                None => usage.hint("`tidings feeds ls` lists them"),
            }
        })
    };
    names.iter().map(found).collect()
}

/// The address that the operator gave, absolute, so that it is found from any directory.
pub(crate) fn address(text: &str, base: Option<&Path>) -> Result<FeedAddress, AddressError> {
    FeedAddress::parse(text, Asker::Operator).map(|address| address.absolute(base))
}

/// The hint for a request to a private address.
pub(crate) const ALLOW_PRIVATE: &str = "`--allow-private` allows private addresses";

/// The hint for an OPML list given as a feed.
pub(crate) const IMPORT: &str = "add the feeds of a list with `tidings feeds import`, or serve them with `tidings serve --opml`";

/// Checks a feed that is to be served, and returns its absolute address.
pub(crate) fn named_to_serve(feed: &str) -> Result<FeedAddress, Usage> {
    let Ok(named) = FeedAddress::parse(feed, Asker::Operator) else {
        let usage = Usage::new(format!("`{feed}` is not the URL of a feed"));
        return Err(usage
            .hint("give a URL that starts with `https://` or `http://`, or the path of a file"));
    };
    let file = match &named {
        FeedAddress::Web(_) => {
            let hint = "add the feed with `tidings feeds add URL --header 'Authorization: ...'`, \
                and serve it with `--feeds`";
            return without_password(&named, hint).map(|()| named);
        }
        FeedAddress::File(file) => file,
    };
    if file.path().exists() {
        return Ok(named.absolute(None));
    }
    let usage = Usage::new(format!("the file `{feed}` does not exist"));
    Err(usage.hint(if looks_like_host(feed) {
        format!("did you mean `https://{feed}`?")
    } else {
        "create it first, or name it in `tidings.toml`, where it may be missing".to_owned()
    }))
}

/// Refuses a URL with a user name or password, which requests do not use. The URL is not repeated,
/// because others may see the terminal.
pub(crate) fn without_password(address: &FeedAddress, hint: &str) -> Result<(), Usage> {
    if address.web().is_some_and(WebAddress::has_credentials) {
        return Err(Usage::new("a URL with a user name or password is not accepted").hint(hint));
    }
    Ok(())
}

/// Whether a path is probably a web address without its scheme.
pub(crate) fn looks_like_host(path: &str) -> bool {
    let host = path.split('/').next().unwrap_or_default();
    let is_name = |letter: char| letter.is_alphanumeric() || "-.".contains(letter);
    let Some((name, last)) = host.rsplit_once('.') else { return false };
    let is_file = ["xml", "rss", "atom", "rdf", "json", "html", "txt"].contains(&last);
    let is_last = last.len() > 1 && last.chars().all(char::is_alphabetic);
    !name.is_empty() && !is_file && is_last && host.chars().all(is_name)
}

/// A document from the web.
pub(crate) async fn fetch_document(address: &WebAddress, allow_private: bool) -> Result<Fetched> {
    let fetched = tidings_feeds::fetch_document(address, allow_private).await;
    let is_private = fetched.as_ref().is_err_and(FetchDocumentError::is_private);
    let fetched = fetched.map_err(anyhow::Error::new);
    if is_private { fetched.context(Hint(ALLOW_PRIVATE.to_owned())) } else { fetched }
}

/// A document named on the command line.
#[derive(Debug)]
pub(crate) enum NamedDocument {
    /// Standard input.
    Input,
    /// A file or a web address.
    At(FeedAddress),
}

impl NamedDocument {
    /// Parses a name: `-` is standard input.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text == "-" {
            return Ok(Self::Input);
        }
        let address = FeedAddress::parse(text, Asker::Operator);
        let address =
            address.map_err(|_| anyhow!("only files and `http` or `https` URLs can be read"))?;
        Ok(Self::At(address))
    }

    /// The bytes of the document.
    pub(crate) async fn read(&self, allow_private: bool) -> Result<Vec<u8>> {
        match self {
            Self::Input => {
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)?;
                Ok(bytes)
            }
            Self::At(FeedAddress::File(file)) => Ok(std::fs::read(file.path())?),
            Self::At(FeedAddress::Web(address)) => {
                Ok(fetch_document(address, allow_private).await?.bytes)
            }
        }
    }
}

/// The headers to send, with files and variables filled in.
pub(crate) fn headers(headers: &[Header]) -> Result<Vec<(String, String)>> {
    let value = |header: &Header| -> Result<String> {
        match &header.value {
            HeaderValue::Text(text) => Ok(expanded(text)?),
            HeaderValue::File(file) => Ok(std::fs::read_to_string(file)
                .with_context(|| format!("reading `{}`", file.display()))?
                .trim()
                .to_owned()),
        }
    };
    headers.iter().map(|header| Ok((header.name.clone(), value(header)?))).collect()
}

/// A text with `${VARIABLE}` replaced from the environment.
pub(crate) fn expanded(text: &str) -> Result<String, Usage> {
    let here = std::env::current_dir().unwrap_or_default();
    let variable = |name: &str| std::env::var(name).ok();
    let environment = Environment { variable: &variable, here: &here.to_string_lossy() };
    environment.expand(text)
}

/// The distance of a moment, in words.
pub(crate) fn away(moment: Moment, now: Moment) -> String {
    let seconds = moment.unix() - now.unix();
    let length = match seconds.unsigned_abs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    };
    match seconds {
        1.. => format!("in {length}"),
        0 => "now".to_owned(),
        _ => format!("{length} ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_only_looks_can_change_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(look(directory.path()).await.unwrap().is_none());
        let url = address("https://example.com/feed.xml", None).unwrap();
        let feed = tidings_feeds::FeedConfig::new(url);
        let guest = enter(directory.path(), Reach::Nothing).await.unwrap();
        let id = guest.add(feed).await.unwrap();
        let feeds = look(directory.path()).await.unwrap().unwrap();
        assert_eq!(all(&feeds).await.unwrap().len(), 1);
        assert!(matches!(feeds.pause(&id).await, Err(FeedsError::ReadOnly)));
    }

    #[test]
    fn times_are_told_from_now() {
        let now = Moment::from_unix(1_000_000).unwrap();
        let check = |seconds: i64, words: &str| {
            let moment = Moment::from_unix(1_000_000 + seconds).unwrap();
            assert_eq!(away(moment, now), words);
        };
        check(0, "now");
        check(90, "in 90 s");
        check(-600, "10 min ago");
        check(3 * 3600, "in 3 h");
        check(-200_000, "2 days ago");
    }

    #[test]
    fn an_address_without_its_beginning_is_told_from_a_path() {
        for path in ["example.com", "example.com/feed.xml", "blog.example.org/"] {
            assert!(looks_like_host(path), "{path}");
        }
        for path in ["news.xml", "/srv/a.com/f", "./a.com", "../f", "feeds/a.com", "v1.2/feed"] {
            assert!(!looks_like_host(path), "{path}");
        }
    }

    #[test]
    fn what_cannot_be_served_is_told_without_its_secret() {
        let said = |feed: &str| format!("{:?}", named_to_serve(feed).unwrap_err());
        assert!(!said("https://me:secret@example.org/feed").contains("secret"));
        assert!(
            said("example.org/feed.xml").contains("did you mean `https://example.org/feed.xml`")
        );
        assert!(said("none.xml").contains("the file `none.xml` does not exist"));
        assert!(said("ftp://example.org/feed").contains("is not the URL of a feed"));
        let url = "https://example.org/@me?x=a@b";
        assert_eq!(named_to_serve(url).unwrap().as_str(), url);
    }
}
