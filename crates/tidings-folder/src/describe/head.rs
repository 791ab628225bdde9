//! Tool descriptions in the comment lines at the head of a script.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The description in a script's head.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Head {
    pub(super) description: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    /// The file with the output schema, and the line that names it.
    pub(super) returns: Option<(String, usize)>,
    pub(super) timeout: Option<Duration>,
    /// The labels of the clients that the tool is for, as written.
    pub(super) audience: Option<String>,
    /// A whole description as JSON, and its line.
    pub(super) json: Option<(String, usize)>,
    /// Invalid lines: line, reason, advice.
    pub(super) faults: Vec<(usize, String, String)>,
    /// Misspelt words: line, word, correct word.
    pub(super) misspelt: Vec<(usize, String, &'static str)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) description: String,
}

const WORDS: [&str; 5] = ["@describe", "@param", "@returns", "@timeout", "@audience"];
const KINDS: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// How comments begin in common scripting languages.
const MARKS: [&str; 5] = ["#", "//", "--", ";", "%"];

impl Head {
    /// Reads the comment lines before the first line of code.
    pub(super) fn parse(text: &str) -> Self {
        let mut head = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with("#!") {
                continue;
            }
            let Some(mark) = MARKS.iter().find(|mark| line.starts_with(**mark)) else { break };
            let said = line.trim_start_matches(mark).trim();
            head.line(index + 1, said);
        }
        head
    }

    /// Whether the head describes anything.
    pub(super) fn is_there(&self) -> bool {
        self != &Self::default()
    }

    fn line(&mut self, number: usize, said: &str) {
        if let Some(json) = said.strip_prefix("mcp:") {
            self.json = Some((json.trim().to_owned(), number));
            return;
        }
        let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let rest = rest.trim();
        match word {
            "@describe" | "@description" => match &mut self.description {
                Some(text) => {
                    text.push('\n');
                    text.push_str(rest);
                }
                None => self.description = Some(rest.to_owned()),
            },
            "@param" => match parameter(rest) {
                Ok(parameter) => self.parameters.push(parameter),
                Err(reason) => self.fault(
                    number,
                    reason,
                    "write `@param name:type TEXT`, with `!` after the type if it is required",
                ),
            },
            "@returns" if !rest.is_empty() => self.returns = Some((rest.to_owned(), number)),
            "@returns" => {
                self.fault(number, "it does not name a file", "write `@returns schema.json`");
            }
            "@timeout" => match duration(rest) {
                Some(timeout) => self.timeout = Some(timeout),
                None => self.fault(
                    number,
                    format!("`{rest}` is not a time"),
                    "write it as `30s`, `500ms` or `2m`",
                ),
            },
            "@audience" => self.audience = Some(rest.to_owned()),
            _ if word.starts_with('@') => {
                let meant = WORDS.into_iter().find(|it| is_near(word, it));
                self.misspelt.extend(meant.map(|it| (number, word.to_owned(), it)));
            }
            _ => {}
        }
    }

    fn fault(&mut self, line: usize, reason: impl Into<String>, advice: &str) {
        self.faults.push((line, reason.into(), advice.to_owned()));
    }

    /// The schema of its arguments, from its `@param` lines.
    pub(super) fn input_schema(&self) -> Option<Map<String, Value>> {
        if self.parameters.is_empty() {
            return None;
        }
        let mut properties = Map::new();
        for parameter in &self.parameters {
            let mut property = json!({ "type": parameter.kind });
            if !parameter.description.is_empty() {
                property["description"] = parameter.description.clone().into();
            }
            properties.insert(parameter.name.clone(), property);
        }
        let required: Vec<_> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| Value::from(parameter.name.clone()))
            .collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        let Value::Object(schema) = schema else { return None };
        Some(schema)
    }
}

/// Whether two words differ by at most two letters.
pub(super) fn is_near(word: &str, other: &str) -> bool {
    let (word, other) = (word.as_bytes(), other.as_bytes());
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in word.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], index + 1);
        for at in 0..other.len() {
            let swapped = corner + usize::from(*letter != other[at]);
            corner = row[at + 1];
            row[at + 1] = swapped.min(row[at] + 1).min(corner + 1);
        }
    }
    row.last().is_some_and(|steps| *steps <= 2)
}

fn parameter(text: &str) -> Result<Parameter, String> {
    let (signature, description) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (name, kind) =
        signature.split_once(':').ok_or_else(|| format!("`{signature}` has no type"))?;
    let (kind, required) = kind.strip_suffix('!').map_or((kind, false), |kind| (kind, true));
    if name.is_empty() {
        return Err("the parameter has no name".to_owned());
    }
    if !KINDS.contains(&kind) {
        return Err(format!("`{kind}` is not a type; use one of {}", KINDS.join(", ")));
    }
    Ok(Parameter {
        name: name.to_owned(),
        kind: kind.to_owned(),
        required,
        description: description.trim().to_owned(),
    })
}

/// A duration as `30s`, `500ms`, `2m`, or a number of seconds.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "" | "s" => number,
        "ms" => number / 1000.0,
        "m" | "min" => number * 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|it| !it.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_lines_describe_a_tool() {
        let head = Head::parse(
            "#!/bin/sh\n# @describe Counts words\n# of a text\n#\n# @param text:string! What to count\n\
             # @param deep:boolean\n# @returns out.json\n# @timeout 500ms\necho # @describe no\n",
        );
        assert_eq!(head.description.as_deref(), Some("Counts words"));
        assert_eq!(head.timeout, Some(Duration::from_millis(500)));
        assert_eq!(head.returns, Some(("out.json".to_owned(), 7)));
        assert_eq!(
            Value::Object(head.input_schema().unwrap()),
            json!({
                "type": "object",
                "properties": {
                    "text": { "type": "string", "description": "What to count" },
                    "deep": { "type": "boolean" },
                },
                "required": ["text"],
            })
        );
    }

    #[test]
    fn a_word_that_is_nearly_one_of_ours_is_told() {
        let head = Head::parse("# @descibe x\n# @parm a:string\n# @author me\n# @return y\n");
        let misspelt: Vec<_> =
            head.misspelt.iter().map(|(line, _, meant)| (*line, *meant)).collect();
        assert_eq!(misspelt, [(1, "@describe"), (2, "@param"), (4, "@returns")]);
    }

    #[test]
    fn a_line_of_json_is_a_whole_description() {
        let head = Head::parse("// mcp:{\"name\":\"x\"}\ncode");
        assert_eq!(head.json, Some(("{\"name\":\"x\"}".to_owned(), 1)));
        assert!(!Head::parse("// a remark\ncode").is_there());
    }

    #[test]
    fn what_cannot_be_understood_is_told_with_its_line() {
        let head =
            Head::parse("#!/bin/sh\n# @param x\n# @param y:text\n# @timeout soon\n# @returns\n");
        let lines: Vec<_> = head.faults.iter().map(|(line, ..)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
        assert!(head.is_there());
    }

    #[test]
    fn times_are_written_as_people_do() {
        let check = |text: &str| duration(text).map(|it| it.as_millis());
        assert_eq!(check("30s"), Some(30_000));
        assert_eq!(check("2m"), Some(120_000));
        assert_eq!(check("1.5"), Some(1500));
        assert_eq!(check("0"), None);
        assert_eq!(check("-1s"), None);
        assert_eq!(check("1e999s"), None);
    }
}
