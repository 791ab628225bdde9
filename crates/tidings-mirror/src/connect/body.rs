//! Bounded bodies: a whole one, or a stream of events with a limit for each.

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};

use super::skim::{self, Skim};

/// Why a body could not be read.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum BodyError {
    #[error("larger than {0} bytes")]
    TooLarge(usize),
    #[error("ended early: {0}")]
    Broken(String),
}

/// A whole body of at most `most` bytes.
pub(crate) async fn collect<E: std::error::Error>(
    chunks: impl Stream<Item = Result<Bytes, E>>,
    most: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut chunks = std::pin::pin!(chunks);
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| BodyError::Broken(error.to_string()))?;
        if body.len() + chunk.len() > most {
            return Err(BodyError::TooLarge(most));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The complete events of a body. An event larger than `most` is dropped; if it is an answer, its
/// request fails.
pub(crate) fn bounded<E: std::error::Error + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static {
    let chunks = chunks.map(Some).chain(stream::once(std::future::ready(None)));
    chunks.scan(Some(Cutter::new(most)), |cutter, chunk| {
        let cut = cutter.as_mut().map(|cutting| match chunk {
            Some(Ok(chunk)) => cutting.take(&chunk),
            Some(Err(error)) => Err(BodyError::Broken(error.to_string())),
            // The last event need not be terminated.
            None => Ok(std::mem::take(&mut cutting.held).freeze()),
        });
        if !matches!(cut, Some(Ok(_))) {
            *cutter = None;
        }
        std::future::ready(cut)
    })
}

/// Splits a body into events. An empty line ends an event.
struct Cutter {
    most: usize,
    /// The incomplete event.
    held: BytesMut,
    /// The data of the current event, if it is too large to be held.
    passing: Option<Skim>,
    /// The beginning of the current line, and its length so far.
    field: [u8; DATA.len()],
    line: usize,
    was_return: bool,
}

/// The prefix of data lines.
const DATA: &[u8] = b"data:";

impl Cutter {
    fn new(most: usize) -> Self {
        let (held, field) = (BytesMut::new(), [0; DATA.len()]);
        Self { most, held, passing: None, field, line: 0, was_return: false }
    }

    /// The events that this chunk completes.
    fn take(&mut self, chunk: &[u8]) -> Result<Bytes, BodyError> {
        let mut complete = BytesMut::new();
        for &byte in chunk {
            match &mut self.passing {
                Some(passing) => {
                    let is_data = self.line >= DATA.len() && self.field == DATA;
                    // Other lines count for the size only.
                    passing.take(&[if is_data { byte } else { b' ' }]);
                }
                None => self.held.put_u8(byte),
            }
            let is_end = self.is_end(byte);
            if is_end && let Some(passed) = self.passing.take() {
                let failed =
                    passed.answered().map(|id| skim::too_large(id, self.most, passed.bytes()));
                if let Some(text) = failed.and_then(|failed| serde_json::to_string(&failed).ok()) {
                    complete.extend_from_slice(format!("data: {text}\n\n").as_bytes());
                }
            } else if is_end {
                complete.unsplit(self.held.split());
            } else if self.held.len() > self.most {
                self.pass();
            } else if self
                .passing
                .as_ref()
                .is_some_and(|passing| passing.bytes() / skim::MOST > self.most)
            {
                return Err(BodyError::TooLarge(self.most));
            }
        }
        Ok(complete.freeze())
    }

    /// Whether this byte ends an event.
    fn is_end(&mut self, byte: u8) -> bool {
        let is_pair = self.was_return && byte == b'\n';
        self.was_return = byte == b'\r';
        if is_pair {
            return false;
        }
        if matches!(byte, b'\n' | b'\r') {
            return std::mem::take(&mut self.line) == 0;
        }
        if let Some(place) = self.field.get_mut(self.line) {
            *place = byte;
        }
        self.line += 1;
        false
    }

    /// Stops holding the current event.
    fn pass(&mut self) {
        let mut passing = Skim::default();
        let held = self.held.split();
        for line in held.as_ref().split(|byte| matches!(byte, b'\n' | b'\r')) {
            passing.take(line.strip_prefix(DATA).unwrap_or_default());
        }
        self.passing = Some(passing);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn chunks(parts: &[&'static str]) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
        stream::iter(
            parts.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))).collect::<Vec<_>>(),
        )
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_before_it_is_whole() {
        assert_eq!(collect(chunks(&["abc", "def"]), 6).await, Ok(b"abcdef".to_vec()));
        assert_eq!(collect(chunks(&["abc", "def"]), 5).await, Err(BodyError::TooLarge(5)));
    }

    async fn cut(parts: &[&'static str], most: usize) -> Result<String, BodyError> {
        let mut all = Vec::new();
        let mut cut = std::pin::pin!(bounded(chunks(parts), most));
        while let Some(chunk) = cut.next().await {
            all.extend_from_slice(&chunk?);
        }
        Ok(String::from_utf8(all).unwrap())
    }

    #[tokio::test]
    async fn events_come_whole_and_as_they_are() {
        let parts = ["data: 1\n\n", "data: 2\r\n\r\n", ": x\r\rdata: 3\n", "\n", "data: 4"];
        assert_eq!(cut(&parts, 11).await, Ok(parts.concat()));
        assert_eq!(
            cut(&["da", "ta: 1\n", "\ndata: 2\n\n"], 10).await,
            Ok("data: 1\n\ndata: 2\n\n".to_owned())
        );
    }

    #[tokio::test]
    async fn an_event_that_is_too_large_fails_its_request_and_no_other() {
        let large =
            r#"{"jsonrpc":"2.0","result":"0123456789012345678901234567890123456789","id":7}"#;
        let body = ["id: 1\ndata: ", large, "\n\ndata: {}\n\n"];
        let passed = cut(&body, 40).await.unwrap();
        let (failed, next) = passed.split_once("\n\n").unwrap();
        assert_eq!(next, "data: {}\n\n");
        assert!(failed.contains("\"id\":7") && failed.contains("larger than 40 bytes"), "{failed}");
        let lines = "data: {\"result\":\ndata: [],\ndata: \"id\":\ndata: 7}\n\n";
        assert!(cut(&[lines], 20).await.unwrap().contains("\"id\":7"));
        assert_eq!(
            cut(&["data: ", "x".repeat(100).leak(), "\n\ndata: 1\n\n"], 20).await,
            Ok("data: 1\n\n".to_owned())
        );
        assert_eq!(
            cut(&["data: ", "x".repeat(1000).leak()], 20).await,
            Err(BodyError::TooLarge(20))
        );
    }
}
