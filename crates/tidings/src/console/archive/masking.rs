//! What a saved session leaves out: fields that are named like secrets, and secrets that were given
//! for the connection.

use serde_json::Value;
use tidings_mirror::Target;

use crate::console::secret::{DOTS, is_secret};

/// Shorter texts are no secrets worth hiding, and hiding them would spoil every text.
const SHORTEST: usize = 6;

/// The secrets of one connection.
#[derive(Clone, Default)]
pub(crate) struct SessionSecrets(Vec<String>);

impl SessionSecrets {
    /// Headers, and variables that are named like secrets.
    pub(crate) fn of(target: &Target) -> Self {
        let mut secrets = Self::default();
        match target {
            Target::Http(http) => {
                for (_, value) in &http.headers {
                    secrets.add(value.reveal());
                }
            }
            Target::Command(command) => {
                let named = command.environment.iter().filter(|(name, _)| names_secret(name));
                for (_, value) in named {
                    secrets.add(value.reveal());
                }
            }
            _ => {}
        }
        secrets
    }

    pub(crate) fn add(&mut self, text: &str) {
        for text in [text, text.trim_start_matches("Bearer ")] {
            if text.len() >= SHORTEST && !self.0.iter().any(|known| known == text) {
                self.0.push(text.to_owned());
            }
        }
        // A secret that contains another is replaced first.
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// A text without these secrets. If it is JSON, also without fields that are named like secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let plain = self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, DOTS));
        let is_json = plain.trim_start().starts_with(['{', '[']);
        match if is_json { serde_json::from_str::<Value>(&plain).ok() } else { None } {
            Some(value) => {
                let kept = self.value(&value);
                if kept == value { plain } else { kept.to_string() }
            }
            None => plain,
        }
    }

    /// A value without them.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let hides = |name: &str, value: &Value| {
                    is_secret(name) && (value.is_string() || value.is_number())
                };
                let kept = fields.iter().filter(|(name, value)| !hides(name, value));
                kept.map(|(name, value)| (self.text(name), self.value(value))).collect()
            }
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }
}

/// Whether a variable of this name holds a secret: `GITHUB_TOKEN`, `API_KEY`.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidings_mirror::{CommandTarget, HttpTarget, Secret};

    #[test]
    fn secrets_of_the_connection_are_in_no_text_and_their_fields_are_left_out() {
        let target = HttpTarget::new("http://h/").header("x", Secret::new("Bearer hunter2"));
        let secrets = SessionSecrets::of(&target.into());
        let sent = json!({ "a": "401 for hunter2", "password": "x", "deep": [{ "apiKey": 7, "b": 1 }],
            "said": "{\"token\":\"y\",\"c\":1}", "schema": { "password": { "type": "string" } } });
        let kept = json!({ "a": format!("401 for {DOTS}"), "deep": [{ "b": 1 }],
            "said": "{\"c\":1}", "schema": { "password": { "type": "string" } } });
        assert_eq!(secrets.value(&sent), kept);
        assert_eq!(secrets.text("{ \"a\": 1 }"), "{ \"a\": 1 }", "harmless JSON stays as it is");
    }

    #[test]
    fn only_variables_that_are_named_like_secrets_are_hidden() {
        let command = CommandTarget::new("x", Vec::new())
            .env("GITHUB_TOKEN", Secret::new("hunter2"))
            .env("HOME", Secret::new("/home/ann"));
        let secrets = SessionSecrets::of(&command.into());
        assert_eq!(secrets.text("hunter2 in /home/ann"), format!("{DOTS} in /home/ann"));
    }
}
