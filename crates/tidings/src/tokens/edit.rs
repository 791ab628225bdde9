//! Changing `tokens.toml`: only the lines of the token change, and the file is replaced in one step.

use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Deserialize as _;
use serde_json::json;
use tidings_store::database::directory;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use super::file::{ALGORITHM, StoredToken, TOKENS, named, parse};
use crate::draft::draft;
use crate::report::{Hint, Usage};
use crate::values::nearest;

/// Only the owner may read or write the file.
const MODE: u32 = 0o600;
/// The first lines of a new file.
const HEADING: &str = "\
# Who may use `tidings serve --tokens`. `tidings token new` adds entries. A running server follows
# changes of this file, so editing an entry or removing it takes effect at once.
";

/// Adds a token.
///
/// # Errors
///
/// If its name is taken, or the file cannot be read or written.
pub(crate) fn add(path: &Path, token: &StoredToken) -> Result<()> {
    let change = |text: &str| {
        if entries(text)?.iter().any(|entry| named(entry.get_ref()) == Some(&token.name)) {
            let usage = Usage::new(format!("the token `{}` exists already", token.name));
            bail!(usage.hint("choose another name, or remove the old token first"));
        }
        Ok(with(text, token))
    };
    edit(path, change, |before, after| {
        after.strip_prefix(before).is_some_and(|added| added.len() == 1)
    })
}

/// Removes the tokens with these names, valid or not.
///
/// # Errors
///
/// If one of them is not there, or the file cannot be read or written. Then nothing is removed.
pub(crate) fn remove(path: &Path, names: &[String]) -> Result<()> {
    let change =
        |text: &str| names.iter().try_fold(text.to_owned(), |text, name| without(&text, name));
    edit(path, change, |before, after| {
        let is_named = |entry: &&Value| {
            let name = entry.get("name").and_then(Value::as_str);
            name.is_some_and(|name| names.iter().any(|named| named == name))
        };
        before.iter().filter(|entry| !is_named(entry)).eq(after)
    })
}

/// Replaces the text of the file. `is_right` compares the entries before and after: if the new text
/// says anything else than it should, nothing is written.
fn edit(
    path: &Path,
    change: impl FnOnce(&str) -> Result<String>,
    is_right: impl FnOnce(&[Value], &[Value]) -> bool,
) -> Result<()> {
    let shown = path.display();
    let (reading, writing) = (|| format!("reading `{shown}`"), || format!("writing `{shown}`"));
    let real = real(path).with_context(writing)?;
    let folder = real.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    directory::make(folder).with_context(writing)?;
    // Two commands at once must not overwrite each other's change. The lock ends with this call.
    let lock = File::open(folder).with_context(writing)?;
    lock.lock().with_context(writing)?;
    let text = match std::fs::read_to_string(&real) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => HEADING.to_owned(),
        Err(error) => return Err(error).with_context(reading),
    };
    // It names the line of an error.
    parse(&text).with_context(reading)?;
    let new = change(&text)?;
    let is_right = values(&text)
        .and_then(|before| values(&new).map(|after| is_right(&before, &after)))
        .unwrap_or_default();
    if !is_right {
        let hint = "write each token as a table that begins with `[[tokens]]`, or edit the file";
        let error = anyhow!("the tokens in `{shown}` are in a form that cannot be edited");
        return Err(error.context(Hint(hint.to_owned())));
    }
    write(&real, &new).with_context(writing)
}

/// The path behind links, so that a link stays one.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        real => real,
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let file = draft(path, None, text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(MODE))?;
    if let Ok(old) = std::fs::metadata(path) {
        let (user, group) =
            (rustix::fs::Uid::from_raw(old.uid()), rustix::fs::Gid::from_raw(old.gid()));
        // The administrator may edit the file of a service, which must still be able to read it.
        rustix::fs::fchown(file.as_file(), Some(user), Some(group))?;
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// The text with one more token at its end.
fn with(text: &str, token: &StoredToken) -> String {
    // The escapes of JSON are those of TOML.
    let quoted = |text: &str| json!(text).to_string();
    let mut lines = vec![format!("[[{TOKENS}]]"), format!("name = {}", quoted(&token.name))];
    lines.push(format!("hash = \"{ALGORITHM}{}\"", token.hash));
    if !token.labels.is_empty() {
        let labels: Vec<_> = token.labels.iter().map(quoted).collect();
        lines.push(format!("labels = [{}]", labels.join(", ")));
    }
    lines.extend(token.created.map(|created| format!("created = {created}")));
    lines.extend(token.expires.map(|expires| format!("expires = {expires}")));
    lines.extend(token.connections.map(|number| format!("connections = {number}")));
    lines.extend(token.sessions.map(|number| format!("sessions = {number}")));
    lines.extend(token.listeners.map(|number| format!("listeners = {number}")));
    let gap = if text.trim().is_empty() { "" } else { "\n\n" };
    format!("{}{gap}{}\n", text.trim_end(), lines.join("\n"))
}

/// The text without the tokens of this name, the comments right above them, and the gap below.
fn without(text: &str, name: &str) -> Result<String> {
    let entries = entries(text)?;
    let (found, others): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| named(entry.get_ref()) == Some(name));
    if found.is_empty() {
        let others: Vec<_> = others.iter().filter_map(|entry| named(entry.get_ref())).collect();
        let usage = Usage::new(format!("there is no token `{name}`"));
        return Err(match nearest(name, &others) {
            Some(near) => usage.hint(format!("did you mean `{near}`?")),
            None => usage.hint("`tidings token ls` lists the tokens"),
        }
        .into());
    }
    let mut text = text.to_owned();
    for entry in found.iter().rev() {
        text.replace_range(lines_of(entry, &text), "");
    }
    Ok(text)
}

/// The lines of an entry, from the comments right above it to the gap below.
fn lines_of(entry: &Spanned<DeValue<'_>>, text: &str) -> Range<usize> {
    let mut start = text[..entry.span().start].rfind('\n').map_or(0, |line_break| line_break + 1);
    while let Some(above) = text[..start].strip_suffix('\n') {
        let line = above.rfind('\n').map_or(0, |line_break| line_break + 1);
        if !above[line..].trim_start().starts_with('#') {
            break;
        }
        start = line;
    }
    let mut end = end_of(entry);
    end += text[end..].find('\n').map_or(text[end..].len(), |line_break| line_break + 1);
    while let Some((gap, _)) =
        text[end..].split_once('\n').filter(|(line, _)| line.trim().is_empty())
    {
        end += gap.len() + 1;
    }
    start..end
}

/// Where the last value of an entry ends.
fn end_of(value: &Spanned<DeValue<'_>>) -> usize {
    let inner: Vec<_> = match value.get_ref() {
        DeValue::Table(table) => table.values().map(end_of).collect(),
        DeValue::Array(values) => values.iter().map(end_of).collect(),
        _ => Vec::new(),
    };
    inner.into_iter().chain([value.span().end]).max().unwrap_or_default()
}

/// The entries of a text, valid or not, as values that can be compared.
fn values(text: &str) -> Result<Vec<Value>> {
    let value = |entry| Ok(Value::deserialize(ValueDeserializer::from(entry))?);
    entries(text)?.into_iter().map(value).collect()
}

/// The entries of a text, valid or not, in the order of the text.
fn entries(text: &str) -> Result<Vec<Spanned<DeValue<'_>>>> {
    let mut document = DeTable::parse(text)?.into_inner();
    match document.remove(TOKENS).map(Spanned::into_inner) {
        Some(DeValue::Array(entries)) => Ok(entries.into_iter().collect()),
        _ => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings_server::Labels;
    use tidings_server::http::{Token, TokenHash};
    use tidings_store::date::Moment;

    fn token(name: &str) -> StoredToken {
        let secret = Token::new(&format!("a-secret-for-{name}-only")).unwrap();
        StoredToken {
            name: name.to_owned(),
            hash: TokenHash::of(&secret),
            labels: Labels::parse("role:admin user:ada").unwrap(),
            created: Moment::parse("2026-11-18T10:00:00Z"),
            expires: None,
            connections: Some(5),
            sessions: Some(2),
            listeners: None,
        }
    }

    fn names(text: &str) -> Vec<String> {
        parse(text).unwrap().tokens.into_iter().map(|token| token.name).collect()
    }

    #[test]
    fn an_added_token_is_read_as_it_was() {
        let odd = StoredToken {
            labels: Labels::new(["a\"b\\c", "ö"]).unwrap(),
            expires: Some(Moment::LAST.to_second()),
            ..token("bob")
        };
        let text = with(&with("", &token("ada")), &odd);
        assert_eq!(parse(&text).unwrap().tokens, [token("ada"), odd]);
    }

    #[test]
    fn only_the_lines_of_a_token_are_removed() {
        let mut text = "# All of us.\n\n# The first.\n".to_owned();
        for name in ["ada", "bob", "eve"] {
            text = with(&text, &token(name)).replace("first.\n\n", "first.\n");
            text += "\n# End.\n\n";
        }
        let left = without(&text, "ada").unwrap();
        assert!(left.starts_with("# All of us.\n\n# End.\n"), "{left}");
        assert_eq!(names(&left), ["bob", "eve"]);
        let left = without(&text, "bob").unwrap();
        assert_eq!(names(&left), ["ada", "eve"]);
        assert_eq!(left.matches("# End.").count(), 3, "{left}");
        let left = without(&without(&text, "eve").unwrap(), "ada").unwrap();
        assert_eq!(names(&left), ["bob"]);
    }

    #[test]
    fn bad_and_repeated_entries_can_be_removed() {
        let text = "[[tokens]]\nname = 'ada'\nlabels = [\n 'a',\n 'b',\n]\n[tokens.extra]\nx = 1\n\
                    [[tokens]]\nname = 'bob'\n[[tokens]]\nname = 'ada'\nhash = 1\n";
        assert_eq!(without(text, "ada").unwrap(), "[[tokens]]\nname = 'bob'\n");
    }

    #[test]
    fn a_new_file_is_for_its_owner_only_and_so_is_an_old_one_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/tokens.toml");
        let mode = || std::fs::metadata(&file).unwrap().mode() & 0o777;
        add(&file, &token("ada")).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        add(&file, &token("bob")).unwrap();
        assert_eq!(mode(), 0o600);
        remove(&file, &["ada".to_owned()]).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(HEADING), "{text}");
        assert_eq!(names(&text), ["bob"]);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_name_that_is_taken_or_unknown_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        add(&file, &token("ada")).unwrap();
        let before = std::fs::read_to_string(&file).unwrap();
        assert!(add(&file, &token("ada")).unwrap_err().to_string().contains("exists already"));
        let names = ["ada".to_owned(), "adah".to_owned()];
        assert!(remove(&file, &names).unwrap_err().to_string().contains("no token `adah`"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    }

    #[test]
    fn a_file_in_another_form_is_not_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        for text in ["tokens = []\n", "tokens = [{ name = 'eve' }, { name = 'ada' }]\n", "[[tokens"]
        {
            std::fs::write(&file, text).unwrap();
            assert!(add(&file, &token("bob")).is_err());
            let _ = remove(&file, &["eve".to_owned()]);
            let left = std::fs::read_to_string(&file).unwrap();
            assert_eq!(left, text);
        }
    }

    #[test]
    fn commands_at_once_lose_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens.toml");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let file = &file;
                scope.spawn(move || add(file, &token(&format!("t{number}"))).unwrap());
            }
        });
        assert_eq!(names(&std::fs::read_to_string(&file).unwrap()).len(), 8);
    }
}
