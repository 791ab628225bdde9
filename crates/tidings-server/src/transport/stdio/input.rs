//! The input of a stdio connection, a line at a time.

use rmcp::model::{ErrorData, RequestId};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tracing::debug;

use crate::transport::overlong::Overlong;

/// The longest line that is read; a longer one is refused and skipped.
const LINE_LIMIT: usize = 16 * 1024 * 1024;

/// The next input.
#[derive(Debug)]
pub(super) enum InputLine {
    /// A line, perhaps with its newline.
    Whole(Vec<u8>),
    /// A line that is too long: the id of its request, and the error.
    Refused(Option<RequestId>, ErrorData),
    /// The input has ended, or failed.
    End,
}

/// Reads lines.
pub(super) struct Input<R> {
    reader: BufReader<R>,
    /// Cancel-safe: a partial line stays here when `next` is dropped.
    partial: Vec<u8>,
    /// A line that is too long, while it is skipped.
    skipping: Option<Overlong>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Input<R> {
    pub(super) fn new(input: R) -> Self {
        Self { reader: BufReader::new(input), partial: Vec::new(), skipping: None, ended: false }
    }

    /// The next line. The last one needs no newline. Cancel-safe.
    pub(super) async fn next(&mut self) -> InputLine {
        while !self.ended {
            let available = match self.reader.fill_buf().await {
                Ok(available) => available,
                Err(error) => {
                    debug!(%error, "the input failed");
                    &[]
                }
            };
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(available.len(), |at| at + 1);
            match &mut self.skipping {
                Some(overlong) => overlong.read(&available[..taken]),
                None => self.partial.extend_from_slice(&available[..taken]),
            }
            self.ended = available.is_empty();
            self.reader.consume(taken);
            if self.partial.len() > LINE_LIMIT {
                let begin = std::mem::take(&mut self.partial);
                self.skipping.get_or_insert_default().read(&begin);
            }
            if newline.is_some() {
                break;
            }
        }
        if let Some(overlong) = self.skipping.take() {
            let details = format!("a message has at most {LINE_LIMIT} bytes");
            let data = Some(json!({ "details": details }));
            let error = ErrorData::invalid_request("Message too long", data);
            return InputLine::Refused(overlong.into_id(), error);
        }
        let line = std::mem::take(&mut self.partial);
        if line.is_empty() { InputLine::End } else { InputLine::Whole(line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &'static str) -> Vec<String> {
        let (mut input, mut lines) = (Input::new(text.as_bytes()), Vec::new());
        while let InputLine::Whole(line) = input.next().await {
            lines.push(String::from_utf8(line).unwrap());
        }
        assert!(matches!(input.next().await, InputLine::End));
        lines
    }

    #[tokio::test]
    async fn the_last_line_needs_no_newline() {
        assert_eq!(lines("").await, [""; 0]);
        assert_eq!(lines("a\n\nb\n").await, ["a\n", "\n", "b\n"]);
        assert_eq!(lines("a\nb").await, ["a\n", "b"]);
    }

    #[tokio::test]
    async fn a_last_line_that_is_too_long_is_refused() {
        let text = format!("{}\nshort", " ".repeat(LINE_LIMIT + 1));
        let mut input = Input::new(text.as_bytes());
        assert!(matches!(input.next().await, InputLine::Refused(None, _)));
        assert!(matches!(input.next().await, InputLine::Whole(line) if line == b"short"));
        let mut input = Input::new(&text.as_bytes()[..=LINE_LIMIT]);
        assert!(matches!(input.next().await, InputLine::Refused(None, _)));
        assert!(matches!(input.next().await, InputLine::End));
    }
}
