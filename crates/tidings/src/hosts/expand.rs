//! `${NAME}` in the texts of an `mcp.json`.

use crate::report::Usage;

/// The values of variables.
pub(crate) struct Environment<'a> {
    /// The value of a variable, if it is set.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The current directory.
    pub(crate) here: &'a str,
}

impl Environment<'_> {
    /// Replaces `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${workspaceFolder}` and `${userHome}`.
    ///
    /// # Errors
    ///
    /// If a variable is not set and has no default, or only a host can supply it.
    pub(crate) fn expand(&self, text: &str) -> Result<String, Usage> {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            result += &rest[..start];
            result += &self.value(&rest[start + 2..start + length])?;
            rest = &rest[start + length + 1..];
        }
        Ok(result + rest)
    }

    fn value(&self, name: &str) -> Result<String, Usage> {
        match name {
            "workspaceFolder" => return Ok(self.here.to_owned()),
            "userHome" => return self.variable("HOME", None),
            _ => {}
        }
        if name.starts_with("input:") {
            return Err(Usage::new(format!("`${{{name}}}` can be filled in only by a host"))
                .hint("give the server's URL or command on the command line instead"));
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        match name.split_once(":-") {
            Some((name, default)) => self.variable(name, Some(default)),
            None => self.variable(name, None),
        }
    }

    fn variable(&self, name: &str, default: Option<&str>) -> Result<String, Usage> {
        let set = (self.variable)(name).filter(|value| !value.is_empty() || default.is_none());
        set.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
            Usage::new(format!("the environment variable `{name}` is not set"))
                .hint(format!("set `{name}`, or write `${{{name}:-default}}`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let variable = |name: &str| match name {
            "KEY" => Some("hunter2".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let environment = Environment { variable: &variable, here: "/project" };
        let result = environment.expand(text).map_err(|usage| usage.to_string());
        assert_eq!(result, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn variables_are_replaced() {
        check("Bearer ${KEY}!", Ok("Bearer hunter2!"));
        check("${env:KEY}${KEY}", Ok("hunter2hunter2"));
        check("${NONE:-x}${EMPTY:-y}[${EMPTY}]", Ok("xy[]"));
        check("${workspaceFolder}/a", Ok("/project/a"));
        check("no ${end, $KEY, $", Ok("no ${end, $KEY, $"));
    }

    #[test]
    fn what_is_not_set_is_named() {
        check("${NONE}", Err("the environment variable `NONE` is not set"));
        check("${input:key}", Err("`${input:key}` can be filled in only by a host"));
    }
}
