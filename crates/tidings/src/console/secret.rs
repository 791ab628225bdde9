//! Secrets in what passes: fields whose names say so are dotted on screen.

use serde_json::Value;

/// What stands in place of a secret.
pub(crate) const DOTS: &str = "••••••";

/// Parts of names whose values are secret.
const NAMES: [&str; 8] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
];
/// Names that are secret as a whole word: `token` is, `progressToken` and `max_tokens` are not.
const WORDS: [&str; 5] = ["token", "accesstoken", "refreshtoken", "idtoken", "bearer"];

/// Whether a field of this name holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    NAMES.iter().any(|part| plain.contains(part)) || WORDS.contains(&plain.as_str())
}

/// A value without its secrets.
pub(crate) fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let hidden = is_secret(name) && (value.is_string() || value.is_number());
                (name.clone(), if hidden { DOTS.into() } else { masked(value) })
            })
            .collect(),
        Value::Array(values) => values.iter().map(masked).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_that_are_named_like_secrets_are_dotted() {
        let sent = json!({ "user": "ann", "apiKey": "k", "deep": [{ "access_token": "t" }] });
        let shown = json!({ "user": "ann", "apiKey": DOTS, "deep": [{ "access_token": DOTS }] });
        assert_eq!(masked(&sent), shown);
    }

    #[test]
    fn a_token_that_counts_or_names_progress_is_shown() {
        assert!(!is_secret("progressToken") && !is_secret("maxTokens") && !is_secret("tokens"));
        assert!(is_secret("API_KEY") && is_secret("Authorization") && is_secret("token"));
        // The schema of a field is not the field.
        let schema = json!({ "properties": { "password": { "type": "string" } } });
        assert_eq!(masked(&schema), schema);
    }
}
