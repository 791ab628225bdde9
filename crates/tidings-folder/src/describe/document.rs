//! Reading text, JSON and TOML files, with the line of each error.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Describer;
use crate::tree::ReadError;
use crate::{Fix, Problem};

/// How many unknown keys are reported for one file.
const UNKNOWN: usize = 20;
const MARK: &str = "\u{feff}";

impl Describer<'_> {
    /// The text of a file that belongs to a description; `None` after a problem was reported.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        self.result.reads.insert(path.to_owned());
        if !self.may_read(path) {
            if self.surroundings.policy.is_closed() {
                // The problem of the policy is reported; one for each denied file would hide it.
                self.result.broken = true;
                return None;
            }
            let reason = "it is hidden, or the policy denies it";
            self.reject(Problem::error(path, reason, "name a file that is served"));
            return None;
        }
        let bytes = match self.root().read(path, self.limits().description) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.reject(Problem::error(path, reason(&error), advice(&error)));
                return None;
            }
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let line = String::from_utf8_lossy(&error.as_bytes()[..valid]).lines().count();
                let problem = Problem::error(path, "it is not UTF-8 text", "save it as UTF-8");
                self.reject(problem.at(line.max(1)));
                return None;
            }
        };
        let Some(rest) = text.strip_prefix(MARK) else { return Some(text) };
        let problem = Problem::warning(
            path,
            "it begins with a byte order mark, which other programs stumble over",
            "save it without",
        );
        self.report(problem.at(1).mended_by(Fix::DropByteOrderMark));
        Some(rest.to_owned())
    }

    /// A description in JSON, or in TOML if its name ends so.
    pub(super) fn document<T: DeserializeOwned>(&mut self, path: &Path) -> Option<(T, String)> {
        let text = self.text(path)?;
        let parsed = if path.extension().is_some_and(|ending| ending == "toml") {
            toml::from_str(&text).map_err(|error| {
                let line = error.span().map(|span| line_at(&text, span.start));
                (in_words(error.message()), line)
            })
        } else {
            serde_json::from_str(&text).map_err(|error| {
                let reason = without_place(&error.to_string());
                let words = in_words(&reason);
                match culprit::<T>(&text, &reason) {
                    Some(key) => (format!("`{key}` is wrong: {words}"), line_of(&text, &key)),
                    None => (words, (error.line() > 0).then(|| error.line())),
                }
            })
        };
        match parsed {
            Ok(value) => Some((value, text)),
            Err((reason, line)) => {
                let problem = Problem::error(path, reason, "correct the description");
                self.reject(Problem { line, ..problem });
                None
            }
        }
    }

    /// Reports unknown keys, so that a misspelt one is found.
    pub(super) fn unknown_keys<'k>(
        &mut self,
        path: &Path,
        text: &str,
        keys: impl Iterator<Item = &'k String>,
        known: &str,
    ) {
        for key in keys.take(UNKNOWN) {
            let reason = format!("`{key}` means nothing here");
            let problem = Problem::warning(path, reason, format!("known keys: {known}"));
            self.report(Problem { line: line_of(text, key), ..problem });
        }
    }
}

/// Why a file cannot be read.
pub(super) fn reason(error: &ReadError) -> String {
    match error {
        ReadError::Io(error) => format!("it cannot be read: {error}"),
        other => other.to_string(),
    }
}

fn advice(error: &ReadError) -> &'static str {
    match error {
        ReadError::Missing => "create it, or correct the path",
        ReadError::Outside => "put a copy of the file into the folder",
        ReadError::NotAFile => "put a file there",
        ReadError::TooLarge(_) => "make it smaller",
        ReadError::Io(_) => "correct its permissions",
    }
}

/// The line, counted from 1, of a position in a text.
pub(super) fn line_at(text: &str, position: usize) -> usize {
    1 + text.as_bytes().iter().take(position).filter(|byte| **byte == b'\n').count()
}

/// The line on which a key is first written.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let quoted = format!("\"{key}\"");
    text.lines()
        .position(|line| line.contains(&quoted) || line.trim_start().starts_with(key))
        .map(|line| line + 1)
}

/// The message without the position at its end, which is reported separately.
pub(super) fn without_place(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message).to_owned()
}

/// The key of an object whose value alone causes this error.
fn culprit<T: DeserializeOwned>(text: &str, reason: &str) -> Option<String> {
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    object.into_iter().find_map(|(key, value)| {
        let alone = Value::Object([(key.clone(), value)].into_iter().collect());
        let error = serde_json::from_value::<T>(alone).err()?;
        (error.to_string() == reason).then_some(key)
    })
}

/// The library's error message in plain words.
pub(super) fn in_words(message: &str) -> String {
    let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    else {
        return of_syntax(message)
            .or_else(|| of_name(message))
            .unwrap_or_else(|| message.to_owned());
    };
    let found = match found.split_once(' ') {
        _ if found == "sequence" => "a list".to_owned(),
        _ if found == "map" => "an object".to_owned(),
        _ if found.starts_with("floating point ") => found.replace("floating point", "the number"),
        Some(("integer", value)) => format!("the number {value}"),
        Some(("boolean", value)) => value.to_owned(),
        Some(("string", value)) => format!("the text {value}"),
        _ => found.to_owned(),
    };
    let expected = match expected.split(' ').next().unwrap_or_default() {
        "f64" | "f32" => "a number",
        "u64" | "u32" | "usize" => "a whole number that is not negative",
        "i64" | "i32" => "a whole number",
        "string" | "str" => "a text",
        "struct" | "map" => "an object",
        _ if expected.starts_with("a string") => "a text",
        _ if expected.starts_with("a map") => "an object",
        _ if expected.starts_with("a sequence") => "a list",
        _ => expected,
    };
    format!("{found} is not {expected}")
}

/// A message about invalid JSON.
fn of_syntax(message: &str) -> Option<String> {
    if let Some(what) = message.strip_prefix("EOF while parsing a") {
        let what = match what.trim_start_matches('n').trim_start() {
            "object" => "it ends in the middle of an object: a `}` is missing",
            "list" => "it ends in the middle of a list: a `]` is missing",
            "string" => "it ends in the middle of a text: a `\"` is missing",
            _ => "it ends where a value should be",
        };
        return Some(what.to_owned());
    }
    if let Some(missing) = message.strip_prefix("expected `") {
        let missing = missing.trim_end_matches('`');
        return Some(format!("`{missing}` is missing before this"));
    }
    let words = match message {
        "expected value" | "expected ident" => "this is not a value of JSON",
        "key must be a string" => "a key is not in double quotes",
        "trailing comma" => "there is a comma with nothing after it",
        "trailing characters" => "something follows the end of the document",
        "recursion limit exceeded" => "it is nested too deeply",
        "invalid number" => "this is not a number",
        "invalid escape" => "a `\\` in a text means nothing here: write it twice",
        _ if message.starts_with("control character") => {
            "a text has a line end or another control character in it"
        }
        _ => return None,
    };
    Some(words.to_owned())
}

/// A message about a missing, repeated or unknown name.
fn of_name(message: &str) -> Option<String> {
    let named = |start: &str| message.strip_prefix(start)?.split_once('`');
    if let Some((name, _)) = named("missing field `") {
        return Some(format!("`{name}` is missing"));
    }
    if let Some((name, _)) = named("duplicate field `") {
        return Some(format!("`{name}` is there twice"));
    }
    if let Some((name, rest)) = named("unknown field `") {
        let known = rest.strip_prefix(", expected ").unwrap_or("left out");
        let known = known.strip_prefix("one of ").unwrap_or(known);
        return Some(format!("`{name}` means nothing here; it may be {known}"));
    }
    let (name, rest) = named("unknown variant `")?;
    let known = rest.strip_prefix(", expected ")?;
    Some(format!("`{name}` is not {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_type_is_told_in_words() {
        let check = |message: &str, words: &str| assert_eq!(in_words(message), words);
        check("invalid type: string \"soon\", expected f64", "the text \"soon\" is not a number");
        check("invalid type: integer `3`, expected a string", "the number `3` is not a text");
        check("invalid type: map, expected a sequence", "an object is not a list");
        check(
            "invalid type: floating point `1.5`, expected u64",
            "the number `1.5` is not a whole number that is not negative",
        );
        check("EOF while parsing", "EOF while parsing");
    }

    #[test]
    fn what_is_no_json_and_names_nobody_knows_are_told_in_words() {
        #[track_caller]
        fn check<T: DeserializeOwned>(text: &str, words: &str) {
            let error = serde_json::from_str::<T>(text).err().unwrap().to_string();
            assert_eq!(in_words(&without_place(&error)), words);
        }
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named {
            #[expect(dead_code, reason = "only whether it can be read counts")]
            name: String,
        }
        check::<Value>("", "it ends where a value should be");
        check::<Value>("{\"a\": 1", "it ends in the middle of an object: a `}` is missing");
        check::<Value>("[1", "it ends in the middle of a list: a `]` is missing");
        check::<Value>("[\"a", "it ends in the middle of a text: a `\"` is missing");
        check::<Value>("{\"a\" 1}", "`:` is missing before this");
        check::<Value>("[1 2]", "`,` or `]` is missing before this");
        check::<Value>("{'a': 1}", "a key is not in double quotes");
        check::<Value>("[1,]", "there is a comma with nothing after it");
        check::<Value>("[nope]", "this is not a value of JSON");
        check::<Value>("{} {}", "something follows the end of the document");
        check::<Value>("[\"a\nb\"]", "a text has a line end or another control character in it");
        check::<Named>("{}", "`name` is missing");
        check::<Named>("{\"nme\": 1}", "`nme` means nothing here; it may be `name`");
        check::<Named>("{\"name\": \"a\", \"name\": \"a\"}", "`name` is there twice");
        assert_eq!(
            in_words("unknown variant `robot`, expected one of user, assistant"),
            "`robot` is not one of user, assistant"
        );
    }
}
