//! Query parameters of lists. Errors name the parameter and the valid values.

use percent_encoding::percent_decode_str;
use tidings_server::AnswerError;

/// The largest `limit`.
const MOST: usize = 1_000;

/// The page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    /// The most items.
    pub(crate) limit: Option<usize>,
    /// The item after which the page begins.
    pub(crate) after: Option<String>,
}

impl Range {
    /// Parses a query.
    pub(super) fn parse(query: &str) -> Result<Self, AnswerError> {
        let mut range = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let spaced = value.replace('+', " ");
            let value = percent_decode_str(&spaced).decode_utf8().map_err(|_| {
                AnswerError::invalid(name, value, "percent-encoded bytes must be UTF-8")
            })?;
            match name {
                "limit" if range.limit.is_none() => range.limit = Some(limit(&value)?),
                "after" if range.after.is_none() && !value.is_empty() => {
                    range.after = Some(value.into_owned());
                }
                "after" if range.after.is_none() => {
                    let details = "it must be the `next` of a page";
                    return Err(AnswerError::invalid(name, value, details));
                }
                "limit" | "after" => {
                    let details = format!("`{name}` may be given once");
                    return Err(AnswerError::invalid(name, value, details));
                }
                _ => {
                    let details = "there is no such parameter; use `limit` and `after`";
                    return Err(AnswerError::invalid(name, value, details));
                }
            }
        }
        Ok(range)
    }

    /// Requires `after` to be a number.
    pub(super) fn numbered(self) -> Result<Self, AnswerError> {
        match &self.after {
            Some(after) if !after.bytes().all(|byte| byte.is_ascii_digit()) => {
                let details = "it must be the `next` of a page, a number";
                Err(AnswerError::invalid("after", after, details))
            }
            _ => Ok(self),
        }
    }

    /// Refuses `after`, for lists without pages.
    pub(super) fn without_after(self) -> Result<Self, AnswerError> {
        match self.after {
            Some(after) => {
                let details = "use `limit`, or `events://since/{n}` for the events after a number";
                Err(AnswerError::invalid("after", after, details))
            }
            None => Ok(self),
        }
    }
}

fn limit(value: &str) -> Result<usize, AnswerError> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let limit = value.parse().ok().filter(|limit| is_number && (1..=MOST).contains(limit));
    limit.ok_or_else(|| {
        AnswerError::invalid("limit", value, "it must be a whole number from 1 to 1000")
    })
}
