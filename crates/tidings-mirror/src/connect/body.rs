//! Bodies from outside, bounded: a whole one, or a stream of events of which none may be too large.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

/// Why a body could not be read.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum BodyError {
    #[error("larger than {0} bytes")]
    TooLarge(usize),
    #[error("broke off: {0}")]
    Broken(String),
}

/// A whole body, if it is not larger than `most`.
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

/// A body of events; it ends with an error at the first one that is larger than `most`.
pub(crate) fn bounded<E: std::error::Error + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static {
    chunks.scan(Some(Meter::default()), move |meter, chunk| {
        let item = meter.as_mut().map(|counting| match chunk {
            Err(error) => Err(BodyError::Broken(error.to_string())),
            Ok(chunk) if counting.passes(&chunk, most) => Ok(chunk),
            Ok(_) => Err(BodyError::TooLarge(most)),
        });
        if !matches!(item, Some(Ok(_))) {
            *meter = None;
        }
        std::future::ready(item)
    })
}

/// Counts the bytes of the event that is not complete yet. An empty line ends one.
#[derive(Default)]
struct Meter {
    bytes: usize,
    line: usize,
    was_return: bool,
}

impl Meter {
    fn passes(&mut self, chunk: &[u8], most: usize) -> bool {
        for &byte in chunk {
            let is_pair = self.was_return && byte == b'\n';
            self.was_return = byte == b'\r';
            if is_pair {
                continue;
            }
            self.bytes += 1;
            if matches!(byte, b'\n' | b'\r') {
                if self.line == 0 {
                    self.bytes = 0;
                }
                self.line = 0;
            } else {
                self.line += 1;
            }
            if self.bytes > most {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

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

    #[tokio::test]
    async fn events_are_bounded_one_by_one() {
        let many = chunks(&["data: 1\n\n", "data: 2\r\n\r\n", "data: 3\n", "\n"]);
        assert_eq!(
            bounded(many, 10).filter(|chunk| std::future::ready(chunk.is_ok())).count().await,
            4
        );
        let large = chunks(&["data: 1\n\n", "data: 12345\n", "data: 6\n\n", "data: 7\n\n"]);
        let read: Vec<_> = bounded(large, 14).collect().await;
        assert_eq!(read.len(), 3, "nothing comes after the one that is too large: {read:?}");
        assert_eq!(read[2], Err(BodyError::TooLarge(14)));
    }
}
