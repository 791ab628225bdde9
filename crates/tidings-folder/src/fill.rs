//! Filling in the arguments of prompts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::offer::PromptText;

/// Why a prompt cannot be filled in: the argument, its value and what would be valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FillError {
    pub(crate) argument: String,
    pub(crate) value: String,
    pub(crate) details: String,
}

/// The names inside `{{…}}` in a text.
pub(crate) fn placeholders(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    split(text, |piece| {
        if let Piece::Name(name) = piece {
            names.insert(name.to_owned());
        }
    });
    names
}

/// Replaces `${name}`, the notation of `mcp-bash`, with `{{name}}` for these names.
pub(crate) fn with_braces<'a>(text: String, names: impl Iterator<Item = &'a str>) -> String {
    if !text.contains("${") {
        return text;
    }
    names.fold(text, |text, name| text.replace(&format!("${{{name}}}"), &format!("{{{{{name}}}}}")))
}

/// The text of a prompt with its arguments filled in. Placeholders inside values stay as they are.
pub(crate) fn fill(prompt: &PromptText, given: &Map<String, Value>) -> Result<String, FillError> {
    let arguments = prompt.prompt.arguments.as_deref().unwrap_or_default();
    let names = || {
        let names: Vec<_> = arguments.iter().map(|it| format!("`{}`", it.name)).collect();
        if names.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", names.join(", "))
        }
    };
    for (name, value) in given {
        let fault = |details: String| {
            let (argument, value) = (name.clone(), shown(value));
            Err(FillError { argument, value, details })
        };
        if !arguments.iter().any(|argument| argument.name == *name) {
            return fault(format!("the prompt has no argument `{name}`: {}", names()));
        }
        let Some(value) = value.as_str() else {
            return fault(format!("the argument `{name}` must be a text"));
        };
        if let Some(values) = prompt.values.get(name)
            && !values.iter().any(|it| it == value)
        {
            return fault(format!("the argument `{name}` can be {}", values.join(", ")));
        }
    }
    for argument in arguments {
        if argument.required == Some(true) && !given.contains_key(&argument.name) {
            let details = format!("the argument `{}` is required; {}", argument.name, names());
            return Err(FillError {
                argument: argument.name.clone(),
                value: String::new(),
                details,
            });
        }
    }
    let mut filled = String::with_capacity(prompt.body.len());
    split(&prompt.body, |piece| match piece {
        Piece::Text(text) => filled.push_str(text),
        Piece::Name(name) => {
            filled.push_str(given.get(name).and_then(Value::as_str).unwrap_or_default());
        }
    });
    Ok(filled)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

fn split<'a>(text: &'a str, mut each: impl FnMut(Piece<'a>)) {
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        if let Some((name, length)) = name_at(&rest[open + 2..]) {
            each(Piece::Text(&rest[..open]));
            each(Piece::Name(name));
            rest = &rest[open + 2 + length..];
        } else {
            // Not a placeholder: keep the brace, but the next one may open one.
            each(Piece::Text(&rest[..=open]));
            rest = &rest[open + 1..];
        }
    }
    each(Piece::Text(rest));
}

/// The name at the start of a text, up to the closing braces, and its length with them.
fn name_at(text: &str) -> Option<(&str, usize)> {
    let end = text.find(|it: char| !(is_part(it) || it == ' '))?;
    let name = text[..end].trim_matches(' ');
    let closed = !name.is_empty() && !name.contains(' ') && text[end..].starts_with("}}");
    closed.then_some((name, end + 2))
}

fn is_part(it: char) -> bool {
    it.is_alphanumeric() || "_-.".contains(it)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidings_server::model::{Prompt, PromptArgument, Role};

    use super::*;

    fn filled(body: &str, given: &Value) -> Result<String, String> {
        let arguments = vec![
            PromptArgument::new("who").with_required(true),
            PromptArgument::new("tone").with_required(false),
        ];
        let prompt = PromptText {
            audience: tidings_server::Labels::NONE,
            file: "prompts/greet.md".into(),
            prompt: Prompt::new("greet", None::<String>, Some(arguments)),
            body: body.to_owned(),
            role: Role::User,
            values: [("tone".to_owned(), vec!["warm".to_owned(), "cold".to_owned()])].into(),
        };
        fill(&prompt, given.as_object().unwrap()).map_err(|error| error.details)
    }

    #[test]
    fn placeholders_are_filled_once() {
        let given = json!({ "who": "{{tone}}" });
        assert_eq!(filled("Hi {{who}}, {{ tone }}!", &given).unwrap(), "Hi {{tone}}, !");
    }

    #[test]
    fn placeholders_of_mcp_bash_are_filled_for_names_that_are_declared() {
        let text = with_braces("Hi ${who}, ${HOME} ${w}".to_owned(), ["who"].into_iter());
        assert_eq!(text, "Hi {{who}}, ${HOME} ${w}");
    }

    #[test]
    fn what_is_no_placeholder_stays() {
        let text = "{{}} {{a b}} {x} {{who {{{who}}} $who";
        assert_eq!(
            filled(text, &json!({ "who": "W" })).unwrap(),
            "{{}} {{a b}} {x} {{who {W} $who"
        );
    }

    #[test]
    fn wrong_arguments_are_told_by_name() {
        let check = |given: Value, words: &str| {
            let said = filled("{{who}}", &given).unwrap_err();
            assert!(said.contains(words), "{said}");
        };
        check(json!({}), "`who` is required");
        check(json!({ "who": "a", "whom": "b" }), "no argument `whom`: it takes `who`, `tone`");
        check(json!({ "who": 3 }), "`who` must be a text");
        check(json!({ "who": "a", "tone": "loud" }), "can be warm, cold");
    }
}
