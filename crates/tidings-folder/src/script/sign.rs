//! Signs: progress and log lines that a program writes to its standard error.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use serde_json::Value;
use tidings_server::model::LoggingLevel;

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sign {
    /// Progress of the work.
    Progress { done: f64, total: Option<f64>, message: Option<String> },
    /// A line for the client's log.
    Log { level: LoggingLevel, logger: Option<String>, data: Value },
}

impl Sign {
    /// Parses a sign: `::progress 3/10 message`, `::progress 30% message`, `::log LEVEL message`,
    /// or a notification as JSON. Any other line, including a malformed sign, is plain text.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        if let Some(rest) = line.strip_prefix("::progress ") {
            progress(rest)
        } else if let Some(rest) = line.strip_prefix("::log ") {
            log(rest)
        } else if line.starts_with('{') && line.contains("\"notifications/") {
            notification(&serde_json::from_str(line).ok()?)
        } else {
            None
        }
    }

    pub(crate) fn is_progress(&self) -> bool {
        matches!(self, Self::Progress { .. })
    }
}

fn progress(rest: &str) -> Option<Sign> {
    let (amount, message) = split_word(rest);
    let (done, total) = if let Some(percent) = amount.strip_suffix('%') {
        (number(percent)?, Some(100.0))
    } else if let Some((done, total)) = amount.split_once('/') {
        (number(done)?, Some(number(total)?))
    } else {
        (number(amount)?, None)
    };
    let message = (!message.is_empty()).then(|| message.to_owned());
    Some(Sign::Progress { done, total, message })
}

fn log(rest: &str) -> Option<Sign> {
    let (level, message) = split_word(rest);
    Some(Sign::Log { level: level_named(level)?, logger: None, data: message.into() })
}

/// The lines of the `mcp-bash` SDK. Their token is ignored, because there is only one client.
fn notification(line: &Value) -> Option<Sign> {
    if line.get("jsonrpc")? != "2.0" {
        return None;
    }
    let params = line.get("params")?;
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    match line.get("method")?.as_str()? {
        "notifications/progress" => {
            let done = params.get("progress")?.as_f64()?;
            let total = params.get("total").and_then(Value::as_f64);
            Some(Sign::Progress { done, total, message: text("message") })
        }
        "notifications/message" => {
            let level = level_named(params.get("level")?.as_str()?)?;
            Some(Sign::Log { level, logger: text("logger"), data: params.get("data")?.clone() })
        }
        _ => None,
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace)
        .map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

/// A finite number that is not negative, as JSON and progress need.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn level_named(name: &str) -> Option<LoggingLevel> {
    Some(match name.to_ascii_lowercase().as_str() {
        "debug" => LoggingLevel::Debug,
        "info" => LoggingLevel::Info,
        "notice" => LoggingLevel::Notice,
        "warning" | "warn" => LoggingLevel::Warning,
        "error" => LoggingLevel::Error,
        "critical" => LoggingLevel::Critical,
        "alert" => LoggingLevel::Alert,
        "emergency" => LoggingLevel::Emergency,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_progress(line: &str, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(str::to_owned);
        assert_eq!(Sign::parse(line), Some(Sign::Progress { done, total, message }), "{line}");
    }

    #[test]
    fn progress_has_an_amount_and_perhaps_a_total_and_a_message() {
        check_progress("::progress 3", 3.0, None, None);
        check_progress("::progress 3/10", 3.0, Some(10.0), None);
        check_progress("::progress 0.5/1 half way", 0.5, Some(1.0), Some("half way"));
        check_progress("::progress 40% copying  files", 40.0, Some(100.0), Some("copying  files"));
    }

    #[test]
    fn a_log_line_has_a_level_of_the_protocol() {
        let log = |level, text: &str| Sign::Log { level, logger: None, data: json!(text) };
        assert_eq!(
            Sign::parse("::log warn it leaks"),
            Some(log(LoggingLevel::Warning, "it leaks"))
        );
        assert_eq!(Sign::parse("::log ERROR x"), Some(log(LoggingLevel::Error, "x")));
        assert_eq!(Sign::parse("::log notice"), Some(log(LoggingLevel::Notice, "")));
    }

    #[test]
    fn notifications_as_json_are_signs() {
        let line = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":40,"total":null,"message":"m"}}"#;
        check_progress(line, 40.0, None, Some("m"));
        let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"l","data":{"a":1}}}"#;
        let (level, logger) = (LoggingLevel::Info, Some("l".to_owned()));
        assert_eq!(Sign::parse(line), Some(Sign::Log { level, logger, data: json!({ "a": 1 }) }));
    }

    #[test]
    fn a_malformed_sign_is_an_ordinary_line() {
        for line in [
            "",
            "::progress",
            "::progress ",
            "::progress soon",
            "::progress 1/",
            "::progress -1",
            "::progress nan",
            "::progress inf",
            "::progress 1/x done",
            " ::progress 1",
            "::progress1",
            "::log",
            "::log loud hello",
            "{}",
            r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"x"}}"#,
            r#"{"jsonrpc":"1.0","method":"notifications/progress","params":{"progress":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"#,
        ] {
            assert_eq!(Sign::parse(line), None, "{line}");
        }
    }
}
